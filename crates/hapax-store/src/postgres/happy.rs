//! The happy end: attempts that succeeded, of effects that are all their event calls for, any number of them in one statement and one
//! round trip.
//!
//! Nothing has to be read first. That the worker still holds its effect is part of the statement, and so is that the effect is
//! alone: it is its event's only one, no other event calls for it, and it has no order. Whoever gives it company marks its row
//! first, so that a statement that waited for them sees it. And nobody had to send it again, or was told that it fails: of one that got
//! through after that operators may have to hear. What does not fit goes the ordinary way (see [`super::advance`]).

use std::borrow::Cow;
use std::collections::HashMap;

use hapax_ledger::effect::{EffectRecord, EffectState, Repeat};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::{Evidence, Outcome, classify};
use hapax_ledger::retry::Next;
use hapax_ledger::time::{Span, Time};
use hapax_ledger::transition::{Change, Did, EffectStep, step};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::effect::{number, skip, time};
use super::effect_id::{is_ordered, key_shard, queue_shard};
use super::moment::{LeaseClock, now};
use super::pool::{Param, Taken};
use super::wire::{Uuid, sendable};
use crate::error::StoreError;
use crate::nouns::{FAILING_AFTER_ATTEMPTS, Settlement};
use crate::outcome_code::OutcomeCode;

/// A settlement, the effect it is about, and the fence that its worker shows.
pub(super) type Ending<'a> = (EffectId, Fence, &'a Settlement);

/// May this be settled here?
pub(super) fn is_happy(effect: EffectId, settlement: &Settlement) -> bool {
    !is_ordered(effect) && classify(settlement.outcome) == Evidence::Applied
}

/// The columns of attempts that succeeded.
#[derive(Default)]
struct Columns<'a> {
    queue_shard: Vec<i16>,
    effect: Vec<Uuid>,
    fence: Vec<i64>,
    key_shard: Vec<i16>,
    outcome: Vec<i16>,
    detail: Vec<i16>,
    retry_after: Vec<Option<i64>>,
    excerpt: Vec<Option<Vec<u8>>>,
    body_bytes: Vec<Option<i64>>,
    error: Vec<Option<Cow<'a, str>>>,
}

impl<'a> Columns<'a> {
    fn of(endings: &[Ending<'a>]) -> Columns<'a> {
        let mut columns = Columns::default();
        for (effect, fence, settlement) in endings {
            let code = OutcomeCode::of(settlement.outcome);
            let said = settlement.said.kept();
            columns.queue_shard.push(queue_shard(*effect));
            columns.effect.push(Uuid(effect.bytes()));
            columns.fence.push(fence.as_u64() as i64);
            columns.key_shard.push(key_shard(*effect));
            columns.outcome.push(code.kind);
            columns.detail.push(code.detail);
            columns.retry_after.push(code.retry_after);
            columns
                .excerpt
                .push(said.excerpt.map(|excerpt| excerpt.to_vec()));
            let bytes = said.body_bytes.map(|bytes| bytes as i64);
            columns.body_bytes.push(bytes);
            let error = settlement.said.error.as_deref();
            columns.error.push(error.map(sendable));
        }
        columns
    }
}

/// Settles those that can be settled here, in the order of their ids; says what became of each of them.
pub(super) async fn settle(
    taken: Taken,
    mut endings: Vec<Ending<'_>>,
    clock: &LeaseClock,
) -> Result<HashMap<EffectId, Change>, StoreError> {
    endings.sort_unstable_by_key(|(effect, ..)| *effect);
    let columns = Columns::of(&endings);
    let (before, after) = (held(), done());
    let claimed = i16::from(before.state.code());
    let ended = i16::from(after.state.code());
    let completed = i16::from(EventStatus::of_effect(after.state, after.skip).code());
    let tries = FAILING_AFTER_ATTEMPTS as i32;
    let given = clock.given();
    let params: Vec<Param<'_>> = vec![
        (&columns.queue_shard, Type::INT2_ARRAY),
        (&columns.effect, Type::UUID_ARRAY),
        (&columns.fence, Type::INT8_ARRAY),
        (&columns.key_shard, Type::INT2_ARRAY),
        (&columns.outcome, Type::INT2_ARRAY),
        (&columns.detail, Type::INT2_ARRAY),
        (&columns.retry_after, Type::INT8_ARRAY),
        (&columns.excerpt, Type::BYTEA_ARRAY),
        (&columns.body_bytes, Type::INT8_ARRAY),
        (&columns.error, Type::TEXT_ARRAY),
        (&given, Type::INT8),
        (&claimed, Type::INT2),
        (&ended, Type::INT2),
        (&completed, Type::INT2),
        (&tries, Type::INT4),
    ];
    let found = taken.alone(SETTLE, params).await?;
    Ok(found.iter().map(to_change).collect())
}

/// Tallies are grouped by the hour, not by the moment: the database may look at its clock for each row, and no row of a table can be
/// written twice by one statement. The queue before the event, as everywhere.
const SETTLE: &str = concat!(
    "WITH moved AS (
         UPDATE hapax.queue q SET state = $13, started = false, last_outcome = x.outcome, last_detail = x.detail,
             last_retry_after = x.retry_after
         FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int8[]), unnest($4::int2[]), unnest($5::int2[]),
             unnest($6::int2[]), unnest($7::int8[]), unnest($8::bytea[]), unnest($9::int8[]), unnest($10::text[]))
             AS x (shard, effect, fence, key_shard, outcome, detail, retry_after, excerpt, body_bytes, error)
         WHERE q.shard = x.shard AND q.effect = x.effect AND q.fence = x.fence AND q.state = $12 AND q.started AND q.alone
             AND q.pass_from = 0 AND q.attempts <= $15
         RETURNING q.effect, q.repeat, q.generation, q.attempts, q.pass_from, q.fence, q.lease_until, q.next_at,
             q.ambiguous, q.skip, q.started_at, q.node, x.key_shard, x.outcome, x.detail, x.retry_after, x.excerpt,
             x.body_bytes, x.error, q.shard, q.lane, q.event_shard, q.event
     ), kept AS (
         INSERT INTO hapax.attempt (shard, effect, fence, generation, number, node, started_at, ended_at, outcome, detail,
             retry_after, excerpt, body_bytes, error)
         SELECT key_shard, effect, fence, generation, attempts, coalesce(node, ''), coalesce(started_at, t.now), t.now,
             outcome, detail, retry_after, excerpt, body_bytes, error
         FROM moved, ",
    now!("$11"),
    " AS t (now)
     ), told AS (
         UPDATE hapax.event v SET status = $14
         FROM moved m
         WHERE v.shard = m.event_shard AND v.id = m.event AND v.review_code IS NULL AND v.status <> $14
     ), tallied AS (
         INSERT INTO hapax.tally (shard, lane, hour, done, failed, dead)
         SELECT shard, lane, t.now - mod(t.now, 3600000000), count(*), 0, 0
         FROM moved, ",
    now!("$11"),
    " AS t (now)
         WHERE lane >= 'ep_' AND lane < 'ep`'
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
         ON CONFLICT (shard, lane, hour) DO UPDATE SET done = tally.done + excluded.done
     )
     SELECT effect, repeat, generation, attempts, pass_from, fence, lease_until, next_at, ambiguous, skip FROM moved"
);

