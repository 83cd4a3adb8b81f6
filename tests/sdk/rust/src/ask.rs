//! How answers are looked at.

use std::fmt::Debug;

use svix::api::Svix;
use svix::error::Error;
use svix::models::{BackgroundTaskOut, BackgroundTaskStatus};
use svix::webhooks::Webhook;

use crate::clock;
use crate::sink::{Seen, TOO_LONG};

pub fn said(what: &str) {
    println!("rust: {what}");
}

/// What a request is refused with: the code of a problem, or the place of what is wrong.
#[track_caller]
pub fn refused<T: Debug>(status: u16, answer: Result<T, Error>) -> String {
    let (refused, why) = match answer.expect_err("it is refused") {
        Error::Http(problem) => (
            problem.status.as_u16(),
            problem.payload.expect("a problem").code,
        ),
        Error::Validation(problem) => {
            let wrong = problem.payload.expect("what is wrong").detail;
            (problem.status.as_u16(), wrong[0].loc.join("."))
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(refused, status, "{why}");
    why
}

/// Asks again until the answer is there. Each question is a whole request, which is what paces the loop.
pub async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let start = clock::tick();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(start.elapsed() < TOO_LONG, "{what}");
    }
}

/// Waits for a task to end.
pub async fn finished(svix: &Svix, task: &str) -> BackgroundTaskOut {
    until("the task ends", async || {
        let told = svix.background_task().get(task.to_owned()).await;
        let told = told.expect("it is known");
        (told.status == BackgroundTaskStatus::Finished).then_some(told)
    })
    .await
}

/// Verifies with the SDK and with the crate of the standard.
#[track_caller]
pub fn verified(seen: &Seen, secret: &str) {
    let ours = Webhook::new(secret).expect("a secret");
    ours.verify(&seen.body, &seen.headers).expect("it verifies");
    let standard = standardwebhooks::Webhook::new(secret).expect("a secret");
    let verified = standard.verify(&seen.body, &seen.headers);
    verified.expect("it verifies by the standard");
}

/// Neither of them believes it.
#[track_caller]
pub fn not_verified(seen: &Seen, secret: &str) {
    let ours = Webhook::new(secret).expect("a secret");
    assert!(ours.verify(&seen.body, &seen.headers).is_err());
    let standard = standardwebhooks::Webhook::new(secret).expect("a secret");
    assert!(standard.verify(&seen.body, &seen.headers).is_err());
}
