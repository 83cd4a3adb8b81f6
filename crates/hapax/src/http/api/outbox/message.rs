//! Messages: published, listed, looked at, expunged.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::id::{AppId, EventId, MessageId};
use hapax_store::nouns::{App, EventFilter, Message, Page, PageFrom, Receipted, app_source};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::change::{self, Changed, no_content};
use super::halt::{Halt, Outcome};
use super::message_body::{self, Content, MessageBody, to_body};
use super::message_query::{self, MessageId as Place};
use super::words;
use super::{app, page};
use crate::http::answer::{self, explained};
use crate::http::api::Api;
use crate::http::api::body::Fields;
use crate::http::api::describe::asked_of_outbox::{ContentQuery, MessageQuery};
use crate::http::api::describe::asked_outbox::{MessageRequest, PrecheckRequest};
use crate::http::api::list::{self, Asked, Invalid, ListBody};
use crate::http::api::once;
use crate::http::api::posted::{LargePosted, Posted};
use crate::operate::{Granted, Terms};
use crate::outbox::message::{Outcome as Published, PLANS_MAX};
use crate::outbox::schema::Misfit;
use crate::outbox::{Catalog, Draft};

/// Publishes a message to all endpoints of an application that are subscribed.
///
/// The `eventId` is its identity, or the `Idempotency-Key` where there is none: the same message again gives the same answer. Where there
/// are both, a key that came with another request is refused.
#[utoipa::path(post, path = "/app/{app_id}/msg", operation_id = "createMessage", tag = "messages",
    params(("app_id" = String, Path, description = "the application's id or uid"), ContentQuery),
    request_body = MessageRequest,
    responses((status = ACCEPTED, description = "it is stored, and goes out", body = MessageBody)))]
pub async fn create(
    State(api): State<Api>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    LargePosted(posted): LargePosted,
) -> impl IntoResponse {
    create_one(&api, &name, query.as_deref(), &posted).await
}

/// The same, for a request that did not come through the router.
pub(super) async fn create_one(
    api: &Api,
    name: &str,
    query: Option<&str>,
    posted: &Posted,
) -> Outcome {
    let content = with_content(query)?;
    let (mut fields, payload) = Fields::of_all_but(&posted.body, "payload");
    let inline = app::inline(&mut fields, name, posted.at)?;
    let draft = message_body::read(posted, fields, payload)?;
    let key = posted.key.as_deref().filter(|key| !is_drawn(key));
    if draft.about.event_id.is_none() || key.is_none() {
        return create_draft(api, posted, name, inline, draft, content).await;
    }
    // Its id is its identity, so that its key has to be kept for itself.
    let (own, name, same) = (api.clone(), name.to_owned(), posted.clone());
    let work = async move {
        let created = create_draft(&own, &same, &name, inline, draft, content).await;
        created.unwrap_or_else(Halt::answer)
    };
    Ok(once::checked(api.clone(), posted.clone(), work).await)
}

/// Is it a key that an SDK drew for this one call? Nobody brings it with another message, so that its message's own id is enough; to keep it
/// would cost every message of an SDK two commits.
fn is_drawn(key: &str) -> bool {
    let drawn = key.strip_prefix("auto_").filter(|drawn| drawn.len() == 36);
    drawn.is_some_and(|drawn| {
        drawn
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
    })
}

async fn create_draft(
    api: &Api,
    posted: &Posted,
    name: &str,
    inline: Option<App>,
    mut draft: Draft,
    content: Content,
) -> Outcome {
    // By what is known here, so that a message costs no question: what is stored was planned by the latest catalogue, or is refused.
    for _ in 0..PLANS_MAX {
        draft.app = aim(api, posted, name, inline.as_ref(), &draft).await?;
        let outcome = api.publisher.publish_once(&draft).await?;
        if let Some(outcome) = outcome {
            return answered(api, &draft, content, outcome).await;
        }
    }
    answered(api, &draft, content, Published::Busy).await
}

/// The application that a message is for, made if it comes along, and its payload fits.
async fn aim(
    api: &Api,
    posted: &Posted,
    name: &str,
    inline: Option<&App>,
    draft: &Draft,
) -> Result<AppId, Halt> {
    let registry = &api.publisher.registry;
    let mut known = registry.catalog().app(name).map(|app| app.id);
    if known.is_none() {
        known = registry.fresh().await?.app(name).map(|app| app.id);
    }
    // Before an application comes along: nothing is made for a message that is refused.
    fits(api, draft)?;
    match (known, inline) {
        (Some(app), _) => Ok(app),
        (None, Some(inline)) => make_app(api, posted, inline, name).await,
        (None, None) => Err(answer::NOT_FOUND.into()),
    }
}

