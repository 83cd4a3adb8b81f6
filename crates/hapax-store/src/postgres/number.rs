//! The numbers of messages: per application and key, in the order in which they are accepted, without a gap. A key's count goes with
//! the last message that it was given to, so that there are never more counts than messages; a message after that is number 1.

use std::collections::BTreeMap;

use hapax_ledger::id::AppId;
use hapax_ledger::key::{KeyHash, KeyKind};
use tokio_postgres::types::Type;

use super::SHARDS;
use super::pool::Taken;
use super::wire::{Uuid, received, sendable};
use crate::error::StoreError;
use crate::nouns::app_source;

/// An application and a key, in the order in which they are locked.
pub(super) type Key = (i16, [u8; 16], String);

/// Numbers that were given to a group, by key; from the first on.
pub(super) struct Numbers {
    next: BTreeMap<Key, i64>,
}

fn key(app: AppId, key: &str) -> Key {
    let shard = KeyHash::of(KeyKind::Chain, &app_source(app), key).shard(SHARDS);
    (shard as i16, app.bytes(), key.to_owned())
}

impl Numbers {
    /// Takes as many numbers as there are messages of each key. Nobody else gets one before our transaction has ended.
    pub(super) async fn take(
        taken: &Taken,
        wanted: impl Iterator<Item = (AppId, &str)>,
    ) -> Result<Numbers, StoreError> {
        let mut counts: BTreeMap<Key, i64> = BTreeMap::new();
        for (app, under) in wanted {
            *counts.entry(key(app, under)).or_default() += 1;
        }
        if counts.is_empty() {
            return Ok(Numbers { next: counts });
        }
        let shards: Vec<i16> = counts.keys().map(|key| key.0).collect();
        let apps: Vec<Uuid> = counts.keys().map(|key| Uuid(key.1)).collect();
        let keys: Vec<_> = counts.keys().map(|key| sendable(&key.2)).collect();
        let many: Vec<i64> = counts.values().copied().collect();
        let rows = taken
            .query(
                "INSERT INTO hapax.number (shard, app, key, last)
                 SELECT k.shard, k.app, k.key, k.many
                 FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::text[]), unnest($4::int8[]),
                     generate_subscripts($1::int2[], 1)) AS k (shard, app, key, many, place)
                 ORDER BY k.place
                 ON CONFLICT (shard, app, key) DO UPDATE SET last = number.last + excluded.last
                 RETURNING shard, app, key, last",
                &[
                    (&shards, Type::INT2_ARRAY),
                    (&apps, Type::UUID_ARRAY),
                    (&keys, Type::TEXT_ARRAY),
                    (&many, Type::INT8_ARRAY),
                ],
            )
            .await?;
        let given = rows.iter().map(|row| {
            let key = (row.get(0), row.get::<_, Uuid>(1).0, received(row.get(2)));
            let first = row.get::<_, i64>(3) - counts.get(&key).copied().unwrap_or(0) + 1;
            (key, first)
        });
        let next = given.collect();
        Ok(Numbers { next })
    }

    /// The next one of a key.
    pub(super) fn next(&mut self, app: AppId, under: &str) -> Option<i64> {
        let next = self.next.get_mut(&key(app, under))?;
        *next += 1;
        Some(*next - 1)
    }
}

/// What messages that are about to be forgotten were numbered under, and the numbers that they have.
pub(super) async fn of_messages(
    taken: &Taken,
    events: &Vec<Uuid>,
    shard: i16,
) -> Result<Vec<(Key, i64)>, StoreError> {
    let rows = taken
        .query(
            "SELECT app, coalesce(ordering_key, sequence_key), sequence FROM hapax.message
             WHERE shard = $1 AND event = ANY ($2) AND sequence IS NOT NULL",
            &[(&shard, Type::INT2), (events, Type::UUID_ARRAY)],
        )
        .await?;
    let found = rows.iter().map(|row| {
        let app = AppId::from_bytes(row.get::<_, Uuid>(0).0);
        (key(app, &received(row.get(1))), row.get(2))
    });
    Ok(found.collect())
}

/// Messages with these numbers are forgotten: where one was the last of its key, so is the count. One that somebody counts on at this
/// moment is left alone: it moves.
pub(super) async fn forget(taken: &Taken, numbered: &[(Key, i64)]) -> Result<(), StoreError> {
    if numbered.is_empty() {
        return Ok(());
    }
    let shards: Vec<i16> = numbered.iter().map(|(key, _)| key.0).collect();
    let apps: Vec<Uuid> = numbered.iter().map(|(key, _)| Uuid(key.1)).collect();
    let keys: Vec<_> = numbered.iter().map(|(key, _)| sendable(&key.2)).collect();
    let numbers: Vec<i64> = numbered.iter().map(|(_, number)| *number).collect();
    taken
        .query(
            "WITH last AS MATERIALIZED (
                 SELECT k.shard, k.app, k.key
                 FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::text[]), unnest($4::int8[])) AS k (shard, app, key, number)
                 CROSS JOIN LATERAL (
                     SELECT FROM hapax.number
                     WHERE shard = k.shard AND app = k.app AND key = k.key AND last = k.number
                     LIMIT 1 FOR UPDATE SKIP LOCKED
                 ) held
             )
             DELETE FROM hapax.number n USING last WHERE n.shard = last.shard AND n.app = last.app AND n.key = last.key",
            &[
                (&shards, Type::INT2_ARRAY),
                (&apps, Type::UUID_ARRAY),
                (&keys, Type::TEXT_ARRAY),
                (&numbers, Type::INT8_ARRAY),
            ],
        )
        .await?;
    Ok(())
}
