//! What the store says to a key, and what the caller hears.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hapax_ledger::key::KeyHash;
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{Asking, KeyClaim, KeyClaimed};
use hapax_store::{StoreError, StoreErrorKind};
use http::header::{HeaderValue, LOCATION, TRAILER};
use http::request::Parts;
use http::{Response, StatusCode};

use crate::body::{AnswerBody, ByteBody, Held};
use crate::clock;
use crate::headers::{self, IDEMPOTENCY_EXPIRES, IDEMPOTENT_REPLAYED};
use crate::layer::{Inner, Shared};
use crate::lease::RunLease;
use crate::observe::Verdict;
use crate::problem::{
    ANSWER_UNREADABLE, KEY_EXPIRED, OUTCOME_UNKNOWN, Problem, RESPONSE_NOT_KEPT, STORE_UNAVAILABLE,
};
use crate::run::{Right, run};
use crate::running::Task;
use crate::settle::{Ended, settle};
use crate::stored::Stored;

/// When the store is down, it is asked again after so many seconds.
pub(crate) const STORE_RETRY_AFTER_S: i64 = 2;

/// How often a lease is extended before its run begins. A store that answers so slowly more often would keep no lease alive.
const EXTENSIONS_MAX: usize = 3;

/// How soon a claim that is in doubt is asked for again; the pause doubles.
const DOUBT_PAUSE_MIN: Duration = Duration::from_millis(20);
/// How long it is asked for, and not longer than a quarter of its lease: its caller waits, and most of the lease should be the run's.
const DOUBT_MAX: Duration = Duration::from_secs(5);

/// A request that has arrived whole. Boxed on its way: it is large, and goes through many hands.
pub(crate) struct Call {
    pub(crate) head: Parts,
    pub(crate) body: Held,
    pub(crate) claim: KeyClaim,
}

/// What became of it.
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the usual one, and is taken apart at once"
)]
pub(crate) enum Attempt<S, R> {
    /// It has an answer.
    Answer(Response<AnswerBody<R>>),
    /// The first one is still running.
    Busy(Box<Busy<S>>),
}

/// All that is needed to ask again.
pub(crate) struct Busy<S> {
    pub(crate) service: S,
    pub(crate) call: Box<Call>,
    /// How long the first one may still take.
    pub(crate) remaining: Span,
}

/// Claims the key, and carries the request out if it is the first. It is under way as long as `_task` lives.
pub(crate) async fn attempt<S, B, R>(
    shared: Arc<Shared>,
    service: S,
    mut call: Box<Call>,
    _task: Task,
) -> Attempt<S, R>
where
    S: Inner<B, R>,
    B: ByteBody,
    R: ByteBody,
{
    let asked = clock::tick();
    let (verdict, response) = match claim(&shared, &mut call.claim).await {
        Ok(KeyClaimed::Run { id, fence, again }) => {
            let right = Right { id, fence, again };
            match may_begin(&shared, right, asked, call.claim.asking).await {
                May::Begin(lease) => {
                    shared.tell(Verdict::Run);
                    return Attempt::Answer(run(&shared, service, call, right, &lease).await);
                }
                May::Not => {
                    give_back(&shared, call.claim.key_hash, right).await;
                    let problem = STORE_UNAVAILABLE.retry_after(STORE_RETRY_AFTER_S);
                    (Verdict::StoreDown, said(&problem))
                }
            }
        }
        Ok(KeyClaimed::InProgress { remaining, .. }) => {
            return Attempt::Busy(Box::new(Busy {
                service,
                call,
                remaining,
            }));
        }
        Ok(KeyClaimed::Replay {
            answer, expires_at, ..
        }) => (Verdict::Replay, replay(&shared, &call, answer, expires_at)),
        Ok(KeyClaimed::NotKept {
            answer, expires_at, ..
        }) => (
            Verdict::NotKept,
            not_kept(&shared, &call, answer, expires_at),
        ),
        Ok(KeyClaimed::OutcomeUnknown { .. }) => (Verdict::OutcomeUnknown, said(&OUTCOME_UNKNOWN)),
        Ok(KeyClaimed::Expired { .. }) => (Verdict::Expired, said(&KEY_EXPIRED)),
        Ok(KeyClaimed::Mismatch { .. }) => {
            let status = shared.guard.policy.mismatch_status;
            (Verdict::Mismatch, said(&Problem::key_reused(status)))
        }
        Err(error) => {
            // A claim of which nobody knows even now may be durable. It is not run: its lease ends, and then its outcome is unknown.
            tracing::warn!(guard = %shared.guard.name, %error, "a guarded key could not be claimed");
            let problem = STORE_UNAVAILABLE.retry_after(STORE_RETRY_AFTER_S);
            (Verdict::StoreDown, said(&problem))
        }
    };
    shared.tell(verdict);
    Attempt::Answer(response)
}

/// Claims the key. Where nobody knows whether that was heard, it is asked for once more, by the same name: what was heard then is ours,
/// and what was not is claimed now. Otherwise the key would be held until its lease is over by a run that never began.
async fn claim(shared: &Shared, claim: &mut KeyClaim) -> Result<KeyClaimed, StoreError> {
    claim.at = clock::unique_now();
    claim.asking = Asking::First;
    let asked = clock::tick();
    let mut said = shared.keys.claim_key(claim.clone()).await;
    let mut pause = DOUBT_PAUSE_MIN;
    while let Err(error) = &said {
        match (error.kind(), claim.asking) {
            (StoreErrorKind::CommitUnknown, _) => {}
            // It was in doubt before, and this says nothing about that.
            (StoreErrorKind::Unavailable | StoreErrorKind::Overloaded, Asking::Again) => {}
            _ => break,
        }
        let patience = DOUBT_MAX.min(clock::duration(claim.lease) / 4);
        if clock::since(asked) + pause > patience {
            break;
        }
        tracing::warn!(guard = %shared.guard.name, %error, "nobody knows whether a key was claimed; asking again");
        tokio::time::sleep(pause).await;
        pause *= 2;
        claim.asking = Asking::Again;
        said = shared.keys.claim_key(claim.clone()).await;
    }
    said
}