fn with_content(query: Option<&str>) -> Result<Content, Halt> {
    let mut with = true;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let told = match &*name {
            "with_content" => page::flag(&name, &value),
            _ => Err(None),
        };
        let unknown = || Invalid::query(&name, "there is no such parameter");
        with = told.map_err(|told| told.unwrap_or_else(unknown))?;
    }
    Ok(Content::from_flag(with))
}

/// Makes the application that comes along with a message. Its request is the message's, which has a key of its own.
pub(super) async fn make_app(
    api: &Api,
    posted: &Posted,
    app: &App,
    called: &str,
) -> Result<AppId, Halt> {
    if !app::is_free_name(called) {
        return Err(answer::NOT_FOUND.into());
    }
    let alone = posted.without_key();
    let decide = |_: &Catalog| Ok(app::making(app.clone()));
    let made = change::make(api, &alone, "app.create", decide).await;
    match made {
        Ok(Changed::Made(_) | Changed::Before(_)) => Ok(app.id),
        // Somebody else has made it just now.
        Err(halt) => match api.publisher.registry.fresh().await?.app(called) {
            Some(app) => Ok(app.id),
            None => Err(halt),
        },
    }
}

/// Is the payload as the schema of its type wants it?
fn fits(api: &Api, draft: &Draft) -> Result<(), Halt> {
    let known = api.publisher.registry.catalog();
    let Some(known) = known.event_type(&draft.event_type).cloned() else {
        return Ok(());
    };
    let version = draft.about.api_version.as_deref();
    let judged = api.schemas.judge(&known, version, &draft.payload);
    let (field, wrong) = match judged {
        Ok(()) => return Ok(()),
        Err(Misfit::NoVersion) => {
            let msg = "the type of events has no schema of this version".to_owned();
            ("apiVersion", vec![msg])
        }
        Err(Misfit::Wrong(wrong)) => ("payload", wrong),
        Err(Misfit::Schema(why)) => ("payload", vec![format!("the schema of its type: {why}")]),
    };
    let wrong = wrong
        .iter()
        .map(|msg| Invalid::field(field, msg, "schema_error"));
    Err(list::refuse_all(wrong.collect()).into())
}

/// Stores a message and lets it go.
pub(super) async fn publish(api: &Api, draft: &Draft, content: Content) -> Outcome {
    let outcome = api.publisher.publish(draft).await?;
    answered(api, draft, content, outcome).await
}

/// What is said of a message, given what became of it.
async fn answered(api: &Api, draft: &Draft, content: Content, outcome: Published) -> Outcome {
    let receipt = match outcome {
        Published::Stored(receipt) => receipt,
        Published::NoApp => return Err(answer::NOT_FOUND.into()),
        Published::Busy => return Err(answer::BUSY.into()),
    };
    match receipt.sighting {
        Receipted::New if draft.about.numbered_by().is_none() => {
            let body = message_body::of_draft(draft, receipt.event, content);
            return Ok(answer::json(StatusCode::ACCEPTED, &body));
        }
        Receipted::New | Receipted::Duplicate => {}
        Receipted::Conflict => {
            return Err(match draft.about.event_id {
                Some(_) => answer::EVENT_ID_TAKEN.into(),
                None => answer::KEY_REUSED.into(),
            });
        }
    }
    let message = api.store.message(receipt.event).await?;
    let message = message.ok_or_else(|| Halt::from(answer::NOT_FOUND))?;
    let payload = message_body::payload(api, receipt.event, content).await?;
    Ok(answer::json(
        StatusCode::ACCEPTED,
        &to_body(&message, payload),
    ))
}

/// Messages of an application, newest first.
#[utoipa::path(get, path = "/app/{app_id}/msg", operation_id = "listMessages", tag = "messages",
    params(("app_id" = String, Path, description = "the application's id or uid"), MessageQuery),
    responses((status = OK, description = "a page", body = ListBody<MessageBody>)))]
pub async fn list(
    State(api): State<Api>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let app = change::find_app(&api, &name).await?.id;
    let wanted = message_query::Wanted::of(app);
    let query = query.unwrap_or_default();
    let asked: Asked<_, Place> = list::parse(&query, wanted, message_query::narrow)?;
    let (filter, content) = (asked.filter.filter, asked.filter.content);
    let listed = api
        .store
        .messages(filter, message_query::page(asked.page))
        .await?;
    let mut bodies = Vec::with_capacity(listed.rows.len());
    for message in &listed.rows {
        let payload = message_body::payload(&api, message.event.id, content).await?;
        bodies.push((message.event.id, to_body(message, payload)));
    }
    let listed = hapax_store::nouns::Listed {
        rows: bodies,
        next: listed.next.map(|next| Place(MessageId(next.0))),
        newer: listed.newer.map(|newer| Place(MessageId(newer.0))),
    };
    let body = ListBody::new(listed, |(id, _)| Place(MessageId(id.0)), |(_, body)| body);
    Outcome::Ok(answer::json(StatusCode::OK, &body))
}

