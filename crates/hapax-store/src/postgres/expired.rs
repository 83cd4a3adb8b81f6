//! Deleting what a step of the reaper found due in one shard, inside its transaction.
//!
//! Any number of nodes may reap: what another transaction holds is skipped, and no lock is waited for while one is held that
//! an arrival may want. `LATERAL` with a limit of its own keeps the planner to one look-up for each event: of a table that was not
//! analysed yet it would rather walk a whole shard.

use std::collections::{BTreeSet, HashSet};

use hapax_ledger::event::EventStatus;
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::number;
use super::pool::{Param, Taken};
use super::wire::Uuid;
use crate::error::StoreError;

/// The event's lock guards its bytes against other reapers, and keeps its effects from coming back. What is dead may still have
/// an effect on its way, which needs the bytes; that is asked by a statement that begins when the locks are held.
pub(super) async fn reap_payloads(
    taken: &Taken,
    events: &Vec<Uuid>,
    settled: &Vec<i16>,
    shard: i16,
) -> Result<u32, StoreError> {
    let due = taken
        .query(
            "SELECT e.* FROM unnest($2::uuid[]) AS k (id) CROSS JOIN LATERAL (
                 SELECT id, status FROM hapax.event WHERE shard = $1 AND id = k.id AND status = ANY ($3)
                 LIMIT 1 FOR UPDATE SKIP LOCKED
             ) e",
            &[
                (&shard, Type::INT2),
                (events, Type::UUID_ARRAY),
                (settled, Type::INT2_ARRAY),
            ],
        )
        .await?;
    let ids: Vec<Uuid> = due.iter().map(|row| row.get(0)).collect();
    let statuses: Vec<i16> = due.iter().map(|row| row.get(1)).collect();
    let dead = i16::from(EventStatus::Dead.code());
    let gone = taken
        .query(
            "WITH due AS MATERIALIZED (
                 SELECT k.id FROM (SELECT unnest($2::uuid[]), unnest($3::int2[])) AS k (id, status)
                 WHERE k.status <> $4 OR NOT EXISTS (
                     SELECT FROM (
                         SELECT id, queue_shard FROM hapax.effect WHERE event = k.id
                         UNION ALL
                         SELECT effect, queue_shard FROM hapax.effect_link WHERE shard = $1 AND event = k.id
                     ) AS c (effect, queue_shard)
                     JOIN hapax.queue q ON q.shard = c.queue_shard AND q.effect = c.effect
                     WHERE q.state IN (0, 1, 3)
                 ) AND NOT EXISTS (
                     SELECT FROM hapax.fan_out f WHERE f.shard = $1 AND f.event = k.id
                 )
             ), conflicting AS (
                 UPDATE hapax.delivery d SET body = NULL FROM due
                 WHERE d.shard = $1 AND d.event = due.id AND d.body IS NOT NULL
             ), gone AS (
                 DELETE FROM hapax.payload p USING due WHERE p.shard = $1 AND p.event = due.id RETURNING p.event
             )
             SELECT count(*) FROM gone",
            &[
                (&shard, Type::INT2),
                (&ids, Type::UUID_ARRAY),
                (&statuses, Type::INT2_ARRAY),
                (&dead, Type::INT2),
            ],
        )
        .await?;
    Ok(count(&gone, 0))
}

