//! Effects, end to end: the real program sends, and [`World`](crate::support::world::World) keeps its own log of what arrived. What
//! the ledger shows is compared with that log, never with what the program says it did.
//!
//! - [`outcomes`]: what each answer, and each kind of silence, does to an effect of each class
//! - [`plan`]: which effects an event calls for, under which keys, and what their requests carry
//! - [`order`]: one entity at a time, versions, ends, snapshots, reviews
//! - [`isolation`]: caps and rates hold, and a target that hangs is nobody else's trouble
//! - [`change`]: another config while effects are pending
//! - [`probe`]: what is uncertain is asked about
//! - [`crash`]: `kill -9` in mid-send
//! - `hang_up`: senders and operators that hang up in the middle of a commit; it needs the shim, and so Linux
//! - [`heartbeat`]: a target that takes longer to answer than a lease lasts
//! - [`pause`]: a server that stands still beyond its lease
//! - [`outage`]: a database that is away for longer than a lease
//! - [`stop`]: a server that is told to stop
//! - [`nodes`]: several servers on one database, of which one is killed
//! - [`moving`]: shards move between them, and nobody stands still for it
//! - [`together`]: rates and breakers hold over all of them
//! - [`pooler`]: servers whose database is behind PgBouncer
//! - [`unheard`]: commits whose answer is lost, and what nobody tells a node of
//! - [`metrics`]: what is counted of effects
//!
//! [`scene`] is a server with effects, [`cluster`] are several; [`judge`] compares the world with the ledger.

mod change;
mod cluster;
mod crash;
#[cfg(target_os = "linux")]
mod hang_up;
mod heartbeat;
mod isolation;
pub(crate) mod judge;
mod metrics;
mod moving;
mod nodes;
mod order;
mod outage;
mod outcomes;
mod pause;
mod plan;
mod pooler;
mod probe;
pub(crate) mod scene;
mod stop;
mod together;
mod unheard;
