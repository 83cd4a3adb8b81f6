//! The guard: a reverse proxy in which a retried request gets the first one's answer.
//!
//! All that is about keys is in `hapax-tower`'s layer; here is what stands around and behind it.
//! - [`guards`]: all guards of a config: start, reload, stop
//! - [`door`]: a listener, plain or with TLS; [`place`]: how many requests may be under way behind it
//! - [`caller`]: who calls, by header, token, certificate or another service's word; [`jwt`] and [`subject`] read the proofs
//! - [`proxy`]: passes a request on; [`head`] and [`flow`] say what of it
//! - [`upstream`]: the way to the upstream, and what a failure on it proves
//! - [`tunnel`]: connections that have changed their protocol
//! - [`sweep`]: runs that were lost become unknown; `probe` asks what became of them
//!
//! **Invariant**: a guarded request whose key could not be claimed never reaches the upstream; that nothing was done is said only when no
//! byte was handed to a connection, or the upstream itself says so of this very stream.

pub mod caller;
pub mod door;
pub mod flow;
pub mod guards;
pub mod head;
pub mod jwt;
pub mod place;
mod probe;
pub mod proxy;
pub mod subject;
pub mod sweep;
pub mod tunnel;
pub mod upstream;

pub use guards::Guards;

/// Whatever went wrong with a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
