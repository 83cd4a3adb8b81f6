//! Deliveries: messages by endpoint, endpoints by message, dead letters; and sending again.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{AppId, EffectId, EndpointId};
use hapax_store::nouns::{
    Before, Commanded, Deliveries, EffectFilter, Endpoint, Listed, Message, Posted as Delivered,
    PostedFilter, Standing, WhyNot, app_source,
};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::attempt_query::status;
use super::change;
use super::endpoint_body::{self, EndpointBody};
use super::halt::{Halt, Outcome};
use super::message;
use super::message_body::{self, Content, MessageBody};
use super::message_query::narrow_filter;
use super::page::flag;
use super::status::Status;
use crate::clock::text as time_text;
use crate::http::answer::{self, Answer, explained};
use crate::http::api::Api;
use crate::http::api::describe::asked_of_outbox::{
    AttemptedMessagesQuery, DeadLetterQuery, PageQuery,
};
use crate::http::api::describe::asked_outbox::ResendRequest;
use crate::http::api::describe::{value, value_outbox};
use crate::http::api::list::{self, Asked, Invalid, ListBody};
use crate::http::api::posted::{self, Posted};
use crate::operate::deliver::{Again, Delivery, Sent};
use crate::outbox::message::plan_again;

/// A message, and where its delivery to an endpoint stands.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EndpointMessage)]
pub(super) struct EndpointMessageBody {
    #[serde(flatten)]
    message: MessageBody,
    #[schema(schema_with = value_outbox::message_status)]
    status: u8,
    #[schema(schema_with = value_outbox::message_status_text)]
    status_text: &'static str,
    #[schema(schema_with = value::time_or_null)]
    next_attempt: Option<String>,
    #[schema(schema_with = value_outbox::endpoint_id)]
    endpoint_id: String,
    /// The effect that the delivery is.
    #[schema(schema_with = value::effect_id)]
    effect_id: String,
    attempt_count: u32,
    last_outcome: Option<String>,
}

/// An endpoint, and where the delivery of a message to it stands.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MessageEndpoint)]
struct MessageEndpointBody {
    #[serde(flatten)]
    endpoint: EndpointBody,
    #[schema(schema_with = value_outbox::message_status)]
    status: u8,
    #[schema(schema_with = value_outbox::message_status_text)]
    status_text: &'static str,
    #[schema(schema_with = value::time_or_null)]
    next_attempt: Option<String>,
}

/// Which deliveries.
#[derive(Clone, Debug)]
struct Wanted {
    filter: PostedFilter,
    status: Option<Status>,
    expanded: bool,
    content: Content,
}

impl Wanted {
    fn all() -> Wanted {
        Wanted {
            filter: PostedFilter::default(),
            status: None,
            expanded: false,
            content: Content::With,
        }
    }

    fn filter(&self) -> PostedFilter {
        let states = self.status.map(|status| status.states(self.expanded));
        PostedFilter {
            states: states.unwrap_or_else(|| self.filter.states.clone()),
            ..self.filter.clone()
        }
    }
}

fn narrow(wanted: &mut Wanted, name: &str, value: &str) -> Result<(), Option<Invalid>> {
    match name {
        "status" => wanted.status = Some(status(name, value)?),
        "with_content" => wanted.content = Content::from_flag(flag(name, value)?),
        "expanded_statuses" => wanted.expanded = flag(name, value)?,
        _ => return narrow_filter(&mut wanted.filter.message, name, value),
    }
    Ok(())
}

fn stands(delivered: &Delivered, expanded: bool) -> Status {
    let status = Status::of(&delivered.effect);
    if expanded { status } else { status.plain() }
}

fn next_attempt(delivered: &Delivered) -> Option<String> {
    let record = &delivered.effect.record;
    let waits = record.state == EffectState::Pending;
    waits.then(|| time_text(record.next_attempt_at))
}

/// Messages that went, go or will go to an endpoint, newest first.
#[utoipa::path(get, path = "/app/{app_id}/endpoint/{endpoint_id}/msg", operation_id = "listAttemptedMessages", tag = "attempts",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid"), AttemptedMessagesQuery),
    responses((status = OK, description = "a page", body = ListBody<EndpointMessageBody>)))]
pub async fn of_endpoint(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let endpoint = change::find_endpoint(&api, &app, &name).await?.id;
    let query = query.unwrap_or_default();
    let asked: Asked<Wanted, EffectId> = list::parse(&query, Wanted::all(), narrow)?;
    messages_to(&api, endpoint, asked).await
}

