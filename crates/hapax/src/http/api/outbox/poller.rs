//! Messages for consumers that nothing can be sent to: they ask.

use std::fmt;
use std::str::FromStr;

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::id::{EventId, MessageId};
use hapax_ledger::time::Time;
use hapax_store::nouns::{
    Consumed, Endpoint, Message, MessageFilter, PageFrom, PollAsk, PollPlace, Sought,
};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::change;
use super::halt::{Halt, Outcome};
use super::message_body::{self, Content, MessageBody};
use super::message_query;
use crate::clock;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::describe::asked_of_outbox::{ConsumerPollQuery, PollQuery};
use crate::http::api::describe::asked_tasks::SeekRequest;
use crate::http::api::list::{self, Asked, Invalid, LIMIT_DEFAULT};
use crate::http::api::posted::{self, Posted};

/// The longest name of a consumer.
const CONSUMER_BYTES_MAX: usize = 256;

/// What there is after the iterator.
#[derive(Serialize, ToSchema)]
#[schema(as = Polled)]
struct PolledBody {
    /// The oldest first. One that was to be sent later comes when its time has come.
    data: Vec<MessageBody>,
    /// Ask with this next time.
    iterator: String,
    /// Is there nothing more for now?
    done: bool,
}

/// Where a consumer goes on.
#[derive(Serialize, ToSchema)]
#[schema(as = Sought)]
struct SoughtBody {
    /// Ask with this next time, or with none.
    iterator: String,
}

/// A place as an iterator: the last message that was sent at once, the turn of the last that was sent later, and a time to begin at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Iterator(PollPlace);

impl fmt::Display for Iterator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PollPlace {
            at_once,
            later,
            since,
        } = self.0;
        write!(f, "{}.{later}", MessageId(at_once.0))?;
        match since {
            Some(since) => write!(f, ".{}", since.micros()),
            None => Ok(()),
        }
    }
}

impl FromStr for Iterator {
    type Err = ();

    fn from_str(text: &str) -> Result<Iterator, ()> {
        let mut parts = text.split('.');
        let id: MessageId = parts.next().and_then(|id| id.parse().ok()).ok_or(())?;
        let mut number = || parts.next().map(str::parse::<i64>).transpose();
        let (later, since) = (number().map_err(drop)?, number().map_err(drop)?);
        let later = later.filter(|later| *later >= 0).ok_or(())?;
        match parts.next() {
            None => Ok(Iterator(PollPlace {
                at_once: EventId(id.0),
                later,
                since: since.map(Time::from_micros),
            })),
            Some(_) => Err(()),
        }
    }
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
    let mut asked = parse(
        &endpoint,
        query.as_deref(),
        |filter, name, value| match name {
            "channel" | "after" | "event_type" => message_query::narrow_filter(filter, name, value),
            _ => Err(None),
        },
    )?;
    let mut from = place(&asked).unwrap_or(PollPlace::BEGINNING);
    if let Some(after) = asked.filter.since.take() {
        from.since = Some(after);
    }
    answer(&api, &endpoint, asked.filter, from, asked.page.limit).await
}

/// The same for a consumer whose place is kept: without an iterator it goes on where it stands, and with one it says that it has read
/// all before that.
#[utoipa::path(get, path = "/app/{app_id}/poller/{sink_id}/consumer/{consumer_id}", operation_id = "pollAsConsumer", tag = "messages",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("sink_id" = String, Path, description = "the endpoint's id or uid"),
        ("consumer_id" = String, Path, description = "what the consumer calls itself"), ConsumerPollQuery),
    responses((status = OK, description = "what there is", body = PolledBody),
        (status = CONFLICT, description = "somebody of that name has read further, or there are too many consumers",
            body = crate::http::api::describe::told::Problem)))]
pub async fn consumer_poll(
    State(api): State<Api>,
    Path((app, sink, consumer)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let endpoint = change::find_endpoint(&api, &app, &sink).await?;
    let asked = parse(&endpoint, query.as_deref(), |_, _, _| Err(None))?;
    named(&consumer)?;
    let consumed = api
        .store
        .consume(endpoint.id, consumer, place(&asked), clock::now());
    let from = match consumed.await? {
        Consumed::At(place) => place,
        Consumed::Behind(_) => return Err(answer::CONSUMER_BEHIND.into()),
        Consumed::TooMany => return Err(answer::TOO_MANY_CONSUMERS.into()),
    };
    answer(&api, &endpoint, asked.filter, from, asked.page.limit).await
}

/// Lets a consumer go on at a time, before or behind.
#[utoipa::path(post, path = "/app/{app_id}/poller/{sink_id}/consumer/{consumer_id}/seek", operation_id = "seekAsConsumer", tag = "messages",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("sink_id" = String, Path, description = "the endpoint's id or uid"),
        ("consumer_id" = String, Path, description = "what the consumer calls itself")),
    request_body = SeekRequest,
    responses((status = OK, description = "where it goes on", body = SoughtBody),
        (status = CONFLICT, description = "there are too many consumers", body = crate::http::api::describe::told::Problem)))]
