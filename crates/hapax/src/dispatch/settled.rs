//! What is said once an attempt is settled: counted, logged where somebody should look, and followed up.

use hapax_ledger::outcome::{Evidence, Outcome, Refusal, classify};
use hapax_ledger::transition::Did;
use hapax_store::nouns::Moved;

use super::dispatcher::Shared;
use super::job::Job;
use super::log::about;
use super::target::Target;
use crate::clock::text as time_text;

/// Refusals of the same effect from which on it is said loudly: not a slip of the receiver's any more.
const LOUD_FROM: u32 = 3;

impl Shared {
    /// An attempt was settled, or its settlement was refused.
    pub(super) fn settled(
        &self,
        target: &Target,
        job: &Job,
        outcome: Outcome,
        error: Option<&str>,
        moved: &Moved,
    ) {
        let effect = &job.effect;
        let change = match moved {
            Moved::Done(change) => change,
            Moved::Refused(rejected) => {
                about!(warn, job, %rejected,
                    "a settlement came too late and is kept as evidence only");
                return;
            }
            Moved::NoEffect | Moved::Waits(_) | Moved::Stale(_) | Moved::Review(_) => return,
        };
        let attempts = change.next.attempts;
        let of = target.retry(&job.parcel).attempts_max();
        let error = error.unwrap_or("");
        match change.did {
            Did::Done => self
                .metrics
                .effects
                .settled(&effect.lane, "done", Some(attempts)),
            Did::Uncertain => {
                self.metrics
                    .effects
                    .settled(&effect.lane, "uncertain", None);
                about!(
                    warn,
                    job,
                    error,
                    "nobody can tell whether it was applied; nothing more is sent until a probe or a person decides"
                );
                self.ask_probe(effect);
            }
            Did::Dead => {
                self.metrics
                    .effects
                    .settled(&effect.lane, "dead", Some(attempts));
                about!(error, job, %outcome, error, attempts,
                    "given up after its whole schedule; it waits among the dead letters");
            }
            Did::Waits { until } => {
                self.hear([(effect.lane.clone(), until)]);
                if is_loud(outcome) && attempts >= LOUD_FROM {
                    about!(error, job, %outcome, attempts, of,
                        "the target keeps refusing this request; somebody should look before it is given up");
                } else {
                    about!(info, job, %outcome, error, attempts, of,
                        next = time_text(until), "no success yet; will be tried again");
                }
            }
            Did::Claimed(_)
            | Did::Started { .. }
            | Did::Tightened
            | Did::Extended { .. }
            | Did::Skipped(_)
            | Did::Forced { .. } => {}
        }
    }
}

fn is_loud(outcome: Outcome) -> bool {
    matches!(
        classify(outcome),
        Evidence::Refused {
            kind: Refusal::Loud | Refusal::Gone,
            ..
        }
    )
}
