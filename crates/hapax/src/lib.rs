//! The program: one binary, and what it is made of.
//!
//! - [`config`]: `hapax.toml`, read and resolved
//! - [`inbox`]: what a provider's request becomes
//! - [`outbox`]: messages to consumers' endpoints
//! - [`dispatch`]: carrying effects out
//! - [`operate`]: what operators decide, and what they look at first
//! - [`alert`]: what somebody should look at
//! - [`forensics`]: what the ledger tells about a source's keys
//! - [`guard`]: a reverse proxy in which a retried request gets the first one's answer
//! - [`secrets`]: secrets at rest, sealed
//! - [`http`]: the server; the only place that knows status codes
//! - [`dashboard`]: the web pages, as far as they are looked at
//! - [`metrics`]: what is counted
//! - [`cli`]: the command line
//! - [`clock`] and [`entropy`]: the only doors to time and chance

pub mod alert;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dashboard;
pub mod dispatch;
pub mod entropy;
pub mod forensics;
pub mod guard;
pub mod http;
pub mod inbox;
pub mod metrics;
pub mod operate;
pub mod outbox;
pub mod secrets;
