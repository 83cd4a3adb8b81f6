//! Upstreams that are spoken to in HTTP/2.
//!
//! - [`proofs`]: what the end of a stream proves: nothing was done, or nobody knows
//! - [`flows`]: requests, answers, streams and trailers on their way through
//! - [`lines`]: connections: how many, which version, and over TLS
//!
//! [`frames`] is an upstream whose every frame is in the test's hands, [`upstream`] a real server.

mod flows;
pub(super) mod frames;
mod lines;
mod proofs;
mod upstream;

/// A guard that speaks HTTP/2 to its upstream.
pub(super) const TWO: &str = "upstream_http = \"2\"";
