//! The only place in xtask that draws randomness.

use anyhow::Context;

/// A random number, from the operating system.
#[expect(
    clippy::disallowed_methods,
    reason = "this file is the door to randomness"
)]
pub(crate) fn seed() -> anyhow::Result<u64> {
    getrandom::u64().context("the operating system gave no randomness")
}
