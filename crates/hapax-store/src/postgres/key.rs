//! Guarded keys as rows.

use std::borrow::Cow;

use hapax_ledger::fingerprint::Fingerprint;
use hapax_ledger::guard::{GuardRecord, GuardState};
use hapax_ledger::id::KeyId;
use hapax_ledger::key::KeyHash;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::SHARDS;
use super::pool::{Param, Statement};
use super::wire::{Hash, Uuid, received, sendable};
use crate::guarded::Guarded;
use crate::nouns::KeyRecord;

/// A key with the hash that it is found by.
pub(super) struct KeyRow {
    pub(super) key: Guarded,
    pub(super) hash: KeyHash,
}

/// Where a key is: all nodes insert in this order, so that they wait for each other but never in a circle. Who locks keys does it in the order
/// of their ids; nobody who locks waits for somebody who inserts.
pub(super) type KeyPlace = (i16, Uuid);

/// Where the key of this hash is.
pub(super) fn place_of(hash: KeyHash) -> KeyPlace {
    (hash.shard(SHARDS) as i16, Uuid(hash.bytes()))
}

/// The columns of [`to_key`], in its order, and more behind them. One text, so that those who read keys cannot drift apart.
macro_rules! key_columns {
    ($more:literal, $rest:expr) => {
        concat!(
            "SELECT k.id, k.key_hash, k.guard, k.principal, k.method, k.path, k.key, k.node, k.runs, k.first_at, k.started_at,
                 k.ended_at, k.status, k.error, k.state, k.fingerprint, k.fence, k.lease_until, k.expires_at, k.grace",
            $more,
            " ",
            $rest
        )
    };
}
pub(super) use key_columns;

/// How many they are.
pub(super) const KEY_COLUMNS: usize = 20;

pub(super) fn to_key(row: &Row) -> KeyRow {
    let time = |column| Time::from_micros(row.get(column));
    let text = |column| received(row.get(column));
    let record = GuardRecord {
        // A state that nobody knows never runs again by itself.
        state: GuardState::from_code(row.get::<_, i16>(14) as u8).unwrap_or(GuardState::Unknown),
        fingerprint: Fingerprint::from_bytes(row.get::<_, Hash>(15).0),
        fence: Fence::from_u64(row.get::<_, i64>(16) as u64),
        lease_until: time(17),
        expires_at: time(18),
        grace: Span::from_micros(row.get(19)),
    };
    let shown = KeyRecord {
        id: KeyId::from_bytes(row.get::<_, Uuid>(0).0),
        guard: text(2).into(),
        principal: text(3).into(),
        method: text(4).into(),
        path: text(5).into(),
        key: text(6),
        state: record.state,
        runs: row.get::<_, i32>(8) as u32,
        fence: record.fence,
        node: text(7).into(),
        first_at: time(9),
        started_at: time(10),
        ended_at: row.get::<_, Option<i64>>(11).map(Time::from_micros),
        status: row.get::<_, Option<i32>>(12).map(|status| status as u16),
        error: row.get::<_, Option<String>>(13).map(received),
        expires_at: record.expires_at,
    };
    KeyRow {
        key: Guarded { shown, record },
        hash: KeyHash::from_bytes(row.get::<_, Uuid>(1).0),
    }
}

/// The columns of keys that are written.
pub(super) struct KeyColumns<'a> {
    shard: Vec<i16>,
    hash: Vec<Uuid>,
    id: Vec<Uuid>,
    /// Guard, principal, method, path, key, node.
    texts: [Vec<Cow<'a, str>>; 6],
    runs: Vec<i32>,
    first_at: Vec<i64>,
    started_at: Vec<i64>,
    ended_at: Vec<Option<i64>>,
    status: Vec<Option<i32>>,
    error: Vec<Option<Cow<'a, str>>>,
    state: Vec<i16>,
    fingerprint: Vec<Hash>,
    fence: Vec<i64>,
    lease_until: Vec<i64>,
    expires_at: Vec<i64>,
    grace: Vec<i64>,
}