/// May a run begin whose claim was asked for then?
enum May {
    /// Under this lease.
    Begin(RunLease),
    Not,
}

/// A lease begins when the store grants it, which may be long before we hear of it: the store was slow, or this process stood still. What
/// has little of it left is extended first; and what is not ours any more, or may not be, does not begin (C4). A claim that was in
/// doubt may be seen before it is safe, and is extended for that, too (H1).
async fn may_begin(shared: &Shared, right: Right, mut asked: Instant, mut asking: Asking) -> May {
    let lease = shared.guard.lease;
    let guard = &shared.guard.name;
    for _ in 0..EXTENSIONS_MAX {
        if asking == Asking::First && clock::since(asked) <= clock::duration(lease) / 2 {
            return May::Begin(RunLease::granted(asked, clock::duration(lease)));
        }
        asking = Asking::First;
        asked = clock::tick();
        match shared.keys.extend_key(right.id, right.fence, lease).await {
            Ok(Ok(())) => {}
            Ok(Err(rejected)) => {
                tracing::warn!(%guard, key = %right.id, %rejected, "a run has lost its lease before it began");
                return May::Not;
            }
            Err(error) => {
                tracing::warn!(%guard, key = %right.id, %error, "a run does not begin: its lease could not be extended");
                return May::Not;
            }
        }
    }
    tracing::warn!(%guard, key = %right.id, "a run does not begin: its store is slower than its lease is long");
    May::Not
}

/// Nothing has begun under this claim, and whoever asks next may know it.
async fn give_back(shared: &Shared, key_hash: KeyHash, right: Right) {
    let ended = Ended {
        settlement: right.released(),
        status: None,
        stored: None,
        error: Some("it did not begin: its lease was nearly over".to_owned()),
    };
    // If that fails the lease ends, and then the outcome is unknown.
    settle(shared, key_hash, right, &ended).await;
}

fn said<R>(problem: &Problem) -> Response<AnswerBody<R>> {
    problem.response(AnswerBody::whole)
}

/// The stored answer, byte for byte (H3).
fn replay<R>(
    shared: &Shared,
    call: &Call,
    answer: Bytes,
    expires_at: Time,
) -> Response<AnswerBody<R>> {
    let (vault, key) = (shared.guard.vault.as_deref(), call.claim.key_hash);
    match Stored::decode(answer, key, vault) {
        Ok(stored) => {
            let fingerprint = call.claim.fingerprint;
            let recent = &shared.recent;
            recent.learn(key, fingerprint, stored.clone(), expires_at);
            replayed(stored, expires_at)
        }
        Err(error) => {
            tracing::error!(guard = %shared.guard.name, %error, "a stored answer cannot be replayed");
            said(&ANSWER_UNREADABLE)
        }
    }
}

/// A stored answer, given out once more.
pub(crate) fn replayed<R>(stored: Stored, expires_at: Time) -> Response<AnswerBody<R>> {
    let announced = headers::announced(&stored.trailers);
    let trailers = announced.is_some().then_some(stored.trailers);
    let mut response = Response::new(AnswerBody::with_trailers(stored.body, trailers));
    *response.status_mut() = stored.status;
    *response.headers_mut() = stored.headers;
    if let Some(announced) = announced {
        response.headers_mut().insert(TRAILER, announced);
    }
    mark(&mut response, expires_at);
    response
}

/// The result is elsewhere, if the first answer said where.
fn not_kept<R>(
    shared: &Shared,
    call: &Call,
    answer: Option<Bytes>,
    expires_at: Time,
) -> Response<AnswerBody<R>> {
    let vault = shared.guard.vault.as_deref();
    let stored = answer.and_then(|answer| Stored::decode(answer, call.claim.key_hash, vault).ok());
    let location = stored.and_then(|mut stored| stored.headers.remove(LOCATION));
    let mut response = match location {
        Some(location) => {
            let mut response = Response::new(AnswerBody::whole(Bytes::new()));
            *response.status_mut() = StatusCode::SEE_OTHER;
            response.headers_mut().insert(LOCATION, location);
            response
        }
        None => said(&RESPONSE_NOT_KEPT),
    };
    publish_expiry(&mut response, expires_at);
    response
}

pub(crate) fn mark<B>(response: &mut Response<B>, expires_at: Time) {
    let headers = response.headers_mut();
    headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    publish_expiry(response, expires_at);
}

/// Says when the key expires, rounded down: nobody relies on a key that is gone.
pub(crate) fn publish_expiry<B>(response: &mut Response<B>, expires_at: Time) {
    let seconds = u64::try_from(expires_at.micros() / 1_000_000).unwrap_or(0);
    let Some(at) = std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(seconds))
    else {
        return;
    };
    // The date format has four digits for the year.
    if seconds < 253_402_300_800
        && let Ok(value) = HeaderValue::try_from(httpdate::fmt_http_date(at))
    {
        response.headers_mut().insert(IDEMPOTENCY_EXPIRES, value);
    }
}
