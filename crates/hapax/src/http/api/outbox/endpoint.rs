//! Endpoints: where messages of an application go.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::id::EndpointId;
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
    let made = made(&api, &app, &posted, None).await?;
    make(&api, &app, &posted, &made).await
}

/// The endpoint that a request describes, not yet kept.
async fn made(
    api: &Api,
    app: &str,
    posted: &Posted,
    called: Option<&str>,
) -> Result<Endpoint, Halt> {
    let app = change::find_app(api, app).await?;
    let vault = vault(api)?;
    let rules = api.publisher.registry.settings().rules.clone();
    let mut fields = posted.fields();
    let id = EndpointId(ids::fresh(posted.at));
    let mut endpoint = endpoint_body::blank(id, app.id, posted.at);
    let extra = endpoint_body::fill(&mut fields, &mut endpoint, &rules);
    let key = endpoint_body::secret(&mut fields, "secret", extra.scheme());
    let headers = endpoint_body::headers(&mut fields, "headers");
    fields.finish()?;
    if let (None, Some(called)) = (&endpoint.uid, called) {
        endpoint.uid = Some(called.into());
    }
    let opened = Opened::new(key, headers, posted.at);
    endpoint_body::seal(&opened, &vault, &mut endpoint);
    Ok(endpoint)
}

async fn make(api: &Api, app: &str, posted: &Posted, made: &Endpoint) -> Outcome {
    let decide = |catalog: &Catalog| {
        app_of(catalog, app)?;
        if !catalog.has_room(made.app) {
            return Err(answer::NO_ROOM.into());
        }
        Ok(Change {
            entry: Entry::Endpoint(Box::new(made.clone())),
            was: 0,
            body: to_body(made),
        })
    };
    change::put(api, posted, "endpoint.create", StatusCode::CREATED, decide).await
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
    let of = change::find_app(&api, &app).await?.id;
    let known = {
        api.publisher
            .registry
            .catalog()
            .endpoint(of, &name)
            .is_some()
    };
    if !known {
        let reserved = name.strip_prefix(EndpointId::PREFIX);
        if !words::is_event_type(&name) || reserved.is_some_and(|rest| rest.starts_with('_')) {
            return Err(answer::NOT_FOUND.into());
        }
        let made = made(&api, &app, &posted, Some(&name)).await?;
        return make(&api, &app, &posted, &made).await;
    }
    update(&api, &app, &name, &posted, |was| Endpoint {
        uid: was.uid.clone(),
        sealed: was.sealed.clone(),
        // Replaced as a whole: one that does not say that it is disabled is enabled again.
        failing_since: was
            .failing_since
            .filter(|_| was.standing == Standing::Enabled),
        disabled_from: was
            .disabled_from
            .filter(|_| was.standing == Standing::Enabled),
        created_at: was.created_at,
        // What the SDKs do not know they cannot send, and do not mean to clear.
        extra: was.extra.clone(),
        ..endpoint_body::blank(was.id, was.app, posted.at)
    })
    .await
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
    update(&api, &app, &name, &posted, |was| Endpoint {
        updated_at: posted.at,
        ..was.clone()
    })
    .await
}

async fn update(
    api: &Api,
    app: &str,
    name: &str,
    posted: &Posted,
    begin: impl Fn(&Endpoint) -> Endpoint,
) -> Outcome {
    let rules = api.publisher.registry.settings().rules.clone();
    let decide = |catalog: &Catalog| {
        let was = endpoint_of(catalog, app, name)?;
        let mut endpoint = begin(was);
        let mut fields = posted.fields();
        let extra = endpoint_body::fill(&mut fields, &mut endpoint, &rules);
        keeps_scheme(&mut fields, was, &extra);
        fields.finish()?;
        Ok(Change {
            body: to_body(&endpoint),
            entry: Entry::Endpoint(Box::new(endpoint)),
            was: was.revision,
        })
    };
    change::put(api, posted, "endpoint.update", StatusCode::OK, decide).await
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
