//! Answers, and problems with a code, what happened, and what to do next.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

/// A whole answer.
pub type Answer = Response<Full<Bytes>>;

/// A sender that hears 503 is asked to wait this long. Short: what makes us refuse is mostly over in a second, and
/// providers have schedules of their own.
const RETRY_AFTER_SECONDS: &str = "2";

/// A problem with a stable code.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// The status.
    pub status: StatusCode,
    /// The code (`hapax explain CODE`).
    pub code: &'static str,
    /// What happened and what to do next.
    pub detail: &'static str,
}

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident = $status:ident, $code:literal, $detail:literal;)+) => {
        $($(#[$doc])* pub const $name: Problem = Problem { status: StatusCode::$status, code: $code, detail: $detail };)+
    };
}

problems! {
    /// Unknown source, missing or wrong signature, stale timestamp: the same for all.
    REFUSED = UNAUTHORIZED, "H0201", "the request is not signed as this source expects";
    /// Too large.
    TOO_LARGE = PAYLOAD_TOO_LARGE, "H0202", "the body is larger than this server takes";
    /// Too slow.
    TOO_SLOW = REQUEST_TIMEOUT, "H0203", "the body did not arrive in time";
    /// Broken.
    MALFORMED = BAD_REQUEST, "H0204", "the request broke off or is not HTTP as it should be";
    /// The store is down.
    UNAVAILABLE = SERVICE_UNAVAILABLE, "H0205", "nothing was stored; send it again";
    /// Too much is waiting.
    OVERLOADED = SERVICE_UNAVAILABLE, "H0206", "too much is waiting to be stored; send it again";
    /// No space.
    FULL = SERVICE_UNAVAILABLE, "H0207", "there is no space to store it; send it again";
    /// Nobody knows.
    COMMIT_UNKNOWN = SERVICE_UNAVAILABLE, "H0208", "it is not known whether it was stored; send it again";
    /// Who is asking?
    NO_TOKEN = UNAUTHORIZED, "H0301", "a valid bearer token is needed";
    /// Nothing there.
    NOT_FOUND = NOT_FOUND, "H0302", "there is nothing here by that name";
    /// The bytes are gone.
    REAPED = GONE, "H0304", "the bytes of this event have been deleted; its identity is kept";
    /// Wrong verb.
    METHOD = METHOD_NOT_ALLOWED, "H0305", "this path does not answer that method";
}

#[derive(Serialize)]
struct ProblemBody<'a> {
    code: &'a str,
    detail: &'a str,
}

/// Says what went wrong.
pub fn problem(problem: Problem) -> Answer {
    let body = ProblemBody {
        code: problem.code,
        detail: problem.detail,
    };
    let mut answer = json(problem.status, &body);
    if problem.status == StatusCode::SERVICE_UNAVAILABLE {
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
    }
    answer
}

/// A JSON answer.
pub fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(bytes) => with_type(status, "application/json", bytes),
        // Only a map with keys that are not text cannot be written, and we have none.
        Err(_) => with_type(
            StatusCode::INTERNAL_SERVER_ERROR,
            "application/json",
            Bytes::from_static(b"{}"),
        ),
    }
}

/// An answer of any content type.
pub fn with_type(status: StatusCode, content_type: &str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    if let Ok(value) = HeaderValue::from_str(content_type) {
        answer.headers_mut().insert(CONTENT_TYPE, value);
    }
    answer
}
