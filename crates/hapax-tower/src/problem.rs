//! Problems (RFC 9457): what happened to the request, and what to do next.
//!
//! Programs choose by `type`, which never changes; people read `detail`. None of them shows a key or a byte of a body.

use std::borrow::Cow;

use bytes::Bytes;
use hapax_ledger::guard::{KeyProblem, OnUnknown};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::json;

use crate::principal::Refusal;

/// What the `type` of every problem begins with; its name follows.
pub const TYPE_PREFIX: &str = "urn:hapax:problem:";
/// The media type.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its stable name: the end of its `type`.
    pub name: &'static str,
    /// The answer's status.
    pub status: StatusCode,
    /// What happened, the same for all problems of this name.
    pub title: &'static str,
    /// What happened here, and what to do next.
    pub detail: Cow<'static, str>,
    /// When to ask again, in seconds.
    pub retry_after_s: Option<i64>,
}

impl Problem {
    /// A problem that says what to do next.
    pub const fn new(
        name: &'static str,
        status: StatusCode,
        title: &'static str,
        detail: &'static str,
    ) -> Problem {
        Problem {
            name,
            status,
            title,
            detail: Cow::Borrowed(detail),
            retry_after_s: None,
        }
    }

    /// The same, to be asked again after so many seconds; one at least.
    pub fn retry_after(mut self, seconds: i64) -> Problem {
        self.retry_after_s = Some(seconds.max(1));
        self
    }

