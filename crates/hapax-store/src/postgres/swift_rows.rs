//! The rows of what [`super::swift`] stores, and the statement that writes them.

use std::borrow::Cow;
use std::collections::HashSet;

use hapax_ledger::effect::{EffectRecord, EffectState, Repeat};
use hapax_ledger::order::Gate;
use tokio_postgres::types::Type;

use super::accept::insert_events;
use super::columns::EventColumns;
use super::effect_columns::{EffectColumns, count};
use super::effect_id::queue_shard;
use super::held::Held;
use super::message::MessageColumns;
use super::moment::{LeaseClock, Moment, now, to_moment};
use super::plan::Plan;
use super::pool::{Param, Taken};
use super::wire::{Uuid, sendable};
use crate::error::StoreError;

/// The constraint that an effect breaks whose key is held.
const EFFECT_KEY: &str = "effect_key";

/// What differs from one new effect to the next in the table of what changes about them.
#[derive(Default)]
pub(super) struct NewQueueColumns<'a> {
    shard: Vec<i16>,
    effect: Vec<Uuid>,
    event: Vec<Uuid>,
    event_shard: Vec<i16>,
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
    pub(super) fn of(plan: &'a Plan) -> NewQueueColumns<'a> {
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
        self.event_shard.push(held.effect.event.0.shard() as i16);
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

/// What makes events messages.
pub(super) struct AboutRows<'a> {
    pub(super) messages: MessageColumns<'a>,
    /// The catalogue's, by which all of them are planned.
    pub(super) revision: u64,
}

/// All rows of a group.
pub(super) struct Columns<'a> {
    pub(super) events: EventColumns<'a>,
    pub(super) effects: EffectColumns<'a>,
    pub(super) queue: NewQueueColumns<'a>,
    pub(super) about: Option<AboutRows<'a>>,
}

/// What the statement found.
pub(super) struct Written {
    pub(super) moment: Moment,
    /// The catalogue's, where it was asked for.
    pub(super) revision: Option<u64>,
    /// Events that are new.
    pub(super) fresh: HashSet<Uuid>,
}

impl Columns<'_> {
    /// Writes them as far as keys are free: says when, and which events are new. `None`: the key of an effect is held.
    pub(super) async fn store(
        &self,
        taken: Taken,
        guess: Moment,
        clock: &LeaseClock,
    ) -> Result<Option<Written>, StoreError> {
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
        let revision = self.about.as_ref().map(|about| about.revision as i64);
        params.push((&revision, Type::INT8));
        params.push((&queue.event_shard, Type::INT2_ARRAY));
        let sql = match &self.about {
            Some(about) => {
                params.extend(about.messages.params());
                STORE_MESSAGES
            }
            None => STORE,
        };
        let found = taken.query_and_commit_unless(sql, &params, EFFECT_KEY);
        let Some(rows) = found.await? else {
            return Ok(None);
        };
        let revision = rows.first().and_then(|row| row.get::<_, Option<i64>>(3));
        Ok(Some(Written {
            moment: to_moment(&rows)?,
            revision: revision.map(|revision| revision as u64),
            fresh: rows.iter().filter_map(|row| row.get(2)).collect(),
        }))
    }
}

/// The array of new events is complete before the first effect is inserted: so nobody holds the key of an effect while waiting for the
/// key of an event.
macro_rules! store {
    ($revision:literal, $more:literal) => { insert_events!(
    concat!(
        "moment AS MATERIALIZED (
             SELECT ",
        now!("$57"),
        " AS now, epoch, ", $revision, " AS revision FROM hapax.store WHERE one = 1
         ), fresh AS (
             INSERT INTO hapax.identity (shard, event, source, key_hash)
             SELECT u.* FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::text[]), unnest($4::uuid[])) AS u, moment
             WHERE moment.epoch = $58 AND moment.revision IS NOT DISTINCT FROM $64
             ON CONFLICT (shard, source, key_hash) DO NOTHING
             RETURNING event
         ), effect AS (
             INSERT INTO hapax.effect (shard, id, event_shard, event, queue_shard, place, key_hash, attempts_max, name, key,
                 lane, after, order_rule, entity, version)
             SELECT k.* FROM (SELECT unnest($29::int2[]), unnest($30::uuid[]), unnest($31::int2[]), unnest($32::uuid[]),
                 unnest($33::int2[]), unnest($34::int4[]), unnest($35::uuid[]), unnest($36::int4[]), unnest($37::text[]),
                 unnest($38::text[]), unnest($39::text[]), unnest($40::bytea[]), unnest($41::int2[]), unnest($42::text[]),
                 unnest($43::text[])) AS k (shard, id, event_shard, event)
             WHERE k.event = ANY (ARRAY(SELECT event FROM fresh))
         ), queue AS (
             INSERT INTO hapax.queue (shard, effect, fence, lease_until, next_at, attempts, state, repeat, started, alone,
                 lane, node, event_shard, event, started_at, generation, pass_from, gate, ambiguous)
             SELECT q.shard, q.effect, q.fence,
                 CASE WHEN q.state = $63 THEN q.lease_until - $59 + moment.now ELSE q.lease_until END,
                 q.next_at - $59 + moment.now,
                 q.attempts, q.state, q.repeat, q.started, q.alone, q.lane, q.node, q.event_shard, q.event,
                 CASE WHEN q.started THEN moment.now END, $60, $61, $62, false
             FROM (SELECT unnest($44::int2[]), unnest($45::uuid[]), unnest($46::uuid[]), unnest($47::int8[]), unnest($48::int8[]),
                 unnest($49::int8[]), unnest($50::int4[]), unnest($51::int2[]), unnest($52::int2[]), unnest($53::bool[]),
                 unnest($54::bool[]), unnest($55::text[]), unnest($56::text[]), unnest($65::int2[]))
                 AS q (shard, effect, event, fence, lease_until, next_at, attempts, state, repeat, started, alone, lane,
                 node, event_shard), moment
             WHERE q.event IN (SELECT event FROM fresh)
         ),", $more
    ),
    "WHERE e.id IN (SELECT event FROM fresh)",
    "SELECT moment.now, moment.epoch, fresh.event, moment.revision FROM moment LEFT JOIN fresh ON true"
) } }

const STORE: &str = store!("NULL::int8", "");

const STORE_MESSAGES: &str = store!(
    "(SELECT c.revision FROM hapax.catalogue c WHERE c.one = 1)",
    " message AS (
         INSERT INTO hapax.message (shard, event, app, channels, tags, deliver_at, api_version, ordering_key, sequence_key,
             sequence, only_to)
         SELECT m.* FROM (SELECT unnest($66::int2[]), unnest($67::uuid[]), unnest($68::uuid[]), unnest($69::text[]), unnest($70::text[]),
             unnest($71::int8[]), unnest($72::text[]), unnest($73::text[]), unnest($74::text[]), unnest($75::int8[]), unnest($76::uuid[]))
             AS m (shard, event)
         WHERE m.event IN (SELECT event FROM fresh)
     ),"
);
