//! Attempts that have ended, as rows, and the snapshots that go along with them.

use std::borrow::Cow;

use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::id::EffectId;
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::effect::{fence, number, text, time};
use super::effect_columns::count;
use super::effect_id::key_shard;
use super::held::Late;
use super::pool::{Param, Statement};
use super::wire::{Uuid, received, sendable};
use crate::nouns::{Attempt, Said};
use crate::outcome_code::OutcomeCode;

type Text<'a> = Cow<'a, str>;

/// Reads the ended attempts of an effect, oldest first. Shard and id are its parameters.
pub(super) const OF_EFFECT: &str = "SELECT generation, number, fence, node, started_at, ended_at, outcome, detail, retry_after, late_at,
         late_outcome, late_detail, excerpt, body_bytes, error
     FROM hapax.attempt WHERE shard = $1 AND effect = $2 ORDER BY fence";

/// An attempt from [`OF_EFFECT`].
pub(super) fn to_attempt(row: &Row) -> Attempt {
    let ended = OutcomeCode {
        kind: row.get(6),
        detail: row.get(7),
        retry_after: row.get(8),
    };
    let late = OutcomeCode {
        kind: row.get::<_, Option<i16>>(10).unwrap_or(-1),
        detail: row.get::<_, Option<i16>>(11).unwrap_or(-1),
        retry_after: None,
    };
    let late_at = row.get::<_, Option<i64>>(9).map(Time::from_micros);
    let said = Said {
        excerpt: row.get::<_, Option<Vec<u8>>>(12).map(Bytes::from),
        body_bytes: row.get::<_, Option<i64>>(13).map(|bytes| bytes as u64),
        error: row.get::<_, Option<String>>(14).map(received),
    };
    Attempt {
        generation: number(row, 0),
        number: number(row, 1),
        fence: fence(row, 2),
        node: text(row, 3),
        started_at: time(row, 4),
        ended_at: time(row, 5),
        outcome: ended.outcome(),
        late: late_at.map(|at| (at, late.outcome())),
        said,
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
    excerpt: Vec<Option<&'a [u8]>>,
    body_bytes: Vec<Option<i64>>,
    error: Vec<Option<Text<'a>>>,
}

impl<'a> AttemptColumns<'a> {
    pub(super) fn of(all: &'a [(EffectId, Attempt)]) -> AttemptColumns<'a> {
        let mut columns = AttemptColumns::default();
        for (id, attempt) in all {
            let code = OutcomeCode::of(attempt.outcome);
            columns.shard.push(key_shard(*id));
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
            let said = &attempt.said;
            columns.excerpt.push(said.excerpt.as_deref());
            let bytes = said.body_bytes.map(|bytes| bytes as i64);
            columns.body_bytes.push(bytes);
            columns.error.push(said.error.as_deref().map(sendable));
        }
        columns
    }

    /// `None` if there are none.
    pub(super) fn statement(&self) -> Option<Statement<'_>> {
        let params: Vec<Param<'_>> = vec![
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
            (&self.excerpt, Type::BYTEA_ARRAY),
            (&self.body_bytes, Type::INT8_ARRAY),
            (&self.error, Type::TEXT_ARRAY),
        ];
        let sql = "INSERT INTO hapax.attempt (shard, effect, fence, generation, number, node, started_at, ended_at, outcome,
                 detail, retry_after, excerpt, body_bytes, error)
             SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int8[]), unnest($4::int4[]), unnest($5::int4[]),
                 unnest($6::text[]), unnest($7::int8[]), unnest($8::int8[]), unnest($9::int2[]), unnest($10::int2[]), unnest($11::int8[]),
                 unnest($12::bytea[]), unnest($13::int8[]), unnest($14::text[])";
        (!self.effect.is_empty()).then_some((sql, params))
    }
}

/// What a worker said too late. Seldom needed, so one by one: the first to speak for an attempt is the one that is kept. What the
/// ledger has from it already is no news: it did not hear that its word came through, and says it again.
pub(super) struct LateRow<'a> {
    shard: i16,
    effect: Uuid,
    fence: i64,
    at: i64,
    code: OutcomeCode,
    error: Option<Text<'a>>,
}

impl<'a> LateRow<'a> {
    pub(super) fn of(late: &'a Late, now: Time) -> LateRow<'a> {
        LateRow {
            shard: key_shard(late.effect),
            effect: Uuid(late.effect.bytes()),
            fence: late.fence.as_u64() as i64,
            at: now.micros(),
            code: OutcomeCode::of(late.outcome),
            error: late.error.as_deref().map(sendable),
        }
    }

    pub(super) fn statement(&self) -> Statement<'_> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2),
            (&self.effect, Type::UUID),
            (&self.fence, Type::INT8),
            (&self.at, Type::INT8),
            (&self.code.kind, Type::INT2),
            (&self.code.detail, Type::INT2),
            (&self.error, Type::TEXT),
        ];
        let sql = "UPDATE hapax.attempt SET late_at = $4, late_outcome = $5, late_detail = $6
             WHERE shard = $1 AND effect = $2 AND fence = $3 AND late_at IS NULL
                 AND NOT (outcome = $5 AND detail = $6 AND error IS NOT DISTINCT FROM $7::text)";
        (sql, params)
    }
}

/// What was fetched to be sent along. The first stays, so that all attempts say the same, unless the effect converges: then the
/// newest state is the one to converge to.
pub(super) struct SnapshotRow<'a> {
    shard: i16,
    effect: Uuid,
    body: &'a [u8],
    converges: bool,
}

impl<'a> SnapshotRow<'a> {
    pub(super) fn of(id: EffectId, body: &'a Bytes, repeat: Option<Repeat>) -> SnapshotRow<'a> {
        SnapshotRow {
            shard: key_shard(id),
            effect: Uuid(id.bytes()),
            body,
            converges: repeat == Some(Repeat::Converges),
        }
    }

    pub(super) fn statement(&self) -> Statement<'_> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2),
            (&self.effect, Type::UUID),
            (&self.body, Type::BYTEA),
            (&self.converges, Type::BOOL),
        ];
        let sql = "INSERT INTO hapax.snapshot (shard, effect, body) VALUES ($1, $2, $3)
             ON CONFLICT (shard, effect) DO UPDATE SET body = excluded.body WHERE $4";
        (sql, params)
    }
}
