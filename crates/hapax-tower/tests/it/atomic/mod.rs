//! Handlers that join the key's transaction, and webhooks that are verified.

mod chaos;
mod phases;
mod requests;
mod service;
mod shop;
#[cfg(feature = "axum")]
mod webhook;
#[cfg(feature = "axum")]
mod webhook_once;
