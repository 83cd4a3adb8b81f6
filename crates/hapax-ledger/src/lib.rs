//! The rules of Hapax as pure functions.
//!
//! Nothing here reads a clock, draws a random number, waits, or touches a file, a socket or a database. What the
//! stores persist and the program carries out is decided here, where it can be tested as a table.
//!
//! An event's way through it: [`extract`] its fields, [`ladder`] its key, [`identity`] whether it is new, [`plan`] its
//! effects; then per effect [`order`] whether it may start, [`transition`] what happens to it, [`outcome`] what an
//! answer proves, [`retry`] when to go on; and over all of it [`status`] and [`verdict`]. API calls take the short
//! way through [`guard`]. What people decide is a [`run`], and [`audit`] chains the record of it.
//!
//! `docs/design/what-must-always-hold.md` has the statements (A1, B3, ...) that comments name.

pub mod audit;
pub mod claim;
pub mod condition;
pub mod effect;
pub mod event;
pub mod extract;
pub mod field;
pub mod fingerprint;
pub mod glob;
pub mod guard;
pub mod id;
pub mod identity;
pub mod key;
pub mod ladder;
pub mod lease;
pub mod number;
pub mod order;
pub mod outcome;
pub mod plan;
pub mod retry;
pub mod run;
#[cfg(feature = "script")]
#[doc(hidden)]
pub mod script;
pub mod status;
pub mod template;
pub mod time;
pub mod transition;
pub mod verdict;
pub mod version;
