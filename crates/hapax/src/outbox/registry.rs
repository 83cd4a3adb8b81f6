//! The registry: the catalogue in memory, kept up with the store, and the dispatcher's word on where deliveries go.
//!
//! What this node changes is known to it at once. What other nodes change it hears of when it asks: before a read by
//! [`Registry::fresh`], when a message turns out to be planned by an old catalogue, and with the dispatcher's beat.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use arc_swap::{ArcSwap, ArcSwapOption};
use async_trait::async_trait;
use hapax_ledger::id::EndpointId;
use hapax_ledger::retry::Schedule;
use hapax_ledger::time::Time;
use hapax_store::nouns::{Authority, Effect, Entry, Put, Tiding, is_endpoint_lane};
use hapax_store::vault::Vault;
use hapax_store::{Store, StoreError};
use tokio::sync::Notify;

use super::catalog::Catalog;
use super::endpoint::{self, Surroundings};
use super::extra::{self, EventTypeExtra};
use super::health::Patience;
use super::marking::{FirstFailure, Noted};
use crate::clock;
use crate::dispatch::directory::{Directory, Found, Settled};
use crate::dispatch::gate::Rules;
use crate::dispatch::target::{SchedulesByType, Way};

/// What the config says about the outbox.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where endpoints may be.
    pub rules: Arc<Rules>,
    /// The schedule of deliveries that have no other.
    pub retry: Arc<Schedule>,
    /// How long an endpoint may fail.
    pub patience: Patience,
}

/// All applications, endpoints and types of events.
pub struct Registry {
    pub(super) store: Arc<dyn Store>,
    vault: ArcSwapOption<Vault>,
    settings: ArcSwap<Settings>,
    catalog: RwLock<Catalog>,
    by_type: Arc<SchedulesByType>,
    /// One asks at a time; all who come meanwhile share the question after it. The number of the last one that was answered.
    asking: tokio::sync::Mutex<u64>,
    /// So many questions were begun.
    begun: AtomicU64,
    /// One writes down how endpoints do, for all who have seen something.
    pub(super) marking: tokio::sync::Mutex<()>,
    /// Endpoints that have begun to fail, and since when.
    pub(super) failed: Mutex<HashMap<EndpointId, FirstFailure>>,
    /// What is to be written about endpoints.
    pub(super) noted: Mutex<HashMap<EndpointId, Noted>>,
    /// Rings when something is to be told.
    pub(super) untold: Arc<Notify>,
}

