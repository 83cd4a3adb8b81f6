//! New events whose effects wait for nothing and whom nobody else calls for: all of a group in one statement that is its own
//! transaction.
//!
//! What the statement writes is what [`super::plan`] makes of them, planned as if all of them were new. Whoever does not get its
//! identity in goes on to [`super::known`]. If the key of an effect is held after all, the statement fails as a whole, nothing is
//! written, and the group goes by [`super::call`], which can link it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use hapax_ledger::effect::{EffectRecord, EffectState, Repeat};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::order::Gate;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::Entropy;
use super::accept::{insert_events, new_id, new_receipt};
use super::call::alone;
use super::columns::EventColumns;
use super::decide::Decisions;
use super::effect_columns::{EffectColumns, count};
use super::effect_id::queue_shard;
use super::held::Held;
use super::moment::{LeaseClock, Moment, now, to_moment};
use super::plan::{self, Plan, Wanted};
use super::pool::{Param, Taken};
use super::wire::{Uuid, sendable};
use crate::error::StoreError;
use crate::nouns::{Arrival, NewEffect, NewEvent, Receipt};

/// The constraint that an effect breaks whose key is held.
const EFFECT_KEY: &str = "effect_key";

/// What became of a group.
pub(super) enum Swift {
    /// Stored, as far as keys of events were free; `None` stands for one that somebody holds.
    Stored(Vec<Option<Receipt>>),
    /// Nothing is written: the key of an effect is held.
    Shared,
    /// Nothing is written: it is another epoch than was thought.
    OtherEpoch,
}

/// May it be tried? Whoever shares the key of an effect with another has to be linked, which is found out by trying.
pub(super) fn fits(event: &NewEvent) -> bool {
    let waits_for_nothing = |effect: &NewEffect| effect.after.is_empty() && effect.order.is_none();
    event.review.is_none() && event.effects.iter().all(waits_for_nothing)
}

/// Stores arrivals of one event each that fit. `epoch` is the store's as it was last seen here.
pub(super) async fn accept(
    taken: Taken,
    arrivals: &[(&Arrival, &NewEvent)],
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
        now: latest(&wanted),
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
    };
    let Some((moment, fresh)) = columns.store(taken, guess, clock).await? else {
        return Ok(Swift::Shared);
    };
    if moment.epoch != guess.epoch {
        epoch.store(moment.epoch, Ordering::Relaxed);
        return Ok(Swift::OtherEpoch);
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

/// The plan of a group all of whose effects are new.
fn all_new(wanted: &Wanted<'_>, moment: Moment) -> Plan {
    let all: HashSet<EffectId> = wanted.values().map(|row| row.id).collect();
    Plan::new(wanted, &all, moment)
}

/// A time at which all that is wanted is due. What is planned for it is shifted to the moment at which it is written.
fn latest(wanted: &Wanted<'_>) -> Time {
    let times = wanted.values().map(|row| row.new.not_before);
    times.max().unwrap_or(Time::from_micros(0))
}

/// What was born at one time, had it been born at another. The statement does the same with the columns.
fn as_of(record: EffectRecord, planned: Time, now: Time) -> EffectRecord {
    match record.state {
        EffectState::Claimed => EffectRecord {
            lease_until: now + record.lease_until.since(planned),
            next_attempt_at: record.next_attempt_at.min(now),
            ..record
        },
        EffectState::Pending
        | EffectState::Done
        | EffectState::Uncertain
        | EffectState::Dead
        | EffectState::Skipped => record,
    }
}

/// What differs from one new effect to the next in the table of what changes about them.
#[derive(Default)]
struct NewQueueColumns<'a> {
    shard: Vec<i16>,
    effect: Vec<Uuid>,
    event: Vec<Uuid>,
    fence: Vec<i64>,
    lease_until: Vec<i64>,
    next_at: Vec<i64>,
    attempts: Vec<i32>,
    state: Vec<i16>,
    repeat: Vec<i16>,
    started: Vec<bool>,
    alone: Vec<bool>,
    lane: Vec<Cow<'a, str>>,
    node: Vec<Option<Cow<'a, str>>>,
}

impl<'a> NewQueueColumns<'a> {
    fn of(plan: &'a Plan) -> NewQueueColumns<'a> {
        let mut columns = NewQueueColumns::default();
        for held in plan.new.values() {
            columns.push(held);
            let called = plan.called.get(&held.effect.event);
            let alone = called.is_some_and(|called| called.len() == 1);
            columns.alone.push(alone);
        }
        columns
    }

    fn push(&mut self, held: &'a Held) {
        let (id, record) = (held.effect.id, &held.effect.record);
        self.shard.push(queue_shard(id));
        self.effect.push(Uuid(id.bytes()));
        self.event.push(Uuid(held.effect.event.bytes()));
        self.fence.push(record.fence.as_u64() as i64);
        self.lease_until.push(record.lease_until.micros());
        self.next_at.push(record.next_attempt_at.micros());
        self.attempts.push(count(record.attempts));
        self.state.push(record.state.code().into());
        self.repeat.push(record.repeat.code().into());
        self.started.push(record.started);
        self.lane.push(sendable(&held.effect.lane));
        self.node.push(held.node.as_deref().map(sendable));
    }
}

/// All rows of a group.
struct Columns<'a> {
    events: EventColumns<'a>,
    effects: EffectColumns<'a>,
    queue: NewQueueColumns<'a>,
}

