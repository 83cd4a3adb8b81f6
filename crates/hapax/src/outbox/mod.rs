//! The outbox: messages to consumers' endpoints. A message is an event, a delivery to an endpoint is an effect; ledger and dispatcher
//! do the rest.
//!
//! - [`registry`]: all applications, endpoints and types of events, in memory; what the dispatcher asks where a delivery goes
//! - [`catalog`]: what is known of them, and who is subscribed to what
//! - [`endpoint`]: an endpoint, ready to be sent to; [`extra`], [`sealed`] and [`headers`] are what it is kept as
//! - [`schema`]: what payloads have to be like
//! - [`message`]: a message, planned and published; `fan_out` makes the deliveries that follow it
//! - [`health`]: when an endpoint is not sent to any more; `marking` writes it down; [`operational`]: what is told about that
//!
//! **Invariant**: it does not know the inbox. A delivery is planned by the catalogue that its commit checks; a secret is open only
//! in memory.

pub mod catalog;
pub mod endpoint;
pub mod extra;
mod fan_out;
pub mod headers;
pub mod health;
mod marking;
pub mod message;
pub mod operational;
pub mod registry;
pub mod schema;
pub mod sealed;

pub use catalog::Catalog;
pub use fan_out::FanOut;
pub use message::{Draft, Publisher};
pub use operational::Operational;
pub use registry::{Registry, Settings};
pub use schema::Schemas;
