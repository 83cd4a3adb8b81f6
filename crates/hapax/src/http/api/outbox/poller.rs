//! Messages for consumers that nothing can be sent to: they ask.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::id::{EventId, MessageId};
use hapax_ledger::time::Span;
use hapax_store::nouns::{Endpoint, Message, MessageFilter, Page, PageFrom};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::change;
use super::halt::{Halt, Outcome};
use super::message_body::{self, Content, MessageBody};
use super::message_query::{self, MessageId as Place};
use crate::clock;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::describe::asked_of_outbox::PollQuery;
use crate::http::api::list::{self, Asked, LIMIT_DEFAULT};

/// Where several nodes write, ids carry the time of the request and commits end in another order: what is younger than this may still
/// get a neighbour before it, and is not given yet.
const SETTLED_AFTER: Span = Span::from_secs(15);
/// Before every event.
const BEGINNING: EventId = EventId::from_bytes([0; 16]);

/// What there is after the iterator.
#[derive(Serialize, ToSchema)]
#[schema(as = Polled)]
struct PolledBody {
    /// The oldest first.
    data: Vec<MessageBody>,
    /// Ask with this next time.
    iterator: String,
    /// Is there nothing more for now?
    done: bool,
}

/// Messages that an endpoint is subscribed to, from an iterator on, the oldest first.
#[utoipa::path(get, path = "/app/{app_id}/poller/{sink_id}", operation_id = "pollMessages", tag = "messages",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("sink_id" = String, Path, description = "the endpoint's id or uid"), PollQuery),
    responses((status = OK, description = "what there is", body = PolledBody)))]
pub async fn poll(
    State(api): State<Api>,
    Path((app, sink)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let endpoint = change::find_endpoint(&api, &app, &sink).await?;
    let wanted = message_query::Wanted::of(endpoint.app);
    let query = query.unwrap_or_default();
    let asked: Asked<_, Place> = list::parse(&query, wanted, |wanted, name, value| match name {
        "channel" | "after" | "event_type" => message_query::narrow(wanted, name, value),
        _ => Err(None),
    })?;
    let page = message_query::page(asked.page);
    let from = match page.from {
        PageFrom::Newest => BEGINNING,
        PageFrom::OlderThan(id) | PageFrom::NewerThan(id) => id,
    };
    answer(&api, &endpoint, asked.filter.filter, from, page.limit).await
}

async fn answer(
    api: &Api,
    endpoint: &Endpoint,
    mut filter: MessageFilter,
    from: EventId,
    limit: u32,
) -> Outcome {
    if filter.event_types.is_empty() {
        filter.event_types.clone_from(&endpoint.event_types);
    }
    if api.store.shards() > 1 {
        filter.until = Some(clock::now() - SETTLED_AFTER);
    }
    let page = Page {
        limit: limit.min(LIMIT_DEFAULT),
        from: PageFrom::NewerThan(from),
    };
    let mut found = api.store.messages(filter, page).await?.rows;
    found.reverse();
    let done = found.len() < page.limit as usize;
    let last = found.last().map_or(from, |message| message.event.id);
    let meant = found.iter().filter(|message| is_for(endpoint, message));
    let mut data = Vec::with_capacity(found.len());
    for message in meant {
        let payload = message_body::payload(api, message.event.id, Content::With).await?;
        data.push(message_body::to_body(message, payload));
    }
    let body = PolledBody {
        data,
        iterator: MessageId(last.0).to_string(),
        done,
    };
    Result::<_, Halt>::Ok(answer::json(StatusCode::OK, &body))
}

/// Whatever its standing: one that nothing is sent to is what polling is for.
fn is_for(endpoint: &Endpoint, message: &Message) -> bool {
    let event_type = message.event.event_type.as_deref().unwrap_or_default();
    let types = &endpoint.event_types;
    let listens = |channel: &String| endpoint.channels.contains(channel);
    (types.is_empty() || types.iter().any(|wanted| wanted == event_type))
        && (endpoint.channels.is_empty() || message.about.channels.iter().any(listens))
}
