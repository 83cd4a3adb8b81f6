//! `hapax.toml`: read as written, then resolved to values that are valid by type.
//!
//! - [`load()`] and [`parse`]: the way in
//! - `raw`, `table`, `spec`: what is written, field by field
//! - `resolve`, `source`, `trust`, [`effect`], [`guard`], `alerts`, `outbox`, `portal`: what it
//!   means
//! - `scan`, `excerpt`, [`Problem`]: what is wrong with it, where, and what to do
//! - [`Environment`]: variables and files that it points at
//!
//! **Invariant**: nothing outside this folder sees a raw value; a problem is said with file, line and remedy, and
//! never shows a secret.

mod alerts;
pub mod effect;
mod environment;
mod excerpt;
pub mod guard;
mod load;
mod outbox;
mod portal;
mod problem;
mod raw;
mod resolve;
mod resolved;
mod scan;
mod size;
mod source;
mod spec;
mod suggest;
mod table;
mod trust;

pub use alerts::{ALERT_LANE, ALERT_SOURCE, AlertsConfig};
pub use effect::{
    BodyForm, EffectConfig, OnDuplicateOfFailed, OrderConfig, ReconcileConfig, SequenceConfig,
};
pub use environment::{Environment, FILE_BYTES_MAX, System, Variable};
pub use guard::{CallerConfig, ForwardedRule, GuardConfig, HostRule, JwtConfig, UpstreamHttp};
pub use load::{FILE_DEFAULT, Loaded, Overrides, load, load_file, load_source, parse};
pub use outbox::OutboxConfig;
pub use portal::{Logo, PortalConfig};
pub use problem::{Excerpt, Place, Problem, Problems, Severity};
pub use resolve::store_target;
pub use resolved::{Config, Limits, ProviderId, SourceConfig, StoreTarget};
pub(crate) use suggest::nearest;
