//! What goes into a store and what comes out of it.
//!
//! - `arrival`: a verified request, and what became of it
//! - `event`: events, deliveries and bytes, read back
//! - `effect`: effects, claims, moves, attempts
//! - `list`: which events, and which part of them
//! - `upkeep`: reaping and counting

mod arrival;
mod effect;
mod event;
mod list;
mod upkeep;

pub use arrival::{
    Arrival, Born, EFFECTS_PER_EVENT_MAX, Keep, NewEffect, NewEvent, Proof, Receipt, Receipted,
    Review,
};
pub use effect::{Attempt, ClaimAsk, Claimed, Effect, EffectDetail, Move, Moved};
pub use event::{
    CONFLICT_BODIES_MAX, DELIVERIES_KEPT_MAX, Delivery, Event, EventDetail, Payload, PayloadAnswer,
};
pub use list::{EventFilter, Listed, PAGE_MAX, Page, PageFrom};
pub use upkeep::{Reaped, StoreStats};
