//! The layer of atomic mode: everything about a key but its transaction.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hapax_ledger::guard::GuardKey;
use hapax_ledger::key::composite;
use hapax_store::atomic::Claim;
use hapax_store::nouns::KeyClaim;
use http::{Request, Response, StatusCode};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::handle::Atomic;
use crate::admit::prepare;
use crate::attempt::Call;
use crate::body::{AnswerBody, BoxError, ByteBody, GuardBody, drain};
use crate::guard::{Guard, GuardProblem};
use crate::layer::key_of;
use crate::observe::Verdict;
use crate::problem::{NOT_SETTLED, Problem};

/// Guards handlers that join the key's transaction. It parses keys, asks who calls, reads bodies and tells callers what is wrong; the
/// handler gets an [`Atomic`] in the request's extensions.
///
/// Of the guard's settings those about stores and unknown outcomes have no meaning here, and `Prefer: wait` is not heard: a request
/// that is still running is refused at once. The handler runs in its caller's task, and is dropped if the caller hangs up; so is its transaction,
/// and nothing has happened.
#[derive(Clone)]
pub struct AtomicLayer {
    guard: Arc<Guard>,
}

impl AtomicLayer {
    /// A layer with these rules.
    ///
    /// # Errors
    /// If the guard cannot keep its promises.
    pub fn new(guard: Guard) -> Result<AtomicLayer, GuardProblem> {
        Ok(AtomicLayer {
            guard: Arc::new(guard.check_atomic()?),
        })
    }
}

impl<S> Layer<S> for AtomicLayer {
    type Service = AtomicService<S>;

    fn layer(&self, inner: S) -> AtomicService<S> {
        AtomicService {
            inner,
            guard: self.guard.clone(),
        }
    }
}

/// A service whose handlers join the key's transaction.
#[derive(Clone)]
pub struct AtomicService<S> {
    inner: S,
    guard: Arc<Guard>,
}

type Answering<R, E> = Pin<Box<dyn Future<Output = Result<Response<AnswerBody<R>>, E>> + Send>>;

impl<S, B, R> Service<Request<B>> for AtomicService<S>
where
    S: Service<Request<GuardBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError> + Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError> + Send,
{
    type Response = Response<AnswerBody<R>>;
    type Error = S::Error;
    type Future = Answering<R, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Answering<R, S::Error> {
        let guard = self.guard.clone();
        match key_of(&guard, &request) {
            Ok(Some(key)) => {
                // The service that is ready goes with the request; a new one gets ready for the next.
                let next = self.inner.clone();
                let service = std::mem::replace(&mut self.inner, next);
                Box::pin(guarded(guard, service, key, request))
            }
            Ok(None) => {
                guard.tell(Verdict::Passed);
                let answer = self.inner.call(request.map(GuardBody::passed));
                Box::pin(async { Ok(answer.await?.map(AnswerBody::passed)) })
            }
            Err((verdict, problem)) => {
                guard.tell(verdict);
                Box::pin(async move {
                    let (head, body) = request.into_parts();
                    drain(pin!(body), &head.headers).await;
                    Ok(problem.response(AnswerBody::whole))
                })
            }
        }
    }
}

async fn guarded<S, B, R>(
    guard: Arc<Guard>,
    mut service: S,
    key: GuardKey,
    request: Request<B>,
) -> Result<Response<AnswerBody<R>>, S::Error>
where
    S: Service<Request<GuardBody<B>>, Response = Response<R>>,
    B: ByteBody,
{
    let Call { head, body, claim } = match prepare(&guard, &key, request).await {
        Ok(call) => *call,
        Err((verdict, response)) => {
            guard.tell(verdict);
            return Ok(response.map(AnswerBody::whole));
        }
    };
    let principal = claim.principal.clone();
    let atomic = Atomic::new(guard.clone(), claim_of(claim), principal);
    let mut request = Request::from_parts(head, body.into_body());
    request.extensions_mut().insert(atomic.clone());
    let answer = service.call(request).await?;
    if !atomic.is_settled() && succeeded(answer.status()) {
        tracing::error!(guard = %guard.name, "a handler succeeded without storing its answer: call `begin` and `finish`");
        let problem = Problem {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            ..NOT_SETTLED
        };
        return Ok(problem.response(AnswerBody::whole));
    }
    Ok(answer.map(AnswerBody::passed))
}

/// Does the caller take it for done? Anything else may be said of work that was rolled back.
fn succeeded(status: StatusCode) -> bool {
    status.is_success() || status.is_redirection()
}

fn claim_of(claim: KeyClaim) -> Claim {
    let scope = composite(&[
        &*claim.guard,
        &*claim.principal,
        &*claim.method,
        &*claim.path,
    ]);
    Claim {
        key_hash: claim.key_hash,
        scope: scope.into(),
        key: claim.key.into(),
        fingerprint: claim.fingerprint,
        lease: claim.lease,
        ttl: claim.ttl,
        grace: claim.grace,
    }
}
