//! Turns of messages, for those who ask: given when somebody asks and a message is there, and its time has come, each behind all that were
//! given before. Whoever gives them holds the application's row in `turn` until the commit, so that nobody sees a turn while a lower one
//! may still come. Why every message gets one: docs/design/in-which-order-are-messages-polled.md.

use hapax_ledger::id::{AppId, RawId};
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::pool::{Param, Pool, Taken};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::polling::{self, Given, TURNS_PER_STEP};

/// Are there messages that have no turn, and whose time has come?
pub(super) async fn any(pool: &Pool, app: AppId, now: Time) -> Result<bool, StoreError> {
    let found = pool
        .walk(
            "SELECT EXISTS (SELECT FROM hapax.message WHERE deliver_at IS NULL AND turn IS NULL AND app = $1)
                 OR EXISTS (SELECT FROM hapax.message
                     WHERE deliver_at IS NOT NULL AND turn IS NULL AND app = $1 AND deliver_at <= $2)",
            &[
                (&Uuid(app.bytes()), Type::UUID),
                (&now.micros(), Type::INT8),
            ],
        )
        .await?;
    Ok(found.first().is_some_and(|row| row.get(0)))
}

/// A message without a turn.
struct Due {
    /// When it came, or was to be sent.
    at: i64,
    event: Uuid,
    shard: i16,
}

/// Gives turns to some of them, those that came or should have gone first first.
pub(super) async fn give(pool: &Pool, app: AppId, now: Time) -> Result<Given, StoreError> {
    let app = Uuid(app.bytes());
    let taken = pool.take().await?;
    let held = taken
        .begin(
            "INSERT INTO hapax.turn (app, last) VALUES ($1, 0)
             ON CONFLICT (app) DO UPDATE SET last = turn.last RETURNING last",
            &[(&app, Type::UUID)],
        )
        .await?;
    let mut last: i64 = held.first().map_or(0, |row| row.get(0));
    let due = due(&taken, app, now).await?;
    let (mut shards, mut events, mut turns) = (Vec::new(), Vec::new(), Vec::new());
    for Due { at, event, shard } in &due {
        last = polling::turn(last, *at);
        shards.push(*shard);
        events.push(*event);
        turns.push(last);
    }
    let given: [Param<'_>; 3] = [
        (&shards, Type::INT2_ARRAY),
        (&events, Type::UUID_ARRAY),
        (&turns, Type::INT8_ARRAY),
    ];
    let moved: [Param<'_>; 2] = [(&app, Type::UUID), (&last, Type::INT8)];
    taken
        .commit_behind(&[
            (
                "UPDATE hapax.message m SET turn = k.turn
                 FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int8[])) AS k (shard, event, turn)
                 WHERE m.shard = k.shard AND m.event = k.event",
                given.to_vec(),
            ),
            (
                "UPDATE hapax.turn SET last = $2 WHERE app = $1",
                moved.to_vec(),
            ),
        ])
        .await?;
    Ok(Given::of(due.len()))
}

/// The next that get a turn. The turns are ours to give by then, so whatever was given before is seen.
async fn due(taken: &Taken, app: Uuid, now: Time) -> Result<Vec<Due>, StoreError> {
    let many = TURNS_PER_STEP as i64;
    let now = now.micros();
    let at_once: [Param<'_>; 2] = [(&app, Type::UUID), (&many, Type::INT8)];
    let later: [Param<'_>; 3] = [(&app, Type::UUID), (&many, Type::INT8), (&now, Type::INT8)];
    let (at_once, later) = tokio::try_join!(
        biased;
        taken.query(
            "SELECT shard, event FROM hapax.message
             WHERE deliver_at IS NULL AND turn IS NULL AND app = $1 ORDER BY event LIMIT $2",
            &at_once,
        ),
        taken.query(
            "SELECT shard, event, deliver_at FROM hapax.message
             WHERE deliver_at IS NOT NULL AND turn IS NULL AND app = $1 AND deliver_at <= $3
             ORDER BY deliver_at, event LIMIT $2",
            &later,
        ),
    )?;
    let at_once = at_once.iter().map(|row| {
        let event: Uuid = row.get(1);
        Due {
            at: came_at(event),
            event,
            shard: row.get(0),
        }
    });
    let later = later.iter().map(|row| Due {
        at: row.get(2),
        event: row.get(1),
        shard: row.get(0),
    });
    let mut due: Vec<Due> = at_once.chain(later).collect();
    due.sort_by_key(|due| (due.at, due.event));
    due.truncate(TURNS_PER_STEP);
    Ok(due)
}

/// When a message came: its id carries it.
fn came_at(event: Uuid) -> i64 {
    RawId::from_bytes(event.0).millis() as i64 * 1_000
}