impl<'a> KeyColumns<'a> {
    fn with_capacity(rows: usize) -> KeyColumns<'a> {
        KeyColumns {
            shard: Vec::with_capacity(rows),
            hash: Vec::with_capacity(rows),
            id: Vec::with_capacity(rows),
            texts: std::array::from_fn(|_| Vec::with_capacity(rows)),
            runs: Vec::with_capacity(rows),
            first_at: Vec::with_capacity(rows),
            started_at: Vec::with_capacity(rows),
            ended_at: Vec::with_capacity(rows),
            status: Vec::with_capacity(rows),
            error: Vec::with_capacity(rows),
            state: Vec::with_capacity(rows),
            fingerprint: Vec::with_capacity(rows),
            fence: Vec::with_capacity(rows),
            lease_until: Vec::with_capacity(rows),
            expires_at: Vec::with_capacity(rows),
            grace: Vec::with_capacity(rows),
        }
    }

    pub(super) fn of(rows: impl IntoIterator<Item = &'a KeyRow>) -> KeyColumns<'a> {
        let rows = rows.into_iter();
        let mut columns = KeyColumns::with_capacity(rows.size_hint().0);
        for KeyRow { key, hash } in rows {
            let (shown, record) = (&key.shown, &key.record);
            let (shard, hash) = place_of(*hash);
            columns.shard.push(shard);
            columns.hash.push(hash);
            columns.id.push(Uuid(shown.id.bytes()));
            let texts: [&'a str; 6] = [
                &shown.guard,
                &shown.principal,
                &shown.method,
                &shown.path,
                &shown.key,
                &shown.node,
            ];
            for (column, text) in columns.texts.iter_mut().zip(texts) {
                column.push(sendable(text));
            }
            columns.runs.push(shown.runs as i32);
            columns.first_at.push(shown.first_at.micros());
            columns.started_at.push(shown.started_at.micros());
            columns.ended_at.push(shown.ended_at.map(Time::micros));
            columns.status.push(shown.status.map(i32::from));
            columns.error.push(shown.error.as_deref().map(sendable));
            columns.state.push(record.state.code().into());
            columns.fingerprint.push(Hash(record.fingerprint.bytes()));
            columns.fence.push(record.fence.as_u64() as i64);
            columns.lease_until.push(record.lease_until.micros());
            columns.expires_at.push(record.expires_at.micros());
            columns.grace.push(record.grace.micros());
        }
        columns
    }

    /// What keys that are new do not share, in the order of [`new_key_columns`].
    pub(super) fn new_params(&self) -> [Param<'_>; 15] {
        let [guard, principal, method, path, key, node] = &self.texts;
        [
            (&self.shard, Type::INT2_ARRAY),
            (&self.hash, Type::UUID_ARRAY),
            (&self.id, Type::UUID_ARRAY),
            (guard, Type::TEXT_ARRAY),
            (principal, Type::TEXT_ARRAY),
            (method, Type::TEXT_ARRAY),
            (path, Type::TEXT_ARRAY),
            (key, Type::TEXT_ARRAY),
            (node, Type::TEXT_ARRAY),
            (&self.first_at, Type::INT8_ARRAY),
            (&self.fingerprint, Type::BYTEA_ARRAY),
            (&self.fence, Type::INT8_ARRAY),
            (&self.lease_until, Type::INT8_ARRAY),
            (&self.expires_at, Type::INT8_ARRAY),
            (&self.grace, Type::INT8_ARRAY),
        ]
    }

    /// All of them, in the order of [`UPDATE`].
    fn params(&self) -> Vec<Param<'_>> {
        let more: [Param<'_>; 6] = [
            (&self.runs, Type::INT4_ARRAY),
            (&self.started_at, Type::INT8_ARRAY),
            (&self.ended_at, Type::INT8_ARRAY),
            (&self.status, Type::INT4_ARRAY),
            (&self.error, Type::TEXT_ARRAY),
            (&self.state, Type::INT2_ARRAY),
        ];
        self.new_params().into_iter().chain(more).collect()
    }

    /// Writes keys that are there, and locked, anew. What a key is found by never changes.
    pub(super) fn update(&self) -> Statement<'_> {
        (UPDATE, self.params())
    }
}

