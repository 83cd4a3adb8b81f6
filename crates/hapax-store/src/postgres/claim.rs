//! Claims, moves and rescues: one transaction each, or one for a group of moves.
//!
//! Effects are locked first, then the moment is read, then the ledger decides in memory, then all of it is written. What others
//! hold is skipped by claims and rescues, and waited for by moves, in the order of ids.

use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::batch::{Job, Work};
use super::effect::{self, effect_columns, to_held};
use super::held::{Hand, Held};
use super::moment::{LeaseClock, moment, now};
use super::pool::{Pool, Taken};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::{ClaimAsk, Claimed, Move, Moved};

/// Effects that one claim takes at most, whatever is asked for: they are locked until its commit.
const CLAIM_ROWS_MAX: u32 = 1_000;
/// Effects that one step of the rescue looks at.
const RESCUE_ROWS: i64 = 500;

/// Claims what is due in one shard, earliest first.
pub(super) async fn claim(
    pool: &Pool,
    ask: &ClaimAsk,
    clock: &LeaseClock,
) -> Result<Vec<Claimed>, StoreError> {
    let taken = pool.take().await?;
    let shard = ask.shard as i16;
    let limit = i64::from(ask.limit.min(CLAIM_ROWS_MAX));
    let (given, limit) = (clock.given(), limit);
    let params = [
        (&shard as _, Type::INT2),
        (&given as _, Type::INT8),
        (&limit as _, Type::INT8),
    ];
    let due = taken.begin(
        effect_columns!(
            concat!(
                "WITH q AS MATERIALIZED (
                     SELECT * FROM hapax.queue WHERE shard = $1 AND state = 0 AND next_at <= ",
                now!("$2"),
                " ORDER BY next_at LIMIT $3 FOR UPDATE SKIP LOCKED
                 ) "
            ),
            "FROM q JOIN hapax.effect e ON e.shard = q.shard AND e.id = q.effect ORDER BY q.next_at, e.id"
        ),
        &params,
    );
    let (due, moment) = tokio::try_join!(biased; due, moment(&taken, clock))?;
    let due: Vec<Held> = due.iter().map(to_held).collect();
    let ids: Vec<EffectId> = due.iter().map(|held| held.effect.id).collect();
    let mut hand = Hand::new(moment, due);
    let claimed = ids
        .into_iter()
        .filter_map(|id| hand.claim(id, ask))
        .collect();
    effect::write(&taken, &hand).await?;
    taken.commit().await?;
    Ok(claimed)
}

/// Frees what is held beyond its lease in one shard; its attempts are lost.
pub(super) async fn rescue(pool: &Pool, shard: u16, clock: &LeaseClock) -> Result<u32, StoreError> {
    let taken = pool.take().await?;
    let (shard, given) = (shard as i16, clock.given());
    let params = [
        (&shard as _, Type::INT2),
        (&given as _, Type::INT8),
        (&RESCUE_ROWS as _, Type::INT8),
    ];
    let expired = taken.begin(
        effect_columns!(
            concat!(
                "WITH q AS MATERIALIZED (
                     SELECT * FROM hapax.queue WHERE shard = $1 AND state = 1 AND lease_until <= ",
                now!("$2"),
                " ORDER BY lease_until LIMIT $3 FOR UPDATE SKIP LOCKED
                 ) "
            ),
            "FROM q JOIN hapax.effect e ON e.shard = q.shard AND e.id = q.effect"
        ),
        &params,
    );
    let (expired, moment) = tokio::try_join!(biased; expired, moment(&taken, clock))?;
    let mut hand = Hand::new(moment, expired.iter().map(to_held));
    let freed = hand.expire_all();
    effect::write(&taken, &hand).await?;
    taken.commit().await?;
    Ok(freed)
}

/// A move that a worker asks for.
#[derive(Clone, Copy)]
pub(super) struct MoveAsk {
    pub(super) effect: EffectId,
    pub(super) fence: Fence,
    pub(super) what: Move,
}

/// Carries out moves, any number of them in one commit.
pub(super) struct Moves {
    pub(super) clock: LeaseClock,
}

impl Work for Moves {
    type Ask = MoveAsk;
    type Answer = Moved;
    const ASKS: &'static str = "moves";

    fn bytes(_: &MoveAsk) -> usize {
        size_of::<MoveAsk>()
    }

    async fn step(&self, taken: Taken, jobs: Vec<Job<Moves>>) {
        let asks: Vec<MoveAsk> = jobs.iter().map(|job| job.ask).collect();
        match advance(taken, &asks, &self.clock).await {
            Ok(moved) => {
                for (job, moved) in jobs.into_iter().zip(moved) {
                    job.answer(Ok(moved));
                }
            }
            Err(error) => {
                tracing::error!(%error, moves = jobs.len(), "a group of moves failed");
                Job::refuse(jobs, &error);
            }
        }
    }
}

/// Moves effects for the workers that show their fences, all in one transaction, one after the other.
async fn advance(
    taken: Taken,
    asks: &[MoveAsk],
    clock: &LeaseClock,
) -> Result<Vec<Moved>, StoreError> {
    let (found, moment) =
        tokio::try_join!(biased; lock_effects(&taken, asks), moment(&taken, clock))?;
    let mut hand = Hand::new(moment, found.iter().map(to_held));
    let moved = asks
        .iter()
        .map(|ask| hand.advance(ask.effect, ask.fence, ask.what))
        .collect();
    effect::write(&taken, &hand).await?;
    taken.commit().await?;
    Ok(moved)
}

/// Begins the transaction and locks the effects in the order of their ids, so that groups wait for each other but never in a
/// circle. A row that had to be waited for is read as its last holder left it.
async fn lock_effects(taken: &Taken, asks: &[MoveAsk]) -> Result<Vec<Row>, StoreError> {
    let mut ids: Vec<EffectId> = asks.iter().map(|ask| ask.effect).collect();
    ids.sort_unstable();
    ids.dedup();
    let (shards, ids): (Vec<i16>, Vec<Uuid>) = ids
        .iter()
        .map(|id| (id.0.shard() as i16, Uuid(id.bytes())))
        .unzip();
    taken
        .begin(
            effect_columns!(
                "",
                "FROM unnest($1::int2[], $2::uuid[]) AS k (shard, id)
                 JOIN hapax.queue q ON q.shard = k.shard AND q.effect = k.id
                 JOIN hapax.effect e ON e.shard = k.shard AND e.id = k.id
                 ORDER BY q.effect FOR UPDATE OF q"
            ),
            &[(&shards, Type::INT2_ARRAY), (&ids, Type::UUID_ARRAY)],
        )
        .await
}
