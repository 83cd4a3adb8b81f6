//! Outcomes as numbers, the same in every store.

use hapax_ledger::outcome::{Lost, NotSent, Outcome, Report};
use hapax_ledger::time::Span;

const NOT_SENT: i16 = 0;
const ANSWERED: i16 = 1;
const LOST: i16 = 2;
const REPORTED: i16 = 3;

/// An outcome as columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutcomeCode {
    pub(crate) kind: i16,
    pub(crate) detail: i16,
    pub(crate) retry_after: Option<i64>,
}

impl OutcomeCode {
    pub(crate) fn of(outcome: Outcome) -> OutcomeCode {
        let (kind, detail, retry_after) = match outcome {
            Outcome::NotSent { why } => (NOT_SENT, i16::from(why.code()), None),
            Outcome::Answered {
                status,
                retry_after,
            } => (
                ANSWERED,
                status.min(999) as i16,
                retry_after.map(Span::micros),
            ),
            Outcome::Lost { why } => (LOST, i16::from(why.code()), None),
            Outcome::Reported(report) => (REPORTED, i16::from(report.code()), None),
        };
        OutcomeCode {
            kind,
            detail,
            retry_after,
        }
    }

    /// The outcome; what cannot be read counts as lost, which claims nothing.
    pub(crate) fn outcome(self) -> Outcome {
        let code = u8::try_from(self.detail).unwrap_or(u8::MAX);
        let unread = Outcome::Lost { why: Lost::Crash };
        match self.kind {
            NOT_SENT => NotSent::from_code(code).map_or(unread, |why| Outcome::NotSent { why }),
            ANSWERED => Outcome::Answered {
                status: self.detail.unsigned_abs(),
                retry_after: self.retry_after.map(Span::from_micros),
            },
            LOST => Lost::from_code(code).map_or(unread, |why| Outcome::Lost { why }),
            REPORTED => Report::from_code(code).map_or(unread, Outcome::Reported),
            _ => unread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_comes_back() {
        let answered = Outcome::Answered {
            status: 503,
            retry_after: Some(Span::from_secs(7)),
        };
        let not_sent = NotSent::ALL
            .iter()
            .map(|why| Outcome::NotSent { why: *why });
        let lost = Lost::ALL.iter().map(|why| Outcome::Lost { why: *why });
        let reported = Report::ALL.iter().map(|report| Outcome::Reported(*report));
        for outcome in not_sent.chain(lost).chain(reported).chain([answered]) {
            assert_eq!(OutcomeCode::of(outcome).outcome(), outcome);
        }
    }
}
