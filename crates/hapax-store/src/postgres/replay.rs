//! Replays of many events, as rows.

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EventId, ReplayId};
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::pool::{Param, Pool, Taken};
use super::wire::{Uuid, received, sendable};
use crate::error::StoreError;
use crate::nouns::{EventFilter, PAGE_MAX, Replay, ReplayProgress, ReplayState};

/// The columns of [`to_replay`], in its order.
macro_rules! replay_columns {
    ($rest:literal) => {
        concat!(
            "SELECT id, of_source, of_type, of_status, of_key, of_entity, of_since, of_until, actor, reason, created_at,
                 dry_run, rate, state, after, total, done, skipped, blocked, failed, task FROM hapax.replay ",
            $rest
        )
    };
}

fn to_replay(row: &Row) -> Replay {
    let text = |column| row.get::<_, Option<String>>(column).map(received);
    let time = |column| row.get::<_, Option<i64>>(column).map(Time::from_micros);
    let count = |column| row.get::<_, i64>(column) as u64;
    let status = row.get::<_, Option<i16>>(3);
    let after = row.get::<_, Option<Uuid>>(14);
    let rate = row.get::<_, Option<i64>>(12);
    Replay {
        id: ReplayId::from_bytes(row.get::<_, Uuid>(0).0),
        filter: EventFilter {
            source: text(1),
            event_type: text(2),
            status: status.and_then(|code| EventStatus::from_code(code as u8)),
            key: text(4),
            key_contains: None,
            entity: text(5),
            since: time(6),
            until: time(7),
        },
        actor: received(row.get(8)).into(),
        reason: received(row.get(9)),
        created_at: Time::from_micros(row.get(10)),
        dry_run: row.get(11),
        rate: rate.map(|rate| rate as u32),
        task: text(20),
        // What cannot be read does not run.
        state: ReplayState::from_code(row.get::<_, i16>(13) as u8)
            .unwrap_or(ReplayState::Cancelled),
        progress: ReplayProgress {
            after: after.map(|after| EventId::from_bytes(after.0)),
            total: count(15),
            done: count(16),
            skipped: count(17),
            blocked: count(18),
            failed: count(19),
        },
    }
}

/// Progress as parameters: the last event, and five counts.
struct ProgressRow {
    after: Option<Uuid>,
    counts: [i64; 5],
}

impl ProgressRow {
    fn of(progress: &ReplayProgress) -> ProgressRow {
        let counts = [
            progress.total,
            progress.done,
            progress.skipped,
            progress.blocked,
            progress.failed,
        ];
        ProgressRow {
            after: progress.after.map(|event| Uuid(event.bytes())),
            counts: counts.map(|count| count as i64),
        }
    }

    fn params(&self) -> [Param<'_>; 6] {
        let [total, done, skipped, blocked, failed] = &self.counts;
        [
            (&self.after, Type::UUID),
            (total, Type::INT8),
            (done, Type::INT8),
            (skipped, Type::INT8),
            (blocked, Type::INT8),
            (failed, Type::INT8),
        ]
    }
}

/// Keeps a new replay. The transaction is open.
pub(super) async fn insert(taken: &Taken, replay: &Replay) -> Result<(), StoreError> {
    let filter = &replay.filter;
    let text = |text: &Option<String>| text.as_deref().map(|text| sendable(text).into_owned());
    let texts = [
        text(&filter.source),
        text(&filter.event_type),
        text(&filter.key),
        text(&filter.entity),
        text(&replay.task),
    ];
    let [source, kind, key, entity, task] = &texts;
    let progress = ProgressRow::of(&replay.progress);
    let status = filter.status.map(|status| i16::from(status.code()));
    let (since, until) = (
        filter.since.map(Time::micros),
        filter.until.map(Time::micros),
    );
    let (actor, reason) = (sendable(&replay.actor), sendable(&replay.reason));
    let (id, rate) = (Uuid(replay.id.bytes()), replay.rate.map(i64::from));
    let (created_at, state) = (replay.created_at.micros(), i16::from(replay.state.code()));
    let mut params: Vec<Param<'_>> = progress.params().into();
    params.extend([
        (&id as _, Type::UUID),
        (source as _, Type::TEXT),
        (kind as _, Type::TEXT),
        (&status as _, Type::INT2),
        (key as _, Type::TEXT),
        (entity as _, Type::TEXT),
        (&since as _, Type::INT8),
        (&until as _, Type::INT8),
        (&actor as _, Type::TEXT),
        (&reason as _, Type::TEXT),
        (&created_at as _, Type::INT8),
        (&replay.dry_run as _, Type::BOOL),
        (&rate as _, Type::INT8),
        (&state as _, Type::INT2),
        (task as _, Type::TEXT),
    ]);
    taken
        .query(
            "INSERT INTO hapax.replay (after, total, done, skipped, blocked, failed, id, of_source, of_type, of_status, of_key,
                 of_entity, of_since, of_until, actor, reason, created_at, dry_run, rate, state, task)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
            &params,
        )
        .await?;
    Ok(())
}