impl Columns<'_> {
    /// Writes them as far as keys are free: says when, and which events are new. `None`: the key of an effect is held.
    async fn store(
        &self,
        taken: Taken,
        guess: Moment,
        clock: &LeaseClock,
    ) -> Result<Option<(Moment, HashSet<Uuid>)>, StoreError> {
        let new = EffectRecord::planned(Repeat::Keyed, guess.now);
        let (generation, pass_from) = (count(new.generation), count(new.pass_from));
        let (open, claimed) = (
            i16::from(Gate::Open.code()),
            i16::from(EffectState::Claimed.code()),
        );
        let (given, epoch, planned) = (clock.given(), guess.epoch as i32, guess.now.micros());
        let queue = &self.queue;
        let mut params: Vec<Param<'_>> = self.events.params().into();
        params.extend(self.effects.params());
        params.extend([
            (&queue.shard as _, Type::INT2_ARRAY),
            (&queue.effect as _, Type::UUID_ARRAY),
            (&queue.event as _, Type::UUID_ARRAY),
            (&queue.fence as _, Type::INT8_ARRAY),
            (&queue.lease_until as _, Type::INT8_ARRAY),
            (&queue.next_at as _, Type::INT8_ARRAY),
            (&queue.attempts as _, Type::INT4_ARRAY),
            (&queue.state as _, Type::INT2_ARRAY),
            (&queue.repeat as _, Type::INT2_ARRAY),
            (&queue.started as _, Type::BOOL_ARRAY),
            (&queue.alone as _, Type::BOOL_ARRAY),
            (&queue.lane as _, Type::TEXT_ARRAY),
            (&queue.node as _, Type::TEXT_ARRAY),
            (&given as _, Type::INT8),
            (&epoch as _, Type::INT4),
            (&planned as _, Type::INT8),
            (&generation as _, Type::INT4),
            (&pass_from as _, Type::INT4),
            (&open as _, Type::INT2),
            (&claimed as _, Type::INT2),
        ]);
        let found = taken.query_and_commit_unless(STORE, &params, EFFECT_KEY);
        let Some(rows) = found.await? else {
            return Ok(None);
        };
        let moment = to_moment(&rows)?;
        let fresh = rows.iter().filter_map(|row| row.get(2)).collect();
        Ok(Some((moment, fresh)))
    }
}

/// The array of new events is complete before the first effect is inserted: so nobody holds the key of an effect while waiting for the
/// key of an event.
const STORE: &str = insert_events!(
    concat!(
        "moment AS MATERIALIZED (
             SELECT ",
        now!("$57"),
        " AS now, epoch FROM hapax.store WHERE one = 1
         ), fresh AS (
             INSERT INTO hapax.identity (shard, event, source, key_hash)
             SELECT u.* FROM unnest($1::int2[], $2::uuid[], $3::text[], $4::uuid[]) AS u, moment
             WHERE moment.epoch = $58
             ON CONFLICT (shard, source, key_hash) DO NOTHING
             RETURNING event
         ), effect AS (
             INSERT INTO hapax.effect (shard, id, event_shard, event, queue_shard, place, key_hash, attempts_max, name, key,
                 lane, after, order_rule, entity, version)
             SELECT k.* FROM unnest($29::int2[], $30::uuid[], $31::int2[], $32::uuid[], $33::int2[], $34::int4[],
                 $35::uuid[], $36::int4[], $37::text[], $38::text[], $39::text[], $40::bytea[], $41::int2[], $42::text[],
                 $43::text[]) AS k (shard, id, event_shard, event)
             WHERE k.event = ANY (ARRAY(SELECT event FROM fresh))
         ), queue AS (
             INSERT INTO hapax.queue (shard, effect, fence, lease_until, next_at, attempts, state, repeat, started, alone,
                 lane, node, started_at, generation, pass_from, gate, ambiguous)
             SELECT q.shard, q.effect, q.fence,
                 CASE WHEN q.state = $63 THEN q.lease_until - $59 + moment.now ELSE q.lease_until END,
                 CASE WHEN q.state = $63 THEN least(q.next_at, moment.now) ELSE q.next_at END,
                 q.attempts, q.state, q.repeat, q.started, q.alone, q.lane, q.node,
                 CASE WHEN q.started THEN moment.now END, $60, $61, $62, false
             FROM unnest($44::int2[], $45::uuid[], $46::uuid[], $47::int8[], $48::int8[], $49::int8[], $50::int4[],
                 $51::int2[], $52::int2[], $53::bool[], $54::bool[], $55::text[], $56::text[])
                 AS q (shard, effect, event, fence, lease_until, next_at, attempts, state, repeat, started, alone, lane,
                 node), moment
             WHERE q.event IN (SELECT event FROM fresh)
         ),"
    ),
    "WHERE e.id IN (SELECT event FROM fresh)",
    "SELECT moment.now, moment.epoch, fresh.event FROM moment LEFT JOIN fresh ON true"
);

#[cfg(test)]
mod tests {
    use super::*;
    use hapax_ledger::claim::born_started;
    use hapax_ledger::time::Span;

    /// What the statement does with the columns of a time that was guessed is what the ledger makes of the real one.
    #[test]
    fn what_is_born_at_one_time_is_shifted_to_another() {
        let (lease, due) = (Span::from_secs(30), Time::from_secs(100));
        let planned = EffectRecord::planned(Repeat::Keyed, due);
        let guessed = born_started(&planned, due, 3, lease).expect("it is born");
        for now in [90, 100, 110].map(Time::from_secs) {
            let born = born_started(&planned, now, 3, lease).expect("it is born");
            assert_eq!(as_of(guessed, due, now), born);
        }
        assert_eq!(as_of(planned, due, Time::from_secs(1)), planned);
    }
}
