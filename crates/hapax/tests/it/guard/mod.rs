//! Guards, over real HTTP, on both stores: a retried request gets the first one's answer, and nothing is carried out twice.
//!
//! - [`answers`]: the cases of a key, one by one
//! - [`running`]: requests at a time, callers that go away, and a server that stops
//! - [`crash`]: `kill -9` with a request under way; a database that is away
//! - `jumps`: a wall clock that jumps; it needs the shim, and so Linux
//! - [`connections`]: connections to the upstream, kept for the next request
//! - [`pause`]: a server that stands still with a request under way, beyond its lease
//! - `points`: `kill -9` between every two steps of a request; it needs the shim, and so Linux
//! - `doubt`: claims of which nobody knows whether the database heard them
//! - `disk`: a disk that takes no commit; it needs the shim too
//! - [`streams`]: answers that have no end, or are too large to keep
//! - [`callers`]: who calls, by header, token, certificate or another service's word
//! - [`passing`]: what is passed through: streams, changes of protocol, heads
//! - `http2`: upstreams that are spoken to in HTTP/2
//! - [`operators`]: keys as operators see and resolve them; probes
//! - [`conform`]: `hapax conform` against guards, against the layer, and against an API that does not conform
//! - [`conform_broken`]: the same against APIs that are broken in one way each
//! - [`config`]: what is said about mistakes in `[[guard]]`
//!
//! [`scene`] is a server with one guard, [`layer`] a service with hapax-tower's layer around it.

mod answers;
mod callers;
mod config;
mod conform;
mod conform_broken;
mod connections;
mod crash;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod doubt;
mod http2;
#[cfg(target_os = "linux")]
mod jumps;
mod layer;
mod operators;
mod passing;
mod pause;
mod places;
#[cfg(target_os = "linux")]
mod points;
mod running;
pub(crate) mod scene;
mod streams;
