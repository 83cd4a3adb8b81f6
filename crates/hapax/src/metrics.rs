//! What is counted, for `/metrics`. Label sets are bounded: sources come from the config, the rest from enums.

mod effects;
mod guards;
mod lags;
pub mod past;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arc_swap::ArcSwap;
use hapax_store::StoreErrorKind;
use hapax_store::nouns::{Receipt, Receipted};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

pub use effects::EffectMetrics;
pub use guards::GuardMetrics;
pub use lags::{LATE_FROM, Lag};
use past::Past;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DeliveryLabels {
    source: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RefusalLabels {
    source: String,
    cause: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SourceLabel {
    source: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// The counters that a request to one source touches, found once per config and not once per request.
struct SourceCounters {
    accepted: Counter,
    duplicate: Counter,
    conflict: Counter,
    failed_validation: Counter,
    invalid: Counter,
    fell: Counter,
}

/// All metrics.
pub struct Metrics {
    registry: Registry,
    sources: ArcSwap<HashMap<Arc<str>, SourceCounters>>,
    deliveries: Family<DeliveryLabels, Counter>,
    refusals: Family<RefusalLabels, Counter>,
    conflicts: Family<SourceLabel, Counter>,
    fell: Family<SourceLabel, Counter>,
    duplicate_ratio: Family<SourceLabel, Gauge<f64, AtomicU64>>,
    unknown_source: Counter,
    store_failures: Family<KindLabel, Counter>,
    accept_seconds: Histogram,
    shed: Counter,
    keys_twice: Gauge,
    alerts: Family<KindLabel, Gauge>,
    /// Effects.
    pub effects: EffectMetrics,
    /// Guards.
    pub guards: GuardMetrics,
    /// Connections open now.
    pub connections: Gauge,
    /// What was counted lately.
    pub past: Past,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::default(),
            sources: ArcSwap::from_pointee(HashMap::new()),
            deliveries: Family::default(),
            refusals: Family::default(),
            conflicts: Family::default(),
            fell: Family::default(),
            duplicate_ratio: Family::default(),
            unknown_source: Counter::default(),
            store_failures: Family::default(),
            // 100 µs to 13 s: from one sync of a fast disk to a sender's patience.
            accept_seconds: Histogram::new(exponential_buckets(0.0001, 2.0, 18)),
            shed: Counter::default(),
            keys_twice: Gauge::default(),
            alerts: Family::default(),
            effects: EffectMetrics::default(),
            guards: GuardMetrics::default(),
            connections: Gauge::default(),
            past: Past::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let mut registry = Registry::with_prefix("hapax");
        registry.register(
            "deliveries",
            "Requests to the inbox by outcome",
            self.deliveries.clone(),
        );
        registry.register(
            "refusals",
            "Requests that were not believed, by likely cause",
            self.refusals.clone(),
        );
        registry.register(
            "conflicts",
            "Deliveries of a known event with another body",
            self.conflicts.clone(),
        );
        registry.register(
            "key_fallbacks",
            "Declared key rungs that were missing in a request",
            self.fell.clone(),
        );
        registry.register(
            "duplicate_ratio",
            "Share of deliveries that were duplicates, since start",
            self.duplicate_ratio.clone(),
        );
        registry.register(
            "unknown_source",
            "Requests to sources that do not exist",
            self.unknown_source.clone(),
        );
        registry.register(
            "store_failures",
            "Requests that the store could not take, by kind",
            self.store_failures.clone(),
        );
        registry.register(
            "accept_seconds",
            "From the last byte of a request to its answer",
            self.accept_seconds.clone(),
        );
        registry.register(
            "shed",
            "Requests answered 503 because too much was waiting",
            self.shed.clone(),
        );
        registry.register(
            "keys_twice",
            "Keys held by more than one live event, by the daily cross-check; must be zero",
            self.keys_twice.clone(),
        );
        registry.register(
            "alerts",
            "Alerts that stand, by kind, as this node sees them",
            self.alerts.clone(),
        );
        registry.register("connections", "Open connections", self.connections.clone());
        self.effects.register(&mut registry);
        self.guards.register(&mut registry);
        self.registry = registry;
    }

    /// Prepares the counters of these sources.
    pub fn prepare(&self, names: impl IntoIterator<Item = Arc<str>>) {
        let prepared = names
            .into_iter()
            .map(|name| (name.clone(), self.counters(&name)))
            .collect();
        self.sources.store(Arc::new(prepared));
    }

    fn counters(&self, name: &str) -> SourceCounters {
        let outcome = |outcome| {
            let labels = DeliveryLabels {
                source: name.to_owned(),
                outcome,
            };
            self.deliveries.get_or_create_owned(&labels)
        };
        let label = SourceLabel {
            source: name.to_owned(),
        };
        SourceCounters {
            accepted: outcome("accepted"),
            duplicate: outcome("duplicate"),
            failed_validation: outcome("failed_validation"),
            invalid: outcome("invalid"),
            conflict: self.conflicts.get_or_create_owned(&label),
            fell: self.fell.get_or_create_owned(&label),
        }
    }

    /// A request was stored.
    pub fn accepted(&self, source: &str, receipts: &[Receipt]) {
        let sources = self.sources.load();
        let Some(counters) = sources.get(source) else {
            return;
        };
        for receipt in receipts {
            match receipt.sighting {
                Receipted::New if receipt.needs_review => counters.failed_validation.inc(),
                Receipted::New => counters.accepted.inc(),
                Receipted::Duplicate => counters.duplicate.inc(),
                Receipted::Conflict => {
                    counters.conflict.inc();
                    counters.duplicate.inc()
                }
            };
        }
    }

    /// A request was not believed.
    pub fn refused(&self, source: &str, cause: &'static str) {
        let sources = self.sources.load();
        if let Some(counters) = sources.get(source) {
            counters.invalid.inc();
        }
        self.refusals
            .get_or_create(&RefusalLabels {
                source: source.to_owned(),
                cause,
            })
            .inc();
    }

    /// A request named a source that does not exist. Its name is the sender's choice, so it is no label.
    pub fn refused_unknown_source(&self) {
        self.unknown_source.inc();
    }

    /// Declared rungs of the key ladder were missing.
    pub fn fell(&self, source: &str, rungs: usize) {
        if rungs > 0
            && let Some(counters) = self.sources.load().get(source)
        {
            counters.fell.inc_by(rungs as u64);
        }
    }

    /// The store could not take a request.
    pub fn store_failed(&self, kind: StoreErrorKind) {
        let kind = match kind {
            StoreErrorKind::Unavailable => "unavailable",
            StoreErrorKind::Full => "full",
            StoreErrorKind::Overloaded => "overloaded",
            StoreErrorKind::CommitUnknown => "commit_unknown",
            StoreErrorKind::Corrupt => "corrupt",
            StoreErrorKind::Incompatible => "incompatible",
        };
        self.store_failures.get_or_create(&KindLabel { kind }).inc();
    }

    /// A request was answered 503 before its body was read.
    pub fn shed(&self) {
        self.shed.inc();
    }

    /// The cross-check found so many keys that are held twice.
    pub fn keys_twice(&self, keys: u64) {
        self.keys_twice.set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    /// So many alerts of a kind stand.
    pub fn alerts(&self, kind: &'static str, standing: usize) {
        let standing = i64::try_from(standing).unwrap_or(i64::MAX);
        self.alerts.get_or_create(&KindLabel { kind }).set(standing);
    }

    /// A request was answered after so long.
    pub fn accept_took(&self, took: Duration) {
        self.accept_seconds.observe(took.as_secs_f64());
    }

    /// All of it, as Prometheus reads it.
    pub fn text(&self) -> String {
        for (name, counters) in self.sources.load().iter() {
            let duplicates = counters.duplicate.get() as f64;
            let all = duplicates
                + counters.accepted.get() as f64
                + counters.failed_validation.get() as f64;
            let ratio = if all > 0.0 { duplicates / all } else { 0.0 };
            self.duplicate_ratio
                .get_or_create(&SourceLabel {
                    source: name.to_string(),
                })
                .set(ratio);
        }
        let mut text = String::new();
        if prometheus_client::encoding::text::encode(&mut text, &self.registry).is_err() {
            text.clear();
        }
        text
    }

    /// Deliveries of a source so far: accepted, duplicates, kept for review, refused.
    pub fn counts(&self, source: &str) -> Option<[u64; 4]> {
        let sources = self.sources.load();
        let counters = sources.get(source)?;
        Some([
            counters.accepted.get(),
            counters.duplicate.get(),
            counters.failed_validation.get(),
            counters.invalid.get(),
        ])
    }
}
