//! Endpoints: where messages of an application go.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::id::EndpointId;
use hapax_ledger::time::Time;
use hapax_store::nouns::{Endpoint, Entry, Standing};
use hapax_store::vault::Vault;
use http::StatusCode;

use super::app::GoneBody;
use super::change::{self, Change, app_of, endpoint_of, no_content};
use super::endpoint_body::{self, EndpointBody, to_body};
use super::halt::{Halt, Outcome};
use super::page::{self, PageBody};
use super::words;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::body::Fields;
use crate::http::api::describe::asked_of_outbox::OrderedQuery;
use crate::http::api::describe::asked_outbox::{
    EndpointPatchRequest, EndpointRequest, EndpointUpsertRequest,
};
use crate::http::api::posted::Posted;
use crate::operate::ids;
use crate::outbox::Catalog;
use crate::outbox::extra::{self, EndpointExtra, SchemeWord};
use crate::outbox::sealed::Opened;

/// Endpoints of an application, the oldest first.
#[utoipa::path(get, path = "/app/{app_id}/endpoint", operation_id = "listEndpoints", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"), OrderedQuery),
    responses((status = OK, description = "a page", body = PageBody<EndpointBody>)))]
pub async fn list(
    State(api): State<Api>,
    Path(app): Path<String>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let asked = page::parse(query.as_deref(), (), |(), _, _| Err(None))?;
    let catalog = api.publisher.registry.fresh().await?;
    let app = app_of(&catalog, &app)?.id;
    page::find(
        &asked,
        |after, way, max| catalog.endpoints(app, after.copied(), way, max),
        |endpoint| endpoint.id,
        |text| text.parse::<EndpointId>().ok(),
        |_| true,
        to_body,
    )
}

/// One endpoint.
#[utoipa::path(get, path = "/app/{app_id}/endpoint/{endpoint_id}", operation_id = "getEndpoint", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    responses((status = OK, description = "the endpoint", body = EndpointBody)))]
pub async fn show(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
) -> impl IntoResponse {
    let endpoint = change::find_endpoint(&api, &app, &name).await?;
    Outcome::Ok(answer::json(StatusCode::OK, &to_body(&endpoint)))
}

/// The key that secrets are sealed with.
pub(super) fn vault(api: &Api) -> Result<Arc<Vault>, Halt> {
    let vault = api.publisher.registry.vault();
    vault.ok_or_else(|| answer::NO_VAULT_KEY.into())
}

/// Makes an endpoint.
#[utoipa::path(post, path = "/app/{app_id}/endpoint", operation_id = "createEndpoint", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid")),
    request_body = EndpointRequest,
    responses((status = CREATED, description = "it is made", body = EndpointBody)))]
pub async fn create(
    State(api): State<Api>,
    Path(app): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let decide = |catalog: &Catalog| making(&api, catalog, &app, &posted, None);
    change::put(
        &api,
        &posted,
        "endpoint.create",
        StatusCode::CREATED,
        decide,
    )
    .await
}

/// The change that makes the endpoint which a request describes. `called` is what it was asked for by, and its uid if the request names
/// none.
fn making(
    api: &Api,
    catalog: &Catalog,
    app: &str,
    posted: &Posted,
    called: Option<&str>,
) -> Result<Change<EndpointBody>, Halt> {
    let app = app_of(catalog, app)?.id;
    let vault = vault(api)?;
    let rules = api.publisher.registry.settings().rules.clone();
    let mut fields = posted.fields();
    let id = EndpointId(ids::fresh(posted.at));
    let mut endpoint = endpoint_body::blank(id, app, posted.at);
    let extra = endpoint_body::fill(&mut fields, &mut endpoint, &rules);
    let key = endpoint_body::secret(&mut fields, "secret", extra.scheme());
    let headers = endpoint_body::headers(&mut fields, "headers");
    fields.finish()?;
    if !catalog.has_room(app) {
        return Err(answer::NO_ROOM.into());
    }
    if let (None, Some(called)) = (&endpoint.uid, called) {
        endpoint.uid = Some(called.into());
    }
    let opened = Opened::new(key, headers, posted.at);
    endpoint_body::seal(&opened, &vault, &mut endpoint);
    Ok(Change {
        body: to_body(&endpoint),
        entry: Entry::Endpoint(Box::new(endpoint)),
        was: 0,
    })
}

/// Makes an endpoint, or replaces what is known of it but for its secret and headers.
#[utoipa::path(put, path = "/app/{app_id}/endpoint/{endpoint_id}", operation_id = "putEndpoint", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = EndpointUpsertRequest,
    responses(
        (status = OK, description = "it is changed", body = EndpointBody),
        (status = CREATED, description = "it is made", body = EndpointBody)))]
