//! The API that is looked at.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use serde_json::Value;

use super::Args;
use crate::cli::client::{self, Legacy};
use crate::cli::exit::{Exit, Failure};
use crate::entropy;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest answer: it is compared, not shown.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What the API said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The values of the headers that name an execution.
    pub(super) ids: Vec<Option<Bytes>>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    One,
    Other,
}

/// What is asked, and under which key.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) caller: Caller,
    pub(super) method: Method,
    pub(super) body: Bytes,
    /// All `Idempotency-Key` headers, in this order.
    pub(super) keys: Vec<String>,
}

/// The API that is looked at. Clones share its connections.
#[derive(Clone)]
pub(super) struct Target {
    http: Legacy,
    uri: Uri,
    headers: HeaderMap,
    other: Option<HeaderMap>,
    method: Method,
    body: Bytes,
    other_body: Bytes,
    /// Headers of answers that name an execution.
    id_headers: Arc<[HeaderName]>,
}

impl Target {
    pub(super) fn new(args: &Args) -> Result<Target, Failure> {
        let uri: Option<Uri> = args.url.parse().ok();
        let uri = uri.filter(|uri| {
            let scheme = matches!(uri.scheme_str(), Some("http" | "https"));
            scheme && uri.host().is_some_and(|host| !host.is_empty())
        });
        let uri = uri.ok_or_else(|| {
            usage(
                &format!("`{}` is not an http or https URL", args.url),
                "write scheme, host and path, such as https://api.example.com/charges",
            )
        })?;
        let method = Method::from_bytes(args.method.as_bytes()).map_err(|_| {
            usage(
                &format!("`{}` is not a method", args.method),
                "write POST or PATCH",
            )
        })?;
        let mut headers = parse(&args.headers)?;
        if !headers.contains_key(CONTENT_TYPE) && serde_json::from_str::<Value>(&args.body).is_ok()
        {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let agent = HeaderValue::from_static(concat!("hapax-conform/", env!("CARGO_PKG_VERSION")));
        headers.entry(USER_AGENT).or_insert(agent);
        let other = match args.other_headers.is_empty() {
            true => None,
            false => {
                let mut other = headers.clone();
                other.extend(parse(&args.other_headers)?);
                Some(other)
            }
        };
        let changed = args.other_body.clone();
        Ok(Target {
            http: client::connect()?,
            uri,
            headers,
            other,
            method,
            other_body: changed.unwrap_or_else(|| change(&args.body)).into(),
            body: args.body.clone().into(),
            id_headers: names(&args.id_headers)?,
        })
    }

    /// Is there another caller?
    pub(super) fn has_other(&self) -> bool {
        self.other.is_some()
    }

    /// The operation, under a key.
    pub(super) fn question(&self, key: &str) -> Question {
        Question {
            caller: Caller::One,
            method: self.method.clone(),
            body: self.body.clone(),
            keys: vec![key.to_owned()],
        }
    }

    /// The same with another body.
    pub(super) fn other_question(&self, key: &str) -> Question {
        Question {
            body: self.other_body.clone(),
            ..self.question(key)
        }
    }

    pub(super) async fn ask(&self, question: &Question) -> Result<Said, Failure> {
        let exchange = async {
            let answer = self.http.request(self.request(question)?).await;
            let answer = answer.map_err(|error| self.unreachable(&error))?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| self.unreachable(&*error))?;
            let value = |name| head.headers.get(name).map(HeaderValue::as_bytes);
            let ids = self.id_headers.iter().map(value);
            Ok(Said {
                ids: ids.map(|id| id.map(Bytes::copy_from_slice)).collect(),
                status: head.status.as_u16(),
                headers: head.headers,
                body: body.to_bytes(),
            })
        };
        match tokio::time::timeout(ANSWER_TIMEOUT, exchange).await {
            Ok(said) => said,
            Err(_) => {
                let text = format!("no answer within {} s", ANSWER_TIMEOUT.as_secs());
                Err(self.no_answer(&text))
            }
        }
    }

    fn request(&self, question: &Question) -> Result<Request<Full<Bytes>>, Failure> {
        let mut request = Request::new(Full::new(question.body.clone()));
        *request.method_mut() = question.method.clone();
        *request.uri_mut() = self.uri.clone();
        let headers = match (question.caller, &self.other) {
            (Caller::Other, Some(other)) => other,
            _ => &self.headers,
        };
        *request.headers_mut() = headers.clone();
        for key in &question.keys {
            let value = HeaderValue::from_str(key)
                .map_err(|_| usage("a key of the checks fits into no header", "report this"))?;
            request.headers_mut().append(KEY, value);
        }
        Ok(request)
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> Failure {
        self.no_answer(&client::why(error, self.uri.host().unwrap_or_default()))
    }

    fn no_answer(&self, why: &str) -> Failure {
        let text = format!("could not reach {} ({why})", self.uri);
        Failure::new(
            Exit::Unreachable,
            "H0401",
            text,
            "is the API running there?",
        )
    }
}

/// A key that nobody has used.
pub(super) fn fresh_key() -> String {
    format!("conform-{}", hex::encode(entropy::bytes::<12>()))
}

/// A body that differs: one more field in an object, one more space in anything else.
fn change(body: &str) -> String {
    match serde_json::from_str(body) {
        Ok(Value::Object(mut object)) => {
            object.insert("conformOther".to_owned(), Value::Bool(true));
            Value::Object(object).to_string()
        }
        _ => format!("{body} "),
    }
}

fn parse(lines: &[String]) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for line in lines {
        let pair = line.split_once(':');
        let name = pair.and_then(|(name, _)| HeaderName::from_bytes(name.trim().as_bytes()).ok());
        let value = pair.and_then(|(_, value)| HeaderValue::from_str(value.trim()).ok());
        match (name, value) {
            (Some(name), Some(mut value)) => {
                value.set_sensitive(true);
                headers.append(name, value);
            }
            // Not quoted: it may hold a secret.
            _ => {
                let text = "a --header is not NAME: VALUE";
                return Err(usage(text, "write --header 'Authorization: Bearer ...'"));
            }
        }
    }
    Ok(headers)
}

fn names(texts: &[String]) -> Result<Arc<[HeaderName]>, Failure> {
    let name = |text: &String| {
        HeaderName::from_bytes(text.trim().as_bytes()).map_err(|_| {
            usage(
                &format!("`{text}` is not the name of a header"),
                "write --id-header x-charge-id",
            )
        })
    };
    texts.iter().map(name).collect()
}

fn usage(text: &str, help: &str) -> Failure {
    Failure::new(Exit::Usage, "H0408", text, help)
}

#[cfg(test)]
mod tests {
    use super::change;

    #[test]
    fn another_body_is_another_body_of_the_same_kind() {
        assert_eq!(change(r#"{"a":1}"#), r#"{"a":1,"conformOther":true}"#);
        assert_eq!(change("a=1"), "a=1 ");
        assert_eq!(change("[1]"), "[1] ");
    }
}
