//! What a provider's request becomes: verified, identified, stored, acknowledged.
//!
//! - [`source`]: a source compiled for speed
//! - [`identify`]: from verified bytes to events with keys
//! - [`plan`]: the effects that an event calls for
//! - [`refused`]: the latest requests that were not believed, in memory only
//! - [`repeats`]: which events came again lately, in memory only
//! - [`receive`]: the way through, as one verdict; [`accepts`]: tells whoever listens
//!
//! **Invariant**: a request that does not verify asks the store nothing and leaves no row (A5).

pub mod accepts;
pub mod headers;
pub mod identify;
pub mod plan;
pub mod receive;
pub mod refused;
pub mod repeats;
pub mod source;

pub use receive::{Inbox, Received, Verdict};
pub use source::Source;
