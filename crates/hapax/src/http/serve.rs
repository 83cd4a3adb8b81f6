//! Start, reload, stop.

use std::sync::Arc;

use anyhow::Context;
use hapax_ledger::time::Span;
use hapax_store::Store;
use hapax_store::nouns::Migrated;
use hapax_store::postgres::{self, PostgresStore};
use hapax_store::sqlite::{DiskLimits, Options, SqliteStore};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::api::{self, Api};
use super::auth::token_hash;
use super::intake::Intake;
use super::listen::{self, Doors};
use crate::alert::{self, Alerts};
use crate::config::{Config, Limits, Problems, StoreTarget};
use crate::dispatch::{Dispatcher, Parts, Sender, Settings, Targets};
use crate::guard::sweep::Sweep;
use crate::guard::{self, Guards};
use crate::inbox::Inbox;
use crate::inbox::receive::Sources;
use crate::metrics::Metrics;
use crate::operate::Operator;
use crate::operate::replays::Replays;
use crate::operate::tokens::Tokens;
use crate::operate::upkeep::Upkeep;
use crate::secrets::Safe;
use crate::secrets::offered::{self, Offered};
use crate::{clock, entropy};

/// Files that the store and the rest of the program may have open beside connections.
const FILES_OF_OUR_OWN: u64 = 512;
/// Reads the config again.
pub type Reload = Box<dyn Fn() -> Result<Config, Problems> + Send + Sync>;

