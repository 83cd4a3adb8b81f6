//! A dispatcher with a registry, over a store of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use hapax::config::StoreTarget;
use hapax::dispatch::gate::Rules;
use hapax::dispatch::{Dispatcher, Parts, Sender, Settings as SenderSettings, Targets};
use hapax::http::serve::open;
use hapax::metrics::Metrics;
use hapax::operate::ids;
use hapax::outbox::extra::{self, AppExtra, EndpointExtra};
use hapax::outbox::message::{KEEP_DEFAULT, Outcome};
use hapax::outbox::sealed::Opened;
use hapax::outbox::{Draft, FanOut, Operational, Publisher, Registry, Settings};
use hapax::{clock, entropy};
use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{AppId, EndpointId, EventId};
use hapax_ledger::time::{Span, Time};
use hapax_store::Store;
use hapax_store::nouns::{
    About, App, Authority, Deliveries, Effect, EffectDetail, Endpoint, Entry, News, Page, PageFrom,
    PostedFilter, Put, Standing, Untold,
};
use hapax_store::vault::Vault;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::support::clock::{TOO_LONG, tick};

pub(super) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What a test wants of its endpoint.
#[derive(Default)]
pub(super) struct Wish {
    pub(super) extra: EndpointExtra,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) throttle_rate: Option<u32>,
    pub(super) event_types: Vec<String>,
    pub(super) channels: Vec<String>,
}

/// Tries at once, so many times.
pub(super) fn tries(count: usize) -> Wish {
    Wish {
        extra: EndpointExtra {
            retry_schedule: Some(vec![0; count]),
            ..EndpointExtra::default()
        },
        ..Wish::default()
    }
}

pub(super) struct Scene {
    pub(super) store: Arc<dyn Store>,
    pub(super) registry: Arc<Registry>,
    pub(super) publisher: Publisher,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
    folder: Arc<TempDir>,
}

impl Scene {
    /// One whose endpoints may be on this machine.
    pub(super) async fn new() -> Scene {
        let local = "127.0.0.0/8".parse().expect("a subnet");
        Scene::with(Rules::new(vec![local], Vec::new())).await
    }

    pub(super) async fn with(rules: Rules) -> Scene {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let target = StoreTarget::Sqlite(folder.path().join("hapax.db"));
        let store = open(&target).await.expect("a store");
        Scene::over(store, folder, rules).await
    }

    /// A node over this database, whose endpoints may be on this machine.
    pub(super) async fn on(url: &str) -> Scene {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let target = StoreTarget::Postgres(url.to_owned());
        let store = open(&target).await.expect("a store");
        let local = "127.0.0.0/8".parse().expect("a subnet");
        Scene::over(store, folder, Rules::new(vec![local], Vec::new())).await
    }

    /// Another node over the same store.
    pub(super) async fn beside(&self) -> Scene {
        let rules = (*self.registry.settings().rules).clone();
        Scene::over(self.store.clone(), self.folder.clone(), rules).await
    }

    async fn over(store: Arc<dyn Store>, folder: Arc<TempDir>, rules: Rules) -> Scene {
        let vault = Arc::new(Vault::new(&[[7; 32]]).expect("a key"));
        let settings = Settings {
            rules: Arc::new(rules),
            ..Settings::default()
        };
        let registry = Registry::open(store.clone(), vault, settings).await;
        let registry = Arc::new(registry.expect("a catalogue"));
        let dispatcher = Dispatcher::new(Parts {
            store: store.clone(),
            sender: Sender::new(SenderSettings::default()).expect("no additional roots"),
            targets: Targets::default(),
            directory: registry.clone(),
            metrics: Arc::new(Metrics::default()),
            node: hex::encode(entropy::bytes::<4>()).into(),
            lease: Span::from_secs(30),
        });
        let fan_out = Arc::new(FanOut::new(store.clone(), dispatcher.clone()));
        let (stop, stopping) = watch::channel(false);
        let running = tokio::spawn(dispatcher.clone().run(stopping));
        let start = tick();
        // The one node of its store has all shards with its first beat, and gains none later.
        while store.shards() == 1 && !dispatcher.looks_after("anything") {
            assert!(tick() - start < TOO_LONG, "the store does not hear it");
            tokio::task::yield_now().await;
        }
        let publisher = Publisher {
            store: store.clone(),
            registry: registry.clone(),
            dispatcher,
            fan_out,
        };
        Scene {
            store,
            registry,
            publisher,
            stop,
            running,
            folder,
        }
    }

    /// Lets what is under way end.
    pub(super) async fn end(self) {
        self.stop.send_replace(true);
        self.running.await.expect("it ends");
    }

    pub(super) async fn put(&self, entry: Entry, was: u64) -> Put {
        let by = authority();
        let put = self.registry.put(entry, was, "test.put", by, String::new());
        put.await.expect("the store is well")
    }

    pub(super) async fn app(&self, extra: &AppExtra) -> AppId {
        let now = clock::now();
        let id = AppId(ids::fresh(now));
        let app = App {
            id,
            uid: None,
            name: "an application".to_owned(),
            throttle_rate: None,
            metadata: BTreeMap::new(),
            extra: extra::write(extra),
            created_at: now,
            updated_at: now,
            deleted_at: None,
            revision: 0,
        };
        let put = self.put(Entry::App(app), 0).await;
        assert!(matches!(put, Put::Done { .. }), "{put:?}");
        id
    }

