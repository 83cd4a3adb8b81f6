//! Handlers that join the key's transaction, and webhooks that are verified.

mod chaos;
mod requests;
mod service;
mod shop;
#[cfg(feature = "axum")]
mod webhook;
