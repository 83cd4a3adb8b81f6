//! A run: the service is called under a lease that is kept alive, and what came of it is settled before anyone hears it.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::guard::{Body as Kept, Ending, GuardPolicy, Settlement, settlement};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{HeaderMap, Request, Response, StatusCode};

use crate::attempt::{Call, publish_expiry};
use crate::body::{AnswerBody, ByteBody, Collected, GuardBody, collect};
use crate::caught::{Panicked, caught};
use crate::clock;
use crate::guard::Guard;
use crate::headers;
use crate::keep::{GuardedRun, Keep, MayBeCut, Why};
use crate::layer::{Inner, Shared};
use crate::lease::RunLease;
use crate::problem::{NOT_SETTLED, Problem, SUPERSEDED};
use crate::settle::{Ended, Settled, settle};
use crate::stored::Stored;

/// Heartbeats in a lease: two may fail before it is lost.
const BEATS_PER_LEASE: u32 = 3;
/// When an answer could not be stored, its caller may ask again after so many seconds.
const RETRY_AFTER_S: i64 = 2;
/// Media types of answers that have no end, or none soon.
const STREAMS: [&str; 3] = [
    "text/event-stream",
    "application/grpc",
    "multipart/x-mixed-replace",
];

/// The right to run.
#[derive(Clone, Copy)]
pub(crate) struct Right {
    pub(crate) id: KeyId,
    pub(crate) fence: Fence,
    pub(crate) again: bool,
}

impl Right {
    /// What is kept of a run of which nothing happened. If the one before it may have been carried out, that is still not known.
    pub(crate) const fn released(self) -> Settlement {
        match self.again {
            true => Settlement::Unknown,
            false => Settlement::Release,
        }
    }
}

/// What came of the work.
struct Done<R> {
    ended: Ended,
    response: Response<AnswerBody<R>>,
}

/// Why there is no answer, in a few words.
struct NoAnswer(String);

/// Carries a request out. It is the first with its key, and the store knows.
pub(crate) async fn run<S, B, R>(
    shared: &Arc<Shared>,
    service: S,
    call: Box<Call>,
    right: Right,
    lease: &RunLease,
) -> Response<AnswerBody<R>>
where
    S: Inner<B, R>,
    B: ByteBody,
    R: ByteBody,
{
    let key_hash = call.claim.key_hash;
    // Those who wait hear of the end when it is settled, and not before.
    let _run = shared.running.run(key_hash);
    // Pinned where they are made: what is handed over by value is copied each time, and all of it is large. Both are gone before the run is
    // settled: a heartbeat that nobody polls any more might keep a place in the store's queue, which settlements need.
    let done = {
        let request = request(call, right, lease.clone());
        let mut work = pin!(caught(work(&shared.guard, service, request)));
        let mut keeping = pin!(keep_alive(shared, right, lease));
        tokio::select! {
            biased;
            done = &mut work => done,
            never = &mut keeping => match never {},
        }
    };
    let done = match done {
        Ok(Ok(done)) => done,
        Ok(Err(NoAnswer(why))) => failed(&shared.guard, why),
        Err(Panicked) => failed(&shared.guard, "the handler panicked".to_owned()),
    };
    let Done {
        mut ended,
        mut response,
    } = done;
    if ended.settlement == Settlement::Release {
        ended.settlement = right.released();
    }
    let stores = matches!(ended.settlement, Settlement::Store(_));
    match settle(shared, key_hash, right, &ended).await {
        Settled::Durable(expires_at) => {
            if stores && shared.guard.publish_expiry {
                publish_expiry(&mut response, expires_at);
            }
            response
        }
        // An answer that is given out can be repeated. One that frees the key or leaves its outcome open promises nothing.
        Settled::Superseded if stores => SUPERSEDED.retry_after(1).response(AnswerBody::whole),
        Settled::Failed if stores => NOT_SETTLED
            .retry_after(RETRY_AFTER_S)
            .response(AnswerBody::whole),
        Settled::Superseded | Settled::Failed => response,
    }
}

/// The request, with what its handler may know about the run.
fn request<B>(call: Box<Call>, right: Right, lease: RunLease) -> Request<GuardBody<B>> {
    let call = *call;
    let mut request = Request::from_parts(call.head, call.body.into_body());
    request.extensions_mut().insert(GuardedRun {
        id: right.id,
        fence: right.fence,
        again: right.again,
        key: Arc::from(call.claim.key),
        principal: call.claim.principal,
    });
    request.extensions_mut().insert(lease);
    request
}