pub async fn replace(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    let decide = |catalog: &Catalog| {
        let of = app_of(catalog, &app)?.id;
        match catalog.endpoint(of, &name) {
            Some(was) => changed(&api, &posted, was, replaced(was, posted.at)),
            None if is_free_name(&name) => making(&api, catalog, &app, &posted, Some(&name)),
            None => Err(answer::NOT_FOUND.into()),
        }
    };
    let actions = ["endpoint.create", "endpoint.update"];
    change::upsert(&api, &posted, actions, decide).await
}

/// May an endpoint that is not there yet be called so? What looks like an id is one, of something else.
fn is_free_name(called: &str) -> bool {
    let reserved = called.strip_prefix(EndpointId::PREFIX);
    words::is_event_type(called) && !reserved.is_some_and(|rest| rest.starts_with('_'))
}

/// What is left of an endpoint that is replaced, before anything is said of it.
fn replaced(was: &Endpoint, at: Time) -> Endpoint {
    // Replaced as a whole: one that does not say that it is disabled is enabled again.
    let is_enabled = was.standing == Standing::Enabled;
    Endpoint {
        uid: was.uid.clone(),
        sealed: was.sealed.clone(),
        failing_since: was.failing_since.filter(|_| is_enabled),
        disabled_from: was.disabled_from.filter(|_| is_enabled),
        created_at: was.created_at,
        // What the SDKs do not know they cannot send, and do not mean to clear.
        extra: was.extra.clone(),
        ..endpoint_body::blank(was.id, was.app, at)
    }
}

/// Changes what is said of an endpoint; `null` clears a field.
#[utoipa::path(patch, path = "/app/{app_id}/endpoint/{endpoint_id}", operation_id = "patchEndpoint", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = Option<EndpointPatchRequest>,
    responses((status = OK, description = "it is changed", body = EndpointBody)))]
pub async fn patch(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    let decide = |catalog: &Catalog| {
        let was = endpoint_of(catalog, &app, &name)?;
        let begun = Endpoint {
            updated_at: posted.at,
            ..(**was).clone()
        };
        changed(&api, &posted, was, begun)
    };
    change::put(&api, &posted, "endpoint.update", StatusCode::OK, decide).await
}

/// The change of an endpoint to what a request says of it.
fn changed(
    api: &Api,
    posted: &Posted,
    was: &Endpoint,
    mut endpoint: Endpoint,
) -> Result<Change<EndpointBody>, Halt> {
    let rules = api.publisher.registry.settings().rules.clone();
    let mut fields = posted.fields();
    let extra = endpoint_body::fill(&mut fields, &mut endpoint, &rules);
    keeps_scheme(&mut fields, was, &extra);
    fields.finish()?;
    if endpoint.url != was.url {
        // What has failed was another place.
        endpoint.failing_since = None;
        endpoint.disabled_from = None;
    }
    Ok(Change {
        body: to_body(&endpoint),
        entry: Entry::Endpoint(Box::new(endpoint)),
        was: was.revision,
    })
}

/// A shared secret is no key pair: what signs now has to go on signing.
fn keeps_scheme(fields: &mut Fields, was: &Endpoint, extra: &EndpointExtra) {
    let was: EndpointExtra = extra::read(&was.extra);
    let pair = |extra: &EndpointExtra| extra.signature_scheme == Some(SchemeWord::Ed25519);
    if pair(&was) != pair(extra) {
        let msg =
            "an endpoint does not change between a shared secret and a key pair; make another";
        fields.refuse("signatureScheme", msg);
    }
}

/// Deletes an endpoint. What it was not sent yet is skipped.
#[utoipa::path(delete, path = "/app/{app_id}/endpoint/{endpoint_id}", operation_id = "deleteEndpoint", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    responses((status = NO_CONTENT, description = "it is gone")))]
pub async fn delete(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    let decide = |catalog: &Catalog| {
        let was = endpoint_of(catalog, &app, &name)?;
        let endpoint = Endpoint {
            deleted_at: Some(posted.at),
            updated_at: posted.at,
            ..(**was).clone()
        };
        Ok(Change {
            body: GoneBody {
                id: endpoint.id.to_string(),
            },
            was: was.revision,
            entry: Entry::Endpoint(Box::new(endpoint)),
        })
    };
    change::make(&api, &posted, "endpoint.delete", decide).await?;
    Outcome::Ok(no_content())
}
