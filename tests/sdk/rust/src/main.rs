//! Drives a Hapax server with the Svix SDK for Rust. Panics at the first thing that is not as the SDK expects it.
//!
//! `HAPAX_URL` and `HAPAX_TOKEN` say where the server is and who asks. Its endpoints may be on 127.0.0.1.

mod access;
mod again;
mod catalogue;
mod clock;
mod messages;
mod sink;

use sink::{Seen, Sink, TOO_LONG};
use svix::api::{Svix, SvixOptions};
use svix::error::Error;
use svix::models::{BackgroundTaskOut, BackgroundTaskStatus};
use svix::webhooks::Webhook;

fn said(what: &str) {
    println!("rust: {what}");
}

fn client(token: String) -> Svix {
    let options = SvixOptions {
        server_url: Some(std::env::var("HAPAX_URL").expect("HAPAX_URL")),
        // What is not offered is refused with a status that the SDK would try again.
        retry_schedule: Some(Vec::new()),
        ..SvixOptions::default()
    };
    Svix::new(token, Some(options))
}

/// The status that a request is refused with, and the code of the problem.
fn problem<T: std::fmt::Debug>(answer: Result<T, Error>) -> (u16, String) {
    match answer.expect_err("it is refused") {
        Error::Http(problem) => {
            let code = problem.payload.map(|payload| payload.code);
            (problem.status.as_u16(), code.unwrap_or_default())
        }
        Error::Validation(problem) => (problem.status.as_u16(), String::new()),
        other => panic!("{other:?}"),
    }
}

/// The status that a request is refused with.
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> u16 {
    problem(answer).0
}

/// Verifies with the SDK and with the crate of the standard.
fn verified(seen: &Seen, secret: &str) {
    let ours = Webhook::new(secret).expect("a secret");
    ours.verify(&seen.body, &seen.headers).expect("it verifies");
    let standard = standardwebhooks::Webhook::new(secret).expect("a secret");
    standard
        .verify(&seen.body, &seen.headers)
        .expect("it verifies");
}

/// Asks again until the answer is there. Each question is a whole request, which is what paces the loop.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let start = clock::tick();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(start.elapsed() < TOO_LONG, "{what}");
    }
}

/// A task once it is finished.
async fn finished(svix: &Svix, id: &str) -> BackgroundTaskOut {
    until("the task", async || {
        let found = svix.background_task().get(id.to_owned()).await;
        let found = found.expect("there");
        (found.status == BackgroundTaskStatus::Finished).then_some(found)
    })
    .await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let svix = client(std::env::var("HAPAX_TOKEN").expect("HAPAX_TOKEN"));
    let lot = clock::now().timestamp_micros();
    let app = format!("rust-{lot}");
    let event_type = format!("thing.done.{lot}");
    let sink = Sink::start().await;
    catalogue::apps(&svix, &app).await;
    catalogue::event_types(&svix, &event_type).await;
    let endpoint = catalogue::endpoints(&svix, &app, &sink).await;
    let message = messages::messages(&svix, &app, &endpoint, &event_type, &sink).await;
    messages::keys(&svix, &app, &endpoint, &event_type, &sink).await;
    messages::attempts(&svix, &app, &endpoint, &message, &sink).await;
    messages::rotation(&svix, &app, &endpoint, &event_type, &sink).await;
    again::replays(&svix, &app, &endpoint, &event_type, &sink).await;
    again::consumers(&svix, &app, &endpoint).await;
    again::statistics(&svix, &app).await;
    access::portal(&svix, &app).await;
    access::rest(&svix, &app).await;
    said("all well");
}
