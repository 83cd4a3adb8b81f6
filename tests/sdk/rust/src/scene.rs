//! The server, the sink, and the names that this run uses.

use svix::api::{Svix, SvixOptions};
use svix::models::{MessageIn, MessageOut};

use crate::clock;
use crate::sink::Sink;

pub struct Scene {
    pub svix: Svix,
    pub sink: Sink,
    /// What makes the names of this run its own.
    pub lot: String,
    /// The uid of its application.
    pub app: String,
    /// A type of events whose payloads have a number `n`.
    pub event_type: String,
}

impl Scene {
    pub async fn new() -> Scene {
        let lot = clock::now().timestamp_micros().to_string();
        Scene {
            svix: client(std::env::var("HAPAX_TOKEN").expect("HAPAX_TOKEN")),
            sink: Sink::start().await,
            app: format!("rust-{lot}"),
            event_type: format!("thing.done.{lot}"),
            lot,
        }
    }

    /// A message with this number.
    pub fn message(&self, number: u32) -> MessageIn {
        MessageIn::new(self.event_type.clone(), serde_json::json!({"n": number}))
    }

    /// Publishes it.
    pub async fn publish(&self, message: MessageIn) -> MessageOut {
        let api = self.svix.message();
        let made = api.create(self.app.clone(), message, None).await;
        made.expect("published")
    }
}

/// Somebody who shows this token. What fails is not asked again: it is looked at.
pub fn client(token: String) -> Svix {
    let options = SvixOptions {
        server_url: Some(std::env::var("HAPAX_URL").expect("HAPAX_URL")),
        num_retries: Some(0),
        ..SvixOptions::default()
    };
    Svix::new(token, Some(options))
}