/// What the statement asks for: an effect that a worker holds and has started.
fn held() -> EffectRecord {
    EffectRecord {
        state: EffectState::Claimed,
        started: true,
        ..EffectRecord::planned(Repeat::Keyed, Time::from_micros(0))
    }
}

/// What the ledger makes of it when its attempt succeeds.
fn done() -> EffectRecord {
    let settle = EffectStep::Settle {
        fence: held().fence,
        now: Time::from_micros(0),
        outcome: Outcome::Answered {
            status: 200,
            retry_after: None,
        },
        next: Next::At(Span::ZERO),
    };
    step(&held(), &settle).map_or_else(|_| held(), |change| change.next)
}

fn to_change(row: &Row) -> (EffectId, Change) {
    let after = done();
    let next = EffectRecord {
        state: after.state,
        started: after.started,
        repeat: Repeat::from_code(row.get::<_, i16>(1) as u8).unwrap_or(Repeat::Once),
        generation: number(row, 2),
        attempts: number(row, 3),
        pass_from: number(row, 4),
        fence: super::effect::fence(row, 5),
        lease_until: time(row, 6),
        next_attempt_at: time(row, 7),
        ambiguous: row.get(8),
        skip: skip(row, 9),
    };
    let effect = EffectId::from_bytes(row.get::<_, Uuid>(0).0);
    let did = Did::Done;
    (effect, Change { next, did })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statement changes state and mark, as the ledger's machine does for a success of any class, and nothing else.
    #[test]
    fn success_changes_two_columns_whatever_the_rest_says() {
        let success = |fence, status| EffectStep::Settle {
            fence,
            now: Time::from_secs(99),
            outcome: Outcome::Answered {
                status,
                retry_after: None,
            },
            next: Next::Exhausted,
        };
        for repeat in [Repeat::Converges, Repeat::Keyed, Repeat::Once] {
            for ambiguous in [false, true] {
                let before = EffectRecord {
                    repeat,
                    ambiguous,
                    generation: 3,
                    attempts: 5,
                    pass_from: 2,
                    fence: Fence::from_u64(7),
                    lease_until: Time::from_secs(9),
                    ..held()
                };
                let change = step(&before, &success(before.fence, 204)).expect("it is held");
                let expected = EffectRecord {
                    state: done().state,
                    started: done().started,
                    ..before
                };
                assert_eq!((change.next, change.did), (expected, Did::Done));
            }
        }
        assert_eq!((done().state, done().started), (EffectState::Done, false));
    }
}