/// What happened to events goes, but for their first and their latest delivery, which count how often they came. Of attempts only
/// those that no other event tells of. The event's lock keeps its effects from coming back.
pub(super) async fn reap_ledgers(
    taken: &Taken,
    events: &Vec<Uuid>,
    settled: &Vec<i16>,
    shard: i16,
) -> Result<u32, StoreError> {
    let locked = taken
        .query(
            "SELECT e.* FROM unnest($2::uuid[]) AS k (id) CROSS JOIN LATERAL (
                 SELECT id FROM hapax.event WHERE shard = $1 AND id = k.id AND status = ANY ($3)
                 LIMIT 1 FOR UPDATE SKIP LOCKED
             ) e",
            &[
                (&shard, Type::INT2),
                (events, Type::UUID_ARRAY),
                (settled, Type::INT2_ARRAY),
            ],
        )
        .await?;
    let ids: Vec<Uuid> = locked.iter().map(|row| row.get(0)).collect();
    let gone = taken
        .query(
            "WITH due AS MATERIALIZED (
                 SELECT k.id FROM unnest($2::uuid[]) AS k (id)
                 WHERE NOT EXISTS (
                     SELECT FROM (
                         SELECT id, queue_shard FROM hapax.effect WHERE event = k.id
                         UNION ALL
                         SELECT effect, queue_shard FROM hapax.effect_link WHERE shard = $1 AND event = k.id
                     ) AS c (effect, queue_shard)
                     JOIN hapax.queue q ON q.shard = c.queue_shard AND q.effect = c.effect
                     WHERE q.state IN (0, 1, 3)
                 ) AND NOT EXISTS (SELECT FROM hapax.fan_out f WHERE f.shard = $1 AND f.event = k.id)
             ), called AS MATERIALIZED (
                 SELECT e.shard, e.id, e.event, e.event_shard FROM due
                 CROSS JOIN LATERAL (
                     SELECT shard, id FROM hapax.effect WHERE event = due.id
                     UNION ALL
                     SELECT effect_shard, effect FROM hapax.effect_link WHERE shard = $1 AND event = due.id
                 ) AS c (shard, id)
                 JOIN hapax.effect e ON e.shard = c.shard AND e.id = c.id
             ), untold AS MATERIALIZED (
                 SELECT c.shard, c.id FROM called c
                 WHERE NOT EXISTS (
                     SELECT FROM hapax.event v WHERE v.shard = c.event_shard AND v.id = c.event
                       AND v.ledger_until <> $3 AND v.id NOT IN (SELECT id FROM due)
                 ) AND NOT EXISTS (
                     SELECT FROM hapax.effect_link l JOIN hapax.event v ON v.shard = l.shard AND v.id = l.event
                     WHERE l.effect = c.id AND v.ledger_until <> $3 AND v.id NOT IN (SELECT id FROM due)
                 )
             ), attempts AS (
                 DELETE FROM hapax.attempt a USING untold u WHERE a.shard = u.shard AND a.effect = u.id
             ), deliveries AS (
                 DELETE FROM hapax.delivery d USING due WHERE d.shard = $1 AND d.event = due.id AND d.n < (
                     SELECT max(n) FROM hapax.delivery l WHERE l.shard = $1 AND l.event = due.id
                 )
             ), runs AS (
                 DELETE FROM hapax.run r USING due WHERE r.shard = $1 AND r.event = due.id
             ), gone AS (
                 UPDATE hapax.event e SET ledger_until = $3 FROM due
                 WHERE e.shard = $1 AND e.id = due.id RETURNING e.id
             )
             SELECT count(*) FROM gone",
            &[
                (&shard, Type::INT2),
                (&ids, Type::UUID_ARRAY),
                (&Time::MIN.micros(), Type::INT8),
            ],
        )
        .await?;
    Ok(count(&gone, 0))
}

/// Deletes events whose identity has expired, with all that hangs on them; says how many, and how many still had bytes. An
/// arrival may have extended one since it was looked at, so that is asked again under the lock.
pub(super) async fn reap_events(
    taken: &Taken,
    events: &Vec<Uuid>,
    settled: &Vec<i16>,
    now: i64,
    shard: i16,
) -> Result<(u32, u32), StoreError> {
    let due = taken
        .query(
            "SELECT e.* FROM unnest($2::uuid[]) AS k (id) CROSS JOIN LATERAL (
                 SELECT id, source, key_hash FROM hapax.event
                 WHERE shard = $1 AND id = k.id AND status = ANY ($3) AND expires_at <= $4
                 LIMIT 1 FOR UPDATE SKIP LOCKED
             ) e
             WHERE NOT EXISTS (SELECT FROM hapax.fan_out f WHERE f.shard = $1 AND f.event = k.id)",
            &[
                (&shard, Type::INT2),
                (events, Type::UUID_ARRAY),
                (settled, Type::INT2_ARRAY),
                (&now, Type::INT8),
            ],
        )
        .await?;
    let free = without_held_keys(taken, &due, shard).await?;
    let (free, effects) = without_held_effects(taken, free, shard).await?;
    if free.is_empty() {
        return Ok((0, 0));
    }
    if !effects.is_empty() {
        reap_effects(taken, &free, &effects, shard).await?;
    }
    let numbered = number::of_messages(taken, &free, shard).await?;
    let gone = taken
        .query(
            "WITH due AS (
                 SELECT unnest($2::uuid[]) AS id
             ), bytes AS (
                 DELETE FROM hapax.payload p USING due WHERE p.shard = $1 AND p.event = due.id RETURNING p.event
             ), deliveries AS (
                 DELETE FROM hapax.delivery d USING due WHERE d.shard = $1 AND d.event = due.id
             ), runs AS (
                 DELETE FROM hapax.run r USING due WHERE r.shard = $1 AND r.event = due.id
             ), messages AS (
                 DELETE FROM hapax.message m USING due WHERE m.shard = $1 AND m.event = due.id
             ), keys AS (
                 DELETE FROM hapax.identity i USING due, hapax.event e
                 WHERE e.shard = $1 AND e.id = due.id
                   AND i.shard = $1 AND i.source = e.source AND i.key_hash = e.key_hash AND i.event = e.id
             ), gone AS (
                 DELETE FROM hapax.event e USING due WHERE e.shard = $1 AND e.id = due.id RETURNING e.id
             )
             SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM bytes)",
            &[(&shard, Type::INT2), (&free, Type::UUID_ARRAY)],
        )
        .await?;
    if !effects.is_empty() {
        trim_shared(taken, &effects).await?;
    }
    number::forget(taken, &numbered).await?;
    Ok((count(&gone, 0), count(&gone, 1)))
}

