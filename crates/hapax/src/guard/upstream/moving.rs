//! A request's body on its way out, and what can be told from it: whether a connection has begun to write the request, and when the last
//! part of it left.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hapax_tower::RunLease;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::Outgoing;
use crate::clock;
use crate::guard::BoxError;

/// How long a connection may take to let go of a request that nobody waits for any more. It needs one turn of its task; one that
/// takes longer than this is busy with something, and it may be this request.
const LET_GO_TIMEOUT: Duration = Duration::from_secs(1);

/// What becomes of a request's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// It is written, and the others follow.
    Leaves,
    /// The lease of its run is over: nothing is ever written.
    Withheld,
}

/// The lease of its run was over when it was about to be written.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the run lost its lease before anything was sent")]
pub(super) struct LeaseOver;

/// What a request's body tells of its way out.
pub(super) struct Moves {
    start: Instant,
    /// Microseconds from the start to the last part that left.
    last: AtomicU64,
    /// Decided when a connection is about to write the first byte.
    first: OnceLock<First>,
    /// What it depends on, if the request is a guarded one.
    lease: Option<RunLease>,
    /// The body is no more: whoever had the request can write nothing of it from now on.
    gone: AtomicBool,
    going: Notify,
}

impl Moves {
    /// Of a request whose first byte leaves only under this lease.
    pub(super) fn new(lease: Option<RunLease>) -> Moves {
        Moves {
            start: clock::tick(),
            last: AtomicU64::new(0),
            first: OnceLock::new(),
            lease,
            gone: AtomicBool::new(false),
            going: Notify::new(),
        }
    }

    /// A part of the request leaves.
    pub(super) fn note(&self) {
        let micros = u64::try_from(clock::since(self.start).as_micros()).unwrap_or(u64::MAX);
        self.last.store(micros, Ordering::Relaxed);
    }

    /// How long ago the last part left; the whole time, if none did.
    fn still_for(&self) -> Duration {
        let last = Duration::from_micros(self.last.load(Ordering::Relaxed));
        clock::since(self.start).saturating_sub(last)
    }

    /// A connection is about to write. May it? The lease is asked once, before the first byte: what has begun goes on.
    pub(super) fn begin(&self) -> bool {
        let first = self.first.get_or_init(|| match &self.lease {
            Some(lease) if !lease.holds() => First::Withheld,
            Some(_) | None => First::Leaves,
        });
        *first == First::Leaves
    }

    pub(super) fn began(&self) -> bool {
        self.first.get() == Some(&First::Leaves)
    }

    pub(super) fn withheld(&self) -> bool {
        self.first.get() == Some(&First::Withheld)
    }

    /// What this gives, unless the request stands still for longer than `patience`.
    pub(super) async fn within<F: Future>(
        &self,
        mut answering: Pin<&mut F>,
        patience: Duration,
    ) -> Option<F::Output> {
        loop {
            // The timer is not set anew with every part that leaves: when it ends, the last one says how much longer it should have run.
            let left = patience.saturating_sub(self.still_for());
            if left.is_zero() {
                return None;
            }
            tokio::select! {
                biased;
                answered = answering.as_mut() => return Some(answered),
                () = sleep(left) => {}
            }
        }
    }

    /// Nobody waits for the answer any more. Is it certain that no byte has left, and that none will?
    ///
    /// That a connection has not begun says nothing: it works beside us, and may begin at this very moment. But it cannot begin with
    /// what it has let go of.
    pub(super) async fn withdrawn(&self) -> bool {
        let let_go = async {
            loop {
                let going = self.going.notified();
                if self.gone.load(Ordering::SeqCst) {
                    return;
                }
                going.await;
            }
        };
        timeout(LET_GO_TIMEOUT, let_go).await.is_ok() && !self.began()
    }
}

/// A body that tells of its way. No connection writes a head before it has asked how long the body is, so a body that nobody has asked
/// belongs to a request of which no byte has left.
///
/// That question is also the last moment at which a request can be withheld. A connection of HTTP/1.1 composes the head, then asks for the
/// body's first part, and only then writes both: a body that fails there takes the head with it. So one that is withheld says that
/// there is something of it, and fails when that is asked for.
pub(super) struct Moving {
    body: Outgoing,
    moves: Arc<Moves>,
    length: Length,
}

/// How the length of an empty body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// As the head has it.
    InHead,
    /// The head said 0 and says it no more: the connection adds it again. It would believe the head otherwise, and never ask for a part.
    ByBody,
}

impl Moving {
    pub(super) fn new(body: Outgoing, moves: Arc<Moves>, length: Length) -> Moving {
        Moving {
            body,
            moves,
            length,
        }
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.moves.gone.store(true, Ordering::SeqCst);
        self.moves.going.notify_one();
    }
}

impl Body for Moving {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !self.moves.begin() {
            return Poll::Ready(Some(Err(LeaseOver.into())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            self.moves.note();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.moves.begin() && self.length == Length::InHead && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.moves.begin() {
            true => self.body.size_hint(),
            // Something, so that it is asked for.
            false => SizeHint::with_exact(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Empty};

    fn body(moves: &Arc<Moves>) -> Moving {
        let empty = Empty::new().map_err(|never| match never {});
        Moving::new(empty.boxed_unsync(), moves.clone(), Length::InHead)
    }

    /// A connection that has a request when its caller gives up may begin to write it a moment later.
    #[tokio::test]
    async fn a_request_that_a_connection_still_has_may_have_been_sent() {
        let moves = Arc::new(Moves::new(None));
        let held = body(&moves);
        let connection = async {
            // The connection's next turn, after the caller has looked.
            tokio::task::yield_now().await;
            let _ = held.size_hint();
            drop(held);
        };
        let (withdrawn, ()) = tokio::join!(moves.withdrawn(), connection);
        assert!(!withdrawn);
    }

    #[tokio::test]
    async fn a_request_that_was_let_go_of_untouched_was_not_sent() {
        let moves = Arc::new(Moves::new(None));
        let held = body(&moves);
        let connection = async {
            tokio::task::yield_now().await;
            drop(held);
        };
        let (withdrawn, ()) = tokio::join!(moves.withdrawn(), connection);
        assert!(withdrawn);
    }
}
