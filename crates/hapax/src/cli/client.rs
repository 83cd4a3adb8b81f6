//! The HTTP client of the commands that ask a running server: the one that the operator names, and no other.

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::exit::{Exit, Failure};
use crate::entropy;

/// The server if `HAPAX_URL` names none.
const URL_DEFAULT: &str = "http://127.0.0.1:8080";
/// How long a connection may take: a server that is up answers at once, even far away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a whole answer may take: a commit under load takes a second, a long list two.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest answer: 250 events with long keys are far below.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(super) type Legacy = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client of one server.
pub(super) struct Client {
    base: String,
    token: Option<HeaderValue>,
    http: Legacy,
}

/// What the server said.
#[derive(Debug)]
pub(super) struct Answer {
    /// The HTTP status.
    pub(super) status: u16,
    pub(super) content_type: Option<HeaderValue>,
    pub(super) body: Bytes,
}

impl Answer {
    /// Did the server do what it was asked?
    pub(super) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Client {
    /// The client that `HAPAX_URL` and `HAPAX_TOKEN` describe.
    pub(super) fn from_env() -> Result<Client, Failure> {
        let base = variable("HAPAX_URL")?.unwrap_or_else(|| URL_DEFAULT.to_owned());
        let base = base.trim_end_matches('/').to_owned();
        let uri: Option<Uri> = base.parse().ok();
        let fits = uri.is_some_and(|uri| {
            let scheme = matches!(uri.scheme_str(), Some("http" | "https"));
            scheme && uri.host().is_some() && uri.query().is_none()
        });
        if !fits {
            let help = format!("write scheme, host and port, such as {URL_DEFAULT}");
            return Err(unusable(
                &format!("HAPAX_URL=`{base}` is not the URL of a server"),
                &help,
            ));
        }
        let token = match variable("HAPAX_TOKEN")?.filter(|token| !token.is_empty()) {
            None => None,
            Some(token) => {
                let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
                    unusable(
                        "HAPAX_TOKEN has characters that no header carries",
                        "copy the token again",
                    )
                })?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let http = connect()?;
        Ok(Client { base, token, http })
    }

    /// A client of a server that this process runs itself.
    pub(super) fn of(address: SocketAddr, token: Option<&str>) -> Result<Client, Failure> {
        let token = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
        Ok(Client {
            base: format!("http://{address}"),
            token,
            http: connect()?,
        })
    }

    /// Did the operator give a token?
    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The server's address, for messages.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Asks the API, with the operator's token.
    pub(super) async fn get(&self, path_and_query: &str) -> Result<Answer, Failure> {
        let mut request = self.request(Method::GET, path_and_query, Bytes::new())?;
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        self.send(request).await
    }

    /// Asks the API for a change, with the operator's token. Under a key of its own, so that it is carried out once.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Answer, Failure> {
        self.change(Method::POST, path, body).await
    }

