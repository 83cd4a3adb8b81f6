//! The reverse proxy: one request in, the same request out, and the answer back, byte for byte.
//!
//! It knows nothing of keys. What it adds to an answer is what it knows about the run: that no byte left, or that nobody knows.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hapax_tower::{GuardedRun, Keep, MayBeCut, RunLease, Why};
use http::header::HeaderMap;
use http::uri::Scheme;
use http::{Method, Request, Response, Version};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Body;
use tower_service::Service;

use super::BoxError;
use super::flow::Flowing;
use super::head::{self, Peer};
use super::place::Place;
use super::tunnel::Tunnels;
use super::upstream::{Arriving, Line, NoAnswer, Upstreams};
use crate::config::{ForwardedRule, GuardConfig};
use crate::http::gateway;

/// The status of an answer that changes the protocol.
const SWITCHING: u16 = 101;

/// An answer's body: the upstream's, or what the guard says itself.
pub type ProxyBody = Either<Flowing<Arriving>, Full<Bytes>>;

/// Passes requests to one guard's upstream.
#[derive(Clone)]
pub struct Proxy(Arc<Way>);

/// What all clones share: there is one for each request.
struct Way {
    config: Arc<GuardConfig>,
    upstreams: Upstreams,
    line: Line,
    tunnels: Tunnels,
}

impl Proxy {
    /// A proxy to the upstream of a guard.
    pub fn new(config: Arc<GuardConfig>, upstreams: Upstreams, tunnels: Tunnels) -> Proxy {
        let line = upstreams.line(config.upstream.uri(), config.upstream_http);
        Proxy(Arc::new(Way {
            config,
            upstreams,
            line,
            tunnels,
        }))
    }
}

impl Way {
    async fn pass<B>(&self, mut request: Request<B>) -> Response<ProxyBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let target = head::target(self.config.upstream.uri(), request.uri());
        let Some(target) = target.filter(|_| request.method() != Method::CONNECT) else {
            let mut answer = gateway::not_a_request().map(Either::Right);
            answer.extensions_mut().insert(Keep::Release);
            return answer;
        };
        let protocol = head::upgrade(&request);
        let caller = protocol.is_some().then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body) = request.into_parts();
        let host = head::host_of(&parts.uri, &parts.headers);
        head::strip(&mut parts.headers, self.config.caller.header());
        if let Some(peer) = parts.extensions.get::<Peer>() {
            let rules = (self.config.host, self.config.forwarded);
            head::introduce(&mut parts.headers, peer, host.as_ref(), rules);
        }
        if let Some(run) = parts.extensions.get::<GuardedRun>() {
            head::put_key(&mut parts.headers, &run.key, self.config.key_form);
        }
        let line = match protocol {
            Some(protocol) => {
                head::put_upgrade(&mut parts.headers, protocol);
                &Line::ONE
            }
            None => &self.line,
        };
        let place = parts.extensions.remove::<Place>();
        let lease = parts.extensions.remove::<RunLease>();
        parts.uri = target;
        parts.extensions = http::Extensions::new();
        let body = body.map_err(Into::into).boxed_unsync();
        let request = Request::from_parts(parts, body);
        let patience = self.config.timeout;
        match self.upstreams.send(line, request, patience, lease).await {
            Ok(response) => self.answer(response, caller, place),
            Err(failed) => self.failed(&failed),
        }
    }

    fn answer(
        &self,
        mut response: Response<Arriving>,
        caller: Option<hyper::upgrade::OnUpgrade>,
        place: Option<Place>,
    ) -> Response<ProxyBody> {
        let may_be_cut = self.may_be_cut(&response);
        if response.status().as_u16() == SWITCHING {
            let Some(caller) = caller else {
                let mut answer = gateway::unasked_switch().map(Either::Right);
                answer.extensions_mut().insert(Keep::Unknown);
                let why = "the upstream changed the protocol without being asked to";
                answer.extensions_mut().insert(Why(why.to_owned()));
                return answer;
            };
            let upstream = hyper::upgrade::on(&mut response);
            self.tunnels.dig(caller, upstream, place.clone());
        } else {
            head::strip(response.headers_mut(), None);
        }
        let patience = self.config.idle_timeout;
        let mut response =
            response.map(|body| Either::Left(Flowing::new(body, patience).in_place(place)));
        // What the client put there is about the connection to the upstream.
        *response.extensions_mut() = http::Extensions::new();
        if may_be_cut {
            response.extensions_mut().insert(MayBeCut);
        }
        *response.version_mut() = Version::HTTP_11;
        response
    }

    /// Could this be half of an answer, and nobody would know? With TLS a break is told from an end, and is an error.
    fn may_be_cut(&self, response: &Response<Arriving>) -> bool {
        let encrypted = self.config.upstream.uri().scheme() == Some(&Scheme::HTTPS);
        !encrypted && !response.body().ends_by_itself(response.headers())
    }

    fn failed(&self, failed: &NoAnswer) -> Response<ProxyBody> {
        let guard = &*self.config.name;
        let (keep, text) = match failed {
            NoAnswer::NotSent { text, .. }
            | NoAnswer::Withheld { text }
            | NoAnswer::Refused { text } => (Keep::Release, text),
            NoAnswer::Lost { text, .. } => (Keep::Unknown, text),
        };
        tracing::warn!(guard, error = %text, sent = ?keep, "the upstream gave no answer");
        let mut answer = gateway::no_answer(failed).map(Either::Right);
        answer.extensions_mut().insert(keep);
        answer.extensions_mut().insert(Why(text.clone()));
        answer
    }
}

impl<B> Service<Request<B>> for Proxy
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ProxyBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ProxyBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let way = self.0.clone();
        Box::pin(async move { Ok(way.pass(request).await) })
    }
}

/// What of a caller's head is shown to whoever decides whether the caller may: what they brought to prove it, and what others said of them
/// on their way here, if that is to be believed.
pub fn credentials(headers: &HeaderMap, forwarded: ForwardedRule) -> HeaderMap {
    let shown = |name: &http::HeaderName| match name.as_str() {
        "authorization" | "cookie" => true,
        "forwarded" => forwarded == ForwardedRule::Trust,
        name => forwarded == ForwardedRule::Trust && name.starts_with("x-forwarded-"),
    };
    let mut kept = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| shown(name)) {
        kept.append(name.clone(), value.clone());
    }
    kept
}