async fn messages_to(api: &Api, endpoint: EndpointId, asked: Asked<Wanted, EffectId>) -> Outcome {
    let Asked {
        filter: wanted,
        page,
    } = asked;
    let which = Deliveries::To(endpoint);
    let listed = api.store.deliveries(which, wanted.filter(), page).await?;
    let mut rows = Vec::with_capacity(listed.rows.len());
    for delivered in &listed.rows {
        if let Some(message) = &delivered.message {
            let payload = message_body::payload(api, message.event.id, wanted.content).await?;
            let message = message_body::to_body(message, payload);
            rows.push((
                delivered.effect.id,
                to_body(delivered, message, wanted.expanded),
            ));
        }
    }
    let listed = Listed {
        rows,
        next: listed.next,
        newer: listed.newer,
    };
    let body = ListBody::new(listed, |(id, _)| *id, |(_, body)| body);
    Ok(answer::json(StatusCode::OK, &body))
}

fn to_body(delivered: &Delivered, message: MessageBody, expanded: bool) -> EndpointMessageBody {
    let status = stands(delivered, expanded);
    let effect = &delivered.effect;
    EndpointMessageBody {
        message,
        status: status.code(),
        status_text: status.word(),
        next_attempt: next_attempt(delivered),
        endpoint_id: effect.name.to_string(),
        effect_id: effect.id.to_string(),
        attempt_count: effect.record.attempts,
        last_outcome: effect.last.map(|outcome| outcome.to_string()),
    }
}

/// Endpoints that a message went, goes or will go to.
#[utoipa::path(get, path = "/app/{app_id}/msg/{msg_id}/endpoint", operation_id = "listAttemptedDestinations", tag = "attempts",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("msg_id" = String, Path, description = "the message's id or eventId"), PageQuery),
    responses((status = OK, description = "a page", body = ListBody<MessageEndpointBody>)))]
pub async fn of_message(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let message = message::find(&api, &app, &name).await?;
    let query = query.unwrap_or_default();
    let asked: Asked<(), EffectId> = list::parse(&query, (), |(), _, _| Err(None))?;
    let which = Deliveries::Of(message.event.id);
    let listed = api
        .store
        .deliveries(which, PostedFilter::default(), asked.page)
        .await?;
    let catalog = api.publisher.registry.catalog();
    let row = |delivered: &Delivered| {
        let id = delivered.effect.name.parse().ok()?;
        // One that is deleted is not shown; its deliveries are in the ledger.
        let endpoint: &Endpoint = catalog.endpoint_by_id(id)?;
        let status = stands(delivered, true);
        let body = MessageEndpointBody {
            endpoint: endpoint_body::to_body(endpoint),
            status: status.code(),
            status_text: status.word(),
            next_attempt: next_attempt(delivered),
        };
        Some((delivered.effect.id, body))
    };
    let listed = Listed {
        rows: listed.rows.iter().filter_map(row).collect(),
        next: listed.next,
        newer: listed.newer,
    };
    let body = ListBody::new(listed, |(id, _)| *id, |(_, body)| body);
    Outcome::Ok(answer::json(StatusCode::OK, &body))
}

/// Deliveries to the endpoints of an application that were given up, newest first; of one endpoint, or of all of them.
#[utoipa::path(get, path = "/app/{app_id}/dead-letter", operation_id = "listDeadLetters", tag = "attempts",
    params(("app_id" = String, Path, description = "the application's id or uid"), DeadLetterQuery),
    responses((status = OK, description = "a page", body = ListBody<EndpointMessageBody>)))]
pub async fn dead_letters(
    State(api): State<Api>,
    Path(app): Path<String>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let mut wanted = Wanted::all();
    // Deliveries are keyed effects, and those never wait for a person as uncertain: see `hapax_ledger::transition`.
    wanted.filter.states = vec![EffectState::Dead];
    wanted.expanded = true;
    let query = query.unwrap_or_default();
    let asked: Asked<(Wanted, Option<String>), EffectId> =
        list::parse(&query, (wanted, None), |wanted, name, value| match name {
            "endpoint_id" => {
                wanted.1 = Some(value.to_owned());
                Ok(())
            }
            "status" | "expanded_statuses" => Err(None),
            _ => narrow(&mut wanted.0, name, value),
        })?;
    let (wanted, endpoint) = asked.filter;
    let asked = Asked {
        filter: wanted,
        page: asked.page,
    };
    if let Some(name) = endpoint {
        let endpoint = change::find_endpoint(&api, &app, &name).await?.id;
        return messages_to(&api, endpoint, asked).await;
    }
    let app = change::find_app(&api, &app).await?.id;
    dead_of_app(&api, app, asked).await
}

