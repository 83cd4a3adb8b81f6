//! An example to one endpoint, so that its owner sees what comes.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use bytes::Bytes;
use hapax_store::nouns::{About, Standing};
use serde_json::Value;

use super::change;
use super::delivery;
use super::halt::Halt;
use super::message;
use super::message_body::{self, Content, MessageBody};
use super::words;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::describe::asked_outbox::ExampleRequest;
use crate::http::api::posted::LargePosted;
use crate::outbox::Draft;
use crate::outbox::message::KEEP_DEFAULT;
use crate::outbox::schema;

/// Sends an example of a type of events to one endpoint, subscribed or not.
#[utoipa::path(post, path = "/app/{app_id}/endpoint/{endpoint_id}/send-example", operation_id = "sendExample", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = ExampleRequest,
    responses((status = ACCEPTED, description = "it goes out", body = MessageBody)))]
pub async fn send(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    LargePosted(posted): LargePosted,
) -> impl IntoResponse {
    let endpoint = change::find_endpoint(&api, &app, &name).await?;
    if endpoint.standing != Standing::Enabled {
        return Err(delivery::disabled());
    }
    let mut fields = posted.fields();
    let event_type = words::event_type(&mut fields, "eventType");
    let index = fields
        .optional_number("exampleIndex", 0..=1_000)
        .unwrap_or(0);
    let payload = fields.json("payload");
    if payload.as_ref().is_some_and(|payload| !payload.is_object()) {
        fields.refuse("payload", "an object is expected");
    }
    fields.finish()?;
    if !api.examples.take(endpoint.app, posted.at) {
        return Err(answer::TOO_MANY_EXAMPLES.into());
    }
    let known = {
        api.publisher
            .registry
            .catalog()
            .event_type(&event_type)
            .cloned()
    };
    let example = || schema::example(known.as_deref()?, usize::try_from(index).unwrap_or(0));
    let payload: Value = payload
        .or_else(example)
        .ok_or_else(|| Halt::from(answer::NO_EXAMPLE))?;
    let draft = Draft {
        app: endpoint.app,
        event_type,
        payload: Bytes::from(payload.to_string()),
        content_type: None,
        about: About {
            only_to: Some(endpoint.id),
            ..About::default()
        },
        keep: KEEP_DEFAULT,
        drawn: message_body::drawn(&posted),
        at: posted.at,
        by: posted.actor.name.clone(),
    };
    message::publish(&api, &draft, Content::With).await
}