    pub(super) async fn endpoint(&self, app: AppId, url: &str, wish: Wish) -> EndpointId {
        let now = clock::now();
        let id = EndpointId(ids::fresh(now));
        let opened = Opened::new(SECRET.to_owned(), wish.headers, now);
        let endpoint = Endpoint {
            id,
            app,
            uid: None,
            url: url.to_owned(),
            description: String::new(),
            event_types: wish.event_types,
            channels: wish.channels,
            throttle_rate: wish.throttle_rate,
            metadata: BTreeMap::new(),
            sealed: opened.seal(&self.registry.vault().expect("a key"), id, entropy::bytes()),
            extra: extra::write(&wish.extra),
            standing: Standing::Enabled,
            failing_since: None,
            disabled_from: None,
            created_at: now,
            updated_at: now,
            deleted_at: None,
            revision: 0,
        };
        let put = self.put(Entry::Endpoint(Box::new(endpoint)), 0).await;
        assert!(matches!(put, Put::Done { .. }), "{put:?}");
        id
    }

    /// What is known of an endpoint.
    pub(super) fn known(&self, id: EndpointId) -> Endpoint {
        let catalog = self.registry.catalog();
        let known = catalog.endpoint_by_id(id).expect("it is there");
        (**known).clone()
    }

    /// Changes an endpoint as its owner would.
    pub(super) async fn change(&self, id: EndpointId, change: impl FnOnce(&mut Endpoint)) {
        let mut endpoint = self.known(id);
        change(&mut endpoint);
        let was = endpoint.revision;
        let put = self.put(Entry::Endpoint(Box::new(endpoint)), was).await;
        assert!(matches!(put, Put::Done { .. }), "{put:?}");
    }

    pub(super) async fn publish(&self, app: AppId, payload: &str, about: About) -> EventId {
        let draft = Draft {
            app,
            event_type: "invoice.paid".to_owned(),
            payload: Bytes::copy_from_slice(payload.as_bytes()),
            content_type: None,
            about,
            keep: KEEP_DEFAULT,
            drawn: entropy::bytes(),
            at: clock::now(),
            by: "test".into(),
        };
        match self.publisher.publish(&draft).await {
            Ok(Outcome::Stored(receipt)) => receipt.event,
            other => panic!("{other:?}"),
        }
    }

    /// The deliveries of a message.
    pub(super) async fn deliveries(&self, event: EventId) -> Vec<Effect> {
        let page = Page {
            limit: 100,
            from: PageFrom::Newest,
        };
        let which = Deliveries::Of(event);
        let listed = self.store.deliveries(which, PostedFilter::default(), page);
        let listed = listed.await.expect("the store is well");
        listed
            .rows
            .into_iter()
            .map(|posted| posted.effect)
            .collect()
    }

    /// Waits for the one delivery of a message to be in a state.
    pub(super) async fn until_state(&self, event: EventId, state: EffectState) -> EffectDetail {
        let start = tick();
        loop {
            let effects = self.deliveries(event).await;
            let [effect] = &effects[..] else {
                panic!("one delivery: {effects:?}");
            };
            if effect.record.state == state {
                let detail = self.store.effect(effect.id).await;
                return detail.expect("the store is well").expect("it is there");
            }
            assert!(tick() - start < TOO_LONG, "not {state}: {effect:?}");
            tokio::task::yield_now().await;
        }
    }

    /// Waits for an endpoint to stand like this.
    pub(super) async fn until_standing(&self, id: EndpointId, standing: Standing) {
        let start = tick();
        while self.known(id).standing != standing {
            assert!(tick() - start < TOO_LONG, "never {standing:?}");
            tokio::task::yield_now().await;
        }
    }

    /// The next thing that operators are told.
    pub(super) async fn hear(&self) -> Operational {
        let start = tick();
        loop {
            if let Some(next) = self.untold().await.into_iter().next() {
                let forgotten = self.store.told(vec![next.number]).await;
                forgotten.expect("the store forgets it");
                let tiding = next.tiding.expect("it is of this version");
                let told = Operational::of(&tiding, None, &self.registry.catalog());
                return told.expect("its endpoint is known");
            }
            assert!(tick() - start < TOO_LONG, "nothing is told");
            tokio::task::yield_now().await;
        }
    }

    /// What operators are to hear, but for what a test did itself.
    pub(super) async fn untold(&self) -> Vec<Untold> {
        let mut untold = self.store.untold(0).await.expect("the store reads");
        untold.retain(|one| {
            let news = one.tiding.as_ref().map(|tiding| &tiding.news);
            !matches!(news, Some(News::Created | News::Updated | News::Deleted))
        });
        untold
    }
}

pub(super) fn authority() -> Authority {
    Authority {
        actor: "test".into(),
        reason: String::new(),
        at: clock::now(),
        request: None,
    }
}

/// In a moment: long enough to be planned and not sent.
pub(super) fn soon() -> About {
    About {
        deliver_at: Some(later(Span::from_millis(700))),
        ..About::default()
    }
}

pub(super) fn later(span: Span) -> Time {
    clock::now() + span
}
