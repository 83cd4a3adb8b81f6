//! Claims whose endpoint nothing is sent to, or that nobody here has heard of.

use std::sync::Arc;

use hapax_ledger::effect::SkipReason;
use hapax_ledger::outcome::{NotSent, Outcome};
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_ledger::transition::Did;
use hapax_store::StoreError;
use hapax_store::nouns::{Move, Moved, Said, Settlement};

use super::directory::Found;
use super::dispatcher::Shared;
use super::job::Job;
use super::log::about;
use crate::clock;

impl Shared {
    /// Where a claim goes. An endpoint that is not known here is asked for once.
    pub(super) async fn find_out(&self, job: &Job) -> Result<Found, StoreError> {
        match self.find(&job.effect.name) {
            Found::Unknown => {
                self.directory.refresh().await?;
                Ok(self.find(&job.effect.name))
            }
            found => Ok(found),
        }
    }

    /// Does not carry a claim out: nothing is sent to its endpoint any more. One that was born started has to end first, and is
    /// skipped when it is claimed again, at once.
    pub(super) async fn skip(&self, job: &Job, reason: SkipReason) {
        let what = match job.effect.record.started {
            false => Move::Skip(reason),
            true => Move::Settle(Settlement {
                outcome: Outcome::NotSent {
                    why: NotSent::Blocked,
                },
                next: Next::At(Span::ZERO),
                said: Said {
                    error: Some("nothing is sent to its endpoint any more".to_owned()),
                    ..Said::default()
                },
            }),
        };
        match self.advance(job, what).await.map(|done| done.moved) {
            Ok(Moved::Done(change)) => match change.did {
                Did::Skipped(_) => {
                    self.metrics
                        .effects
                        .settled(&job.effect.lane, "skipped", None);
                    about!(info, job, ?reason, "skipped");
                }
                _ => self.give_notice(&job.effect.lane, Span::ZERO),
            },
            Ok(moved) => {
                self.not_started(job, &moved);
            }
            Err(error) => {
                about!(debug, job, %error, "a delivery could not be skipped; its lease ends");
            }
        }
    }

    /// Something of this lane is due after so long.
    pub(super) fn give_notice(&self, lane: &Arc<str>, wait: Span) {
        let due = self.drift.theirs(clock::tick()) + wait;
        self.hear([(lane.clone(), due)]);
    }
}