/// Attempts at what events that are gone called for, and others still do, go if none of those tells of them any more.
async fn trim_shared(taken: &Taken, effects: &[(i16, Uuid)]) -> Result<(), StoreError> {
    let (shards, ids): (Vec<i16>, Vec<Uuid>) = effects.iter().copied().unzip();
    taken
        .query(
            "DELETE FROM hapax.attempt a USING (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS k (shard, id), hapax.effect c
             WHERE c.shard = k.shard AND c.id = k.id AND a.shard = c.shard AND a.effect = c.id
               AND NOT EXISTS (
                   SELECT FROM hapax.event v WHERE v.shard = c.event_shard AND v.id = c.event AND v.ledger_until <> $3
               ) AND NOT EXISTS (
                   SELECT FROM hapax.effect_link l JOIN hapax.event v ON v.shard = l.shard AND v.id = l.event
                   WHERE l.effect = c.id AND v.ledger_until <> $3
               )",
            &[
                (&shards, Type::INT2_ARRAY),
                (&ids, Type::UUID_ARRAY),
                (&Time::MIN.micros(), Type::INT8),
            ],
        )
        .await?;
    Ok(())
}

/// Of expired events, those whose key is ours to delete: it has gone over to another event, or we could lock it. An arrival
/// that holds the lock is about to take the key or to extend it; either way the next step sees what became of it.
async fn without_held_keys(
    taken: &Taken,
    due: &[Row],
    shard: i16,
) -> Result<Vec<Uuid>, StoreError> {
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = due.iter().map(|row| row.get(0)).collect();
    let sources: Vec<&str> = due.iter().map(|row| row.get(1)).collect();
    let hashes: Vec<Uuid> = due.iter().map(|row| row.get(2)).collect();
    let params: [Param<'_>; 4] = [
        (&shard, Type::INT2),
        (&ids, Type::UUID_ARRAY),
        (&sources, Type::TEXT_ARRAY),
        (&hashes, Type::UUID_ARRAY),
    ];
    let locked = taken
        .query(
            "SELECT i.event FROM (SELECT unnest($2::uuid[]), unnest($3::text[]), unnest($4::uuid[])) AS k (event, source, key_hash)
             JOIN hapax.identity i ON i.shard = $1 AND i.source = k.source COLLATE \"C\" AND i.key_hash = k.key_hash
              AND i.event = k.event
             FOR UPDATE OF i SKIP LOCKED",
            &params,
        )
        .await?;
    let held = taken
        .query(
            "SELECT i.event FROM (SELECT unnest($2::uuid[]), unnest($3::text[]), unnest($4::uuid[])) AS k (event, source, key_hash)
             JOIN hapax.identity i ON i.shard = $1 AND i.source = k.source COLLATE \"C\" AND i.key_hash = k.key_hash
              AND i.event = k.event",
            &params,
        )
        .await?;
    let locked: HashSet<Uuid> = locked.iter().map(|row| row.get(0)).collect();
    let mut theirs: HashSet<Uuid> = held.iter().map(|row| row.get(0)).collect();
    theirs.retain(|event| !locked.contains(event));
    Ok(ids
        .into_iter()
        .filter(|event| !theirs.contains(event))
        .collect())
}

