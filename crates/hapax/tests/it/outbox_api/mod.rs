//! The outgoing API over HTTP, on both stores: what is kept, what is sent, and who may ask.
//!
//! - [`catalogue`]: applications, endpoints, types of events
//! - [`messages`]: what is published once, and refused
//! - [`again`]: attempts, dead letters, sending again, jobs
//! - [`cli`]: applications, endpoints and messages at a prompt
//! - `crash`: `kill -9` while the deliveries of a message are made; it needs the shim, and so Linux
//! - [`failing`]: an endpoint that fails until it is disabled
//! - `hang_up`: publishers that hang up in the middle of a commit; like `crash`
//! - [`importing`]: types of events from a description
//! - [`names`]: endpoints by name, and name servers that are silent
//! - [`not_offered`]: what is refused with 501; who is asking
//! - [`operators`]: endpoints of operators
//! - [`polling`]: consumers that ask
//! - [`settings`]: schedules, envelopes, endpoints that are gone
//! - [`alerts`]: endpoints that are disabled
//! - [`signing`]: keys that are changed, and public ones
//! - [`usage`]: what was sent for each application
//! - [`keys`]: the same request twice
//! - [`lost_key`]: endpoints whose vault key is lost
//! - [`scopes`]: tokens of one application
//!
//! [`scene`] is a server whose endpoints may be on this machine. The same flows are driven by the SDKs: see `tests/sdk`.

mod again;
mod alerts;
mod catalogue;
mod cli;
#[cfg(target_os = "linux")]
mod crash;
mod examples;
mod failing;
#[cfg(target_os = "linux")]
mod hang_up;
mod importing;
mod keys;
mod lost_key;
mod messages;
mod names;
mod not_offered;
mod operators;
mod ordered;
mod polling;
mod scene;
mod scopes;
mod settings;
mod signing;
mod usage;
