//! An `Idempotency-Key` on what is no single transaction with an audit record: what the user's own code says to the ledger, messages with an
//! id of their own, and what changes many things at once. It is kept as a guarded key, like those of any other API.
//!
//! Operators' other actions keep their keys in the transaction that carries them out. These have no such record, and need none: where the process
//! dies between the key and the answer, the same request simply goes on, and the ledger's own rules hold what it may do.
//!
//! Such a request is carried out to its end though its caller has hung up: otherwise its key would be in progress until its lease ends,
//! and the caller, who sends the same again, would wait for nobody. One without a key is, too: what it sets free has to be told to the lanes.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::fingerprint::Fingerprint;
use hapax_ledger::guard::{Body, OnUnknown, Settlement};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Span;
use hapax_store::StoreError;
use hapax_store::nouns::{Asking, Before, KeyClaim, KeyClaimed, KeyEnding};
use http::StatusCode;
use http_body_util::BodyExt;
use tokio::sync::Semaphore;

use super::Api;
use super::event::unavailable;
use super::posted::{self, Posted};
use crate::clock;
use crate::http::answer::{self, Answer, problem};

/// The name under which these keys are listed. No guard of a config can have it.
const GUARD: &str = "~api";
/// How long an answer is given again, and how long after that its key is said to have expired.
const TTL: Span = Span::from_hours(24);
/// A request takes milliseconds. One that takes longer has died.
const LEASE: Span = Span::from_secs(30);

/// Requests with a key that are carried out at a time; more of them wait, and go if their callers do.
const AT_ONCE_MAX: u32 = 256;

/// Requests with a key that are being carried out, whether or not anybody still waits for them.
pub struct Errands {
    places: Arc<Semaphore>,
}

impl Default for Errands {
    fn default() -> Errands {
        Errands {
            places: Arc::new(Semaphore::new(AT_ONCE_MAX as usize)),
        }
    }
}

impl Errands {
    /// Carries one out, also without whoever asked for it.
    async fn run(&self, errand: impl Future<Output = Answer> + Send + 'static) -> Option<Answer> {
        let place = self.places.clone().acquire_owned().await.ok()?;
        let running = tokio::spawn(async move {
            let answer = errand.await;
            drop(place);
            answer
        });
        running.await.ok()
    }

    /// Waits until all have ended; none is begun any more.
    pub async fn end(&self) {
        let all = self.places.acquire_many(AT_ONCE_MAX).await;
        if let Ok(all) = all {
            all.forget();
        }
        self.places.close();
    }
}

/// What came of a request, and what is to be kept of it.
pub(super) enum Said {
    /// The same request gets this again, with 200.
    Keep(Bytes),
    /// The same request asks the ledger again.
    Pass(Answer),
}

/// The right to carry a request out under its key.
struct Right {
    id: KeyId,
    fence: Fence,
}

/// An answer that the same request gets again, if it is a good one.
pub(super) async fn kept(answer: Answer) -> Said {
    match answer.status() {
        StatusCode::OK => match answer.into_body().collect().await {
            Ok(body) => Said::Keep(body.to_bytes()),
            Err(never) => match never {},
        },
        _ => Said::Pass(answer),
    }
}

/// Carries a request out under its key that is one and the same by an id of its own, however often it comes: the key says which request it
/// belongs to, and nothing is kept beside that.
pub(super) async fn checked(
    api: Api,
    posted: Posted,
    work: impl Future<Output = Answer> + Send + 'static,
) -> Answer {
    let errands = api.errands.clone();
    let errand = async move {
        let right = match ask(&api, &posted).await {
            Ok(KeyClaimed::Run { id, fence, .. }) => Right { id, fence },
            Ok(KeyClaimed::Mismatch { .. }) => return problem(answer::KEY_REUSED),
            // The same request came before, or is still being carried out: its id says what it comes to.
            Ok(
                KeyClaimed::Replay { .. }
                | KeyClaimed::NotKept { .. }
                | KeyClaimed::InProgress { .. }
                | KeyClaimed::OutcomeUnknown { .. }
                | KeyClaimed::Expired { .. },
            ) => return work.await,
            Err(answer) => return *answer,
        };
        let answer = work.await;
        let mark = answer.status().is_success().then(Bytes::new);
        match end(&api, right, mark).await {
            Ok(()) => answer,
            Err(error) => unavailable(&error),
        }
    };
    let answer = errands.run(errand).await;
    answer.unwrap_or_else(|| problem(answer::KEY_IN_PROGRESS))
}

