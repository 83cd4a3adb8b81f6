//! What is kept of an answer: when to come back, and the first bytes of its body.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use hapax_ledger::time::{Span, Time};
use hapax_verify::Secret;
use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use super::redact::{self, End};

/// How much of an answer is kept for people to read.
pub const EXCERPT_BYTES_MAX: usize = 8 * 1024;

/// How much of an answer's body is wanted, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// At most [`EXCERPT_BYTES_MAX`], to be stored and shown: redacted.
    Excerpt,
    /// At most so many bytes, to be read by us: as they came.
    Body {
        /// The limit.
        bytes_max: usize,
    },
}

impl Keep {
    fn bytes_max(self) -> usize {
        match self {
            Keep::Excerpt => EXCERPT_BYTES_MAX,
            Keep::Body { bytes_max } => bytes_max,
        }
    }
}

/// Where the kept bytes of a body end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Where the body ends.
    Whole,
    /// At the limit.
    Limit,
    /// Where the deadline passed.
    Deadline,
    /// Where the connection broke.
    Broken,
}

/// The first bytes of an answer's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The bytes, within the limit.
    pub bytes: Bytes,
    /// How large the whole body is, if that is known.
    pub size_bytes: Option<u64>,
    /// Where the bytes end.
    pub cut: Cut,
}

/// Reads the body as far as it is wanted and as `left` allows. What is not read is dropped with its connection.
pub(super) async fn read(
    mut body: Incoming,
    keep: Keep,
    left: Duration,
    secrets: &[Secret],
) -> Excerpt {
    let said = body.size_hint().exact();
    let mut kept = Vec::new();
    // What was read before the deadline stays, because the buffer is not the future's own.
    let reading = fill(&mut body, &mut kept, keep.bytes_max());
    let cut = timeout(left, reading).await.unwrap_or(Cut::Deadline);
    let size_bytes = match cut {
        Cut::Whole => Some(kept.len() as u64),
        Cut::Limit | Cut::Deadline | Cut::Broken => said,
    };
    let bytes = match keep {
        Keep::Body { .. } => kept,
        Keep::Excerpt => {
            let end = match cut {
                Cut::Whole => End::Whole,
                Cut::Limit | Cut::Deadline | Cut::Broken => End::Cut,
            };
            let mut clean = redact::bytes(&kept, end, secrets);
            clean.truncate(EXCERPT_BYTES_MAX);
            clean
        }
    };
    Excerpt {
        bytes: bytes.into(),
        size_bytes,
        cut,
    }
}

async fn fill(body: &mut Incoming, kept: &mut Vec<u8>, bytes_max: usize) -> Cut {
    loop {
        let frame = match body.frame().await {
            None => return Cut::Whole,
            Some(Err(_)) => return Cut::Broken,
            Some(Ok(frame)) => frame,
        };
        // Trailers are of no interest.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let room = bytes_max - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Cut::Limit;
        }
    }
}

/// What `Retry-After` asks for: seconds, or a date, which counts from the receiver's own date where it sends one, so
/// that clocks that differ do not matter. What is neither is as good as nothing.
pub(super) fn retry_after(headers: &HeaderMap, now: Time) -> Option<Span> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds mean "very long".
        return Some(Span::from_secs(text.parse().unwrap_or(i64::MAX)));
    }
    let sent_at = headers.get(DATE).and_then(|date| date.to_str().ok());
    let from = sent_at.and_then(date).unwrap_or(now);
    Some(date(text)?.since(from))
}

fn date(text: &str) -> Option<Time> {
    let since = httpdate::parse_http_date(text)
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()?;
    i64::try_from(since.as_secs()).ok().map(Time::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let date = Some("Tue, 10 Nov 2026 10:00:00 GMT");
        // The receiver's clock is an hour behind ours.
        let now = Time::from_secs(1_794_308_400);
        let table = [
            ("0", None, Some(0)),
            ("120", None, Some(120)),
            (" 7 ", None, Some(7)),
            ("Tue, 10 Nov 2026 10:00:30 GMT", date, Some(30)),
            ("Tue, 10 Nov 2026 11:00:30 GMT", None, Some(30)),
            ("Tue, 10 Nov 2026 09:00:00 GMT", date, Some(0)),
            ("Tuesday, 10-Nov-26 10:00:09 GMT", date, Some(9)),
            ("Tue, 10 Nov 2026 11:00:05 GMT", Some("noon"), Some(5)),
            ("soon", date, None),
            ("-5", None, None),
            ("1.5", None, None),
            ("", None, None),
        ];
        for (value, date, seconds) in table {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
            if let Some(date) = date {
                headers.insert(DATE, HeaderValue::from_static(date));
            }
            let expected = seconds.map(Span::from_secs);
            assert_eq!(retry_after(&headers, now), expected, "{value:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
        let mut headers = HeaderMap::new();
        headers.insert(
            RETRY_AFTER,
            HeaderValue::from_static("99999999999999999999"),
        );
        assert!(retry_after(&headers, now) > Some(Span::from_days(30)));
    }
}
