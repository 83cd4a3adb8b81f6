//! Webhooks that a handler can believe: an axum extractor that verifies the raw body before the handler runs.
//!
//! ```
//! use std::sync::Arc;
//!
//! use axum::Router;
//! use axum::routing::post;
//! use hapax_tower::webhook::{Secret, VerifiedWebhook, WebhookSource};
//!
//! async fn shipped(webhook: VerifiedWebhook) -> String {
//!     // In a transaction of your own, `once(&mut tx, &webhook.event)` says whether it is new.
//!     format!("thanks for {}", webhook.event.id)
//! }
//!
//! let stripe = WebhookSource::provider("stripe", vec![Secret::from("whsec_test_secret")])?;
//! let app: Router = Router::new()
//!     .route("/webhooks/stripe", post(shipped))
//!     .with_state(Arc::new(stripe));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The source is the router's state, or a part of it (`FromRef`). Whatever is wrong with a request, its sender hears the same 401: a stranger
//! learns nothing from it. Why, is in the log.
//!
//! What an event is known by is decided as Hapax itself does it: by the id, if the signature covers it; else by the fields that
//! the provider is known by; else by the hash of the body. So [`VerifiedWebhook::event`] is good for [`crate::atomic::once`].
//!
//! Not here: handshakes (`GET` requests that some providers send first), and providers that put several events into one request.

mod extract;
mod source;

pub use extract::VerifiedWebhook;
pub use hapax_verify::{Scheme, Secret, Verifier};
pub use source::{WebhookProblem, WebhookSource};
