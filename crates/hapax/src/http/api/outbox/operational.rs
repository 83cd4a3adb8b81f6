//! Endpoints of operators: what happens to endpoints and messages is told to them. They are endpoints of an application that no other
//! path can name, and are kept, changed, signed for and sent to like all others.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::id::EndpointId;
use hapax_store::nouns::{Authority, Entry};

use super::endpoint_body::{EndpointBody, to_body};
use super::endpoint_secret::{HeadersBody, SecretBody};
use super::halt::Halt;
use super::page::{self, PageBody};
use super::{endpoint, endpoint_secret};
use crate::http::api::Api;
use crate::http::api::describe::asked_of_outbox::OrderedQuery;
use crate::http::api::describe::asked_outbox::{
    EndpointRequest, EndpointUpsertRequest, HeadersRequest, RotateRequest,
};
use crate::http::api::posted::Posted;
use crate::outbox::operational::{OPERATIONAL_APP, operational_app};

/// The application that they belong to.
fn own() -> String {
    OPERATIONAL_APP.to_string()
}

/// The application is there, from the first endpoint on.
async fn is_there(api: &Api, posted: &Posted) -> Result<(), Halt> {
    let registry = &api.publisher.registry;
    if registry.fresh().await?.app_by_id(OPERATIONAL_APP).is_some() {
        return Ok(());
    }
    let by = Authority {
        request: None,
        ..posted.authority(String::new())
    };
    let made = Entry::App(operational_app(posted.at));
    // Whoever was faster has made the same.
    registry.put(made, 0, "app.create", by, "{}".into()).await?;
    Ok(())
}

/// Endpoints that are told what happens to endpoints and messages, the oldest first.
#[utoipa::path(get, path = "/operational-webhook/endpoint", operation_id = "listOperationalEndpoints", tag = "operational webhooks",
    params(OrderedQuery),
    responses((status = OK, description = "a page", body = PageBody<EndpointBody>)))]
pub async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let asked = page::parse(query.as_deref(), (), |(), _, _| Err(None))?;
    let catalog = api.publisher.registry.fresh().await?;
    page::find(
        &asked,
        |after, way, max| catalog.endpoints(OPERATIONAL_APP, after.copied(), way, max),
        |endpoint| endpoint.id,
        |text| text.parse::<EndpointId>().ok(),
        |_| true,
        to_body,
    )
}

/// Makes one.
#[utoipa::path(post, path = "/operational-webhook/endpoint", operation_id = "createOperationalEndpoint", tag = "operational webhooks",
    request_body = EndpointRequest,
    responses((status = CREATED, description = "it is made", body = EndpointBody)))]
pub async fn create(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    is_there(&api, &posted).await?;
    let made = endpoint::create(State(api), Path(own()), posted).await;
    Result::<_, Halt>::Ok(made)
}

/// One of them.
#[utoipa::path(get, path = "/operational-webhook/endpoint/{endpoint_id}", operation_id = "getOperationalEndpoint", tag = "operational webhooks",
    params(("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    responses((status = OK, description = "the endpoint", body = EndpointBody)))]
pub async fn show(State(api): State<Api>, Path(name): Path<String>) -> impl IntoResponse {
    endpoint::show(State(api), Path((own(), name))).await
}

/// Makes one, or replaces what is known of it but for its secret and headers.
#[utoipa::path(put, path = "/operational-webhook/endpoint/{endpoint_id}", operation_id = "putOperationalEndpoint", tag = "operational webhooks",
    params(("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = EndpointUpsertRequest,
    responses(
        (status = OK, description = "it is changed", body = EndpointBody),
        (status = CREATED, description = "it is made", body = EndpointBody)))]
pub async fn replace(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    is_there(&api, &posted).await?;
    let put = endpoint::replace(State(api), Path((own(), name)), posted).await;
    Result::<_, Halt>::Ok(put)
}

/// Deletes one.
#[utoipa::path(delete, path = "/operational-webhook/endpoint/{endpoint_id}", operation_id = "deleteOperationalEndpoint", tag = "operational webhooks",
    params(("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    responses((status = NO_CONTENT, description = "it is gone")))]
pub async fn delete(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    endpoint::delete(State(api), Path((own(), name)), posted).await
}

/// The key that it verifies with.
#[utoipa::path(get, path = "/operational-webhook/endpoint/{endpoint_id}/secret", operation_id = "getOperationalEndpointSecret",
    tag = "operational webhooks",
    params(("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    responses((status = OK, description = "the key", body = SecretBody),
        (status = CONFLICT, description = "there is no vault key", body = crate::http::api::describe::told::Problem)))]
pub async fn secret(State(api): State<Api>, Path(name): Path<String>) -> impl IntoResponse {
    endpoint_secret::show(State(api), Path((own(), name))).await
}

/// Another key signs from now on; the one before signs as well for the grace period.
#[utoipa::path(post, path = "/operational-webhook/endpoint/{endpoint_id}/secret/rotate", operation_id = "rotateOperationalEndpointSecret",
    tag = "operational webhooks",
    params(("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = Option<RotateRequest>,
    responses((status = OK, description = "the new key", body = SecretBody)))]
pub async fn rotate(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    endpoint_secret::rotate(State(api), Path((own(), name)), posted).await
}

/// Headers that go along. Values that look secret are not shown.
#[utoipa::path(get, path = "/operational-webhook/endpoint/{endpoint_id}/headers", operation_id = "getOperationalEndpointHeaders",
    tag = "operational webhooks",
    params(("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    responses((status = OK, description = "the headers", body = HeadersBody),
        (status = CONFLICT, description = "there is no vault key", body = crate::http::api::describe::told::Problem)))]
pub async fn headers(State(api): State<Api>, Path(name): Path<String>) -> impl IntoResponse {
    endpoint_secret::headers(State(api), Path((own(), name))).await
}

/// Replaces the headers that go along.
#[utoipa::path(put, path = "/operational-webhook/endpoint/{endpoint_id}/headers", operation_id = "putOperationalEndpointHeaders",
    tag = "operational webhooks",
    params(("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = HeadersRequest,
    responses((status = NO_CONTENT, description = "they are replaced")))]
pub async fn put_headers(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    endpoint_secret::put_headers(State(api), Path((own(), name)), posted).await
}
