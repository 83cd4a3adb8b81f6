//! `/api/v1`: the ledger for operators and programs; and the pages that say how the server is.
//!
//! - [`effect`]: effects, one effect with its attempts
//! - [`event`]: events, one event, its bytes; `progress`: what its effects say about it; `run`: passes over it
//! - [`live`]: events as they are accepted
//! - [`verdict`]: what would happen if somebody acted now
//! - [`timeline`]: what happened
//! - [`act`]: what operators decide; [`erase`]: bytes that go at once
//! - [`replay`]: replays of many events
//! - [`own`]: the ledger for the user's own code
//! - [`guard`]: keys of guarded requests
//! - [`alert`]: what somebody should look at; [`lane`]: lanes that are left alone for a while
//! - [`token`]: API tokens; [`audit`]: who decided what; [`secret`]: secrets that providers choose
//! - [`source`]: sources and what they refused; [`keys`]: what the ledger tells about their keys
//! - [`outbox`]: the outgoing API
//! - `list`: what lists look like
//! - [`posted`]: requests that change something; `body`: their JSON, read strictly
//! - [`describe`]: what the API says about itself, as OpenAPI
//! - [`settings`]: what this node goes by
//! - [`store`]: how full it is, what has expired, a copy of it
//! - [`ops`]: `/healthz`, `/readyz`, `/metrics`

pub mod act;
pub mod alert;
pub mod audit;
mod body;
pub mod describe;
pub mod effect;
pub mod erase;
pub mod event;
pub mod guard;
pub mod keys;
pub mod lane;
pub mod list;
pub mod live;
mod once;
pub mod ops;
pub mod outbox;
pub mod own;
pub mod posted;
mod progress;
pub mod replay;
mod run;
pub mod secret;
pub mod settings;
pub mod source;
pub mod store;
pub mod timeline;
pub mod token;
pub mod verdict;

use std::ops::Deref;
use std::sync::Arc;

use axum::response::IntoResponse;
use axum::{Extension, Router, middleware};
use hapax_store::Store;
use hapax_store::nouns::Role;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::describe::document::{self, Document, Scope};
use self::live::Live;
use self::once::Errands;
use self::outbox::quota::Examples;
use super::answer::{self, problem};
use super::auth;
use super::pages::look::Look;
use crate::alert::Alerts;
use crate::dispatch::Dispatcher;
use crate::guard::Guards;
use crate::inbox::Inbox;
use crate::metrics::Metrics;
use crate::operate::Operator;
use crate::operate::replays::Replays;
use crate::operate::tokens::Tokens;
use crate::operate::upkeep::Upkeep;
use crate::outbox::{Publisher, Schemas};
use crate::secrets::Safe;
use crate::secrets::offered::Offered;

/// Where the API stands.
const UNDER: &str = "/api/v1";

/// What the API works on. A request is handed several copies of it, so that a copy is one count.
#[derive(Clone)]
pub struct Api(Arc<Parts>);