    /// The same with any method; `null` is no body.
    pub(super) async fn change(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Answer, Failure> {
        let body = match body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        let mut request = self.request(method, path, body)?;
        let headers = request.headers_mut();
        if let Some(token) = &self.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Ok(key) = HeaderValue::try_from(hex::encode(entropy::bytes::<16>())) {
            headers.insert(HeaderName::from_static("idempotency-key"), key);
        }
        self.send(request).await
    }

    /// Sends what a provider would: its headers, and no token of ours.
    pub(super) async fn deliver(
        &self,
        path_and_query: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Answer, Failure> {
        let body = Bytes::copy_from_slice(body);
        let mut request = self.request(Method::POST, path_and_query, body)?;
        for (name, value) in headers {
            let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
            let (Ok(name), Ok(value)) = pair else {
                let text = format!("the header `{name}` cannot carry its value");
                return Err(Failure::new(
                    Exit::Usage,
                    "H0404",
                    text,
                    "choose a type and a secret of plain text",
                ));
            };
            request.headers_mut().insert(name, value);
        }
        self.send(request).await
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let uri = format!("{}{path}", self.base);
        let agent = concat!("hapax/", env!("CARGO_PKG_VERSION"));
        let request = Request::builder()
            .method(method)
            .uri(&uri)
            .header(USER_AGENT, agent);
        request.body(Full::new(body)).map_err(|_| {
            unusable(
                &format!("`{uri}` is not a URL"),
                "look at HAPAX_URL and at the names in the command",
            )
        })
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Answer, Failure> {
        let exchange = async {
            let answer = self
                .http
                .request(request)
                .await
                .map_err(|error| self.unreachable(&error))?;
            self.whole(answer).await
        };
        let answered = tokio::time::timeout(ANSWER_TIMEOUT, exchange).await;
        answered.unwrap_or_else(|_| Err(self.too_slow()))
    }

    /// Asks for a stream, from an event on. Its body has no end; anything but a stream is an answer like others.
    pub(super) async fn follow(
        &self,
        path_and_query: &str,
        after: Option<&str>,
    ) -> Result<Result<Incoming, Answer>, Failure> {
        let mut request = self.request(Method::GET, path_and_query, Bytes::new())?;
        let headers = request.headers_mut();
        headers.extend(self.token.clone().map(|token| (AUTHORIZATION, token)));
        let after = after.and_then(|after| HeaderValue::try_from(after).ok());
        headers.extend(after.map(|after| (HeaderName::from_static("last-event-id"), after)));
        let exchange = async {
            let answer = self.http.request(request).await;
            let answer = answer.map_err(|error| self.unreachable(&error))?;
            match answer.status().is_success() {
                true => Ok(Ok(answer.into_body())),
                false => self.whole(answer).await.map(Err),
            }
        };
        let answered = tokio::time::timeout(ANSWER_TIMEOUT, exchange).await;
        answered.unwrap_or_else(|_| Err(self.too_slow()))
    }

    /// Reads a long body into a file, however long that takes; anything but a success is an answer like others. `so_far` hears of bytes
    /// that came, and of how many there are.
    pub(super) async fn download(
        &self,
        path: &str,
        into: &mut std::fs::File,
        so_far: impl Fn(u64, Option<u64>),
    ) -> Result<Result<(), Answer>, Failure> {
        let mut request = self.request(Method::GET, path, Bytes::new())?;
        let headers = request.headers_mut();
        headers.extend(self.token.clone().map(|token| (AUTHORIZATION, token)));
        let answer = self.http.request(request).await;
        let answer = answer.map_err(|error| self.unreachable(&error))?;
        if !answer.status().is_success() {
            return self.whole(answer).await.map(Err);
        }
        let mut body = answer.into_body();
        let total = body.size_hint().exact();
        let mut done = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.unreachable(&error))?;
            if let Some(data) = frame.data_ref() {
                into.write_all(data).map_err(|error| {
                    let text = format!("the file cannot be written: {error}");
                    Failure::new(Exit::Failed, "H0406", text, "look whether there is space")
                })?;
                done += data.len() as u64;
                so_far(done, total);
            }
        }
        match total {
            Some(total) if total != done => Err(self.no_answer("the copy broke off")),
            _ => Ok(Ok(())),
        }
    }

    /// Reads an answer to its end.
    async fn whole(&self, answer: Response<Incoming>) -> Result<Answer, Failure> {
        let status = answer.status().as_u16();
        let content_type = answer.headers().get(CONTENT_TYPE).cloned();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await;
        match body {
            Ok(body) => Ok(Answer {
                status,
                content_type,
                body: body.to_bytes(),
            }),
            Err(error) if error.is::<LengthLimitError>() => {
                let text = format!("the answer of {} is larger than 16 MiB", self.base);
                Err(Failure::new(
                    Exit::Failed,
                    "H0410",
                    text,
                    "ask for less with --limit",
                ))
            }
            Err(error) => Err(self.unreachable(&*error)),
        }
    }

    fn too_slow(&self) -> Failure {
        let seconds = ANSWER_TIMEOUT.as_secs();
        self.no_answer(&format!("no answer within {seconds} s"))
    }

    fn unreachable(&self, error: &(dyn Error + 'static)) -> Failure {
        let uri: Option<Uri> = self.base.parse().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        self.no_answer(&why(error, host))
    }

    fn no_answer(&self, why: &str) -> Failure {
        let text = format!("could not reach {} ({why})", self.base);
        let help = "is `hapax serve` running? HAPAX_URL names the server";
        Failure::new(Exit::Unreachable, "H0401", text, help)
    }
}

/// A runtime for one client command: it does one thing at a time.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        let text = format!("the command cannot start: {error}");
        Failure::new(
            Exit::Failed,
            "H0406",
            text,
            "the machine may be out of files or memory",
        )
    })?;
    runtime.block_on(work)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the operator's own client: it goes where HAPAX_URL says, and nobody else can choose that"
)]
pub(super) fn connect() -> Result<Legacy, Failure> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let tls = HttpsConnectorBuilder::new().with_provider_and_webpki_roots(provider);
    let tls = tls.map_err(|error| {
        let text = format!("TLS cannot be set up: {error}");
        Failure::new(
            Exit::Failed,
            "H0406",
            text,
            "this build of hapax cannot speak https; use http",
        )
    })?;
    let connector = tls.https_or_http().enable_http1().wrap_connector(tcp);
    Ok(legacy::Client::builder(TokioExecutor::new()).build(connector))
}

fn variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var_os(name).map(|value| value.into_string()) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(_)) => Err(unusable(
            &format!("{name} is not UTF-8 text"),
            "set it again",
        )),
    }
}

fn unusable(text: &str, help: &str) -> Failure {
    Failure::new(Exit::Usage, "H0402", text, help)
}

/// The cause that says most: "connection refused", not "client error (Connect)".
pub(super) fn why(error: &(dyn Error + 'static), host: &str) -> String {
    let mut cause = error;
    loop {
        if cause.to_string() == "dns error" {
            return format!("the name {host} cannot be resolved");
        }
        if let Some(words) = tls_words(cause) {
            return words;
        }
        match cause.source() {
            Some(inner) => cause = inner,
            None => break,
        }
    }
    match cause.downcast_ref::<std::io::Error>() {
        Some(error) => error.kind().to_string(),
        None => cause.to_string(),
    }
}

/// What TLS says, if it is TLS that failed: its error comes inside one of I/O, which hides it from `source`.
fn tls_words(cause: &(dyn Error + 'static)) -> Option<String> {
    let io = cause.downcast_ref::<std::io::Error>()?;
    if io.to_string() == "tls handshake eof" {
        return Some(PLAIN_HTTP.to_owned());
    }
    let inner = io.get_ref()?;
    match inner.downcast_ref::<rustls::Error>() {
        Some(error @ rustls::Error::InvalidCertificate(_)) => Some(format!("TLS failed: {error}")),
        Some(_) => Some(PLAIN_HTTP.to_owned()),
        None => tls_words(inner),
    }
}

const PLAIN_HTTP: &str = "TLS failed; does this port speak plain http?";
