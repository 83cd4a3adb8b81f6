//! Turns of messages that were to be sent later: given when their time has come, each behind all that were given before. Whoever gives
//! them holds the application's row in `turn` until the commit, so that nobody sees a turn while a lower one may still come.

use hapax_ledger::id::AppId;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::pool::{Param, Pool};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::polling::{self, TURNS_PER_STEP};

/// Are there messages whose time has come, and that have no turn?
pub(super) async fn any(pool: &Pool, app: AppId, now: Time) -> Result<bool, StoreError> {
    let found = pool
        .walk(
            "SELECT FROM hapax.message
             WHERE deliver_at IS NOT NULL AND turn IS NULL AND app = $1 AND deliver_at <= $2 LIMIT 1",
            &[
                (&Uuid(app.bytes()), Type::UUID),
                (&now.micros(), Type::INT8),
            ],
        )
        .await?;
    Ok(!found.is_empty())
}

/// Gives turns to some of them, those that should have gone first first.
pub(super) async fn give(pool: &Pool, app: AppId, now: Time) -> Result<(), StoreError> {
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
    let due = taken
        .query(
            "SELECT shard, event, deliver_at FROM hapax.message
             WHERE deliver_at IS NOT NULL AND turn IS NULL AND app = $1 AND deliver_at <= $2
             ORDER BY deliver_at, event LIMIT $3",
            &[
                (&app, Type::UUID),
                (&now.micros(), Type::INT8),
                (&TURNS_PER_STEP, Type::INT8),
            ],
        )
        .await?;
    let (mut shards, mut events, mut turns) = (Vec::new(), Vec::new(), Vec::new());
    for row in &due {
        last = polling::turn(last, row.get(2));
        shards.push(row.get::<_, i16>(0));
        events.push(row.get::<_, Uuid>(1));
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
                 FROM unnest($1::int2[], $2::uuid[], $3::int8[]) AS k (shard, event, turn)
                 WHERE m.shard = k.shard AND m.event = k.event",
                given.to_vec(),
            ),
            (
                "UPDATE hapax.turn SET last = $2 WHERE app = $1",
                moved.to_vec(),
            ),
        ])
        .await?;
    Ok(())
}
