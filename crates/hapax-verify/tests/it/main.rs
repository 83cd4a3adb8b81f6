//! The tests of hapax-verify that go through its public interface.

mod explain;
mod fuzz;
mod handshakes;
mod providers;
#[cfg(feature = "asymmetric")]
mod public_key;
mod roundtrip;
mod support;
mod tamper;
mod vectors;