/// Of expired events, those whose effects have all ended and could all be locked with their chains, and these effects as shards and
/// ids. Who holds an effect is about to move it, or to link it to one more event. What has not ended is not touched (I1): who opens
/// its gate would not wait for us.
async fn without_held_effects(
    taken: &Taken,
    events: Vec<Uuid>,
    shard: i16,
) -> Result<(Vec<Uuid>, Vec<(i16, Uuid)>), StoreError> {
    if events.is_empty() {
        return Ok((events, Vec::new()));
    }
    let called = taken
        .query(
            "SELECT event, shard, id FROM hapax.effect WHERE event = ANY ($2)
             UNION ALL
             SELECT event, effect_shard, effect FROM hapax.effect_link WHERE shard = $1 AND event = ANY ($2)",
            &[(&shard, Type::INT2), (&events, Type::UUID_ARRAY)],
        )
        .await?;
    if called.is_empty() {
        return Ok((events, Vec::new()));
    }
    let wanted: BTreeSet<(i16, Uuid)> = called.iter().map(|row| (row.get(1), row.get(2))).collect();
    let (shards, ids): (Vec<i16>, Vec<Uuid>) = wanted.into_iter().unzip();
    let params: [Param<'_>; 2] = [(&shards, Type::INT2_ARRAY), (&ids, Type::UUID_ARRAY)];
    let effects = taken.query(
        "SELECT e.shard, e.id, q.chain FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS k (shard, id)
         JOIN hapax.effect e ON e.shard = k.shard AND e.id = k.id
         JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id
         WHERE q.state NOT IN (0, 1, 3)
         FOR UPDATE OF e, q SKIP LOCKED",
        &params,
    );
    let chains = taken.query(
        "SELECT c.chain FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS k (shard, id)
         JOIN hapax.effect e ON e.shard = k.shard AND e.id = k.id
         JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id
         JOIN hapax.chain c ON c.shard = q.chain_shard AND c.chain = q.chain
         FOR UPDATE OF c SKIP LOCKED",
        &params,
    );
    let (effects, chains) = tokio::try_join!(biased; effects, chains)?;
    let chains: HashSet<Uuid> = chains.iter().map(|row| row.get(0)).collect();
    let ours = |row: &&Row| {
        let chain = row.get::<_, Option<Uuid>>(2);
        chain.is_none_or(|chain| chains.contains(&chain))
    };
    let locked = effects.iter().filter(ours);
    let locked: BTreeSet<(i16, Uuid)> = locked.map(|row| (row.get(0), row.get(1))).collect();
    let theirs: HashSet<Uuid> = called
        .iter()
        .filter(|row| !locked.contains(&(row.get(1), row.get(2))))
        .map(|row| row.get(0))
        .collect();
    let free = events
        .into_iter()
        .filter(|event| !theirs.contains(event))
        .collect();
    Ok((free, locked.into_iter().collect()))
}

/// Deletes the links of events that go, and of their effects those that no other event calls for: an effect's key holds as long
/// as any event that calls for it is known (B5). A chain goes with the last of its effects.
async fn reap_effects(
    taken: &Taken,
    events: &Vec<Uuid>,
    effects: &[(i16, Uuid)],
    shard: i16,
) -> Result<(), StoreError> {
    let (shards, ids): (Vec<i16>, Vec<Uuid>) = effects.iter().copied().unzip();
    taken
        .query(
            "WITH links AS (
                 DELETE FROM hapax.effect_link WHERE shard = $1 AND event = ANY ($2)
             ), gone AS MATERIALIZED (
                 SELECT e.shard, e.id, e.queue_shard, q.chain_shard, q.chain
                 FROM (SELECT unnest($3::int2[]), unnest($4::uuid[])) AS k (shard, id)
                 JOIN hapax.effect e ON e.shard = k.shard AND e.id = k.id
                 JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id
                 WHERE NOT EXISTS (
                     SELECT FROM hapax.event v
                     WHERE v.shard = e.event_shard AND v.id = e.event AND v.id <> ALL ($2)
                 ) AND NOT EXISTS (
                     SELECT FROM hapax.effect_link l WHERE l.effect = e.id AND l.event <> ALL ($2)
                 )
             ), attempts AS (
                 DELETE FROM hapax.attempt a USING gone WHERE a.shard = gone.shard AND a.effect = gone.id
             ), snapshots AS (
                 DELETE FROM hapax.snapshot s USING gone WHERE s.shard = gone.shard AND s.effect = gone.id
             ), queue AS (
                 DELETE FROM hapax.queue q USING gone WHERE q.shard = gone.queue_shard AND q.effect = gone.id
             ), left_chains AS MATERIALIZED (
                 SELECT chain_shard, chain, count(*) AS effects FROM gone WHERE chain IS NOT NULL
                 GROUP BY chain_shard, chain
             ), shorter AS (
                 UPDATE hapax.chain c SET effects = c.effects - l.effects FROM left_chains l
                 WHERE c.shard = l.chain_shard AND c.chain = l.chain AND c.effects > l.effects
             ), ended AS (
                 DELETE FROM hapax.chain c USING left_chains l
                 WHERE c.shard = l.chain_shard AND c.chain = l.chain AND c.effects <= l.effects
             )
             DELETE FROM hapax.effect e USING gone WHERE e.shard = gone.shard AND e.id = gone.id",
            &[
                (&shard, Type::INT2),
                (events, Type::UUID_ARRAY),
                (&shards, Type::INT2_ARRAY),
                (&ids, Type::UUID_ARRAY),
            ],
        )
        .await?;
    Ok(())
}

fn count(rows: &[Row], column: usize) -> u32 {
    rows.first()
        .map_or(0, |row| row.get::<_, i64>(column) as u32)
}
