//! The layer around a real server, over real HTTP, on every store.

mod atomic;
mod bodies;
mod client;
mod control;
mod example;
mod faults;
mod layer_example;
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
