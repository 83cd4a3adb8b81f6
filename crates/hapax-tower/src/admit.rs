//! A request with a key, up to the store's answer: who calls, what it brings, and how long it would wait.
//!
//! All this belongs to the caller: when it hangs up here, nothing has happened.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_ledger::fingerprint::RequestHead;
use hapax_ledger::guard::GuardKey;
use hapax_ledger::key::{KeyHash, KeyKind, composite};
use hapax_ledger::time::Span;
use hapax_store::nouns::{Asking, KeyClaim};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Request, Response};
use tokio::time::timeout;

use crate::asked;
use crate::attempt::{Attempt, Call, attempt, replayed};
use crate::body::{AnswerBody, ByteBody, Held, HoldProblem, Limits, drain, hold};
use crate::clock;
use crate::guard::Guard;
use crate::layer::{Inner, Shared};
use crate::observe::Verdict;
use crate::outlive::Outliving;
use crate::prefer;
use crate::problem::{IN_PROGRESS, Problem, REQUEST_INCOMPLETE, SPOOL_FAILED};

/// Who waits for a run on another node asks the store this soon,
const PAUSE_MIN: Duration = Duration::from_millis(25);
/// and then ever more seldom, down to this.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// The longest `Retry-After` of a request that is still running, in seconds: most end long before their lease.
const RETRY_AFTER_MAX_S: i64 = 5;

/// A request's way in.
pub(crate) struct Admission<S> {
    pub(crate) shared: Arc<Shared>,
    /// Ready for one call.
    pub(crate) service: S,
    pub(crate) key: GuardKey,
}

/// A request that is answered before its key is looked up.
pub(crate) type Turned = (Verdict, Response<Bytes>);

/// Lets a request in, or says why not.
pub(crate) async fn admit<S, B, R>(
    admission: Admission<S>,
    request: Request<B>,
) -> Response<AnswerBody<R>>
where
    S: Inner<B, R>,
    B: ByteBody,
    R: ByteBody,
{
    let Admission {
        shared,
        service,
        key,
    } = admission;
    match prepare(&shared.guard, &key, request).await {
        Ok(call) => asked(shared, service, call).await,
        Err((verdict, response)) => {
            shared.tell(verdict);
            response.map(AnswerBody::whole)
        }
    }
}

