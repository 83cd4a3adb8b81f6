//! Start and stop: signals, the store, and what runs beside the listener.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use hapax_store::Store;
use hapax_store::nouns::Migrated;
use hapax_store::postgres::{self, PostgresStore};
use hapax_store::sqlite::{DiskLimits, Options, SqliteStore};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::listen;
use super::setup::Server;
use crate::config::{Config, Problems, StoreTarget};
use crate::dispatch::{Sender, Settings};
use crate::guard::sweep::Sweep;
use crate::metrics::past;
use crate::secrets::offered;
use crate::{clock, entropy};

/// Files that the store and the rest of the program may have open beside connections.
const FILES_OF_OUR_OWN: u64 = 512;
/// Reads the config again.
pub type Reload = Box<dyn Fn() -> Result<Config, Problems> + Send + Sync>;

/// Where a server can be reached.
#[derive(Clone, Debug)]
pub struct Listening {
    /// The server.
    pub address: SocketAddr,
    /// Its guards, in the order of the config.
    pub guards: Vec<SocketAddr>,
}

/// Who runs the server inside a process of their own.
pub struct Host {
    /// Hears where it listens.
    pub listening: oneshot::Sender<Listening>,
    /// Says when it is to end, as a signal does.
    pub end: watch::Receiver<bool>,
}

/// Runs the server until SIGINT or SIGTERM; SIGHUP reloads the config.
pub async fn run(config: Config, reload: Reload) -> anyhow::Result<()> {
    let (_never, end) = watch::channel(false);
    let (listening, _) = oneshot::channel();
    host(config, reload, Host { listening, end }).await
}

/// The same for somebody who wants to know where it listens, and may end it.
pub async fn host(config: Config, reload: Reload, host: Host) -> anyhow::Result<()> {
    allow_open_files(connections(&config));
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
    let address = listener.local_addr()?;
    tracing::info!(%address, "listening");
    let guards = server.api.guards.addresses();
    let _ = host.listening.send(Listening { address, guards });
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
    let counting = tokio::spawn(past::run(server.metrics.clone(), stopping.clone()));
    let watching = tokio::spawn(server.api.alerts.clone().run(stopping.clone()));
    let fanning = tokio::spawn(server.api.publisher.fan_out.clone().run(stopping.clone()));
    let announcing = tokio::spawn(server.announcer.clone().run(stopping));
    let (stop_sending, stop_soon) = watch::channel(false);
    let dispatching = tokio::spawn(server.dispatcher.clone().run(stop_soon));
    server.wait(&reload, signals, host.end).await;
    tracing::info!("stopping: finishing what was taken");
    stop.send_replace(true);
    server.api.live.end();
    serving.await?;
    server.api.errands.end().await;
    guarding.await?;
    sweeping.await?;
    reaping.await?;
    knowing.await?;
    sealing.await?;
    replaying.await?;
    counting.await?;
    watching.await?;
    fanning.await?;
    announcing.await?;
    // Last: what was accepted until now may still go out from memory.
    stop_sending.send_replace(true);
    dispatching.await?;
    store.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// How many connections there may be: each listener has its own limit, and behind each of a guard's there may be one to its upstream.
fn connections(config: &Config) -> u64 {
    let listeners = 1 + 2 * config.guards.len() as u64;
    (config.limits.connections_max as u64).saturating_mul(listeners)
}

/// Each connection is an open file, and the store needs some too. The usual limit is far below what the kernel allows.
fn allow_open_files(connections: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = connections.saturating_add(FILES_OF_OUR_OWN);
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

/// Takes note that a database was brought back to an earlier time; says how many effects are ambiguous because of it.
///
/// # Errors
/// If it cannot be reached, or was made by another version.
pub async fn restored(url: &str) -> anyhow::Result<u64> {
    Ok(PostgresStore::restored(postgres_options(url)).await?)
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

impl Server {
    /// Reloads on SIGHUP, returns on SIGINT or SIGTERM or when its host says so.
    async fn wait(&self, reload: &Reload, mut signals: Signals, mut end: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = signals.hup.recv() => self.reload(reload()).await,
                _ = signals.int.recv() => return,
                _ = signals.term.recv() => return,
                () = said(&mut end) => return,
            }
        }
    }
}

/// Waits until somebody says so; whoever has gone without a word never does.
pub async fn said(word: &mut watch::Receiver<bool>) {
    let gone = word.wait_for(|word| *word).await.is_err();
    if gone {
        std::future::pending::<()>().await;
    }
}
