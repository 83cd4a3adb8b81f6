//! What goes into a store and what comes out of it.
//!
//! - `arrival`: a verified request, and what became of it
//! - `event`: events, deliveries and bytes, read back
//! - `effect`: effects, claims, moves, attempts
//! - `lane`: which lanes have something to do, and which node looks after them
//! - `list`: which events, and which part of them
//! - `upkeep`: reaping and counting

mod arrival;
mod effect;
mod event;
mod lane;
mod list;
mod upkeep;

pub use arrival::{
    Arrival, Born, EFFECTS_PER_EVENT_MAX, Keep, NewEffect, NewEvent, OnFailed, Proof, Receipt,
    Receipted, Review,
};
pub use effect::{
    Advanced, Attempt, ClaimAsk, Claimed, Claims, EXCERPT_BYTES_MAX, Effect, EffectCounts,
    EffectDetail, EffectFilter, Move, Moved, Parcel, Rescued, SNAPSHOT_BYTES_MAX, Said, Settlement,
};
pub use event::{
    CONFLICT_BODIES_MAX, DELIVERIES_KEPT_MAX, Delivery, Event, EventDetail, Payload, PayloadAnswer,
};
pub use lane::{Beat, Beaten, LANES_PER_LOOK_MAX, LaneDue, LaneRoom, fair_share, lane_shard};
pub use list::{EventFilter, Listed, PAGE_MAX, Page, PageFrom};
pub use upkeep::{Reaped, StoreStats};
