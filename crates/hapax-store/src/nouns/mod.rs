//! What goes into a store and what comes out of it.
//!
//! - `arrival`: a verified request, and what became of it
//! - `audit`: who decided what
//! - `command`: what operators decide about an event
//! - `event`: events, deliveries and bytes, read back
//! - `effect`: effects, claims, moves, attempts
//! - `guarded`: keys of guarded requests
//! - `lane`: which lanes have something to do, and which node looks after them
//! - `list`: which events, and which part of them
//! - `outbox`: applications, endpoints, types of events, messages
//! - `own`: effects that the user's own code carries out
//! - `poll`: messages that somebody asks for
//! - `replay`: replays of many events
//! - `secret`: secrets that are kept sealed
//! - `tiding`: what operators are to hear
//! - `token`: who may do what
//! - `upkeep`: reaping and counting

mod arrival;
mod audit;
mod command;
mod effect;
mod event;
mod guarded;
mod lane;
mod list;
mod outbox;
mod own;
mod poll;
mod replay;
mod secret;
mod tiding;
mod token;
mod upkeep;

pub use arrival::{
    Arrival, Born, EFFECTS_PER_EVENT_MAX, Keep, NewEffect, NewEvent, OnFailed, Proof, Receipt,
    Receipted, Review,
};
pub use audit::{AuditFilter, AuditRecord, Authority, Before, RequestKey};
pub use command::{
    Classes, Command, Commanded, Decision, Done, EffectFacts, EventFacts, Run, WhyNot,
};
pub use effect::{
    Advanced, Attempt, ClaimAsk, Claimed, Claims, EXCERPT_BYTES_MAX, Effect, EffectCounts,
    EffectDetail, EffectFilter, Move, Moved, Parcel, Rescued, SNAPSHOT_BYTES_MAX, Said, Settlement,
};
pub use event::{
    CONFLICT_BODIES_MAX, ConflictDecision, DELIVERIES_KEPT_MAX, Delivery, Event, EventDetail,
    Payload, PayloadAnswer,
};
pub use guarded::{
    Asking, KEYS_PER_STEP_MAX, KeyClaim, KeyClaimed, KeyEnding, KeyFilter, KeyRecord, KeyResolution,
};
pub use lane::{Beat, Beaten, LANES_PER_LOOK_MAX, LaneDue, LaneRoom, Stay, fair_share, lane_shard};
pub use list::{EventFilter, Listed, PAGE_MAX, Page, PageFrom};
pub use outbox::{
    APP_SOURCE, About, Addressed, App, CHANGES_PER_PART, Changes, DELETED_KEPT, Deliveries,
    Endpoint, Entry, EventType, FAN_OUT_STEP, FannedOut, LaterDelivery, Message, MessageFilter,
    NewMessage, OLD_SECRETS_MAX, Posted, PostedFilter, Published, Put, Standing, TALLIES_KEPT,
    Tally, Tried, TriedPlace, WAITING_COUNTED_MAX, app_of_source, app_source, is_endpoint_lane,
    is_endpoint_name,
};
pub use own::{OWN_ATTEMPTS_MAX, OWN_LANE, OWN_SOURCE, OwnClaim, OwnClaimed};
pub use poll::{
    CONSUMER_TOUCHED, CONSUMERS_KEPT, CONSUMERS_MAX, Consumed, PollAsk, PollPlace, Polled, Sought,
};
pub use replay::{Replay, ReplayProgress, ReplayState};
pub(crate) use secret::end_of;
pub use secret::{SECRETS_PER_LOOK_MAX, SealedSecret, SecretChange};
pub use tiding::{Attempted, FAILING_AFTER_ATTEMPTS, Mark, News, TIDINGS_PER_PAGE, Tiding, Untold};
pub use token::{Changed, Role, Token};
pub use upkeep::{DiskState, Migrated, Reaped, StoreStats};
