//! What operators do, over real HTTP: who may, what they are told first, what is done, and what is recorded of it.
//!
//! - [`tokens`]: tokens and roles
//! - [`actions`]: retry, replay, resolve, reconcile; refused ones; the same request twice
//! - [`reviews`]: events that wait for a person, and conflicts
//! - [`timeline`]: what happened, told in order
//! - [`bulk`]: replays of many events, also over a restart
//! - [`own`]: the ledger for the user's own code; [`handlers`]: the examples that use it
//! - [`cli`]: the same at a prompt

mod actions;
mod bulk;
mod cli;
mod handlers;
mod own;
mod reviews;
mod timeline;
mod tokens;