/// Marks what is unknown: whoever writes a state writes this beside it, and nobody begins with that state. NULL and not false for all else, so
/// that it takes no room.
macro_rules! is_unknown {
    () => {
        "unknown = CASE WHEN x.state = 3 THEN true END"
    };
}
pub(super) use is_unknown;

/// The parameters of [`KeyColumns::new_params`] as columns. What all new keys share is not sent: each array costs about a microsecond.
macro_rules! new_key_columns {
    () => {
        "unnest($1::int2[]), unnest($2::uuid[]), unnest($3::uuid[]), unnest($4::text[]), unnest($5::text[]), unnest($6::text[]),
            unnest($7::text[]), unnest($8::text[]), unnest($9::text[]), unnest($10::int8[]), unnest($11::bytea[]), unnest($12::int8[]),
            unnest($13::int8[]), unnest($14::int8[]), unnest($15::int8[])"
    };
}
pub(super) use new_key_columns;
/// What these are called.
macro_rules! new_key_names {
    () => {
        "shard, key_hash, id, guard, principal, method, path, key, node, first_at, fingerprint, fence, lease_until, expires_at, grace"
    };
}
pub(super) use new_key_names;

const UPDATE: &str = concat!(
    "UPDATE hapax.guard_key k SET guard = x.guard, principal = x.principal, method = x.method, path = x.path, key = x.key,
         node = x.node, runs = x.runs, started_at = x.started_at, ended_at = x.ended_at, status = x.status, error = x.error,
         state = x.state, ",
    is_unknown!(),
    ", fingerprint = x.fingerprint, fence = x.fence, lease_until = x.lease_until, expires_at = x.expires_at, grace = x.grace
     FROM ",
    "(SELECT ",
    new_key_columns!(),
    ", unnest($16::int4[]), unnest($17::int8[]), unnest($18::int8[]), unnest($19::int4[]), unnest($20::text[]), unnest($21::int2[]))
         AS x (",
    new_key_names!(),
    ", runs, started_at, ended_at, status, error, state)
     WHERE k.shard = x.shard AND k.key_hash = x.key_hash"
);

/// What is kept of answers, by key.
#[derive(Default)]
pub(super) struct Answers {
    shard: Vec<i16>,
    id: Vec<Uuid>,
    answer: Vec<Vec<u8>>,
}

impl Answers {
    pub(super) fn keep(&mut self, id: KeyId, answer: &[u8]) {
        self.forget(id);
        self.answer.push(answer.to_vec());
    }

    /// Names a key whose answer goes.
    pub(super) fn forget(&mut self, id: KeyId) {
        self.shard.push(id.0.shard() as i16);
        self.id.push(Uuid(id.bytes()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Keeps them. A key's lock is held, so nobody else writes its answer.
    pub(super) fn update(&self) -> Statement<'_> {
        let sql = "UPDATE hapax.guard_key k SET answer = x.answer
             FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::bytea[])) AS x (shard, id, answer)
             WHERE k.id = x.id AND k.shard = x.shard";
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.id, Type::UUID_ARRAY),
            (&self.answer, Type::BYTEA_ARRAY),
        ];
        (sql, params)
    }

    /// Deletes them.
    pub(super) fn delete(&self) -> Statement<'_> {
        let sql = "UPDATE hapax.guard_key k SET answer = NULL
             FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS x (shard, id)
             WHERE k.id = x.id AND k.shard = x.shard AND k.answer IS NOT NULL";
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.id, Type::UUID_ARRAY),
        ];
        (sql, params)
    }
}
