//! Secrets at rest: sealed before the store sees them, with keys that are never in it.
//!
//! - `keys`: where the keys come from, and how they are written
//! - `safe`: seals and opens, finds out whether the keys are the store's, and seals anew what an older key has sealed
//! - [`offered`]: secrets that providers choose and offer in a handshake
//!
//! **Invariant**: what goes into the store as a secret goes through [`Safe::seal`], for the place it is kept at (J2).

mod keys;
pub mod offered;
mod safe;

pub use keys::VaultKeys;
pub use safe::{Census, Safe, Unusable};
