//! Effects turned on their side: one array per column, as [`super::columns`] does it for events.

use std::borrow::Cow;

use hapax_ledger::effect::SkipReason;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::order::PlannedOrder;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::chain::chain_shard;
use super::effect_id::{key_shard, queue_shard};
use super::held::Held;
use super::order_rule::rule_code;
use super::pool::Param;
use super::wire::{Uuid, sendable};
use crate::nouns::NewEffect;
use crate::outcome_code::OutcomeCode;

type Text<'a> = Cow<'a, str>;

/// An effect that is about to be stored, if its key is free.
pub(super) struct EffectRow<'a> {
    pub(super) id: EffectId,
    pub(super) event: EventId,
    pub(super) place: usize,
    /// Places of the plan that it comes after, each the first at which that effect stands.
    pub(super) after: Vec<u16>,
    pub(super) new: &'a NewEffect,
}

/// The columns of what never changes about effects.
#[derive(Default)]
pub(super) struct EffectColumns<'a> {
    shard: Vec<i16>,
    id: Vec<Uuid>,
    event_shard: Vec<i16>,
    event: Vec<Uuid>,
    queue_shard: Vec<i16>,
    place: Vec<i32>,
    key_hash: Vec<Uuid>,
    attempts_max: Vec<i32>,
    name: Vec<Text<'a>>,
    key: Vec<Text<'a>>,
    lane: Vec<Text<'a>>,
    after: Vec<Option<Vec<u8>>>,
    order_rule: Vec<Option<i16>>,
    entity: Vec<Option<Text<'a>>>,
    version: Vec<Option<Text<'a>>>,
}

impl<'a> EffectColumns<'a> {
    /// The columns of these rows.
    pub(super) fn of<'r>(rows: impl IntoIterator<Item = &'r EffectRow<'a>>) -> EffectColumns<'a>
    where
        'a: 'r,
    {
        let mut columns = EffectColumns::default();
        for row in rows {
            columns.shard.push(key_shard(row.id));
            columns.id.push(Uuid(row.id.bytes()));
            columns.event_shard.push(row.event.0.shard() as i16);
            columns.event.push(Uuid(row.event.bytes()));
            columns.queue_shard.push(queue_shard(row.id));
            columns.place.push(row.place as i32);
            columns.key_hash.push(Uuid(row.new.key_hash.bytes()));
            columns.attempts_max.push(count(row.new.attempts_max));
            columns.name.push(sendable(&row.new.name));
            columns.key.push(sendable(&row.new.key));
            columns.lane.push(sendable(&row.new.lane));
            let after: Vec<u8> = row.after.iter().flat_map(|at| at.to_be_bytes()).collect();
            columns.after.push((!after.is_empty()).then_some(after));
            columns.push_order(row.new.order.as_ref());
        }
        columns
    }

    fn push_order(&mut self, order: Option<&'a PlannedOrder>) {
        self.order_rule.push(order.map(rule_code));
        self.entity.push(order.map(|order| sendable(&order.entity)));
        let version = order.and_then(|order| order.version.as_deref());
        self.version.push(version.map(sendable));
    }

    /// The columns as parameters `$1` to `$15`.
    pub(super) fn params(&self) -> [Param<'_>; 15] {
        [
            (&self.shard, Type::INT2_ARRAY),
            (&self.id, Type::UUID_ARRAY),
            (&self.event_shard, Type::INT2_ARRAY),
            (&self.event, Type::UUID_ARRAY),
            (&self.queue_shard, Type::INT2_ARRAY),
            (&self.place, Type::INT4_ARRAY),
            (&self.key_hash, Type::UUID_ARRAY),
            (&self.attempts_max, Type::INT4_ARRAY),
            (&self.name, Type::TEXT_ARRAY),
            (&self.key, Type::TEXT_ARRAY),
            (&self.lane, Type::TEXT_ARRAY),
            (&self.after, Type::BYTEA_ARRAY),
            (&self.order_rule, Type::INT2_ARRAY),
            (&self.entity, Type::TEXT_ARRAY),
            (&self.version, Type::TEXT_ARRAY),
        ]
    }
}

/// A number that the ledger counts with, in a column that cannot hold the upper half of them; nobody counts so far.
pub(super) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The columns of what changes about effects.
#[derive(Default)]
pub(super) struct QueueColumns<'a> {
    shard: Vec<i16>,
    effect: Vec<Uuid>,
    fence: Vec<i64>,
    lease_until: Vec<i64>,
    next_at: Vec<i64>,
    generation: Vec<i32>,
    attempts: Vec<i32>,
    pass_from: Vec<i32>,
    state: Vec<i16>,
    gate: Vec<i16>,
    repeat: Vec<i16>,
    started: Vec<bool>,
    ambiguous: Vec<bool>,
    skip: Vec<Option<i16>>,
    last_outcome: Vec<Option<i16>>,
    last_detail: Vec<Option<i16>>,
    last_retry_after: Vec<Option<i64>>,
    started_at: Vec<Option<i64>>,
    node: Vec<Option<Text<'a>>>,
}

