//! Guards as the program uses them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::guard::{GuardPolicy, KeyForm};
use hapax_ledger::time::Span;
use http::{HeaderName, Method};

use crate::config::effect::{Url, UrlTemplate};
use crate::guard::jwt::KeySet;

/// One `[[guard]]`.
#[derive(Debug)]
pub struct GuardConfig {
    /// Its name, unique over the file: the scope of its keys, and a label.
    pub name: Arc<str>,
    /// Whose keys they are, where several guards of one name share a store; may be empty.
    pub tenant: Arc<str>,
    /// Where it listens.
    pub listen: SocketAddr,
    /// TLS on its listener.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The API behind it. Its path stands before every request's.
    pub upstream: Url,
    /// Which version of HTTP it is spoken to in.
    pub upstream_http: UpstreamHttp,
    /// Which `Host` the upstream is told.
    pub host: HostRule,
    /// Is what a caller says was forwarded to be believed?
    pub forwarded: ForwardedRule,
    /// How the upstream is told a key.
    pub key_form: KeyForm,
    /// Requests with these methods are guarded if they have a key.
    pub methods: Arc<[Method]>,
    /// How callers are told apart.
    pub caller: CallerConfig,
    /// Who says on every guarded request whether the caller may.
    pub forward_auth: Option<Url>,
    /// Must a guarded request have a key?
    pub required: bool,
    /// What is kept, what frees a key, and what becomes of unknown outcomes.
    pub policy: GuardPolicy,
    /// Which headers of an answer are kept with it.
    pub headers: Arc<[HeaderName]>,
    /// Does the first answer say when its key expires, as the IETF draft has it?
    pub publish_expiry: bool,
    /// How long an expired key is answered as expired.
    pub grace: Span,
    /// Where to ask whether a request was carried out.
    pub probe: Option<UrlTemplate>,
    /// How long the upstream may take to begin its answer.
    pub timeout: Duration,
    /// How long a body may stand still, in either direction.
    pub idle_timeout: Duration,
    /// How long a caller may wait for an answer to another request with its key.
    pub wait_max: Duration,
    /// The largest body of a guarded request.
    pub body_bytes_max: usize,
    /// The largest body of an answer that is kept.
    pub answer_bytes_max: usize,
}

impl GuardConfig {
    /// What its keys are kept under.
    pub fn scope(&self) -> Arc<str> {
        match &*self.tenant {
            "" => self.name.clone(),
            tenant => format!("{tenant}/{}", self.name).into(),
        }
    }
}

/// Which version of HTTP an upstream is spoken to in. What changes its protocol is HTTP/1.1 anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamHttp {
    /// HTTP/1.1: a connection for each request at a time.
    One,
    /// HTTP/2: chosen in the handshake of TLS, and known beforehand without TLS.
    Two,
    /// What the upstream chooses in the handshake of TLS; HTTP/1.1 without TLS.
    Auto,
}

/// Which `Host` the upstream is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRule {
    /// The caller's: the upstream makes its links and decides by name as if nobody stood in front of it.
    Keep,
    /// The upstream's own, for an upstream that knows no other name.
    Upstream,
}

/// Is what a caller says was forwarded to be believed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedRule {
    /// No: the guard says itself under which name and over what it was called.
    Overwrite,
    /// Yes: only a proxy of the operator's own can reach the guard, and it says so.
    Trust,
}

/// How callers are told apart.
#[derive(Clone, Debug)]
pub enum CallerConfig {
    /// Not at all: the operator said that all callers share one scope.
    Shared,
    /// By a header that something in front of the guard sets. If its name sounds like a credential, its hash is the name.
    Header(HeaderName),
    /// By a claim of a token whose signature verifies.
    Jwt(Arc<JwtConfig>),
    /// By the subject of the client's certificate.
    Subject,
    /// By a header of `forward_auth`'s answer.
    Auth(HeaderName),
}

impl CallerConfig {
    /// The header of the caller's own that names them.
    pub fn header(&self) -> Option<&HeaderName> {
        match self {
            CallerConfig::Header(name) => Some(name),
            CallerConfig::Shared
            | CallerConfig::Jwt(_)
            | CallerConfig::Subject
            | CallerConfig::Auth(_) => None,
        }
    }
}

/// Tokens that name callers.
#[derive(Debug)]
pub struct JwtConfig {
    /// The claim that names the caller.
    pub claim: String,
    /// The keys that tokens are signed with.
    pub keys: KeySet,
    /// Who must have made them.
    pub issuer: Option<String>,
    /// For whom they must have been made.
    pub audience: Option<String>,
}
