//! The real store, registry and dispatcher, as the server puts them together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hapax::config::{StoreTarget, System, parse};
use hapax::dispatch::gate::Rules;
use hapax::dispatch::{Dispatcher, Parts, Sender, Settings as SenderSettings, Targets};
use hapax::http::serve::open;
use hapax::metrics::Metrics;
use hapax::operate::ids;
use hapax::outbox::extra::{self, EndpointExtra};
use hapax::outbox::message::{KEEP_DEFAULT, Outcome};
use hapax::outbox::sealed::{Opened, fresh_key};
use hapax::outbox::{Draft, FanOut, Publisher, Registry, Settings};
use hapax::{clock, entropy};
use hapax_ledger::id::{AppId, EndpointId, EventId};
use hapax_ledger::time::Span;
use hapax_store::Store;
use hapax_store::nouns::{About, App, Authority, Endpoint, Entry, Put, Standing};
use hapax_store::vault::Vault;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// As the server's default.
const LEASE: Span = Span::from_secs(30);

/// All that a server has between its API and the wire.
pub(crate) struct Outbox {
    pub(crate) metrics: Arc<Metrics>,
    publisher: Publisher,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Outbox {
    /// Over this store, from now on delivering. Endpoints may be on this machine.
    pub(crate) async fn open(store: &str) -> anyhow::Result<Outbox> {
        let store = open(&target(store)?).await?;
        let vault = Arc::new(Vault::new(&[[7; 32]])?);
        let settings = Settings {
            rules: Arc::new(Rules::new(vec!["127.0.0.0/8".parse()?], Vec::new())),
            ..Settings::default()
        };
        let registry = Registry::open(store.clone(), vault, settings).await?;
        let registry = Arc::new(registry);
        let metrics = Arc::new(Metrics::default());
        let dispatcher = Dispatcher::new(Parts {
            store: store.clone(),
            sender: Sender::new(SenderSettings::default())?,
            targets: Targets::default(),
            directory: registry.clone(),
            metrics: metrics.clone(),
            node: format!("bench-{}", hex::encode(entropy::bytes::<4>())).into(),
            lease: LEASE,
        });
        let (stop, stopping) = watch::channel(false);
        let running = tokio::spawn(dispatcher.clone().run(stopping));
        let fan_out = Arc::new(FanOut::new(store.clone(), dispatcher.clone()));
        Ok(Outbox {
            metrics,
            publisher: Publisher {
                store,
                registry,
                dispatcher,
                fan_out,
            },
            stop,
            running,
        })
    }

    /// The ledger itself.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.publisher.store.clone()
    }

    async fn put(&self, entry: Entry) -> anyhow::Result<()> {
        let by = Authority {
            actor: "bench".into(),
            reason: String::new(),
            at: clock::now(),
            request: None,
        };
        let registry = &self.publisher.registry;
        let put = registry.put(entry, 0, "bench.put", by, String::new());
        match put.await? {
            Put::Done { .. } => Ok(()),
            other => anyhow::bail!("not made: {other:?}"),
        }
    }

    /// An application without endpoints.
    pub(crate) async fn app(&self) -> anyhow::Result<AppId> {
        let now = clock::now();
        let id = AppId(ids::fresh(now));
        self.put(Entry::App(App {
            id,
            uid: None,
            name: "bench".to_owned(),
            throttle_rate: None,
            metadata: BTreeMap::new(),
            extra: String::new(),
            created_at: now,
            updated_at: now,
            deleted_at: None,
            revision: 0,
        }))
        .await?;
        Ok(id)
    }

    /// An endpoint of an application.
    pub(crate) async fn endpoint(
        &self,
        app: AppId,
        to: SocketAddr,
        extra: EndpointExtra,
    ) -> anyhow::Result<EndpointId> {
        let now = clock::now();
        let id = EndpointId(ids::fresh(now));
        let key = fresh_key(&extra.scheme(), entropy::bytes());
        let vault = self.publisher.registry.vault();
        let vault = vault.ok_or_else(|| anyhow::anyhow!("the bench has a vault"))?;
        let sealed = Opened::new(key, BTreeMap::new(), now).seal(&vault, id, entropy::bytes());
        self.put(Entry::Endpoint(Box::new(Endpoint {
            id,
            app,
            uid: None,
            url: format!("http://{to}/"),
            description: String::new(),
            event_types: Vec::new(),
            channels: Vec::new(),
            throttle_rate: None,
            metadata: BTreeMap::new(),
            sealed,
            extra: extra::write(&extra),
            standing: Standing::Enabled,
            failing_since: None,
            disabled_from: None,
            created_at: now,
            updated_at: now,
            deleted_at: None,
            revision: 0,
        })))
        .await?;
        Ok(id)
    }

    /// Publishes a message as the API does; it is durable when this returns.
    pub(crate) async fn publish(&self, app: AppId, payload: Bytes) -> anyhow::Result<EventId> {
        let draft = Draft {
            app,
            event_type: "invoice.paid".to_owned(),
            payload,
            content_type: None,
            about: About::default(),
            keep: KEEP_DEFAULT,
            drawn: entropy::bytes(),
            at: clock::now(),
            by: "bench".into(),
        };
        match self.publisher.publish(&draft).await? {
            Outcome::Stored(receipt) => Ok(receipt.event),
            other => anyhow::bail!("not published: {other:?}"),
        }
    }

    /// Lets what is under way end.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        self.running.await?;
        self.publisher.store.close().await;
        Ok(())
    }
}

/// A store as the config has it.
pub(crate) fn target(store: &str) -> anyhow::Result<StoreTarget> {
    let text = format!("store = \"{store}\"\n");
    let parsed = parse(&text, "bench.toml", &System::beside("bench.toml".as_ref()));
    let parsed = parsed.map_err(|problems| anyhow::anyhow!("{problems}"))?;
    Ok(parsed.config.store)
}

/// A payload of this length.
pub(crate) fn payload(bytes: usize) -> Bytes {
    let frame = "{\"pad\":\"\"}".len();
    let pad = "0".repeat(bytes.saturating_sub(frame));
    Bytes::from(format!("{{\"pad\":\"{pad}\"}}"))
}