/// One replay.
pub(super) async fn one(pool: &Pool, id: ReplayId) -> Result<Option<Replay>, StoreError> {
    let rows = pool
        .read(
            replay_columns!("WHERE id = $1"),
            &[(&Uuid(id.bytes()), Type::UUID)],
        )
        .await?;
    Ok(rows.first().map(to_replay))
}

/// Those in this state, newest first.
pub(super) async fn all(
    pool: &Pool,
    state: Option<ReplayState>,
) -> Result<Vec<Replay>, StoreError> {
    let state = state.map(|state| i16::from(state.code()));
    let rows = pool
        .read(
            replay_columns!(
                "WHERE $1::int2 IS NULL OR state = $1 ORDER BY created_at DESC, id DESC LIMIT $2"
            ),
            &[(&state, Type::INT2), (&i64::from(PAGE_MAX), Type::INT8)],
        )
        .await?;
    Ok(rows.iter().map(to_replay).collect())
}

/// Moves a running replay on, if it still stands where its worker left it.
pub(super) async fn carry(
    pool: &Pool,
    id: ReplayId,
    from: &ReplayProgress,
    to: &ReplayProgress,
    state: ReplayState,
    found: Option<&str>,
) -> Result<bool, StoreError> {
    let found = found.map(sendable);
    let (from, to) = (ProgressRow::of(from), ProgressRow::of(to));
    let (id, state) = (Uuid(id.bytes()), i16::from(state.code()));
    let running = i16::from(ReplayState::Running.code());
    let mut params: Vec<Param<'_>> = from.params().into();
    params.extend(to.params());
    params.extend([
        (&id as _, Type::UUID),
        (&state as _, Type::INT2),
        (&running as _, Type::INT2),
        (&found as _, Type::TEXT),
    ]);
    let carried = pool
        .take()
        .await?
        .query_and_commit(
            "UPDATE hapax.replay SET after = $7, total = $8, done = $9, skipped = $10, blocked = $11, failed = $12, state = $14,
                 found = coalesce($16, found)
             WHERE id = $13 AND state = $15 AND after IS NOT DISTINCT FROM $1 AND total = $2 AND done = $3 AND skipped = $4
               AND blocked = $5 AND failed = $6
             RETURNING id",
            &params,
        )
        .await?;
    Ok(!carried.is_empty())
}

/// What a replay has found out.
pub(super) async fn found(pool: &Pool, id: ReplayId) -> Result<Option<String>, StoreError> {
    let rows = pool
        .read(
            "SELECT found FROM hapax.replay WHERE id = $1",
            &[(&Uuid(id.bytes()), Type::UUID)],
        )
        .await?;
    let found = rows.first().and_then(|row| row.get::<_, Option<String>>(0));
    Ok(found.map(received))
}

/// Stops a running replay. The transaction is open.
pub(super) async fn cancel(taken: &Taken, id: ReplayId) -> Result<bool, StoreError> {
    let cancelled = taken
        .query(
            "UPDATE hapax.replay SET state = $2 WHERE id = $1 AND state = $3 RETURNING id",
            &[
                (&Uuid(id.bytes()), Type::UUID),
                (&i16::from(ReplayState::Cancelled.code()), Type::INT2),
                (&i16::from(ReplayState::Running.code()), Type::INT2),
            ],
        )
        .await?;
    Ok(!cancelled.is_empty())
}