pub async fn consumer_seek(
    State(api): State<Api>,
    Path((app, sink, consumer)): Path<(String, String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    let endpoint = change::find_endpoint(&api, &app, &sink).await?;
    named(&consumer)?;
    let mut fields = posted.fields();
    let after = fields.optional_time("after");
    if after.is_none() && !fields.is_wrong("after") {
        fields.refuse("after", "it is required");
    }
    fields.finish()?;
    let place = after.map_or(PollPlace::BEGINNING, PollPlace::since);
    let body = SoughtBody {
        iterator: Iterator(place).to_string(),
    };
    let said = serde_json::to_string(&body).unwrap_or_default();
    let by = posted.authority(String::new());
    let sought = api.store.seek(endpoint.id, consumer, place, by, said);
    Ok(match sought.await? {
        Sought::Done => answer::json(StatusCode::OK, &body),
        Sought::Repeated(before) => posted::before(before, StatusCode::OK),
        Sought::TooMany => return Err(Halt::from(answer::TOO_MANY_CONSUMERS)),
    })
}

fn named(consumer: &str) -> Result<(), Halt> {
    match consumer.len() {
        1..=CONSUMER_BYTES_MAX => Ok(()),
        _ => Err(answer::NOT_FOUND.into()),
    }
}

fn parse(
    endpoint: &Endpoint,
    query: Option<&str>,
    narrow: impl Fn(&mut MessageFilter, &str, &str) -> Result<(), Option<Invalid>>,
) -> Result<Asked<MessageFilter, Iterator>, Invalid> {
    let filter = MessageFilter {
        app: Some(endpoint.app),
        may_have: Some(endpoint.id),
        ..MessageFilter::default()
    };
    list::parse(query.unwrap_or_default(), filter, narrow)
}

/// The place that an iterator names.
fn place(asked: &Asked<MessageFilter, Iterator>) -> Option<PollPlace> {
    match asked.page.from {
        PageFrom::Newest => None,
        PageFrom::OlderThan(Iterator(place)) | PageFrom::NewerThan(Iterator(place)) => Some(place),
    }
}

async fn answer(
    api: &Api,
    endpoint: &Endpoint,
    mut filter: MessageFilter,
    from: PollPlace,
    limit: u32,
) -> Outcome {
    if filter.event_types.is_empty() {
        filter.event_types.clone_from(&endpoint.event_types);
    }
    let ask = PollAsk {
        filter,
        from,
        limit: limit.min(LIMIT_DEFAULT),
        now: clock::now(),
    };
    let polled = api.store.poll(ask).await?;
    let meant = polled.messages.iter();
    let meant = meant.filter(|message| is_for(endpoint, message));
    let mut data = Vec::with_capacity(polled.messages.len());
    for message in meant {
        let payload = message_body::payload(api, message.event.id, Content::With).await?;
        data.push(message_body::to_body(message, payload));
    }
    let body = PolledBody {
        data,
        iterator: Iterator(polled.place).to_string(),
        done: !polled.more,
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

#[cfg(test)]
mod tests {
    use hapax_ledger::id::RawId;

    use super::*;

    #[test]
    fn iterators_come_back_as_they_went() {
        let at_once = EventId(RawId::new(Time::from_secs(1_800_000_000), 3, 77));
        for (later, since) in [(0, None), (7, Some(0)), (i64::MAX, Some(-5))] {
            let place = PollPlace {
                at_once,
                later,
                since: since.map(Time::from_micros),
            };
            let text = Iterator(place).to_string();
            assert_eq!(text.parse(), Ok(Iterator(place)), "{text}");
        }
        let id = MessageId(at_once.0);
        let table = ["", "1", "msg_1.0", "x.0"].map(str::to_owned).to_vec();
        let more =
            ["", ".", ".-1", ".1.", ".1.x", ".1.2.", ".1.2.3"].map(|end| format!("{id}{end}"));
        for wrong in table.into_iter().chain(more) {
            assert_eq!(wrong.parse::<Iterator>(), Err(()), "{wrong}");
        }
    }
}
