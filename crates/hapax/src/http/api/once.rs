//! An `Idempotency-Key` on what the user's own code says to the ledger: kept as a guarded key, like those of any other API.
//!
//! Operators' actions keep their keys in the transaction that carries them out. These have no such record, and need none: where the process
//! dies between the key and the answer, the same request simply goes on, and the ledger's own rules hold what it may do.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::fingerprint::Fingerprint;
use hapax_ledger::guard::{Body, OnUnknown, Settlement};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Span;
use hapax_store::StoreError;
use hapax_store::nouns::{Before, KeyClaim, KeyClaimed, KeyEnding};
use http::StatusCode;

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

/// Carries a request out once, if it has a key.
pub(super) async fn once(api: &Api, posted: &Posted, work: impl Future<Output = Said>) -> Answer {
    let right = match posted.request.is_some() {
        false => None,
        true => match claim(api, posted).await {
            Ok(right) => Some(right),
            Err(answer) => return *answer,
        },
    };
    let said = work.await;
    if let Some(right) = right
        && let Err(error) = end(api, right, &said).await
    {
        return unavailable(&error);
    }
    match said {
        Said::Keep(body) => answer::with_type(StatusCode::OK, "application/json", body),
        Said::Pass(answer) => answer,
    }
}

async fn claim(api: &Api, posted: &Posted) -> Result<Right, Box<Answer>> {
    let claimed = match key_claim(api, posted) {
        Some(claim) => api.store.claim_key(claim).await,
        None => return Err(Box::new(problem(answer::BAD_KEY))),
    };
    let answer = match claimed {
        Ok(KeyClaimed::Run { id, fence, .. }) => return Ok(Right { id, fence }),
        Ok(KeyClaimed::Replay { answer, .. }) => {
            let body = String::from_utf8_lossy(&answer).into_owned();
            posted::before(Before::Same(body), StatusCode::OK)
        }
        Ok(KeyClaimed::Mismatch { .. }) => posted::before(Before::Other, StatusCode::OK),
        Ok(KeyClaimed::Expired { .. }) => problem(answer::KEY_EXPIRED),
        // What is not kept is never stored here, and what is unknown goes on.
        Ok(
            KeyClaimed::InProgress { .. }
            | KeyClaimed::NotKept { .. }
            | KeyClaimed::OutcomeUnknown { .. },
        ) => problem(answer::KEY_IN_PROGRESS),
        Err(error) => unavailable(&error),
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
    })
}

async fn end(api: &Api, right: Right, said: &Said) -> Result<(), StoreError> {
    let (settlement, answer) = match said {
        Said::Keep(body) => (Settlement::Store(Body::Kept), Some(body.clone())),
        Said::Pass(_) => (Settlement::Release, None),
    };
    let ending = KeyEnding {
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
