//! The settlement of an attempt: said until the store has heard it, and what became of one whose answer was lost.

use std::time::Duration;

use bytes::Bytes;
use hapax_ledger::effect::EffectState;
use hapax_ledger::outcome::{Evidence, Outcome, classify};
use hapax_ledger::transition::{Change, Did};
use hapax_store::nouns::{Effect, EffectDetail, Move, Moved, Said, Settlement};

use super::directory::Settled;
use super::dispatcher::Shared;
use super::job::Job;
use super::log::about;
use super::sender::Sent;
use super::target::{Target, Way};
use crate::entropy;

/// Pauses between tries to settle while the store cannot be reached.
const SETTLE_PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest of them.
const SETTLE_PAUSE_MAX: Duration = Duration::from_secs(2);

impl Shared {
    /// Says how it ended, as often as it takes; what the ledger made of it, if the claim was still ours.
    pub(super) async fn settle(
        &self,
        target: &Target,
        job: &Job,
        sent: Sent,
    ) -> Option<(Outcome, Change)> {
        let jitter = jitter_after(sent.outcome);
        let next = job
            .effect
            .record
            .next_after(sent.outcome, &target.retry(&job.parcel), jitter);
        let (outcome, error) = (sent.outcome, sent.error.clone());
        let settlement = Settlement {
            outcome,
            next,
            said: said(sent),
        };
        let moved = self.settle_in_the_end(job, settlement).await;
        self.settled(target, job, outcome, error.as_deref(), &moved);
        match moved {
            Moved::Done(change) => Some((outcome, change)),
            Moved::Refused(_)
            | Moved::NoEffect
            | Moved::Stale(_)
            | Moved::Review(_)
            | Moved::Waits(_) => None,
        }
    }

    /// Tries until the store has answered.
    async fn settle_in_the_end(&self, job: &Job, settlement: Settlement) -> Moved {
        let mut pause = SETTLE_PAUSE_MIN;
        let mut failed = false;
        loop {
            match self.advance(job, Move::Settle(settlement.clone())).await {
                Ok(advanced) if failed => {
                    return self
                        .or_before(job, settlement.outcome, advanced.moved)
                        .await;
                }
                Ok(advanced) => return advanced.moved,
                Err(error) => {
                    about!(warn, job, %error, "an attempt could not be settled; trying again");
                    failed = true;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(SETTLE_PAUSE_MAX);
                }
            }
        }
    }

    /// What became of a settlement that was tried before: if it is refused, the try that seemed to fail may have been committed.
    async fn or_before(&self, job: &Job, outcome: Outcome, moved: Moved) -> Moved {
        let Moved::Refused(_) = moved else {
            return moved;
        };
        // Whatever it set free, nobody was told.
        self.look_at_store();
        match self.store.effect(job.effect.id).await {
            Ok(Some(EffectDetail { effect, .. })) => settled_before(job, outcome, &effect)
                .inspect(|_| about!(info, job, "it was settled by the try before"))
                .map_or(moved, Moved::Done),
            Ok(None) => moved,
            Err(error) => {
                about!(debug, job, %error, "what became of its settlement cannot be read");
                moved
            }
        }
    }

    /// Tells whoever keeps the endpoints how an attempt at one of them ended, if it did.
    pub(super) async fn pass_on(
        &self,
        target: &Target,
        job: &Job,
        ended: Option<(Outcome, Change)>,
    ) {
        if let (Way::Endpoint(_), Some((outcome, change))) = (&target.way, &ended) {
            let settled = Settled {
                effect: &job.effect,
                outcome: *outcome,
                change,
            };
            self.directory.settled(settled).await;
        }
    }
}

/// What a settlement did, if it is what an effect was left with: nobody has claimed it since.
fn settled_before(job: &Job, outcome: Outcome, now: &Effect) -> Option<Change> {
    let next = now.record;
    let ours = next.fence == job.effect.record.fence && !next.started;
    let did = match next.state {
        EffectState::Done => Did::Done,
        EffectState::Uncertain => Did::Uncertain,
        EffectState::Dead => Did::Dead,
        EffectState::Pending => Did::Waits {
            until: next.next_attempt_at,
        },
        EffectState::Claimed | EffectState::Skipped => return None,
    };
    (ours && now.last == Some(outcome)).then_some(Change { next, did })
}

/// What spreads the tries after a failure. A success needs none, and the lot is not free.
pub(super) fn jitter_after(outcome: Outcome) -> f64 {
    match classify(outcome) {
        Evidence::Applied => 0.0,
        Evidence::Refused { .. } | Evidence::NotApplied | Evidence::Ambiguous => entropy::jitter(),
    }
}

fn said(sent: Sent) -> Said {
    let (excerpt, body_bytes): (Option<Bytes>, Option<u64>) = match sent.excerpt {
        Some(excerpt) => (
            Some(excerpt.bytes).filter(|bytes| !bytes.is_empty()),
            excerpt.size_bytes,
        ),
        None => (None, None),
    };
    Said {
        excerpt,
        body_bytes,
        error: sent.error,
    }
}