/// Asks the store, and again while the caller is willing to wait.
async fn asked<S, B, R>(
    shared: Arc<Shared>,
    mut service: S,
    mut call: Box<Call>,
) -> Response<AnswerBody<R>>
where
    S: Inner<B, R>,
    B: ByteBody,
    R: ByteBody,
{
    let recent = shared
        .recent
        .find(call.claim.key_hash, call.claim.fingerprint);
    if let Some((stored, expires_at)) = recent {
        shared.tell(Verdict::Replay);
        return replayed(stored, expires_at);
    }
    let patience = prefer::wait(&call.head.headers).min(clock::duration(shared.guard.wait_max));
    let (start, mut pause) = (clock::tick(), PAUSE_MIN);
    loop {
        // From the claim on it is not the caller's any more: a claim without a run would be an unknown outcome.
        let task = shared.running.task();
        let remaining = match Outliving::new(attempt(shared.clone(), service, call, task)).await {
            Attempt::Answer(response) => return response,
            Attempt::Busy(busy) => {
                let busy = *busy;
                (service, call) = (busy.service, busy.call);
                busy.remaining
            }
        };
        let left = patience.saturating_sub(clock::since(start));
        if left.is_zero() {
            shared.tell(Verdict::InProgress);
            return in_progress(remaining).response(AnswerBody::whole);
        }
        wait(&shared, call.claim.key_hash, pause, left).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Waits until the run ends, if it is here; and for a while, if it is not.
async fn wait(shared: &Shared, key: KeyHash, pause: Duration, left: Duration) {
    match shared.running.end_of(key) {
        // However it ends, the store knows more than we do. It is asked now and then, should the run hang.
        Some(mut end) => drop(timeout(left.min(PAUSE_MAX), end.changed()).await),
        None => tokio::time::sleep(left.min(pause)).await,
    }
}

fn in_progress(remaining: Span) -> Problem {
    IN_PROGRESS.retry_after(remaining.secs_ceil().min(RETRY_AFTER_MAX_S))
}

/// Everything that the store is asked with. The caller is asked for first: who is refused brings no body.
pub(crate) async fn prepare<B>(
    guard: &Guard,
    key: &GuardKey,
    request: Request<B>,
) -> Result<Box<Call>, Turned>
where
    B: ByteBody,
{
    let (head, body) = request.into_parts();
    let mut body = pin!(body);
    let principal = match guard.principal.principal(&head).await {
        Ok(principal) => principal,
        Err(refusal) => {
            drain(body, &head.headers).await;
            return Err((Verdict::Refused, refusal));
        }
    };
    let limits = Limits {
        memory_bytes_max: guard.request_memory_bytes_max,
        bytes_max: guard.request_bytes_max,
        folder: &guard.spool_folder,
    };
    let mut body = match hold(body.as_mut(), limits).await {
        Ok(held) => held,
        Err(problem) => {
            drain(body, &head.headers).await;
            return Err(turned(&problem, guard.request_bytes_max));
        }
    };
    let claim = claim(guard, key, principal, &head, &mut body)
        .await
        .map_err(|error| turned(&HoldProblem::Spool(error), guard.request_bytes_max))?;
    Ok(Box::new(Call { head, body, claim }))
}

fn turned(problem: &HoldProblem, bytes_max: u64) -> Turned {
    let (verdict, problem) = match problem {
        HoldProblem::TooLarge => (Verdict::TooLarge, Problem::request_too_large(bytes_max)),
        HoldProblem::Incomplete => (Verdict::Incomplete, REQUEST_INCOMPLETE),
        HoldProblem::Spool(error) => {
            tracing::error!(%error, "a request could not be held on disk");
            (Verdict::StoreDown, SPOOL_FAILED.retry_after(1))
        }
    };
    (verdict, problem.refusal())
}

/// What the body is said to be. There should be one word for it; if there are several, all of them count, since nobody knows which one the
/// service goes by.
fn media_type(head: &Parts) -> Option<Cow<'_, str>> {
    let mut values = head.headers.get_all(CONTENT_TYPE).iter();
    let text = |value: &'_ HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = values.next()?;
    match (first.to_str(), values.next()) {
        (Ok(only), None) => Some(only.into()),
        (Err(_), None) => Some(text(first).into()),
        (_, Some(second)) => {
            let all = [first, second].into_iter().chain(values).map(text);
            // Without what the fingerprint takes for the end of a media type.
            let all: Vec<String> = all.map(|text| text.replace(';', " ")).collect();
            Some(all.join(", ").into())
        }
    }
}

async fn claim(
    guard: &Guard,
    key: &GuardKey,
    principal: Arc<str>,
    head: &Parts,
    body: &mut Held,
) -> std::io::Result<KeyClaim> {
    let content_type = media_type(head);
    let uri = asked::uri(head);
    let request = RequestHead {
        method: head.method.as_str(),
        path: uri.path(),
        query: uri.query(),
        content_type: content_type.as_deref(),
    };
    let fingerprint = body.fingerprint(&request).await?;
    let route = (guard.route)(head);
    let scope = composite(&[&*guard.name, &*principal, request.method, &*route]);
    Ok(KeyClaim {
        guard: guard.name.clone(),
        key_hash: KeyHash::of(KeyKind::Guard, &scope, key.as_str()),
        principal,
        method: Arc::from(request.method),
        path: Arc::from(request.path),
        key: key.to_string(),
        fingerprint,
        on_unknown: guard.policy.on_unknown,
        lease: guard.lease,
        ttl: guard.policy.ttl,
        grace: guard.grace,
        node: guard.node.clone(),
        at: clock::now(),
        asking: Asking::First,
    })
}