/// Carries a request out once, if it has a key.
pub(super) async fn once(
    api: Api,
    posted: Posted,
    work: impl Future<Output = Said> + Send + 'static,
) -> Answer {
    if posted.request.is_none() {
        return answered(api.dispatcher.outliving(work).await);
    }
    let errands = api.errands.clone();
    let errand = async move {
        let right = match claim(&api, &posted).await {
            Ok(right) => right,
            Err(answer) => return *answer,
        };
        let said = work.await;
        let body = match &said {
            Said::Keep(body) => Some(body.clone()),
            Said::Pass(_) => None,
        };
        match end(&api, right, body).await {
            Ok(()) => answered(said),
            Err(error) => unavailable(&error),
        }
    };
    // Nothing comes back only from a process that ends: the same request goes on with the next one.
    let answer = errands.run(errand).await;
    answer.unwrap_or_else(|| problem(answer::KEY_IN_PROGRESS))
}

fn answered(said: Said) -> Answer {
    match said {
        Said::Keep(body) => answer::with_type(StatusCode::OK, "application/json", body),
        Said::Pass(answer) => answer,
    }
}

async fn ask(api: &Api, posted: &Posted) -> Result<KeyClaimed, Box<Answer>> {
    let Some(claim) = key_claim(api, posted) else {
        return Err(Box::new(problem(answer::BAD_KEY)));
    };
    let claimed = api.store.claim_key(claim).await;
    claimed.map_err(|error| Box::new(unavailable(&error)))
}

async fn claim(api: &Api, posted: &Posted) -> Result<Right, Box<Answer>> {
    let answer = match ask(api, posted).await? {
        KeyClaimed::Run { id, fence, .. } => return Ok(Right { id, fence }),
        KeyClaimed::Replay { answer, .. } => {
            let body = String::from_utf8_lossy(&answer).into_owned();
            posted::before(Before::Same(body), StatusCode::OK)
        }
        KeyClaimed::Mismatch { .. } => posted::before(Before::Other, StatusCode::OK),
        KeyClaimed::Expired { .. } => problem(answer::KEY_EXPIRED),
        // What is not kept is never stored here, and what is unknown goes on.
        KeyClaimed::InProgress { .. }
        | KeyClaimed::NotKept { .. }
        | KeyClaimed::OutcomeUnknown { .. } => problem(answer::KEY_IN_PROGRESS),
    };
    Err(Box::new(answer))
}

fn key_claim(api: &Api, posted: &Posted) -> Option<KeyClaim> {
    let request = posted.request?;
    Some(KeyClaim {
        guard: Arc::from(GUARD),
        key_hash: request.key,
        principal: posted.actor.name.clone(),
        method: Arc::from("POST"),
        path: posted.path.clone(),
        key: posted.key.clone()?,
        fingerprint: Fingerprint::from_bytes(request.fingerprint),
        on_unknown: OnUnknown::Keyed,
        lease: LEASE,
        ttl: TTL,
        grace: TTL,
        node: api.guards.parts().node.clone(),
        at: posted.at,
        asking: Asking::First,
    })
}

/// Ends it: with this answer, or as if it had never come.
async fn end(api: &Api, right: Right, answer: Option<Bytes>) -> Result<(), StoreError> {
    let settlement = match answer {
        Some(_) => Settlement::Store(Body::Kept),
        None => Settlement::Release,
    };
    let ending = KeyEnding {
        asking: Asking::First,
        settlement,
        status: Some(StatusCode::OK.as_u16()).filter(|_| answer.is_some()),
        answer,
        ttl: TTL,
        error: None,
        at: clock::now(),
    };
    // If another run has the key by now, that one keeps what came of it.
    let _ = api.store.settle_key(right.id, right.fence, ending).await?;
    Ok(())
}
