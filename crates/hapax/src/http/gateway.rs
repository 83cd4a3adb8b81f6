//! What a guard says itself instead of its upstream.

use bytes::Bytes;
use hapax_tower::problem::Problem;
use http::{Response, StatusCode};
use http_body_util::Full;

use crate::guard::upstream::{NoAnswer, Why};

/// The upstream was not reached, so that nothing was done.
const UNREACHABLE: Problem = Problem::new(
    "upstream-unreachable",
    StatusCode::BAD_GATEWAY,
    "The API could not be reached",
    "No byte of the request was sent: nothing was done. Send it again with the same key.",
);
/// The same, and it took a while to find out.
const UNREACHABLE_LATE: Problem = Problem::new(
    "upstream-unreachable",
    StatusCode::GATEWAY_TIMEOUT,
    "The API could not be reached",
    "No byte of the request was sent: nothing was done. Send it again with the same key.",
);
/// The request waited for its way out for longer than its key was held for it.
const LEASE_LOST: Problem = Problem::new(
    "lease-lost",
    StatusCode::SERVICE_UNAVAILABLE,
    "The key could not be held until the request was sent",
    "No byte of this request was sent: it did nothing. Send it again with the same key.",
);
/// The upstream was reached, and says that it has done nothing.
const REFUSED: Problem = Problem::new(
    "upstream-unreachable",
    StatusCode::BAD_GATEWAY,
    "The API did not take the request",
    "The API says that it has done nothing with the request. Send it again with the same key.",
);
/// The upstream broke off.
const LOST: Problem = Problem::new(
    "upstream-lost",
    StatusCode::BAD_GATEWAY,
    "The API gave no answer",
    "The request was sent, and the connection broke before an answer: it may or may not have been carried out.",
);
/// The upstream is silent.
const LOST_LATE: Problem = Problem::new(
    "upstream-lost",
    StatusCode::GATEWAY_TIMEOUT,
    "The API gave no answer",
    "The request was sent, and no answer came in time: it may or may not have been carried out.",
);
/// Not for us.
const NOT_A_REQUEST: Problem = Problem::new(
    "not-a-request",
    StatusCode::METHOD_NOT_ALLOWED,
    "This is not a request to the API",
    "CONNECT, and targets that are not paths, are not passed on.",
);
/// One more than there is room for.
const NO_PLACE: Problem = Problem::new(
    "overloaded",
    StatusCode::SERVICE_UNAVAILABLE,
    "Too many requests are under way",
    "As many requests as may be are under way to the API. Nothing was done; send it again with the same key.",
);
/// A body that only the next server could read.
const CODED: Problem = Problem::new(
    "transfer-coding",
    StatusCode::NOT_IMPLEMENTED,
    "The body is coded for its way",
    "A Transfer-Encoding other than chunked is not passed on. Nothing was done; send the body as it is.",
);
const UNASKED_SWITCH: Problem = Problem::new(
    "upstream-lost",
    StatusCode::BAD_GATEWAY,
    "The API gave no answer",
    "The API changed the protocol without being asked to.",
);
const CALLER_UNKNOWN: Problem = Problem::new(
    "caller-unknown",
    StatusCode::UNAUTHORIZED,
    "The caller is not known",
    "",
);
const AUTH_UNAVAILABLE: Problem = Problem::new(
    "authorization-unavailable",
    StatusCode::SERVICE_UNAVAILABLE,
    "Whether the caller may could not be asked",
    "The service that decides about callers does not answer. Nothing was done; send it again with the same key.",
);
/// A service that does not answer now may answer soon.
const ASK_AGAIN_SECONDS: i64 = 2;

/// There is no answer, and this is what that proves.
pub fn no_answer(failed: &NoAnswer) -> Response<Full<Bytes>> {
    let problem = match failed {
        NoAnswer::NotSent {
            why: Why::Broken, ..
        } => UNREACHABLE.retry_after(ASK_AGAIN_SECONDS),
        NoAnswer::NotSent { why: Why::Late, .. } => UNREACHABLE_LATE.retry_after(ASK_AGAIN_SECONDS),
        NoAnswer::Withheld { .. } => LEASE_LOST.retry_after(ASK_AGAIN_SECONDS),
        NoAnswer::Refused { .. } => REFUSED.retry_after(ASK_AGAIN_SECONDS),
        NoAnswer::Lost {
            why: Why::Broken, ..
        } => LOST,
        NoAnswer::Lost { why: Why::Late, .. } => LOST_LATE,
    };
    problem.response(Full::new)
}

/// All places for requests to the upstream are taken.
pub fn no_place() -> Response<Full<Bytes>> {
    NO_PLACE.retry_after(ASK_AGAIN_SECONDS).response(Full::new)
}

/// A request whose body cannot be passed on as it is.
pub fn coded() -> Response<Full<Bytes>> {
    CODED.response(Full::new)
}

/// A request that no upstream is asked.
pub fn not_a_request() -> Response<Full<Bytes>> {
    NOT_A_REQUEST.response(Full::new)
}

/// The upstream changed the protocol by itself.
pub fn unasked_switch() -> Response<Full<Bytes>> {
    UNASKED_SWITCH.response(Full::new)
}

/// Nobody knows who calls, and why that is.
pub fn caller_unknown(why: &str) -> Response<Bytes> {
    let problem = Problem {
        detail: format!("{why}. Nothing was done.").into(),
        ..CALLER_UNKNOWN
    };
    problem.refusal()
}

/// Whoever decides about callers does not answer.
pub fn authorization_unavailable() -> Response<Bytes> {
    AUTH_UNAVAILABLE.retry_after(ASK_AGAIN_SECONDS).refusal()
}
