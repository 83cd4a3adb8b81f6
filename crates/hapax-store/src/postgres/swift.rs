//! New events whose effects wait for nothing and whom nobody else calls for: all of a group in one statement that is its own
//! transaction.
//!
//! What the statement writes is what [`super::plan`] makes of them, planned as if all of them were new. Whoever does not get its
//! identity in goes on to [`super::known`]. If the key of an effect is held after all, the statement fails as a whole, nothing is
//! written, and the group goes by [`super::call`], which can link it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use hapax_ledger::effect::{EffectRecord, EffectState};
use hapax_ledger::id::{AppId, EffectId, EventId};
use hapax_ledger::time::Time;

use super::Entropy;
use super::accept::{new_id, new_receipt};
use super::call::alone;
use super::columns::EventColumns;
use super::decide::Decisions;
use super::effect_columns::EffectColumns;
use super::message::MessageColumns;
use super::moment::{LeaseClock, Moment};
use super::plan::{self, Plan, Wanted};
use super::pool::Taken;
use super::swift_rows::{AboutRows, Columns, NewQueueColumns, Written};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::{About, Arrival, NewEffect, NewEvent, Receipt};

/// When everything is planned. All that is planned for it is shifted to the moment at which it is written, which the statement finds out.
const PLANNED: Time = Time::from_micros(0);

/// What became of a group.
pub(super) enum Swift {
    /// Stored, as far as keys of events were free; `None` stands for one that somebody holds.
    Stored(Vec<Option<Receipt>>),
    /// Nothing is written: the key of an effect is held.
    Shared,
    /// Nothing is written: it is another epoch than was thought, or another catalogue.
    Elsewhen,
}

/// Messages that are stored as events.
pub(super) struct Posts<'a> {
    /// For each arrival, whose message it is, and what was said about it.
    pub(super) about: Vec<(AppId, &'a About)>,
    /// The catalogue's, by which all of them are planned.
    pub(super) revision: u64,
}

/// May it be tried? Whoever shares the key of an effect with another has to be linked, which is found out by trying.
pub(super) fn fits(event: &NewEvent) -> bool {
    let waits_for_nothing = |effect: &NewEffect| effect.after.is_empty() && effect.order.is_none();
    event.review.is_none() && event.effects.iter().all(waits_for_nothing)
}

/// Stores arrivals of one event each that fit, as messages if they are. `epoch` is the store's as it was last seen here.
pub(super) async fn accept(
    taken: Taken,
    arrivals: &[(&Arrival, &NewEvent)],
    posts: Option<&Posts<'_>>,
    entropy: &Entropy,
    clock: &LeaseClock,
    epoch: &AtomicU32,
) -> Result<Swift, StoreError> {
    let candidates = alone(arrivals);
    let mut offered = Decisions::default();
    for at in &candidates {
        let (arrival, event) = arrivals[*at];
        offered.insert(arrival, event, new_id(arrival.at, event.key_hash, entropy));
    }
    let wanted = plan::wanted(offered.calling(), entropy);
    let guess = Moment {
        now: PLANNED,
        epoch: epoch.load(Ordering::Relaxed),
    };
    let mut plan = all_new(&wanted, guess);
    plan.carry_out(&mut offered.events, &offered.deeds)?;
    let rows: Vec<(EventId, &NewEvent)> = offered
        .events
        .iter()
        .map(|row| (row.id, row.event))
        .collect();
    let columns = Columns {
        events: EventColumns::of(offered.events),
        effects: EffectColumns::of(wanted.values()),
        queue: NewQueueColumns::of(&plan),
        about: posts.map(|posts| posts.rows(&candidates, &rows)),
    };
    let Some(Written {
        moment,
        revision,
        fresh,
    }) = columns.store(taken, guess, clock).await?
    else {
        return Ok(Swift::Shared);
    };
    epoch.store(moment.epoch, Ordering::Relaxed);
    if moment.epoch != guess.epoch || revision != posts.map(|posts| posts.revision) {
        return Ok(Swift::Elsewhen);
    }
    let mut receipts: Vec<Option<Receipt>> = arrivals.iter().map(|_| None).collect();
    for (at, (id, event)) in candidates.iter().zip(rows) {
        if fresh.contains(&Uuid(id.bytes())) {
            let mut receipt = new_receipt(event, id);
            plan.complete(0, &mut receipt);
            for claimed in receipt.claims.iter_mut().flatten() {
                let record = &mut claimed.effect.record;
                *record = as_of(*record, guess.now, moment.now);
            }
            receipts[*at] = Some(receipt);
        }
    }
    Ok(Swift::Stored(receipts))
}

impl Posts<'_> {
    /// The rows of those who are candidates, whose events are these.
    fn rows(&self, candidates: &[usize], events: &[(EventId, &NewEvent)]) -> AboutRows<'_> {
        let mut messages = MessageColumns::default();
        for (at, (event, _)) in candidates.iter().zip(events) {
            let (app, about) = self.about[*at];
            messages.push(*event, app, about, None);
        }
        AboutRows {
            messages,
            revision: self.revision,
        }
    }
}

/// The plan of a group all of whose effects are new.
fn all_new(wanted: &Wanted<'_>, moment: Moment) -> Plan {
    let all: HashSet<EffectId> = wanted.values().map(|row| row.id).collect();
    Plan::new(wanted, &all, moment)
}

/// What was planned at one time, had it been planned at another. The statement does the same with the columns.
fn as_of(record: EffectRecord, planned: Time, now: Time) -> EffectRecord {
    let lease_until = match record.state {
        EffectState::Claimed => now + record.lease_until.since(planned),
        EffectState::Pending
        | EffectState::Done
        | EffectState::Uncertain
        | EffectState::Dead
        | EffectState::Skipped => record.lease_until,
    };
    EffectRecord {
        lease_until,
        next_attempt_at: now + record.next_attempt_at.since(planned),
        ..record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hapax_ledger::claim::born_started;
    use hapax_ledger::effect::Repeat;
    use hapax_ledger::time::Span;

    /// What the statement does with the columns of a time that was guessed is what the ledger makes of the real one.
    #[test]
    fn what_is_born_at_one_time_is_shifted_to_another() {
        let (lease, guess) = (Span::from_secs(30), Time::from_secs(100));
        for wait in [0, 5].map(Span::from_secs) {
            let planned = |now: Time| EffectRecord::planned(Repeat::Keyed, now + wait);
            let born =
                |now| born_started(&planned(now), now, 3, lease).expect("a lease with a length");
            for now in [90, 100, 110].map(Time::from_secs) {
                assert_eq!(as_of(born(guess), guess, now), born(now));
                assert_eq!(as_of(planned(guess), guess, now), planned(now));
            }
        }
    }
}