async fn dead_of_app(api: &Api, app: AppId, asked: Asked<Wanted, EffectId>) -> Outcome {
    let Asked {
        filter: wanted,
        page,
    } = asked;
    let filter = EffectFilter {
        state: Some(EffectState::Dead),
        source: Some(app_source(app)),
        ..EffectFilter::default()
    };
    let listed = api.store.effects(filter, page).await?;
    let mut rows = Vec::with_capacity(listed.rows.len());
    for effect in listed.rows {
        let message = api.store.message(effect.event).await?;
        let delivered = Delivered { effect, message };
        let message = delivered.message.as_ref();
        if let Some(message) = message.filter(|message| wanted.filter.message.fits(message)) {
            let payload = message_body::payload(api, message.event.id, wanted.content).await?;
            let message = message_body::to_body(message, payload);
            rows.push((delivered.effect.id, to_body(&delivered, message, true)));
        }
    }
    let listed = Listed {
        rows,
        next: listed.next,
        newer: listed.newer,
    };
    let body = ListBody::new(listed, |(id, _)| *id, |(_, body)| body);
    Ok(answer::json(StatusCode::OK, &body))
}

/// Nothing more to say.
#[derive(Serialize, ToSchema)]
#[schema(as = Empty)]
struct EmptyBody {}

/// Sends a message to an endpoint again, also if it got through before, or if it never went there.
#[utoipa::path(post, path = "/app/{app_id}/msg/{msg_id}/endpoint/{endpoint_id}/resend", operation_id = "resendMessage", tag = "attempts",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("msg_id" = String, Path, description = "the message's id or eventId"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = Option<ResendRequest>,
    responses((status = ACCEPTED, description = "it goes out", body = EmptyBody)))]
pub async fn resend(
    State(api): State<Api>,
    Path((app, name, endpoint)): Path<(String, String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    let fields = posted.fields();
    fields.finish()?;
    let message = message::find(&api, &app, &name).await?;
    let endpoint = change::find_endpoint(&api, &app, &endpoint).await?;
    if endpoint.standing != Standing::Enabled {
        return Err(disabled());
    }
    let by = posted.authority("sent again".to_owned());
    let delivery = again(&api, &message, &endpoint);
    said(api.operator.deliver(delivery, Again::Force, by).await?)
}

/// A delivery that may go out again.
pub(super) fn again(api: &Api, message: &Message, endpoint: &Endpoint) -> Delivery {
    let registry = &api.publisher.registry;
    Delivery {
        event: message.event.id,
        endpoint: endpoint.id,
        planned: plan_again(message, endpoint, &registry.catalog(), &registry.settings()),
    }
}

fn said(sent: Sent) -> Outcome {
    let accepted: Answer = answer::json(StatusCode::ACCEPTED, &EmptyBody {});
    match sent {
        Sent::Commanded(Commanded::Done(_)) | Sent::Nothing => Ok(accepted),
        Sent::Commanded(Commanded::Before(Before::Same(_))) => Ok(accepted),
        Sent::Commanded(Commanded::Before(before @ Before::Other)) => {
            Ok(posted::before(before, StatusCode::ACCEPTED))
        }
        Sent::Commanded(Commanded::NoEvent) | Sent::NoEvent => Err(answer::NOT_FOUND.into()),
        Sent::NoBytes => Err(not_again("its payload is not kept any more")),
        Sent::UnderWay => Err(not_again(
            "an attempt is under way; ask again when it has ended",
        )),
        Sent::Commanded(Commanded::Refused { why, .. }) => Err(not_again(match why {
            WhyNot::PayloadReaped => "its payload is not kept any more",
            WhyNot::NeedsDecision => "a person has to decide something about it first",
            WhyNot::Moved
            | WhyNot::NoEffect
            | WhyNot::Rejected(_)
            | WhyNot::NotHeld
            | WhyNot::NoConflict => answer::NOT_SENT_AGAIN.detail,
        })),
    }
}

/// Nothing is sent to an endpoint that is disabled.
pub(super) fn disabled() -> Halt {
    not_again("the endpoint is disabled; enable it first")
}

fn not_again(detail: &str) -> Halt {
    explained(answer::NOT_SENT_AGAIN, detail, None).into()
}