impl Registry {
    /// The catalogue of a store.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn open(
        store: Arc<dyn Store>,
        vault: impl Into<Option<Arc<Vault>>>,
        settings: Settings,
    ) -> Result<Registry, StoreError> {
        let registry = Registry {
            store,
            vault: ArcSwapOption::new(vault.into()),
            settings: ArcSwap::from_pointee(settings),
            catalog: RwLock::default(),
            by_type: Arc::default(),
            asking: tokio::sync::Mutex::default(),
            begun: AtomicU64::default(),
            marking: tokio::sync::Mutex::default(),
            failed: Mutex::default(),
            noted: Mutex::default(),
            untold: Arc::default(),
        };
        registry.refresh().await?;
        Ok(registry)
    }

    /// Puts another config and other keys in force.
    pub fn reload(&self, settings: Settings, vault: Option<Arc<Vault>>) {
        self.settings.store(Arc::new(settings));
        self.vault.store(vault);
        let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
        catalog.forget_targets();
    }

    /// Where endpoints may be, and when deliveries are tried again.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Rings when this node has written something that operators are to hear.
    pub fn untold(&self) -> Arc<Notify> {
        self.untold.clone()
    }

    /// Seals and opens secrets, if there is a key.
    pub fn vault(&self) -> Option<Arc<Vault>> {
        self.vault.load_full()
    }

    /// What is known. Held for a moment only: nothing may be awaited meanwhile.
    pub fn catalog(&self) -> RwLockReadGuard<'_, Catalog> {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, and nothing that was changed before this call is missing from it.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn fresh(&self) -> Result<RwLockReadGuard<'_, Catalog>, StoreError> {
        // A store of one process has heard of every change through us.
        if self.store.shards() > 1 {
            self.refresh().await?;
        }
        Ok(self.catalog())
    }

    /// Changes something. What is done is known at once.
    ///
    /// # Errors
    /// If the store fails, or does not say whether it did.
    pub async fn put(
        &self,
        entry: Entry,
        was: u64,
        action: &'static str,
        by: Authority,
        answer: String,
    ) -> Result<Put, StoreError> {
        let is_told = matches!(entry, Entry::Endpoint(_));
        let put = self.store.put(entry, was, action, by, answer).await?;
        self.refresh().await?;
        if is_told {
            self.untold.notify_one();
        }
        Ok(put)
    }

    /// Public keys that an endpoint's deliveries verify with at this time, the current one first; none where the secret is shared, or
    /// where nothing is sent.
    pub fn public_keys(&self, id: EndpointId, now: Time) -> Vec<[u8; 32]> {
        let Found::Target(target) = self.find(&id.to_string()) else {
            return Vec::new();
        };
        match &target.way {
            Way::Endpoint(endpoint) => endpoint.signer.public_keys(now),
            Way::Effect(_) => Vec::new(),
        }
    }

    /// Asks the store for what has changed. A question that was begun after we came has our answer too.
    pub(super) async fn ask(&self) -> Result<(), StoreError> {
        let before = self.begun.load(Ordering::SeqCst);
        let mut answered = self.asking.lock().await;
        if *answered > before {
            return Ok(());
        }
        let question = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        self.read_changes().await?;
        *answered = question;
        Ok(())
    }

    async fn read_changes(&self) -> Result<(), StoreError> {
        loop {
            let since = self.catalog().revision();
            let changes = self.store.changes(since).await?;
            let (more, types) = (
                changes.more,
                changes
                    .entries
                    .iter()
                    .any(|entry| matches!(entry, Entry::EventType(_))),
            );
            let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
            catalog.apply(changes);
            if types {
                self.note_schedules(&catalog);
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn note_schedules(&self, catalog: &Catalog) {
        let own = catalog.all_event_types().filter_map(|event_type| {
            let extra: EventTypeExtra = extra::read(&event_type.extra);
            Some((event_type.name.clone(), extra.retry()?))
        });
        self.by_type.store(Arc::new(own.collect()));
    }
}

#[async_trait]
impl Directory for Registry {
    fn find(&self, lane: &str) -> Found {
        if !is_endpoint_lane(lane) {
            return Found::Nobody;
        }
        let Ok(id) = lane.parse::<EndpointId>() else {
            return Found::Nobody;
        };
        let catalog = self.catalog();
        let Some(held) = catalog.held(id) else {
            return Found::Unknown;
        };
        let Some(app) = catalog.app_by_id(held.endpoint.app) else {
            return Found::Unknown;
        };
        let settings = self.settings.load();
        let vault = self.vault();
        let resolved = held.found.get_or_init(|| {
            let around = Surroundings {
                app,
                vault: vault.as_deref(),
                rules: &settings.rules,
                by_type: &self.by_type,
                retry: &settings.retry,
                shards: self.store.shards(),
            };
            endpoint::resolve(&held.endpoint, &around)
        });
        resolved.clone()
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        self.ask().await
    }

    fn gained(&self, shards: &[u16]) {
        self.forget_failures(shards);
    }

    async fn settled(&self, settled: Settled<'_>) {
        let Ok(id) = settled.effect.name.parse::<EndpointId>() else {
            return;
        };
        let now = clock::now();
        let effect = Effect {
            record: settled.change.next,
            ..settled.effect.clone()
        };
        if Tiding::tells_of(&effect, settled.outcome) {
            self.untold.notify_one();
        }
        self.note(id, settled.outcome, now).await;
    }
}