impl<'a> QueueColumns<'a> {
    /// The columns of these effects, as they are now.
    pub(super) fn of(all: impl IntoIterator<Item = &'a Held>) -> QueueColumns<'a> {
        let mut columns = QueueColumns::default();
        for held in all {
            let (id, record) = (held.effect.id, &held.effect.record);
            columns.shard.push(queue_shard(id));
            columns.effect.push(Uuid(id.bytes()));
            columns.fence.push(record.fence.as_u64() as i64);
            columns.lease_until.push(record.lease_until.micros());
            columns.next_at.push(record.next_attempt_at.micros());
            columns.generation.push(count(record.generation));
            columns.attempts.push(count(record.attempts));
            columns.pass_from.push(count(record.pass_from));
            columns.state.push(record.state.code().into());
            columns.gate.push(held.effect.gate.code().into());
            columns.repeat.push(record.repeat.code().into());
            columns.started.push(record.started);
            columns.ambiguous.push(record.ambiguous);
            let skip = record.skip.map(SkipReason::code);
            columns.skip.push(skip.map(i16::from));
            let last = held.effect.last.map(OutcomeCode::of);
            columns.last_outcome.push(last.map(|code| code.kind));
            columns.last_detail.push(last.map(|code| code.detail));
            let retry_after = last.and_then(|code| code.retry_after);
            columns.last_retry_after.push(retry_after);
            columns.started_at.push(held.started_at.map(Time::micros));
            columns.node.push(held.node.as_deref().map(sendable));
        }
        columns
    }

    pub(super) fn is_empty(&self) -> bool {
        self.effect.is_empty()
    }

    /// The columns as parameters `$1` to `$19`.
    pub(super) fn params(&self) -> [Param<'_>; 19] {
        [
            (&self.shard, Type::INT2_ARRAY),
            (&self.effect, Type::UUID_ARRAY),
            (&self.fence, Type::INT8_ARRAY),
            (&self.lease_until, Type::INT8_ARRAY),
            (&self.next_at, Type::INT8_ARRAY),
            (&self.generation, Type::INT4_ARRAY),
            (&self.attempts, Type::INT4_ARRAY),
            (&self.pass_from, Type::INT4_ARRAY),
            (&self.state, Type::INT2_ARRAY),
            (&self.gate, Type::INT2_ARRAY),
            (&self.repeat, Type::INT2_ARRAY),
            (&self.started, Type::BOOL_ARRAY),
            (&self.ambiguous, Type::BOOL_ARRAY),
            (&self.skip, Type::INT2_ARRAY),
            (&self.last_outcome, Type::INT2_ARRAY),
            (&self.last_detail, Type::INT2_ARRAY),
            (&self.last_retry_after, Type::INT8_ARRAY),
            (&self.started_at, Type::INT8_ARRAY),
            (&self.node, Type::TEXT_ARRAY),
        ]
    }
}

/// What a queue row is born with and keeps: its lane, and its place in a chain.
#[derive(Default)]
pub(super) struct SeatColumns<'a> {
    lane: Vec<Text<'a>>,
    chain_shard: Vec<Option<i16>>,
    chain: Vec<Option<Uuid>>,
    turn: Vec<Option<i64>>,
    ended_by: Vec<Option<Text<'a>>>,
}

impl<'a> SeatColumns<'a> {
    /// The columns of these effects.
    pub(super) fn of(all: impl IntoIterator<Item = &'a Held>) -> SeatColumns<'a> {
        let mut columns = SeatColumns::default();
        for held in all {
            let seat = held.seat.as_ref();
            columns.lane.push(sendable(&held.effect.lane));
            let shard = seat.map(|seat| chain_shard(seat.chain));
            columns.chain_shard.push(shard);
            let chain = seat.map(|seat| Uuid(seat.chain.bytes()));
            columns.chain.push(chain);
            columns.turn.push(seat.map(|seat| seat.turn));
            let ended_by = seat.and_then(|seat| seat.ended_by.as_deref());
            columns.ended_by.push(ended_by.map(sendable));
        }
        columns
    }

    /// The columns as parameters, in this order: lane, chain's shard, chain, turn, what ended the entity.
    pub(super) fn params(&self) -> [Param<'_>; 5] {
        [
            (&self.lane, Type::TEXT_ARRAY),
            (&self.chain_shard, Type::INT2_ARRAY),
            (&self.chain, Type::UUID_ARRAY),
            (&self.turn, Type::INT8_ARRAY),
            (&self.ended_by, Type::TEXT_ARRAY),
        ]
    }
}
