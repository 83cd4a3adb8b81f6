//! What operators decide, and what they look at first. The API and, later, the pages call the same functions.
//!
//! - [`operator`]: carries commands out, and tells the dispatcher what they set free
//! - `again`: plans an event again with the current config; makes an event of a conflict
//! - [`deliver`]: deliveries of messages that go out again
//! - `truth`: asks the source of truth; `difference`: how it differs from the event
//! - `finding`: jobs that find something out about applications
//! - [`erase`]: bytes that go at once
//! - [`tokens`]: who may ask, from memory
//! - [`timeline`]: what happened to an event, told from what is kept; `timeline_text`: its sentences
//! - [`replays`]: carries replays of many events on
//! - [`task`]: jobs about the messages of an application
//! - [`follow`]: every event that is accepted from a moment on
//! - [`upkeep`]: deleting what has expired
//! - [`ids`]: ids of what operators make
//!
//! **Invariant**: what changes something goes through [`hapax_store::Store::command`] or [`hapax_store::Catalog`], which write
//! the audit record in the same transaction (J1).

mod again;
pub mod deliver;
mod difference;
pub mod erase;
mod finding;
pub mod follow;
pub mod ids;
pub mod operator;
pub mod replays;
pub mod task;
pub mod timeline;
mod timeline_text;
pub mod tokens;
mod truth;
pub mod upkeep;

pub use operator::{Granted, Operator, Terms, Wish};
