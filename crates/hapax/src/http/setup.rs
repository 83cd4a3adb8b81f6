//! A server over a store: its parts, put together, and changed when the config is.

use std::sync::Arc;

use hapax_ledger::time::Span;
use hapax_store::Store;

use super::api::{self, Api};
use super::auth::token_hash;
use super::intake::Intake;
use super::listen::Doors;
use super::pages::{self, look::Look};
use crate::alert::{self, Alerts, Announcer};
use crate::config::{Config, Limits, OutboxConfig, Problems, StoreTarget};
use crate::dispatch::resolve::Dns;
use crate::dispatch::{Dispatcher, Parts, Sender, Settings, Targets};
use crate::entropy;
use crate::guard::{self, Guards};
use crate::inbox::Inbox;
use crate::inbox::receive::Sources;
use crate::metrics::Metrics;
use crate::operate::Operator;
use crate::operate::replays::Replays;
use crate::operate::tokens::Tokens;
use crate::operate::upkeep::Upkeep;
use crate::outbox::{self, FanOut, Publisher, Registry};
use crate::secrets::Safe;
use crate::secrets::offered::Offered;

/// A server that is set up but does not listen yet.
pub struct Server {
    /// What connections are answered by.
    pub doors: Arc<Doors>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) dispatcher: Dispatcher,
    pub(super) metrics: Arc<Metrics>,
    pub(super) api: Api,
    pub(super) announcer: Arc<Announcer>,
    /// Who resolves the names of endpoints.
    names: Arc<Dns>,
    running: Running,
}

/// Settings that only a restart can change.
struct Running {
    listen: std::net::SocketAddr,
    store: StoreTarget,
}

impl Server {
    /// Sets a server up over a store.
    pub async fn new(config: Config, store: Arc<dyn Store>) -> anyhow::Result<Server> {
        let token_hash = admin_token(&config, &*store).await?;
        let safe = Arc::new(Safe::open(&config, &*store).await?);
        let offered = Arc::new(Offered::new(store.clone(), safe.clone()));
        let metrics = Arc::new(Metrics::default());
        let guards = guards(&config, &store, &metrics, &safe).await?;
        let registry = registry(&config, &store, &safe).await?;
        let names = Arc::new(Dns::new(config.outbox.resolver));
        let dispatcher = dispatcher(&config, &store, &registry, &metrics, &names)?;
        let publisher = publisher(&store, registry.clone(), &dispatcher);
        let announcer = Arc::new(Announcer::new(publisher.clone(), config.alerts.clone()));
        let portal = portal_url(config.public_url.as_deref(), config.listen);
        let sources = Sources::new(config.sources, &config.effects, config.public_url);
        prepare(&metrics, &sources);
        let (sends, chosen) = (dispatcher.clone(), offered.clone());
        let inbox = Arc::new(Inbox::new(
            sources,
            store.clone(),
            sends,
            chosen,
            metrics.clone(),
        ));
        inbox.learn().await?;
        let alerts = Arc::new(Alerts::new(alert::Parts {
            store: store.clone(),
            inbox: inbox.clone(),
            dispatcher: dispatcher.clone(),
            registry,
            metrics: metrics.clone(),
            config: config.alerts,
        }));
        let tokens = tokens(&store, token_hash).await;
        let operator = Operator::new(store.clone(), inbox.clone(), dispatcher.clone());
        let api = Api::from(api::Parts {
            replays: replays(&publisher, &operator),
            upkeep: Arc::new(Upkeep::new(store.clone())),
            operator,
            dispatcher: dispatcher.clone(),
            examples: Arc::default(),
            store,
            publisher,
            schemas: Arc::default(),
            portal,
            look: Arc::new(Look::new(&config.portal)),
            inbox: inbox.clone(),
            tokens,
            guards,
            safe,
            offered,
            alerts,
            errands: Arc::default(),
            live: Arc::default(),
            metrics: metrics.clone(),
        });
        Ok(Server {
            doors: doors(&api, config.limits),
            inbox,
            dispatcher,
            metrics,
            api,
            announcer,
            names,
            running: Running {
                listen: config.listen,
                store: config.store,
            },
        })
    }

    /// Puts a changed config in force, as far as that goes without a restart.
    pub(super) async fn reload(&self, config: Result<Config, Problems>) {
        let config = match config {
            Ok(config) => config,
            Err(problems) => {
                tracing::error!(%problems, "the new config is refused; the running one stays");
                return;
            }
        };
        let restart_needed = config.listen != self.running.listen
            || config.store != self.running.store
            || config.limits != self.doors.limits;
        if let Err(error) = self.api.safe.reload(&config, &*self.api.store).await {
            tracing::error!(%error, "the new vault key is refused; the one before stays");
        }
        let guards_wait = self
            .api
            .guards
            .reload(&config.guards)
            .unwrap_or_else(|error| {
                tracing::error!(
                    error = format!("{error:#}"),
                    "the guards could not be changed; they stay as they were"
                );
                true
            });
        if config.admin_token.is_some() {
            match admin_token(&config, &*self.api.store).await {
                Ok(hash) => self.api.tokens.set_admin(hash),
                Err(error) => {
                    tracing::error!(%error, "the admin token could not be changed; the old one stays")
                }
            }
        }
        self.dispatcher.reload(Targets::new(
            &config.sent(),
            &config.sources,
            self.api.store.shards(),
        ));
        let sources = Sources::new(config.sources, &config.effects, config.public_url);
        prepare(&self.metrics, &sources);
        self.inbox.reload(sources);
        self.announcer.reload(config.alerts.clone());
        self.api.alerts.reload(config.alerts);
        let registry = &self.api.publisher.registry;
        registry.reload(outbox_settings(&config.outbox), self.api.safe.vault());
        self.names.reload(config.outbox.resolver);
        self.api.look.reload(&config.portal);
        match restart_needed || guards_wait {
            true => tracing::warn!(
                "the new config is in force, but for `listen`, `store`, `[limits]` and guards that come, go or move: these change with a restart"
            ),
            false => tracing::info!("the new config is in force"),
        }
    }
}

