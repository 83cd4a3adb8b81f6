//! The outgoing side, end to end but for the API: messages are published through the registry, and a
//! [`World`](crate::support::world::World) keeps its own log of what arrived.
//!
//! - [`delivered`]: what deliveries carry, and who can verify them
//! - [`endings`]: endpoints that are gone, disabled, deleted or closed by the gate
//! - [`pace`]: `Retry-After`, rate, breaker, order
//! - [`catalogue`]: what nodes know of each other's changes, lists, and large sets of endpoints
//! - [`health`]: warnings, the end after days of failures, and what operators are told
//!
//! [`scene`] is a dispatcher with a registry over a store of its own.

mod catalogue;
pub(crate) mod delivered;
mod endings;
mod health;
mod pace;
mod scene;
