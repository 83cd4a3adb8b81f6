//! The real store, config and dispatcher, as the server puts them together.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use hapax::config::{Config, EffectConfig, System, parse};
use hapax::dispatch::directory::NoEndpoints;
use hapax::dispatch::{Dispatcher, Parts, Sender, Settings, Targets};
use hapax::http::serve::open;
use hapax::metrics::Metrics;
use hapax::{clock, entropy};
use hapax_ledger::time::Span;
use hapax_store::nouns::Arrival;
use hapax_store::{Store, StoreError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A source may have so many effects; more lanes need more sources.
const EFFECTS_PER_SOURCE_MAX: usize = 1_000;

/// An effect to be declared.
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) to: SocketAddr,
    /// Its further settings, as they are written.
    pub(crate) more: String,
}

/// A config file with these effects.
pub(crate) fn config(store: &str, effects: &[Declared]) -> anyhow::Result<Config> {
    let mut text = format!("store = \"{store}\"\n");
    for (number, some) in effects.chunks(EFFECTS_PER_SOURCE_MAX).enumerate() {
        writeln!(
            text,
            "[[source]]\nname = \"bench{number}\"\nprovider = \"stripe\"\nsecrets = [\"a secret of the bench\"]"
        )?;
        for Declared { name, to, more } in some {
            writeln!(
                text,
                "[[effect]]\nname = \"{name}\"\nsource = \"bench{number}\"\nurl = \"http://{to}/\"\nrepeat = \"keyed\"\n{more}"
            )?;
        }
    }
    let parsed = parse(&text, "bench.toml", &System::beside("bench.toml".as_ref()));
    let loaded = parsed.map_err(|problems| anyhow::anyhow!("{problems}"))?;
    Ok(loaded.config)
}

/// All that a server has between its inbox and the wire.
pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) effects: Vec<Arc<EffectConfig>>,
    dispatcher: Dispatcher,
    stop: watch::Sender<bool>,
    dispatching: Option<JoinHandle<()>>,
}

impl Bench {
    /// Opens the config's store; nothing is sent yet.
    pub(crate) async fn open(config: Config) -> anyhow::Result<Bench> {
        let store = open(&config.store).await?;
        let metrics = Arc::new(Metrics::default());
        let lease = i64::try_from(config.limits.lease.as_micros())?;
        let dispatcher = Dispatcher::new(Parts {
            store: store.clone(),
            sender: Sender::new(Settings::default())?,
            targets: Targets::new(&config.effects, &config.sources, store.shards()),
            directory: Arc::new(NoEndpoints),
            metrics: metrics.clone(),
            node: format!("bench-{}", hex::encode(entropy::bytes::<4>())).into(),
            lease: Span::from_micros(lease),
        });
        Ok(Bench {
            store,
            metrics,
            effects: config.effects,
            dispatcher,
            stop: watch::Sender::new(false),
            dispatching: None,
        })
    }

    /// From here on effects are carried out.
    pub(crate) fn dispatch(&mut self) {
        let running = self.dispatcher.clone().run(self.stop.subscribe());
        self.dispatching = Some(tokio::spawn(running));
    }

    /// Accepts as the inbox does. Says when the store had it durable: nothing may be sent before.
    pub(crate) async fn accept(&self, mut arrival: Arrival) -> Result<Instant, StoreError> {
        let promises = self.dispatcher.promise(&mut arrival);
        let receipts = self.store.accept(arrival).await?;
        let durable = clock::tick();
        promises.keep(&receipts);
        Ok(durable)
    }

    /// The effect of this name.
    pub(crate) fn effect(&self, name: &str) -> anyhow::Result<Arc<EffectConfig>> {
        let found = self.effects.iter().find(|effect| &*effect.name == name);
        found.cloned().context("the bench declares its effects")
    }

    /// Lets what is under way end.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        if let Some(dispatching) = self.dispatching {
            dispatching.await?;
        }
        self.store.close().await;
        Ok(())
    }
}
