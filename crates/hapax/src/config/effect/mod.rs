//! `[[effect]]`, and what of a source concerns its effects: order and the source of truth.
//!
//! - `raw`: what is written
//! - `together`, `resolve`, `settings`, `order`, `condition`, `request`, `of_source`: what it means
//! - [`UrlTemplate`]: URLs with places for an event's fields
//! - [`Expression`], [`Payload`]: conditions that are no plain comparisons, and what they are asked about

mod condition;
mod expression;
mod of_source;
mod order;
mod payload;
pub(super) mod raw;
pub(super) mod request;
mod resolve;
mod resolved;
pub(super) mod settings;
mod together;
mod url;

pub use condition::ConditionConfig;
pub use expression::{
    BadExpression, EXPRESSION_BYTES_MAX, Expression, LOOPS_NESTED_MAX, NESTING_MAX,
};
pub(super) use of_source::{Ordered, of_source};
pub use order::{OrderConfig, SequenceConfig};
pub(crate) use payload::format_of;
pub use payload::{ITEMS_MAX, PAYLOAD_BYTES_MAX, Payload, Unreadable};
pub use resolved::{BodyForm, EffectConfig, OnDuplicateOfFailed, ReconcileConfig};
pub(super) use together::{effects, expected_fields};
pub use url::{Unfilled, Url, UrlTemplate};