/// A message of an application by its id, or by its publisher's.
pub(super) async fn find(api: &Api, app: &str, name: &str) -> Result<Message, Halt> {
    let app = change::find_app(api, app).await?.id;
    let event = match name.parse::<MessageId>() {
        Ok(id) => Some(EventId(id.0)),
        Err(_) => by_event_id(api, app, name).await?,
    };
    let message = match event {
        Some(event) => api.store.message(event).await?,
        None => None,
    };
    let ours = message.filter(|message| *message.event.source == *app_source(app));
    ours.ok_or_else(|| answer::NOT_FOUND.into())
}

async fn by_event_id(api: &Api, app: AppId, name: &str) -> Result<Option<EventId>, Halt> {
    let filter = EventFilter {
        source: Some(app_source(app)),
        key: Some(name.to_owned()),
        ..EventFilter::default()
    };
    let page = Page {
        limit: 1,
        from: PageFrom::Newest,
    };
    let listed = api.store.events(filter, page).await?;
    Ok(listed.rows.first().map(|event| event.id))
}

/// One message.
#[utoipa::path(get, path = "/app/{app_id}/msg/{msg_id}", operation_id = "getMessage", tag = "messages",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("msg_id" = String, Path, description = "the message's id or eventId"), ContentQuery),
    responses((status = OK, description = "the message", body = MessageBody)))]
pub async fn show(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let content = with_content(query.as_deref())?;
    let message = find(&api, &app, &name).await?;
    let payload = message_body::payload(&api, message.event.id, content).await?;
    Outcome::Ok(answer::json(StatusCode::OK, &to_body(&message, payload)))
}

/// Deletes the payload of a message, at once. It cannot be sent again.
#[utoipa::path(delete, path = "/app/{app_id}/msg/{msg_id}/content", operation_id = "expungeMessage", tag = "messages",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("msg_id" = String, Path, description = "the message's id or eventId")),
    responses((status = NO_CONTENT, description = "it is gone")))]
pub async fn expunge(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    let message = find(&api, &app, &name).await?;
    let terms = Terms {
        by: posted.authority("its content was expunged".to_owned()),
        if_revision: None,
        dry_run: false,
    };
    match api.operator.erase(message.event.id, terms).await? {
        Granted::Commanded(_) => Outcome::Ok(no_content()),
        other => Err(refused(&other)),
    }
}

/// What cannot be done about a message.
pub(super) fn refused(granted: &Granted) -> Halt {
    match granted {
        Granted::NoEvent => answer::NOT_FOUND.into(),
        other => {
            tracing::debug!(?other, "a wish about a message was not granted");
            explained(answer::NOT_SENT_AGAIN, answer::NOT_SENT_AGAIN.detail, None).into()
        }
    }
}

/// Would anybody get it?
#[derive(Serialize, ToSchema)]
#[schema(as = Precheck)]
struct PrecheckBody {
    /// Is an endpoint subscribed?
    active: bool,
}

/// Says whether any endpoint would get such a message.
#[utoipa::path(post, path = "/app/{app_id}/msg/precheck/active", operation_id = "precheckMessage", tag = "messages",
    params(("app_id" = String, Path, description = "the application's id or uid")),
    request_body = PrecheckRequest,
    responses((status = OK, description = "the answer", body = PrecheckBody)))]
pub async fn precheck(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let mut fields = posted.fields();
    let event_type = words::event_type(&mut fields, "eventType");
    let channels = words::channels(&mut fields, "channels").unwrap_or_default();
    fields.finish()?;
    let catalog = api.publisher.registry.fresh().await?;
    let app = change::app_of(&catalog, &name)?.id;
    let active = catalog
        .subscribed(app, &event_type, &channels)
        .next()
        .is_some();
    Outcome::Ok(answer::json(StatusCode::OK, &PrecheckBody { active }))
}

#[cfg(test)]
mod tests {
    use super::is_drawn;

    /// Keys that somebody chose are kept, whatever they begin with.
    #[test]
    fn only_what_an_sdk_drew_is_taken_as_drawn() {
        assert!(is_drawn("auto_0b9e4a52-7d0c-4a7e-9f53-3b1f0f6f9a11"));
        for chosen in [
            "0b9e4a52-7d0c-4a7e-9f53-3b1f0f6f9a11",
            "auto_",
            "auto_order-1",
            "auto_order-of-the-17th-of-november-2026-a",
            "auto_0b9e4a52-7d0c-4a7e-9f53-3b1f0f6f9a11-2",
        ] {
            assert!(!is_drawn(chosen), "{chosen}");
        }
    }
}
