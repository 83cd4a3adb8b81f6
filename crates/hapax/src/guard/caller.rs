//! Who calls, and whether another service says that they may.
//!
//! Asked on every guarded request, replays too: a replay never reaches the upstream and its own checks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hapax_ledger::key::BodyHash;
use hapax_tower::principal::{ByHeader, Principal, Refusal};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, LOCATION, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Empty};

use super::head::{self, Peer};
use super::jwt::{self, Demands};
use super::upstream::{self, Line, Upstreams};
use crate::clock;
use crate::config::effect::Url;
use crate::config::{CallerConfig, ForwardedRule, GuardConfig, HostRule, JwtConfig};
use crate::http::gateway;

/// How long the service that decides may take: every guarded request waits for it.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// The most of its refusal that is passed on.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// Headers of its refusal that are passed on.
const PASSED_ON: [HeaderName; 3] = [CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE];
/// The longest name that is kept as it is, and what stands before the hash of a longer one.
const NAME_BYTES_MAX: usize = 128;
const HASH_PREFIX: &str = "sha256:";

/// The subject of the certificate that a connection's client has shown.
#[derive(Clone, Debug)]
pub struct Subject(pub Arc<str>);

/// Names the callers of one guard.
pub struct Caller {
    config: Arc<GuardConfig>,
    upstreams: Upstreams,
}

impl Caller {
    /// Names callers as the config says.
    pub fn new(config: Arc<GuardConfig>, upstreams: Upstreams) -> Caller {
        Caller { config, upstreams }
    }

    /// Asks the service that decides. The headers of its answer, if the caller may.
    async fn ask(&self, url: &Url, head: &Parts) -> Result<HeaderMap, Refusal> {
        let request = question(url, head, self.config.forwarded);
        let asked = self.upstreams.send(&Line::ONE, request, ASK_TIMEOUT, None);
        let answer = match asked.await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(
                    guard = &*self.config.name,
                    ?error,
                    "forward_auth gave no answer"
                );
                return Err(gateway::authorization_unavailable());
            }
        };
        if answer.status().is_success() {
            return Ok(answer.headers().clone());
        }
        let (parts, body) = answer.into_parts();
        let reading = upstream::whole(body, REFUSAL_BYTES_MAX);
        let body = tokio::time::timeout(ASK_TIMEOUT, reading).await;
        let mut refusal = Response::new(body.ok().flatten().unwrap_or_default());
        *refusal.status_mut() = parts.status;
        for name in PASSED_ON {
            if let Some(value) = parts.headers.get(&name) {
                refusal.headers_mut().insert(name, value.clone());
            }
        }
        Err(refusal)
    }
}

/// The question: who asks for what, with what they brought to prove it. Never the body.
fn question(url: &Url, head: &Parts, forwarded: ForwardedRule) -> Request<upstream::Outgoing> {
    let mut request = Request::new(
        Empty::<Bytes>::new()
            .map_err(|never| match never {})
            .boxed_unsync(),
    );
    *request.method_mut() = Method::GET;
    *request.uri_mut() = url.uri().clone();
    *request.headers_mut() = super::proxy::credentials(&head.headers, forwarded);
    let headers = request.headers_mut();
    let host = head::host_of(&head.uri, &head.headers);
    if let Some(peer) = head.extensions.get::<Peer>() {
        let rules = (HostRule::Upstream, forwarded);
        head::introduce(headers, peer, host.as_ref(), rules);
    }
    let method = HeaderValue::from_str(head.method.as_str());
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let pairs = [
        ("x-forwarded-method", method),
        ("x-forwarded-uri", HeaderValue::from_str(target)),
    ];
    for (name, value) in pairs {
        // Neither can be anything else: both were parts of a request's head.
        if let Ok(value) = value {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    request
}

#[async_trait]
impl Principal for Caller {
    async fn principal(&self, head: &Parts) -> Result<Arc<str>, Refusal> {
        let allowed = match &self.config.forward_auth {
            Some(url) => Some(self.ask(url, head).await?),
            None => None,
        };
        match &self.config.caller {
            CallerConfig::Shared => Ok("".into()),
            CallerConfig::Header(name) => ByHeader::new(name.clone()).principal(head).await,
            CallerConfig::Jwt(jwt) => by_token(jwt, &head.headers).map_err(|why| refused(&why)),
            CallerConfig::Subject => match head.extensions.get::<Subject>() {
                Some(Subject(name)) => Ok(name.clone()),
                None => Err(gateway::caller_unknown("The certificate names no subject")),
            },
            CallerConfig::Auth(name) => match by_answer(name, allowed.as_ref()) {
                Some(name) => Ok(name),
                None => {
                    tracing::warn!(header = %name, "forward_auth allowed a request and did not name its caller");
                    Err(gateway::authorization_unavailable())
                }
            },
        }
    }
}

/// Who a token names, or why nobody.
fn by_token(config: &JwtConfig, headers: &HeaderMap) -> Result<Arc<str>, String> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let token = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    };
    let token = token.and_then(|value| value.split_at_checked(7));
    let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer "));
    let Some((_, token)) = token else {
        return Err("A request with an Idempotency-Key needs one bearer token".to_owned());
    };
    let demands = Demands {
        issuer: config.issuer.as_deref(),
        audience: config.audience.as_deref(),
    };
    let claims = config.keys.claims(token.trim(), clock::now(), demands);
    let claims = claims.map_err(|bad| bad.to_string())?;
    let name = jwt::name(&claims, &config.claim);
    name.map(|name| named(&name))
        .ok_or_else(|| "The token does not have the claim that names its caller".to_owned())
}

fn refused(why: &str) -> Refusal {
    let mut refusal = gateway::caller_unknown(why);
    let scheme = HeaderValue::from_static("Bearer");
    refusal.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    refusal
}

fn by_answer(name: &HeaderName, answer: Option<&HeaderMap>) -> Option<Arc<str>> {
    let mut values = answer?.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let value = value.to_str().ok()?;
    (!value.is_empty()).then(|| named(value))
}

/// A name as it is kept. What is long, or looks like a hash, is kept as its hash, so that no name can pass for another.
pub fn named(name: &str) -> Arc<str> {
    let plain = name.len() <= NAME_BYTES_MAX
        && !name.starts_with(HASH_PREFIX)
        && !name.contains(char::is_control);
    match plain {
        true => name.into(),
        false => format!("{HASH_PREFIX}{}", BodyHash::of(name.as_bytes())).into(),
    }
}
