//! Alerts: somebody should look.
//!
//! - [`kind`]: what alerts there are, with their codes and what to do next
//! - [`facts`]: what the rules judge by; `gather` asks the ledger and the inbox for it, [`history`] knows what is usual
//! - [`rules`]: from facts to findings
//! - [`board`]: which alerts stand, so that none flaps
//! - [`notice`]: an alert as an event that is stored and delivered like any other
//! - [`announce`]: what happened to endpoints and messages, told in the same way
//! - [`watch`]: looks again and again, and tells what has changed: in the log, in the metrics, as events
//!
//! Alerts live in memory. A restart raises anew what still holds.
//!
//! **Invariant**: alerts about the delivery of alerts are never delivered.

pub mod announce;
pub mod board;
pub mod facts;
mod gather;
pub mod history;
pub mod kind;
pub mod notice;
pub mod rules;
pub mod watch;

pub use announce::{Announcer, Round};
pub use board::Alert;
pub use kind::{Kind, Severity};
pub use notice::{ALERT_LANE, ALERT_SOURCE};
pub use watch::{Alerts, Parts};
