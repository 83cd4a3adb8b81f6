//! Outcomes: what one attempt came back with, and what that proves.

use std::fmt;

use crate::event::words;
use crate::time::Span;

words!(
    /// Why no byte of a request left. Nothing can have been applied.
    NotSent {
        /// The name did not resolve.
        Dns = 0, "dns";
        /// The connection was refused.
        Refused = 1, "refused";
        /// The handshake failed before a request could be written.
        Tls = 2, "tls";
        /// No connection in time.
        ConnectTimeout = 3, "connect_timeout";
        /// The address is not allowed.
        Blocked = 4, "blocked";
        /// The snapshot that should go along could not be fetched.
        Snapshot = 5, "snapshot";
        /// Its target only failed, and is left alone for a while.
        Breaker = 6, "breaker";
        /// The event's bytes are not kept any more.
        Payload = 7, "payload";
    }
);

words!(
    /// Why nobody knows what became of a request whose bytes left, or may have.
    Lost {
        /// No answer in time.
        Timeout = 0, "timeout";
        /// The connection broke.
        Reset = 1, "reset";
        /// The process that sent it ended.
        Crash = 2, "crash";
        /// The worker that sent it lost its lease.
        LostLease = 3, "lost_lease";
    }
);

words!(
    /// What the user's own code says about an effect that it ran itself.
    Report {
        /// It is applied.
        Done = 0, "done";
        /// It is certainly not applied.
        Failed = 1, "failed";
        /// It cannot tell.
        Uncertain = 2, "uncertain";
    }
);

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No byte left.
    NotSent {
        /// What was in the way.
        why: NotSent,
    },
    /// The receiver answered.
    Answered {
        /// The status code.
        status: u16,
        /// What its `Retry-After` asks for.
        retry_after: Option<Span>,
    },
    /// Bytes left, and no answer came.
    Lost {
        /// What happened instead.
        why: Lost,
    },
    /// The user's code ran the effect and says how it went.
    Reported(Report),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::NotSent { why } => write!(f, "not sent: {why}"),
            Outcome::Answered { status, .. } => write!(f, "answered {status}"),
            Outcome::Lost { why } => write!(f, "lost: {why}"),
            Outcome::Reported(report) => write!(f, "reported {report}"),
        }
    }
}

/// What kind of refusal an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not now: 408, 425, 429, 503 with Retry-After, a redirect that is not followed.
    Later,
    /// The request itself is refused (other 4xx). If it persists somebody has to look, so it is shown loudly.
    Loud,
    /// 410: the receiver wants no more of these. An endpoint is disabled.
    Gone,
}

/// What an outcome proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The effect was applied.
    Applied,
    /// The receiver refused it: not applied.
    Refused {
        /// When it wants to be asked again.
        retry_after: Option<Span>,
        /// How loudly to say so.
        kind: Refusal,
    },
    /// Certainly not applied.
    NotApplied,
    /// Applied or not: nobody can tell.
    Ambiguous,
}

/// What does an outcome prove? The table of the design's section 4; only a definite answer is proof (D3).
pub fn classify(outcome: Outcome) -> Evidence {
    match outcome {
        Outcome::NotSent { .. } | Outcome::Reported(Report::Failed) => Evidence::NotApplied,
        Outcome::Reported(Report::Done) => Evidence::Applied,
        Outcome::Lost { .. } | Outcome::Reported(Report::Uncertain) => Evidence::Ambiguous,
        Outcome::Answered {
            status,
            retry_after,
        } => match (status, retry_after) {
            (200..=299, _) => Evidence::Applied,
            (410, _) => Evidence::Refused {
                retry_after,
                kind: Refusal::Gone,
            },
            (300..=399 | 408 | 425 | 429, _) | (503, Some(_)) => Evidence::Refused {
                retry_after,
                kind: Refusal::Later,
            },
            (400..=499, _) => Evidence::Refused {
                retry_after,
                kind: Refusal::Loud,
            },
            _ => Evidence::Ambiguous,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, seconds: Option<i64>) -> Evidence {
        classify(Outcome::Answered {
            status,
            retry_after: seconds.map(Span::from_secs),
        })
    }

    #[test]
    fn answers_prove_what_the_design_says() {
        let refused = |kind| Evidence::Refused {
            retry_after: None,
            kind,
        };
        let table = [
            (200, Evidence::Applied),
            (204, Evidence::Applied),
            (299, Evidence::Applied),
            (301, refused(Refusal::Later)),
            (399, refused(Refusal::Later)),
            (400, refused(Refusal::Loud)),
            (404, refused(Refusal::Loud)),
            (410, refused(Refusal::Gone)),
            (429, refused(Refusal::Later)),
            (500, Evidence::Ambiguous),
            (502, Evidence::Ambiguous),
            (503, Evidence::Ambiguous),
            (504, Evidence::Ambiguous),
            (100, Evidence::Ambiguous),
            (600, Evidence::Ambiguous),
        ];
        for (status, evidence) in table {
            assert_eq!(answered(status, None), evidence, "{status}");
        }
    }

    #[test]
    fn a_503_is_a_refusal_only_with_retry_after() {
        let retry_after = Some(Span::from_secs(9));
        assert_eq!(
            answered(503, Some(9)),
            Evidence::Refused {
                retry_after,
                kind: Refusal::Later
            }
        );
        assert_eq!(answered(500, Some(9)), Evidence::Ambiguous);
    }

    #[test]
    fn silence_is_ambiguous_and_what_never_left_is_not_applied() {
        for why in Lost::ALL {
            assert_eq!(classify(Outcome::Lost { why: *why }), Evidence::Ambiguous);
        }
        for why in NotSent::ALL {
            assert_eq!(
                classify(Outcome::NotSent { why: *why }),
                Evidence::NotApplied
            );
        }
        assert_eq!(
            classify(Outcome::Reported(Report::Uncertain)),
            Evidence::Ambiguous
        );
    }
}
