//! The layer around a real server, over real HTTP, on every store.

mod atomic;
mod bodies;
mod client;
mod control;
mod faults;
mod lease;
mod limits;
#[cfg(feature = "axum")]
mod nested;
mod once;
mod passing;
mod server;
mod time;
mod wait;
mod watched;
mod world;
