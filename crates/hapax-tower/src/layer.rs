//! The layer and its service: what is guarded goes one way, everything else passes.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hapax_ledger::guard::{GuardKey, parse_key};
use hapax_store::Keys;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::admit::{Admission, admit};
use crate::body::{AnswerBody, BoxError, ByteBody, GuardBody, drain};
use crate::guard::{Guard, GuardProblem};
use crate::headers::IDEMPOTENCY_KEY;
use crate::observe::Verdict;
use crate::problem::{KEY_MISSING, Problem};
use crate::recent::Recent;
use crate::running::Running;

/// What all services of one layer share.
pub(crate) struct Shared {
    pub(crate) keys: Arc<dyn Keys>,
    pub(crate) guard: Guard,
    pub(crate) running: Running,
    pub(crate) recent: Recent,
}

impl Shared {
    pub(crate) fn tell(&self, verdict: Verdict) {
        self.guard.tell(verdict);
    }
}

/// Any service that can be guarded.
pub(crate) trait Inner<B, R>:
    Service<
        Request<GuardBody<B>>,
        Response = Response<R>,
        Future: Send + 'static,
        Error: Into<BoxError>,
    > + Send
    + 'static
{
}

impl<S, B, R> Inner<B, R> for S
where
    S: Service<Request<GuardBody<B>>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
}

/// Guards a service. Clones share everything: the running requests, and what [`IdempotencyLayer::drain`] waits for.
#[derive(Clone)]
pub struct IdempotencyLayer {
    shared: Arc<Shared>,
}

impl IdempotencyLayer {
    /// A layer that keeps its keys in this store.
    ///
    /// # Errors
    /// If the guard cannot keep its promises.
    pub fn new(keys: Arc<dyn Keys>, guard: Guard) -> Result<IdempotencyLayer, GuardProblem> {
        let guard = guard.check()?;
        let shared = Shared {
            keys,
            recent: Recent::new(guard.recent_bytes_max),
            guard,
            running: Running::default(),
        };
        Ok(IdempotencyLayer {
            shared: Arc::new(shared),
        })
    }

    /// Waits until nothing runs any more. Runs go on when their callers have gone, so a server that stops should wait for them
    /// after it has stopped to accept; what it does not wait for is an unknown outcome.
    pub async fn drain(&self) {
        self.shared.running.drained().await;
    }

    /// How many guarded requests are under way.
    pub fn running(&self) -> usize {
        self.shared.running.count()
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotent<S>;

    fn layer(&self, inner: S) -> Idempotent<S> {
        Idempotent {
            inner,
            shared: self.shared.clone(),
        }
    }
}

/// A guarded service.
#[derive(Clone)]
pub struct Idempotent<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S, B, R> Service<Request<B>> for Idempotent<S>
where
    S: Service<Request<GuardBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError> + Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError> + Send,
{
    type Response = Response<AnswerBody<R>>;
    type Error = S::Error;
    type Future = Answering<S::Future, R>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Answering<S::Future, R> {
        match key_of(&self.shared.guard, &request) {
            Ok(Some(key)) => {
                // The service that is ready goes with the request; a new one gets ready for the next.
                let next = self.inner.clone();
                let service = std::mem::replace(&mut self.inner, next);
                let admission = Admission {
                    shared: self.shared.clone(),
                    service,
                    key,
                };
                Answering::guarded(admit(admission, request))
            }
            Ok(None) => self.pass(request),
            Err((verdict, problem)) => self.refuse(verdict, problem, request),
        }
    }
}

/// The key of a request that is to be guarded; `None` if it passes.
pub(crate) fn key_of<B>(
    guard: &Guard,
    request: &Request<B>,
) -> Result<Option<GuardKey>, (Verdict, Problem)> {
    if !guard.methods.contains(request.method()) {
        return Ok(None);
    }
    let values = request.headers().get_all(IDEMPOTENCY_KEY);
    match parse_key(values.iter().map(|value| value.as_bytes())) {
        Ok(None) if guard.required => Err((Verdict::Missing, KEY_MISSING)),
        Ok(key) => Ok(key),
        Err(problem) => Err((Verdict::Malformed, Problem::key_malformed(problem))),
    }
}

impl<S> Idempotent<S> {
    fn pass<B, R>(&mut self, request: Request<B>) -> Answering<S::Future, R>
    where
        S: Service<Request<GuardBody<B>>, Response = Response<R>>,
    {
        self.shared.tell(Verdict::Passed);
        Answering {
            way: Way::Passing {
                future: self.inner.call(request.map(GuardBody::passed)),
            },
        }
    }

    fn refuse<F, R, B: ByteBody>(
        &self,
        verdict: Verdict,
        problem: Problem,
        request: Request<B>,
    ) -> Answering<F, R> {
        self.shared.tell(verdict);
        Answering::guarded(async move {
            let (head, body) = request.into_parts();
            drain(pin!(body), &head.headers).await;
            problem.response(AnswerBody::whole)
        })
    }
}

type Guarded<R> = Pin<Box<dyn Future<Output = Response<AnswerBody<R>>> + Send>>;

pin_project! {
    /// An answer on its way.
    pub struct Answering<F, R> {
        #[pin]
        way: Way<F, R>,
    }
}

pin_project! {
    #[project = WayProjected]
    enum Way<F, R> {
        Passing { #[pin] future: F },
        Guarded { future: Guarded<R> },
    }
}

impl<F, R> Answering<F, R> {
    fn guarded(future: impl Future<Output = Response<AnswerBody<R>>> + Send + 'static) -> Self {
        Answering {
            way: Way::Guarded {
                future: Box::pin(future),
            },
        }
    }
}

impl<F, R, E> Future for Answering<F, R>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<AnswerBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().way.project() {
            WayProjected::Passing { future } => {
                let answer = ready!(future.poll(context));
                Poll::Ready(answer.map(|answer| answer.map(AnswerBody::passed)))
            }
            WayProjected::Guarded { future } => future.as_mut().poll(context).map(Ok),
        }
    }
}
