//! Names to addresses.
//!
//! - [`system`]: as the operating system resolves them, for what the operator wrote into the config
//! - [`dns`]: over the network without a thread that waits, for what consumers wrote; `message` is how that travels, `files` where
//!   this machine says whom to ask
//! - `memory`: answers and failures for a few seconds, one lookup per name, and no more lookups than there is room for
//!
//! A resolver speeds up the way to an address and decides nothing: whoever opens a connection asks again whether it may. See
//! `docs/design/where-may-an-endpoint-be.md`.
//!
//! **Invariant**: a name that nobody answers for holds up nothing but its own deliveries (G6).

pub mod dns;
mod files;
mod memory;
mod message;
pub mod system;

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

pub use dns::Dns;
pub(crate) use memory::Remembering;
pub use system::SystemResolver;

/// Turns a name into addresses.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// The addresses of a host, best first.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// How many lookups may be under way at a time, of names that answered when they were last asked; and as many again of all others.
    fn lookups_max(&self) -> usize;
}
