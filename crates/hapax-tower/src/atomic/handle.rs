//! What a handler has to join its transaction with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use hapax_ledger::time::{Span, Time};
use hapax_store::atomic::{
    AtomicError, AtomicTx, Claim, Claimed, Phase, Run, claim, finish, phase,
};
use http::{HeaderMap, Response};
use http_body_util::Full;

use crate::attempt::{STORE_RETRY_AFTER_S, mark, publish_expiry};
use crate::guard::Guard;
use crate::headers;
use crate::observe::Verdict;
use crate::problem::{
    ANSWER_UNREADABLE, IN_PROGRESS_NO_WAIT, KEY_EXPIRED, Problem, RESPONSE_NOT_KEPT,
    STORE_UNAVAILABLE,
};
use crate::stored::Stored;

/// The longest `Retry-After` of a request that is still running, in seconds: most transactions are short.
const RETRY_AFTER_MAX_S: i64 = 5;

/// A guarded request's key, in the extensions of the request that the handler gets. Clones are the same key.
#[derive(Clone)]
pub struct Atomic {
    request: Arc<Guarded>,
}

/// What all clones share.
struct Guarded {
    guard: Arc<Guard>,
    claim: Claim,
    principal: Arc<str>,
    /// May a success be given out?
    settled: AtomicBool,
}

/// What becomes of a request.
#[must_use]
pub enum Begun {
    /// The work runs, in this transaction.
    Fresh(AtomicRun),
    /// An earlier run was lost after it had committed this phase: the work goes on behind it. Commit before going on.
    Resume(AtomicRun, Phase),
    /// Nothing runs: this is the stored answer, or the reason. The transaction has nothing to commit.
    Answered(Response<Full<Bytes>>),
}

/// The right to run, and the duty to finish.
#[must_use = "work that is committed without `finish` runs again"]
pub struct AtomicRun {
    run: Run,
    request: Arc<Guarded>,
}

impl Atomic {
    pub(super) fn new(guard: Arc<Guard>, claim: Claim, principal: Arc<str>) -> Atomic {
        Atomic {
            request: Arc::new(Guarded {
                guard,
                claim,
                principal,
                settled: AtomicBool::new(false),
            }),
        }
    }

    /// The key, as its caller meant it: without quotes.
    pub fn key(&self) -> &str {
        &self.request.claim.key
    }

    /// Who calls.
    pub fn principal(&self) -> &str {
        &self.request.principal
    }

    /// Joins this transaction: takes the key, or says what the caller hears. It comes first in the transaction.
    ///
    /// # Errors
    /// If the database refuses; roll the transaction back, and nothing has happened. [`unavailable`] is an answer for it.
    pub async fn begin<T: AtomicTx>(&self, tx: &mut T) -> Result<Begun, AtomicError> {
        let claimed = claim(tx, &self.request.claim).await;
        let claimed = claimed.inspect_err(|_| self.request.guard.tell(Verdict::StoreDown))?;
        let run = |run| AtomicRun {
            run,
            request: self.request.clone(),
        };
        let (verdict, begun) = match claimed {
            Claimed::Fresh(right) => (Verdict::Run, Begun::Fresh(run(right))),
            Claimed::Resume(right, phase) => (Verdict::Run, Begun::Resume(run(right), phase)),
            Claimed::Replay { answer, expires_at } => {
                let response = self.request.replay(answer, expires_at);
                (Verdict::Replay, self.answered(response))
            }
            Claimed::NotKept { expires_at } => {
                let mut response = RESPONSE_NOT_KEPT.response(Full::new);
                publish_expiry(&mut response, expires_at);
                (Verdict::NotKept, self.answered(response))
            }
            Claimed::InProgress { remaining } => {
                let seconds = remaining.map_or(1, Span::secs_ceil);
                let problem = IN_PROGRESS_NO_WAIT.retry_after(seconds.min(RETRY_AFTER_MAX_S));
                (Verdict::InProgress, self.said(&problem))
            }
            Claimed::Mismatch => {
                let status = self.request.guard.policy.mismatch_status;
                (Verdict::Mismatch, self.said(&Problem::key_reused(status)))
            }
            Claimed::Expired => (Verdict::Expired, self.said(&KEY_EXPIRED)),
        };
        self.request.guard.tell(verdict);
        Ok(begun)
    }

    fn said(&self, problem: &Problem) -> Begun {
        self.answered(problem.response(Full::new))
    }

    fn answered(&self, response: Response<Full<Bytes>>) -> Begun {
        self.request.settled.store(true, Ordering::Relaxed);
        Begun::Answered(response)
    }

    /// Is there an answer that can be given again, or one that needs not?
    pub(super) fn is_settled(&self) -> bool {
        self.request.settled.load(Ordering::Relaxed)
    }
}

impl Guarded {
    /// The stored answer, byte for byte (H3).
    fn replay(&self, answer: Bytes, expires_at: Time) -> Response<Full<Bytes>> {
        match Stored::decode(answer, self.claim.key_hash, self.guard.vault.as_deref()) {
            Ok(stored) => {
                let mut response = Response::new(Full::new(stored.body));
                *response.status_mut() = stored.status;
                *response.headers_mut() = stored.headers;
                mark(&mut response, expires_at);
                response
            }
            Err(error) => {
                tracing::error!(guard = %self.guard.name, %error, "a stored answer cannot be replayed");
                ANSWER_UNREADABLE.response(Full::new)
            }
        }
    }
}

impl AtomicRun {
    /// Names a recovery point: it commits with what this transaction has done. If the run is lost after that, the next one hears of it
    /// with [`Begun::Resume`]. `data` is stored as it is.
    ///
    /// # Errors
    /// If the run has lost its key, or the database refuses; roll the transaction back.
    pub async fn phase<T: AtomicTx>(
        &mut self,
        tx: &mut T,
        name: &str,
        data: &[u8],
    ) -> Result<(), AtomicError> {
        phase(tx, &mut self.run, name, data).await
    }

    /// Stores the answer in this transaction, and gives it back. Commit, and then return it. Of its headers those are kept that the
    /// guard lists; a body that is longer than the guard keeps is answered now and not again.
    ///
    /// # Errors
    /// If the run has lost its key, or the database refuses; roll the transaction back.
    pub async fn finish<T: AtomicTx, B: Into<Bytes>>(
        self,
        tx: &mut T,
        answer: Response<B>,
    ) -> Result<Response<Full<Bytes>>, AtomicError> {
        let guard = &self.request.guard;
        let (head, body) = answer.into_parts();
        let stored = Stored {
            status: head.status,
            headers: headers::kept(&head.headers, &guard.headers),
            body: body.into(),
            trailers: HeaderMap::new(),
        };
        let mut response = Response::from_parts(head, Full::new(stored.body.clone()));
        let (key_hash, expires_at) = (self.run.key_hash(), self.run.expires_at());
        let fits = stored.body.len() as u64 <= guard.answer_bytes_max;
        let kept = fits.then(|| stored.encode(key_hash, guard.vault.as_deref()));
        finish(tx, self.run, kept.as_deref()).await?;
        if guard.publish_expiry {
            publish_expiry(&mut response, expires_at);
        }
        self.request.settled.store(true, Ordering::Relaxed);
        Ok(response)
    }
}

/// What a caller hears when the key could not be looked up or written: nothing was done, if the transaction was rolled back.
pub fn unavailable(error: &AtomicError) -> Response<Full<Bytes>> {
    tracing::warn!(%error, "a guarded request could not be carried out");
    let problem = STORE_UNAVAILABLE.retry_after(STORE_RETRY_AFTER_S);
    problem.response(Full::new)
}
