//! A database that was restored: it does not know what happened since the backup was made (C1).
//!
//! A dump is noticed by itself: in another database the store's own row is in another table. What brings back the files as they were, such
//! as a snapshot or a point in time, is not to be told from a restart, and an operator says so (`hapax store restored`). Either way the
//! epoch outruns every fence that was given since, and what is unfinished may have been sent. Nodes that start meanwhile help until all of
//! it is gone through, and none works before.

use std::collections::BTreeSet;

use hapax_ledger::id::EffectId;
use hapax_ledger::outcome::{Lost, Outcome};
use hapax_ledger::transition::{EffectStep, step as ledger_step};
use tokio_postgres::types::Type;

use super::advance::lock_effects;
use super::carry::carry_out;
use super::chain;
use super::effect::to_held;
use super::effect_id::queue_shard;
use super::held::Hand;
use super::moment::{LeaseClock, moment};
use super::pool::{Pool, Taken};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::Said;

/// How far the epoch jumps: beyond all that the store may have begun since the backup.
const EPOCHS_AHEAD: i32 = 1 << 16;
/// Effects that are gone through in one transaction.
const ROWS_PER_STEP: i64 = 500;
/// No effect has this id.
const BEFORE_ALL: Uuid = Uuid([0; 16]);

/// Notices a dump. In an open transaction that nobody else makes at the same time.
pub(super) async fn notice(taken: &Taken) -> Result<(), StoreError> {
    let moved = taken
        .query(
            "UPDATE hapax.store SET place = 'hapax.store'::regclass::oid, epoch = epoch + CASE WHEN place = 0 THEN 0 ELSE $1 END,
                 restored_after = CASE WHEN place = 0 THEN NULL ELSE $2 END
             WHERE one = 1 AND place <> 'hapax.store'::regclass::oid RETURNING restored_after IS NOT NULL",
            &[(&EPOCHS_AHEAD, Type::INT4), (&BEFORE_ALL, Type::UUID)],
        )
        .await?;
    if moved.first().is_some_and(|row| row.get(0)) {
        tracing::warn!(
            "this database was restored from a dump: what was unfinished may have been sent since"
        );
    }
    Ok(())
}

/// Takes note that the database is as it was at an earlier time.
pub(super) async fn declare(pool: &Pool) -> Result<(), StoreError> {
    let taken = pool.take().await?;
    taken
        .begin(
            "UPDATE hapax.store SET epoch = epoch + $1, restored_after = $2 WHERE one = 1",
            &[(&EPOCHS_AHEAD, Type::INT4), (&BEFORE_ALL, Type::UUID)],
        )
        .await?;
    taken.commit().await
}

/// Makes all that is unfinished ambiguous, if it has to be; says how many effects that were.
pub(super) async fn go_through(pool: &Pool, clock: &LeaseClock) -> Result<u64, StoreError> {
    let mut all = 0;
    while let Some(some) = step(pool, clock).await? {
        all += some;
    }
    Ok(all)
}

/// The next effects behind the mark, which moves with them. `None`: there is nothing to go through.
async fn step(pool: &Pool, clock: &LeaseClock) -> Result<Option<u64>, StoreError> {
    let taken = pool.take().await?;
    let mark = "SELECT restored_after FROM hapax.store WHERE one = 1 FOR UPDATE";
    let mark = taken.begin(mark, &[]).await?;
    let Some(after) = mark.first().and_then(|row| row.get::<_, Option<Uuid>>(0)) else {
        taken.roll_back().await;
        return Ok(None);
    };
    let ids = unfinished(&taken, after).await?;
    let last = ids.last().map(|id| Uuid(id.bytes()));
    taken
        .query(
            "UPDATE hapax.store SET restored_after = $1 WHERE one = 1",
            &[(&last, Type::UUID)],
        )
        .await?;
    let ids: BTreeSet<EffectId> = ids.into_iter().collect();
    let (chains, found, moment) = tokio::try_join!(
        biased;
        chain::lock_of(&taken, &ids),
        lock_effects(&taken, &ids),
        moment(&taken, clock),
    )?;
    let mut hand = Hand::new(moment, found.iter().map(to_held));
    hand.chains = chains;
    let restored = hand.restore_all();
    carry_out(taken, &hand).await?;
    Ok(Some(restored))
}

/// What is pending or claimed behind this effect, in the order of the queue's own key.
async fn unfinished(taken: &Taken, after: Uuid) -> Result<Vec<EffectId>, StoreError> {
    let shard = match after == BEFORE_ALL {
        true => -1,
        false => queue_shard(EffectId::from_bytes(after.0)),
    };
    let rows = taken
        .query(
            "SELECT effect FROM hapax.queue WHERE (shard, effect) > ($1, $2) AND state IN (0, 1)
             ORDER BY shard, effect LIMIT $3",
            &[
                (&shard, Type::INT2),
                (&after, Type::UUID),
                (&ROWS_PER_STEP, Type::INT8),
            ],
        )
        .await?;
    let ids = rows.iter().map(|row| row.get::<_, Uuid>(0));
    Ok(ids.map(|id| EffectId::from_bytes(id.0)).collect())
}

impl Hand {
    /// Nobody knows what became of any of these since.
    fn restore_all(&mut self) -> u64 {
        let all: Vec<EffectId> = self.held.keys().copied().collect();
        let restored = all.into_iter().filter(|id| self.restore(*id));
        restored.count() as u64
    }

    fn restore(&mut self, id: EffectId) -> bool {
        let Some(held) = self.held.get(&id) else {
            return false;
        };
        let record = held.effect.record;
        let Ok(change) = ledger_step(&record, &EffectStep::Restore { now: self.now }) else {
            return false;
        };
        let why = Lost::Crash;
        match record.started {
            true => self.end(id, Outcome::Lost { why }, Said::default(), change),
            false => self.become_(id, &change),
        };
        true
    }
}
