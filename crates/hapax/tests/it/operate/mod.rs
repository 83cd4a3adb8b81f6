//! What operators do, over real HTTP: who may, what they are told first, what is done, and what is recorded of it.
//!
//! - [`tokens`]: tokens and roles
//! - [`actions`]: retry, replay, resolve, reconcile; refused ones; the same request twice
//! - [`reviews`]: events that wait for a person, and conflicts
//! - [`timeline`]: what happened, told in order
//! - [`bulk`]: replays of many events, also over a restart
//! - [`own`]: the ledger for the user's own code; [`handlers`]: the examples that use it
//! - [`alerts`]: what somebody should look at
//! - [`live`]: events as they are accepted, on [`follow`]; [`listen`]: the same at a local URL
//! - [`keys`]: what the ledger tells about keys
//! - [`openapi`]: what the API says about itself
//! - [`cli`]: the same at a prompt

mod actions;
mod alerts;
mod bulk;
mod cli;
mod follow;
mod handlers;
mod keys;
mod listen;
mod live;
mod openapi;
mod own;
mod reviews;
mod timeline;
mod tokens;