    /// As an answer.
    pub fn response<B>(&self, body: impl FnOnce(Bytes) -> B) -> Response<B> {
        let text = json!({
            "type": format!("{TYPE_PREFIX}{}", self.name),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut response = Response::new(body(Bytes::from(text.to_string())));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, PROBLEM_JSON);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// As a refusal of a caller.
    pub fn refusal(&self) -> Refusal {
        self.response(|body| body)
    }

    pub(crate) fn caller_unknown(header: &HeaderName) -> Problem {
        let problem = Problem::new(
            "caller-unknown",
            StatusCode::UNAUTHORIZED,
            "The caller is not known",
            "",
        );
        Problem {
            detail: Cow::Owned(format!(
                "A request with an Idempotency-Key needs one `{header}` header, which says who is calling. Nothing was done."
            )),
            ..problem
        }
    }

    pub(crate) fn key_malformed(problem: KeyProblem) -> Problem {
        Problem {
            detail: Cow::Owned(format!("{problem}. Nothing was done.")),
            ..KEY_MALFORMED
        }
    }

    pub(crate) fn key_reused(status: u16) -> Problem {
        Problem {
            // Checked when the layer was made.
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT),
            ..KEY_REUSED
        }
    }

    pub(crate) fn request_too_large(bytes_max: u64) -> Problem {
        Problem {
            detail: Cow::Owned(format!(
                "A request with an Idempotency-Key may have a body of {bytes_max} bytes at most. Nothing was done; send less, or without a key."
            )),
            ..REQUEST_TOO_LARGE
        }
    }

    pub(crate) const fn run_failed(on_unknown: OnUnknown) -> Problem {
        match on_unknown {
            OnUnknown::Hold => RUN_FAILED,
            OnUnknown::Keyed | OnUnknown::Atomic => RUN_FAILED_REPEATABLE,
        }
    }
}

const IN_PROGRESS_TITLE: &str = "The first request with this key is still running";
const OUTCOME_UNKNOWN_TITLE: &str = "The outcome is unknown";

/// The key is not there.
pub(crate) const KEY_MISSING: Problem = Problem::new(
    "key-missing",
    StatusCode::BAD_REQUEST,
    "An Idempotency-Key is required",
    "This request needs an Idempotency-Key header: a new random value for each new piece of work, the same value on each retry of it. Nothing was done.",
);
const KEY_MALFORMED: Problem = Problem::new(
    "key-malformed",
    StatusCode::BAD_REQUEST,
    "The Idempotency-Key cannot be used",
    "",
);
const KEY_REUSED: Problem = Problem::new(
    "key-reused",
    StatusCode::CONFLICT,
    "The Idempotency-Key belongs to another request",
    "This key came before with another method, path, query, media type or body. Nothing was done; send the new request with a new key.",
);
const REQUEST_TOO_LARGE: Problem = Problem::new(
    "request-too-large",
    StatusCode::PAYLOAD_TOO_LARGE,
    "The request is too large",
    "",
);
/// The body broke off.
pub(crate) const REQUEST_INCOMPLETE: Problem = Problem::new(
    "request-incomplete",
    StatusCode::BAD_REQUEST,
    "The request did not arrive whole",
    "The body broke off or could not be read. Nothing was done; send it again with the same key.",
);
/// It has no place to wait.
pub(crate) const SPOOL_FAILED: Problem = Problem::new(
    "spool-unavailable",
    StatusCode::SERVICE_UNAVAILABLE,
    "The request could not be held",
    "There is no room to hold this request while its key is looked up. Nothing was done; send it again with the same key.",
);
/// The first one runs.
pub(crate) const IN_PROGRESS: Problem = Problem::new(
    "in-progress",
    StatusCode::CONFLICT,
    IN_PROGRESS_TITLE,
    "Send it again later with the same key for its answer; `Prefer: wait=N` waits for it here.",
);
/// The first one runs, and nobody waits for it here.
pub(crate) const IN_PROGRESS_NO_WAIT: Problem = Problem::new(
    "in-progress",
    StatusCode::CONFLICT,
    IN_PROGRESS_TITLE,
    "Send it again later with the same key for its answer.",
);
/// Nobody knows.
pub(crate) const OUTCOME_UNKNOWN: Problem = Problem::new(
    "outcome-unknown",
    StatusCode::CONFLICT,
    OUTCOME_UNKNOWN_TITLE,
    "The first request with this key ended without an answer: it may or may not have been carried out. It does not run again until somebody has found out. Do not send it with a new key before that.",
);
const RUN_FAILED: Problem = Problem::new(
    "outcome-unknown",
    StatusCode::INTERNAL_SERVER_ERROR,
    OUTCOME_UNKNOWN_TITLE,
    "The work began and ended without an answer: it may or may not have been carried out. It does not run again until somebody has found out. Do not send it with a new key before that.",
);
const RUN_FAILED_REPEATABLE: Problem = Problem::new(
    "outcome-unknown",
    StatusCode::INTERNAL_SERVER_ERROR,
    OUTCOME_UNKNOWN_TITLE,
    "The work began and ended without an answer: it may or may not have been carried out. Send it again with the same key; this service may repeat it safely.",
);
/// It ran, and its answer could not be stored.
pub(crate) const NOT_SETTLED: Problem = Problem::new(
    "outcome-unknown",
    StatusCode::SERVICE_UNAVAILABLE,
    OUTCOME_UNKNOWN_TITLE,
    "The work has ended, but its answer could not be stored, and so it is not given out. Send it again with the same key to learn what is known of it; never with a new key.",
);
/// It ran, and somebody else has the key now.
pub(crate) const SUPERSEDED: Problem = Problem::new(
    "outcome-unknown",
    StatusCode::CONFLICT,
    OUTCOME_UNKNOWN_TITLE,
    "The work took longer than its lease, and the key was decided about without it, so that its answer does not count. Send it again with the same key for the one that does.",
);
/// There is nothing to replay.
pub(crate) const RESPONSE_NOT_KEPT: Problem = Problem::new(
    "response-not-kept",
    StatusCode::CONFLICT,
    "The request was carried out, and its answer was not kept",
    "The first request with this key was carried out; its answer was a stream or too large to keep, or was never seen. It does not run again: look the result up where it is kept.",
);
/// It was answered long ago.
pub(crate) const KEY_EXPIRED: Problem = Problem::new(
    "key-expired",
    StatusCode::CONFLICT,
    "The Idempotency-Key has expired",
    "The request with this key was answered before, and its answer is kept no longer. Nothing was done; for new work, use a new key.",
);
/// It cannot be opened.
pub(crate) const ANSWER_UNREADABLE: Problem = Problem::new(
    "answer-unreadable",
    StatusCode::INTERNAL_SERVER_ERROR,
    "The stored answer cannot be read",
    "The request with this key was answered before, but its stored answer cannot be opened here. It does not run again; the service's operators can see why.",
);
/// The store is down.
pub(crate) const STORE_UNAVAILABLE: Problem = Problem::new(
    "store-unavailable",
    StatusCode::SERVICE_UNAVAILABLE,
    "The key could not be looked up",
    "Requests with a key run only when the key is safely stored, and the store does not answer now. The work did not run; send it again with the same key.",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_the_same_in_head_and_body() {
        let response = IN_PROGRESS.retry_after(0).response(|body| body);
        assert_eq!(response.status(), 409);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        assert_eq!(
            response.headers()[RETRY_AFTER],
            "1",
            "never an invitation to hammer"
        );
        let body: serde_json::Value = serde_json::from_slice(response.body()).expect("JSON");
        assert_eq!(body["type"], "urn:hapax:problem:in-progress");
        assert_eq!(body["status"], 409);
    }
}