impl Deref for Api {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl From<Parts> for Api {
    fn from(parts: Parts) -> Api {
        Api(Arc::new(parts))
    }
}

/// All that the API works on.
pub struct Parts {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The inbound door.
    pub inbox: Arc<Inbox>,
    /// Applications, endpoints, types of events; publishes messages.
    pub publisher: Publisher,
    /// What payloads have to be like.
    pub schemas: Arc<Schemas>,
    /// Where consumers see their own endpoints.
    pub portal: Arc<str>,
    /// What their pages look like.
    pub look: Arc<Look>,
    /// Sends: knows how its lanes are.
    pub dispatcher: Dispatcher,
    /// Examples that applications have sent lately.
    pub examples: Arc<Examples>,
    /// Carries out what operators decide.
    pub operator: Operator,
    /// Carries replays on.
    pub replays: Arc<Replays>,
    /// Who may ask.
    pub tokens: Arc<Tokens>,
    /// The guards.
    pub guards: Arc<Guards>,
    /// Deletes what has expired.
    pub upkeep: Arc<Upkeep>,
    /// Seals secrets.
    pub safe: Arc<Safe>,
    /// Secrets that providers choose.
    pub offered: Arc<Offered>,
    /// What somebody should look at.
    pub alerts: Arc<Alerts>,
    /// What is carried out though its caller has hung up.
    pub errands: Arc<Errands>,
    /// Those who listen.
    pub live: Arc<Live>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// All routes but the inbox's. Each is registered with its description: see [`describe`].
pub fn router(api: Api) -> Router {
    let (guarded, described) = ledger()
        .merge(outbox::secrets_of_all())
        .merge(admins())
        .split_for_parts();
    let guarded = guarded
        .merge(outbox::unsupported::of_all())
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(api.clone(), auth::require));
    let (of_apps, described_apps) = of_apps().split_for_parts();
    let of_apps = of_apps
        .merge(outbox::unsupported::of_app())
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(
            api.clone(),
            auth::require_for_app,
        ));
    let beside = outbox::unsupported::beside()
        .layer(middleware::from_fn_with_state(api.clone(), auth::require));
    let (open, document) = open().split_for_parts();
    let document = document.nest(UNDER, described).nest(UNDER, described_apps);
    let document = Document::new(document);
    open.nest(UNDER, guarded.merge(of_apps))
        .merge(beside)
        .layer(Extension(document))
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .with_state(api)
}

/// What tokens of single applications may ask, too.
fn of_apps() -> OpenApiRouter<Api> {
    outbox::of_app()
        .merge(outbox::secrets())
        .merge(outbox::owners())
        .merge(outbox::shared())
        .merge(outbox::types())
        .merge(outbox::own_token())
}

/// How the server is, and public keys: open to everybody who can reach it.
fn open() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(ops::healthz))
        .routes(routes!(ops::readyz))
        .routes(routes!(ops::metrics))
        .routes(routes!(outbox::jwks::show))
}

/// Looking needs a viewer, deciding an operator: [`auth::require`] tells them apart by the method.
fn ledger() -> OpenApiRouter<Api> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(document::show))
        .routes(routes!(event::list))
        .routes(routes!(live::stream))
        .routes(routes!(event::show))
        .routes(routes!(event::body))
        .routes(routes!(verdict::show))
        .routes(routes!(timeline::show))
        .routes(routes!(act::retry))
        .routes(routes!(act::replay))
        .routes(routes!(act::reconcile))
        .routes(routes!(act::review))
        .routes(routes!(act::conflict))
        .routes(routes!(verdict::conflict_body))
        .routes(routes!(effect::list))
        .routes(routes!(effect::show))
        .routes(routes!(act::resolve))
        .routes(routes!(own::claim))
        .routes(routes!(own::extend))
        .routes(routes!(own::settle))
        .routes(routes!(replay::list, replay::start))
        .routes(routes!(replay::show))
        .routes(routes!(replay::cancel))
        .routes(routes!(guard::list))
        .routes(routes!(guard::show))
        .routes(routes!(guard::resolve))
        .routes(routes!(alert::list))
        .routes(routes!(lane::list))
        .routes(routes!(source::list))
        .routes(routes!(keys::audit))
        .routes(routes!(source::refused))
        .merge(outbox::of_all());
    document::guard(router.get_openapi_mut(), auth::least, Scope::All);
    router
}

/// What needs an admin.
fn admins() -> OpenApiRouter<Api> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(token::list, token::create))
        .routes(routes!(token::revoke))
        .routes(routes!(audit::list))
        .routes(routes!(erase::event))
        .routes(routes!(erase::entity))
        .routes(routes!(settings::show))
        .routes(routes!(store::stats))
        .routes(routes!(store::prune))
        .routes(routes!(store::backup))
        .routes(routes!(secret::list))
        .routes(routes!(secret::expect))
        .routes(routes!(secret::drop_one))
        .route_layer(middleware::from_fn(auth::admins_only));
    document::guard(router.get_openapi_mut(), |_| Role::Admin, Scope::All);
    router
}

async fn nothing_here() -> impl IntoResponse {
    problem(answer::NOT_FOUND)
}

async fn wrong_method() -> impl IntoResponse {
    problem(answer::METHOD)
}
