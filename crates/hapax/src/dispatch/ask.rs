//! Questions to the operator's own services: was this effect applied, and what is the state of this object now?

use std::time::Duration;

use bytes::Bytes;
use hapax_ledger::outcome::Outcome;
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde::Deserialize;

use super::answer::{Cut, Excerpt, Keep};
use super::connect::Reach;
use super::request::AGENT;
use super::sender::{Outgoing, Sent};

/// The largest snapshot: it is kept as evidence and sent along with every attempt.
pub const SNAPSHOT_BYTES_MAX: usize = 256 * 1024;

/// What a probe says about an effect whose outcome is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// It was applied.
    Applied,
    /// It was not.
    NotApplied,
    /// Nothing that settles it, and why.
    NoAnswer(String),
}

impl ProbeAnswer {
    /// What it is called in a label.
    pub const fn word(&self) -> &'static str {
        match self {
            ProbeAnswer::Applied => "applied",
            ProbeAnswer::NotApplied => "not_applied",
            ProbeAnswer::NoAnswer(_) => "no_answer",
        }
    }
}

#[derive(Deserialize)]
struct Applied {
    applied: bool,
}

/// A question, whose answer is kept whole up to [`SNAPSHOT_BYTES_MAX`] and not redacted: it is for us to read.
pub fn get(url: Uri, mut headers: HeaderMap, timeout: Duration) -> Outgoing {
    headers.insert(USER_AGENT, AGENT);
    let json = HeaderValue::from_static("application/json");
    headers.entry(ACCEPT).or_insert(json);
    Outgoing {
        method: Method::GET,
        url,
        headers,
        body: Bytes::new(),
        timeout,
        reach: Reach::Anywhere,
        keep: Keep::Body {
            bytes_max: SNAPSHOT_BYTES_MAX,
        },
        secrets_to_redact: [].into(),
    }
}

/// What the probe answered: `{"applied": true}` or `{"applied": false}` with status 200. A guess would settle the
/// effect for good, so everything else is no answer.
pub fn probe_answer(sent: &Sent) -> ProbeAnswer {
    let body = match whole_body(sent) {
        Ok(body) => body,
        Err(why) => return ProbeAnswer::NoAnswer(why),
    };
    match serde_json::from_slice(body) {
        Ok(Applied { applied: true }) => ProbeAnswer::Applied,
        Ok(Applied { applied: false }) => ProbeAnswer::NotApplied,
        Err(_) => {
            let text = r#"the answer is not {"applied": true} or {"applied": false}"#;
            ProbeAnswer::NoAnswer(text.to_owned())
        }
    }
}

/// The bytes of a snapshot, or why there is none. Any bytes may be one; only a whole answer with status 200 is.
///
/// # Errors
/// Says in a few words why the answer is no snapshot.
pub fn snapshot(sent: &Sent) -> Result<Bytes, String> {
    whole_body(sent).cloned()
}

fn whole_body(sent: &Sent) -> Result<&Bytes, String> {
    match (sent.outcome, &sent.excerpt) {
        (Outcome::Answered { status: 200, .. }, Some(excerpt)) => whole(excerpt),
        (Outcome::Answered { status, .. }, _) => Err(format!("the answer has status {status}")),
        _ => Err(sent.error.clone().unwrap_or_else(|| "no answer".to_owned())),
    }
}

fn whole(excerpt: &Excerpt) -> Result<&Bytes, String> {
    match excerpt.cut {
        Cut::Whole => Ok(&excerpt.bytes),
        Cut::Limit => {
            let kib = SNAPSHOT_BYTES_MAX / 1024;
            Err(format!("the answer is larger than {kib} KiB"))
        }
        Cut::Deadline => Err("the answer did not end in time".to_owned()),
        Cut::Broken => Err("the answer broke off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(status: u16, body: &'static str, cut: Cut) -> Sent {
        Sent {
            outcome: Outcome::Answered {
                status,
                retry_after: None,
            },
            excerpt: Some(Excerpt {
                bytes: Bytes::from_static(body.as_bytes()),
                size_bytes: None,
                cut,
            }),
            error: None,
            duration: Duration::ZERO,
        }
    }

    #[test]
    fn only_a_clear_answer_settles() {
        let table = [
            (200, r#"{"applied": true}"#, Some(ProbeAnswer::Applied)),
            (
                200,
                r#"{"applied":false,"at":null}"#,
                Some(ProbeAnswer::NotApplied),
            ),
            (200, r#"{"applied":"true"}"#, None),
            (200, r#"{"applied":1}"#, None),
            (200, r#"{"applied":true,"applied":false}"#, None),
            (200, r#"{"applied":true} and more"#, None),
            (200, "{}", None),
            (200, "", None),
            (204, r#"{"applied":true}"#, None),
            (404, r#"{"applied":false}"#, None),
            (500, r#"{"applied":true}"#, None),
        ];
        for (status, body, settled) in table {
            let answer = probe_answer(&sent(status, body, Cut::Whole));
            match settled {
                Some(expected) => assert_eq!(answer, expected, "{body}"),
                None => assert!(matches!(answer, ProbeAnswer::NoAnswer(_)), "{body}"),
            }
        }
    }

    #[test]
    fn half_an_answer_is_none() {
        for cut in [Cut::Limit, Cut::Deadline, Cut::Broken] {
            let half = sent(200, r#"{"applied":true}"#, cut);
            assert!(matches!(probe_answer(&half), ProbeAnswer::NoAnswer(_)));
            snapshot(&half).expect_err("it is not whole");
        }
        let whole = sent(200, "any text", Cut::Whole);
        assert_eq!(snapshot(&whole), Ok(Bytes::from_static(b"any text")));
    }
}
