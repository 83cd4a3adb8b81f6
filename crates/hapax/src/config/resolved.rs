//! The configuration as the program uses it: every value parsed, checked and of its own type.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use hapax_ledger::extract::Fields;
use hapax_ledger::field::Field;
use hapax_store::nouns::Keep;
use hapax_verify::{Secret, Verifier};

use super::alerts::AlertsConfig;
use super::effect::{EffectConfig, OnDuplicateOfFailed, OrderConfig, ReconcileConfig};
use super::guard::GuardConfig;
use super::outbox::OutboxConfig;
use super::portal::PortalConfig;
use crate::secrets::VaultKeys;

/// All of `hapax.toml`.
#[derive(Debug)]
pub struct Config {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// Where the ledger is kept.
    pub store: StoreTarget,
    /// How providers see this server; some sign the URL.
    pub public_url: Option<String>,
    /// The admin token; made at first start if unset.
    pub admin_token: Option<Secret>,
    /// What seals secrets at rest; otherwise a key file beside an SQLite store.
    pub vault_keys: Option<VaultKeys>,
    /// Where webhooks come from.
    pub sources: Vec<SourceConfig>,
    /// What their events call for, in the order of the file.
    pub effects: Vec<Arc<EffectConfig>>,
    /// APIs that are guarded, in the order of the file.
    pub guards: Vec<Arc<GuardConfig>>,
    /// What bounds the server.
    pub limits: Limits,
    /// How often somebody looks whether somebody should look, and where that is told.
    pub alerts: AlertsConfig,
    /// Where endpoints may be, and when deliveries are tried again.
    pub outbox: OutboxConfig,
    /// What consumers see their pages under.
    pub portal: PortalConfig,
}

impl Config {
    /// Everything that is sent: the effects of events, and alerts.
    pub fn sent(&self) -> Vec<Arc<EffectConfig>> {
        let alerts = self.alerts.effect.iter();
        self.effects.iter().chain(alerts).cloned().collect()
    }
}

/// Where the ledger is kept.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreTarget {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, by URL.
    Postgres(String),
}

impl std::fmt::Debug for StoreTarget {
    /// A database URL may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreTarget::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            StoreTarget::Postgres(_) => f.write_str("Postgres(..)"),
        }
    }
}

/// What bounds the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest request body, in bytes.
    pub body_bytes_max: usize,
    /// Connections at a time; more wait in the kernel's queue.
    pub connections_max: usize,
    /// Bodies being read or waiting for a commit, in bytes; beyond that the answer is 503.
    pub inflight_bytes_max: usize,
    /// How long a client may take to send a request head.
    pub header_timeout: std::time::Duration,
    /// How long a client may take to send a body.
    pub body_timeout: std::time::Duration,
    /// How long a worker that is not heard of any more keeps what it has claimed, and a node its share of the lanes.
    pub lease: std::time::Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes_max: 1024 * 1024,
            connections_max: 4_096,
            inflight_bytes_max: 64 * 1024 * 1024,
            header_timeout: std::time::Duration::from_secs(10),
            body_timeout: std::time::Duration::from_secs(20),
            lease: std::time::Duration::from_secs(30),
        }
    }
}

/// The provider's own event id.
#[derive(Clone, Debug)]
pub struct ProviderId {
    /// Where it stands.
    pub field: Field,
    /// Does the signature cover it?
    pub signed: bool,
}

/// One `[[source]]`, with its preset's facts filled in.
#[derive(Debug)]
pub struct SourceConfig {
    /// Its name: the last part of `/in/{source}`, and the scope of its keys.
    pub name: Arc<str>,
    /// The preset, if it has one.
    pub preset: Option<&'static hapax_verify::provider::Provider>,
    /// The provider as configured: a preset's name, `custom` or `unverified`.
    pub provider: Arc<str>,
    /// Verifies its requests.
    pub verifier: Verifier,
    /// Where the event's type stands.
    pub event_type: Option<Field>,
    /// Where the provider's event id stands.
    pub provider_id: Option<ProviderId>,
    /// The business key, if the source names one.
    pub key: Vec<Field>,
    /// What the preset puts together where the provider has no id.
    pub composed: Vec<Field>,
    /// Is the body known to change between attempts, so that its hash identifies nothing?
    pub body_varies: bool,
    /// May an id identify that the signature does not cover?
    pub trust_unsigned_id: bool,
    /// The business object.
    pub object_id: Option<Field>,
    /// The object that order is about.
    pub entity: Option<Field>,
    /// The object's version: the one that order compares, or else the preset's.
    pub version: Option<Field>,
    /// Fields that vary between attempts.
    pub volatile: Vec<Field>,
    /// The array that holds the events, if the provider batches; the empty path is the body itself.
    pub batch: Option<String>,
    /// How long things are kept.
    pub keep: Keep,
    /// The order of its effects, unless they have their own.
    pub order: Option<OrderConfig>,
    /// Where its current state can be asked for.
    pub reconcile: Option<Arc<ReconcileConfig>>,
    /// What a repeat of an event does whose effects were given up.
    pub on_duplicate_of_failed: OnDuplicateOfFailed,
    /// The fields that its effects ask for: the slots in [`EffectConfig::rule`] are places in here.
    pub fields: Fields,
}