/// Extends the lease for as long as it is polled. A lease that is lost is not won back. Work that has not begun asks for it before it
/// does (`lease`); what has begun goes on, since nobody can tell what half of it would mean, and its answer still counts if nobody
/// ran again.
async fn keep_alive(shared: &Shared, right: Right, lease: &RunLease) -> Infallible {
    let (length, keys) = (shared.guard.lease, &shared.keys);
    let guard = &shared.guard.name;
    loop {
        tokio::time::sleep(clock::duration(length) / BEATS_PER_LEASE).await;
        let asked = clock::tick();
        match keys.extend_key(right.id, right.fence, length).await {
            Ok(Ok(())) => lease.extended(asked, clock::duration(length)),
            Ok(Err(rejected)) => {
                lease.lost();
                tracing::warn!(%guard, key = %right.id, %rejected, "a run has lost its lease");
                return std::future::pending().await;
            }
            Err(error) => {
                tracing::warn!(%guard, key = %right.id, %error, "a lease could not be extended");
            }
        }
    }
}

/// Calls the service, and reads its answer as far as it is kept.
async fn work<S, B, R>(
    guard: &Guard,
    mut service: S,
    request: Request<GuardBody<B>>,
) -> Result<Done<R>, NoAnswer>
where
    S: Inner<B, R>,
    B: ByteBody,
    R: ByteBody,
{
    let response = service.call(request).await;
    let response = response.map_err(|error| NoAnswer(error.into().to_string()))?;
    let (mut head, body) = response.into_parts();
    let keep = head.extensions.remove::<Keep>();
    let decided = decide(keep, head.status, &guard.policy);
    if !matches!(decided, Settlement::Store(_)) {
        return Ok(done(decided, None, head, AnswerBody::passed(body)));
    }
    let mut stored = Stored {
        status: head.status,
        headers: headers::kept(&head.headers, &guard.headers),
        body: Bytes::new(),
        trailers: HeaderMap::new(),
    };
    let may_be_cut = head.extensions.remove::<MayBeCut>().is_some();
    let (kept, body) = if may_be_cut || streams(&head) {
        (Kept::NotKept, AnswerBody::passed(body))
    } else {
        match collect(body, guard.answer_bytes_max).await {
            Ok(Collected::Whole(bytes, trailers)) => {
                stored.body = bytes.clone();
                stored.trailers = trailers.as_ref().map(headers::behind).unwrap_or_default();
                (Kept::Kept, AnswerBody::with_trailers(bytes, trailers))
            }
            Ok(Collected::TooLarge(read, rest)) => (Kept::NotKept, AnswerBody::resumed(read, rest)),
            Err(error) => {
                let why = format!("the answer broke off: {}", error.into());
                return Err(NoAnswer(why));
            }
        }
    };
    Ok(done(Settlement::Store(kept), Some(stored), head, body))
}

fn done<R>(
    settlement: Settlement,
    stored: Option<Stored>,
    mut head: Parts,
    body: AnswerBody<R>,
) -> Done<R> {
    let why = head.extensions.remove::<Why>();
    Done {
        ended: Ended {
            settlement,
            status: Some(head.status),
            stored,
            error: why.map(|Why(text)| text),
        },
        response: Response::from_parts(head, body),
    }
}

fn failed<R>(guard: &Guard, why: String) -> Done<R> {
    Done {
        ended: Ended {
            settlement: settlement(Ending::NoAnswer, &guard.policy),
            status: None,
            stored: None,
            error: Some(why),
        },
        response: Problem::run_failed(guard.policy.on_unknown).response(AnswerBody::whole),
    }
}

/// What is kept of an answer: as the handler says, else as the policy has it.
fn decide(keep: Option<Keep>, status: StatusCode, policy: &GuardPolicy) -> Settlement {
    match keep {
        Some(Keep::Store) => Settlement::Store(Kept::Kept),
        Some(Keep::Release) => Settlement::Release,
        Some(Keep::Unknown) => Settlement::Unknown,
        // The work has begun, and goes on over a connection that no retry can have.
        None if status == StatusCode::SWITCHING_PROTOCOLS => Settlement::Store(Kept::NotKept),
        None => settlement(
            Ending::Answered {
                status: status.as_u16(),
                body: Kept::Kept,
            },
            policy,
        ),
    }
}

/// Is this an answer that cannot be kept, whatever its length?
fn streams(head: &Parts) -> bool {
    let media_type = head.headers.get(CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok());
    let media_type = media_type.unwrap_or("").trim_start();
    head.status == StatusCode::SWITCHING_PROTOCOLS
        || STREAMS.iter().any(|stream| {
            let start = media_type.get(..stream.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(stream))
        })
}
