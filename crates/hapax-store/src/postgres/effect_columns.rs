//! Effects turned on their side: one array per column, as [`super::columns`] does it for events.

use std::borrow::Cow;

use hapax_ledger::effect::SkipReason;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::KeyHash;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::held::Held;
use super::pool::Param;
use super::wire::{Uuid, sendable};
use crate::nouns::{Attempt, NewEffect};
use crate::outcome_code::OutcomeCode;

type Text<'a> = Cow<'a, str>;

/// An effect that is about to be stored, if its key is free.
pub(super) struct EffectRow<'a> {
    pub(super) id: EffectId,
    pub(super) event: EventId,
    pub(super) place: usize,
    pub(super) new: &'a NewEffect,
}

/// The columns of what never changes about effects.
#[derive(Default)]
pub(super) struct EffectColumns<'a> {
    shard: Vec<i16>,
    id: Vec<Uuid>,
    event_shard: Vec<i16>,
    event: Vec<Uuid>,
    place: Vec<i32>,
    key_hash: Vec<Uuid>,
    attempts_max: Vec<i32>,
    name: Vec<Text<'a>>,
    key: Vec<Text<'a>>,
    lane: Vec<Text<'a>>,
}

impl<'a> EffectColumns<'a> {
    /// The columns of these rows.
    pub(super) fn of<'r>(rows: impl IntoIterator<Item = &'r EffectRow<'a>>) -> EffectColumns<'a>
    where
        'a: 'r,
    {
        let mut columns = EffectColumns::default();
        for row in rows {
            columns.shard.push(row.id.0.shard() as i16);
            columns.id.push(Uuid(row.id.bytes()));
            columns.event_shard.push(row.event.0.shard() as i16);
            columns.event.push(Uuid(row.event.bytes()));
            columns.place.push(row.place as i32);
            columns.key_hash.push(Uuid(row.new.key_hash.bytes()));
            columns.attempts_max.push(count(row.new.attempts_max));
            columns.name.push(sendable(&row.new.name));
            columns.key.push(sendable(&row.new.key));
            columns.lane.push(sendable(&row.new.lane));
        }
        columns
    }

    /// The columns as parameters `$1` to `$10`.
    pub(super) fn params(&self) -> [Param<'_>; 10] {
        [
            (&self.shard, Type::INT2_ARRAY),
            (&self.id, Type::UUID_ARRAY),
            (&self.event_shard, Type::INT2_ARRAY),
            (&self.event, Type::UUID_ARRAY),
            (&self.place, Type::INT4_ARRAY),
            (&self.key_hash, Type::UUID_ARRAY),
            (&self.attempts_max, Type::INT4_ARRAY),
            (&self.name, Type::TEXT_ARRAY),
            (&self.key, Type::TEXT_ARRAY),
            (&self.lane, Type::TEXT_ARRAY),
        ]
    }
}

/// A number that the ledger counts with, in a column that cannot hold the upper half of them; nobody counts so far.
fn count(number: u32) -> i32 {
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
    repeat: Vec<i16>,
    started: Vec<bool>,
    ambiguous: Vec<bool>,
    skip: Vec<Option<i16>>,
    started_at: Vec<Option<i64>>,
    node: Vec<Option<Text<'a>>>,
}

impl<'a> QueueColumns<'a> {
    /// The columns of these effects, as they are now.
    pub(super) fn of(all: impl IntoIterator<Item = &'a Held>) -> QueueColumns<'a> {
        let mut columns = QueueColumns::default();
        for held in all {
            let (id, record) = (held.effect.id, &held.effect.record);
            columns.shard.push(id.0.shard() as i16);
            columns.effect.push(Uuid(id.bytes()));
            columns.fence.push(record.fence.as_u64() as i64);
            columns.lease_until.push(record.lease_until.micros());
            columns.next_at.push(record.next_attempt_at.micros());
            columns.generation.push(count(record.generation));
            columns.attempts.push(count(record.attempts));
            columns.pass_from.push(count(record.pass_from));
            columns.state.push(record.state.code().into());
            columns.repeat.push(record.repeat.code().into());
            columns.started.push(record.started);
            columns.ambiguous.push(record.ambiguous);
            let skip = record.skip.map(SkipReason::code);
            columns.skip.push(skip.map(i16::from));
            columns.started_at.push(held.started_at.map(Time::micros));
            columns.node.push(held.node.as_deref().map(sendable));
        }
        columns
    }

    pub(super) fn is_empty(&self) -> bool {
        self.effect.is_empty()
    }

    /// The columns as parameters `$1` to `$15`.
    pub(super) fn params(&self) -> [Param<'_>; 15] {
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
            (&self.repeat, Type::INT2_ARRAY),
            (&self.started, Type::BOOL_ARRAY),
            (&self.ambiguous, Type::BOOL_ARRAY),
            (&self.skip, Type::INT2_ARRAY),
            (&self.started_at, Type::INT8_ARRAY),
            (&self.node, Type::TEXT_ARRAY),
        ]
    }
}

/// The columns of attempts that have ended.
#[derive(Default)]
pub(super) struct AttemptColumns<'a> {
    shard: Vec<i16>,
    effect: Vec<Uuid>,
    fence: Vec<i64>,
    generation: Vec<i32>,
    number: Vec<i32>,
    node: Vec<Text<'a>>,
    started_at: Vec<i64>,
    ended_at: Vec<i64>,
    outcome: Vec<i16>,
    detail: Vec<i16>,
    retry_after: Vec<Option<i64>>,
}

impl<'a> AttemptColumns<'a> {
    /// The columns of these attempts.
    pub(super) fn of(all: &'a [(EffectId, Attempt)]) -> AttemptColumns<'a> {
        let mut columns = AttemptColumns::default();
        for (id, attempt) in all {
            let code = OutcomeCode::of(attempt.outcome);
            columns.shard.push(id.0.shard() as i16);
            columns.effect.push(Uuid(id.bytes()));
            columns.fence.push(attempt.fence.as_u64() as i64);
            columns.generation.push(count(attempt.generation));
            columns.number.push(count(attempt.number));
            columns.node.push(sendable(&attempt.node));
            columns.started_at.push(attempt.started_at.micros());
            columns.ended_at.push(attempt.ended_at.micros());
            columns.outcome.push(code.kind);
            columns.detail.push(code.detail);
            columns.retry_after.push(code.retry_after);
        }
        columns
    }

    /// The columns as parameters `$1` to `$11`.
    pub(super) fn params(&self) -> [Param<'_>; 11] {
        [
            (&self.shard, Type::INT2_ARRAY),
            (&self.effect, Type::UUID_ARRAY),
            (&self.fence, Type::INT8_ARRAY),
            (&self.generation, Type::INT4_ARRAY),
            (&self.number, Type::INT4_ARRAY),
            (&self.node, Type::TEXT_ARRAY),
            (&self.started_at, Type::INT8_ARRAY),
            (&self.ended_at, Type::INT8_ARRAY),
            (&self.outcome, Type::INT2_ARRAY),
            (&self.detail, Type::INT2_ARRAY),
            (&self.retry_after, Type::INT8_ARRAY),
        ]
    }
}

/// The shards and hashes of effect keys.
pub(super) fn key_columns(keys: &[(u16, KeyHash)]) -> (Vec<i16>, Vec<Uuid>) {
    keys.iter()
        .map(|(shard, hash)| (*shard as i16, Uuid(hash.bytes())))
        .unzip()
}
