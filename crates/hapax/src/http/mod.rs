//! The server. The only place that knows status codes.
//!
//! - [`serve`]: start and stop; [`setup`]: the parts of a server, and a changed config
//! - [`listen`]: our own accept loop, with limits on heads, bodies and connections
//! - [`intake`]: `/in/{source}`, one bare service in front of the router
//! - [`api`]: what stands under `/api/v1`; messages that are published go past its router too ([`api::outbox::publishing`])
//! - [`pages`]: the web pages
//! - [`auth`]: who may ask
//! - [`answer`]: answers and problems; [`gateway`]: what a guard says itself
//!
//! **Invariant**: a 2xx to a provider is written only after the store said that the event is durable (A1).

pub mod answer;
pub mod api;
pub mod auth;
pub mod gateway;
pub mod intake;
pub mod listen;
pub mod pages;
pub mod serve;
pub mod setup;

pub use serve::{Host, Listening, host, run, said};