/// Runs the server until SIGINT or SIGTERM; SIGHUP reloads the config.
pub async fn run(config: Config, reload: Reload) -> anyhow::Result<()> {
    allow_open_files(config.limits.connections_max);
    let listener = TcpListener::bind(config.listen).await.with_context(|| {
        format!(
            "cannot listen on {}; is something else using the port?",
            config.listen
        )
    })?;
    let store = open(&config.store).await?;
    let server = Server::new(config, store.clone()).await?;
    // Before anybody hears that we listen: until then a signal ends the process, which is right while it only starts.
    let signals = Signals::take()?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    let (stop, stopping) = watch::channel(false);
    let serving = tokio::spawn(listen::run(
        listener,
        server.doors.clone(),
        stopping.clone(),
    ));
    let guarding = tokio::spawn(server.api.guards.clone().run(stopping.clone()));
    let sweep = Sweep::new(
        server.api.guards.clone(),
        Sender::new(Settings::default())?.into(),
    );
    let sweeping = tokio::spawn(sweep.run(stopping.clone()));
    let upkeep = server.api.upkeep.clone();
    let reaping = tokio::spawn(upkeep.run(server.metrics.clone(), stopping.clone()));
    let knowing = tokio::spawn(server.api.tokens.clone().run(stopping.clone()));
    let replaying = tokio::spawn(server.api.replays.clone().run(stopping.clone()));
    let sealing = tokio::spawn(offered::run(
        server.inbox.clone(),
        server.api.safe.clone(),
        store.clone(),
        stopping.clone(),
    ));
    let watching = tokio::spawn(server.api.alerts.clone().run(stopping.clone()));
    let (stop_sending, stop_soon) = watch::channel(false);
    let dispatching = tokio::spawn(server.dispatcher.clone().run(stop_soon));
    server.wait(&reload, signals).await;
    tracing::info!("stopping: finishing what was taken");
    stop.send_replace(true);
    server.api.live.end();
    serving.await?;
    guarding.await?;
    sweeping.await?;
    reaping.await?;
    knowing.await?;
    sealing.await?;
    replaying.await?;
    watching.await?;
    // Last: what was accepted until now may still go out from memory.
    stop_sending.send_replace(true);
    dispatching.await?;
    store.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// Each connection is an open file, and the store needs some too. The usual limit is far below what the kernel allows.
fn allow_open_files(connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = connections as u64 + FILES_OF_OUR_OWN;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised = Rlimit {
        current: Some(current),
        maximum: limit.maximum,
    };
    if setrlimit(Resource::Nofile, raised).is_err() || current < wanted {
        tracing::warn!(
            allowed = current,
            wanted,
            "few files may be open at a time: lower `connections` in [limits], or raise the limit (ulimit -n)"
        );
    }
}

/// Opens the store that the config names.
pub async fn open(target: &StoreTarget) -> anyhow::Result<Arc<dyn Store>> {
    match target {
        StoreTarget::Sqlite(path) => {
            let path = path.clone();
            let options = Options {
                clock: clock::steady(),
                nonce: entropy::bytes(),
                disk: DiskLimits::default(),
            };
            let store =
                tokio::task::spawn_blocking(move || SqliteStore::open(&path, options)).await??;
            Ok(Arc::new(store))
        }
        StoreTarget::Postgres(url) => {
            Ok(Arc::new(PostgresStore::open(postgres_options(url)).await?))
        }
    }
}

/// Brings a PostgreSQL store to the shape that this version needs.
///
/// # Errors
/// If it cannot be reached, or was made by another version.
pub async fn migrate(url: &str) -> anyhow::Result<Migrated> {
    Ok(PostgresStore::migrate(&postgres_options(url)).await?)
}

fn postgres_options(url: &str) -> postgres::Options {
    postgres::Options {
        url: url.to_owned(),
        new_store_id: entropy::bytes(),
        entropy: Arc::new(|| u64::from_be_bytes(entropy::bytes())),
        root_certificates: None,
        commit_wait: postgres::COMMIT_WAIT,
        clock: None,
    }
}

/// A server that is set up but does not listen yet.
pub struct Server {
    /// What connections are answered by.
    pub doors: Arc<Doors>,
    inbox: Arc<Inbox>,
    dispatcher: Dispatcher,
    metrics: Arc<Metrics>,
    api: Api,
    running: Running,
}

/// What the process is told from outside.
struct Signals {
    hup: Signal,
    int: Signal,
    term: Signal,
}

impl Signals {
    fn take() -> std::io::Result<Signals> {
        Ok(Signals {
            hup: signal(SignalKind::hangup())?,
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
        })
    }
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
        let targets = Targets::new(&config.sent(), &config.sources, store.shards());
        let guards = guards(&config, &store, &metrics, &safe).await?;
        let running = Running {
            listen: config.listen,
            store: config.store,
        };
        let dispatcher = Dispatcher::new(Parts {
            store: store.clone(),
            sender: Sender::new(Settings::default())?,
            targets,
            metrics: metrics.clone(),
            node: node_name(),
            lease: lease(&config.limits),
        });
        let sources = Sources::new(config.sources, &config.effects, config.public_url);
        prepare(&metrics, &sources);
        let inbox = Arc::new(Inbox::new(
            sources,
            store.clone(),
            dispatcher.clone(),
            offered.clone(),
            metrics.clone(),
        ));
        inbox.learn().await?;
        let alerts = Arc::new(Alerts::new(alert::Parts {
            store: store.clone(),
            inbox: inbox.clone(),
            dispatcher: dispatcher.clone(),
            metrics: metrics.clone(),
            config: config.alerts,
        }));
        let tokens = tokens(&store, token_hash).await;
        let operator = Operator::new(store.clone(), inbox.clone(), dispatcher.clone());
        let api = Api {
            replays: Arc::new(Replays::new(store.clone(), operator.clone())),
            upkeep: Arc::new(Upkeep::new(store.clone())),
            operator,
            store,
            inbox: inbox.clone(),
            tokens,
            guards,
            safe,
            offered,
            alerts,
            live: Arc::default(),
            metrics: metrics.clone(),
        };
        let doors = Arc::new(Doors {
            intake: Intake::new(inbox.clone(), metrics.clone(), config.limits.clone()),
            router: api::router(api.clone()),
            limits: config.limits,
            metrics: metrics.clone(),
        });
        Ok(Server {
            doors,
            inbox,
            dispatcher,
            metrics,
            api,
            running,
        })
    }

    /// Reloads on SIGHUP, returns on SIGINT or SIGTERM.
    async fn wait(&self, reload: &Reload, mut signals: Signals) {
        loop {
            tokio::select! {
                _ = signals.hup.recv() => self.reload(reload()).await,
                _ = signals.int.recv() => return,
                _ = signals.term.recv() => return,
            }
        }
    }

    async fn reload(&self, config: Result<Config, Problems>) {
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
        self.api.alerts.reload(config.alerts);
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
