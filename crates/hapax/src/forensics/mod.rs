//! Duplicate forensics: what the ledger tells about a source's keys. Are they as stable, as unique and as long-lived as replay needs
//! them to be?
//!
//! - `gather`: reads the latest events of a source, and more about those that look odd
//! - `rules`: what follows from them, without a store
//! - `differ`: which fields of two bodies differ

mod differ;
mod gather;
mod rules;

use hapax_ledger::event::{EventStatus, KeyOrigin};
use hapax_ledger::id::EventId;
use hapax_ledger::key::BodyHash;
use hapax_ledger::time::{Span, Time};
use serde::Serialize;
use utoipa::ToSchema;

pub use gather::gather;
pub use rules::judge;

/// Examples of each finding; one sees what is meant from a few.
const EXAMPLES_MAX: usize = 5;

/// What is known of an event, as far as its keys are concerned.
#[derive(Clone, Debug)]
pub struct Sighted {
    /// Its id.
    pub id: EventId,
    /// Its key.
    pub key: String,
    /// The rung that gave it.
    pub origin: KeyOrigin,
    /// The hash of its bytes.
    pub body_hash: BodyHash,
    /// Where it stands.
    pub status: EventStatus,
    /// When it first came.
    pub received_at: Time,
    /// When it last came, if it came again and that was looked up.
    pub last_at: Option<Time>,
    /// How often it came again.
    pub duplicates: u32,
    /// How often with another body.
    pub conflicts: u32,
    /// Fields that differed in those, as far as they were looked at.
    pub differing: Vec<String>,
    /// The business object.
    pub object_id: Option<String>,
    /// Effects that an earlier event called for first.
    pub shared: Vec<Shared>,
}

/// An effect that two events call for.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The effect's name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// The event that called for it first.
    pub first: EventId,
    /// That event's object.
    pub object_id: Option<String>,
    /// When that event came.
    pub received_at: Time,
}

/// What is expected of the source.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The rung that its config or preset means its keys to come from.
    pub origin: KeyOrigin,
    /// How long its provider tries again.
    pub retry_window: Span,
    /// Where the business object's id stands, if the preset or config says so.
    pub object_field: Option<String>,
}

/// What was looked at.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// The events, newest first.
    pub events: Vec<Sighted>,
    /// There were more than are looked at.
    pub more: bool,
}

/// What the ledger tells about a source's keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = KeyReport)]
pub struct Report {
    /// The source.
    pub source: String,
    /// Events that were looked at, the latest first.
    pub looked_at: usize,
    /// There were more.
    pub more: bool,
    /// What was found; nothing is good news.
    pub findings: Vec<Finding>,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = KeyFinding)]
pub struct Finding {
    /// Which.
    pub kind: &'static str,
    /// How often.
    pub count: usize,
    /// What it is, in a sentence.
    pub what: String,
    /// What to do about it.
    pub advice: String,
    /// Some of them.
    pub examples: Vec<Example>,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = KeyExample)]
pub struct Example {
    /// The events concerned.
    pub event_ids: Vec<String>,
    /// What is remarkable about them.
    pub detail: String,
}