/// Every source is counted from the start, so that a zero is seen as one.
fn prepare(metrics: &Metrics, sources: &Sources) {
    let sources = sources.all().into_iter();
    metrics.prepare(sources.map(|source| source.name().clone()));
}

/// Sets the guards up.
async fn guards(
    config: &Config,
    store: &Arc<dyn Store>,
    metrics: &Arc<Metrics>,
    safe: &Arc<Safe>,
) -> anyhow::Result<Arc<Guards>> {
    let parts = guard::guards::Parts {
        store: store.clone(),
        safe: safe.clone(),
        metrics: metrics.clone(),
        node: node_name(),
        lease: lease(&config.limits),
        limits: config.limits.clone(),
    };
    Ok(Arc::new(Guards::start(&config.guards, parts).await?))
}

fn replays(publisher: &Publisher, operator: &Operator) -> Arc<Replays> {
    let (store, registry) = (publisher.store.clone(), publisher.registry.clone());
    Arc::new(Replays::new(store, operator.clone(), registry))
}

/// What connections are answered by.
fn doors(api: &Api, limits: Limits) -> Arc<Doors> {
    Arc::new(Doors {
        intake: Intake::new(api.inbox.clone(), api.metrics.clone(), limits.clone()),
        api: api.clone(),
        router: pages::router(api.clone()),
        limits,
        metrics: api.metrics.clone(),
    })
}

fn outbox_settings(config: &OutboxConfig) -> outbox::Settings {
    outbox::Settings {
        rules: config.rules.clone(),
        retry: config.retry.clone(),
        patience: config.patience,
    }
}

/// Applications, endpoints and types of events.
async fn registry(
    config: &Config,
    store: &Arc<dyn Store>,
    safe: &Safe,
) -> anyhow::Result<Arc<Registry>> {
    let settings = outbox_settings(&config.outbox);
    let registry = Registry::open(store.clone(), safe.vault(), settings).await?;
    Ok(Arc::new(registry))
}

fn publisher(
    store: &Arc<dyn Store>,
    registry: Arc<Registry>,
    dispatcher: &Dispatcher,
) -> Publisher {
    Publisher {
        store: store.clone(),
        registry,
        dispatcher: dispatcher.clone(),
        fan_out: Arc::new(FanOut::new(store.clone(), dispatcher.clone())),
    }
}

/// Carries effects out, on a way on which consumers' names are resolved by `names`.
fn dispatcher(
    config: &Config,
    store: &Arc<dyn Store>,
    registry: &Arc<Registry>,
    metrics: &Arc<Metrics>,
    names: &Arc<Dns>,
) -> anyhow::Result<Dispatcher> {
    let sender = Sender::new(Settings {
        consumers: names.clone(),
        ..Settings::default()
    })?;
    Ok(Dispatcher::new(Parts {
        store: store.clone(),
        sender,
        targets: Targets::new(&config.sent(), &config.sources, store.shards()),
        directory: registry.clone(),
        metrics: metrics.clone(),
        node: node_name(),
        lease: lease(&config.limits),
    }))
}

/// Where consumers see their own endpoints.
fn portal_url(public: Option<&str>, listen: std::net::SocketAddr) -> Arc<str> {
    let root = public.map_or_else(|| format!("http://{listen}"), str::to_owned);
    format!("{}/portal", root.trim_end_matches('/')).into()
}

/// Who may ask, as far as it can be read.
async fn tokens(store: &Arc<dyn Store>, admin: [u8; 32]) -> Arc<Tokens> {
    let tokens = Tokens::new(store.clone(), admin);
    if let Err(error) = tokens.refresh().await {
        tracing::warn!(%error, "tokens could not be read; until they are, only the admin token counts");
    }
    Arc::new(tokens)
}

/// This process, as other nodes see it: where it runs, and a lot that no other start of it draws.
fn node_name() -> Arc<str> {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy().into_owned();
    format!("{host}-{}", hex::encode(entropy::bytes::<4>())).into()
}

fn lease(limits: &Limits) -> Span {
    Span::from_micros(i64::try_from(limits.lease.as_micros()).unwrap_or(i64::MAX))
}

/// The hash of the admin token: the config's, or the one made at first start and printed once.
async fn admin_token(config: &Config, store: &dyn Store) -> anyhow::Result<[u8; 32]> {
    if let Some(token) = &config.admin_token {
        return Ok(token_hash(token.expose()));
    }
    let token = format!("hpx_{}", hex::encode(entropy::bytes::<24>()));
    let ours = token_hash(token.as_bytes());
    let kept = store.keep_admin_token(ours).await?;
    if kept == ours {
        eprintln!(
            "admin token, shown only this once (set HAPAX_TOKEN to use it):\n\n    {token}\n"
        );
    }
    Ok(kept)
}
