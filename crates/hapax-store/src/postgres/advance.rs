//! Moves and resolutions, any number of them in one commit.
//!
//! Effects are locked in the order of their ids, so that groups wait for each other but never in a circle, and after the chains of
//! those that have an order.

use std::collections::BTreeSet;

use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use hapax_ledger::transition::{EffectStep, Resolution, Resolver};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::batch::{Job, TooMuch, Work};
use super::carry::carry_out;
use super::chain;
use super::effect::{effect_columns, to_held};
use super::effect_id::{is_ordered, key_shard, queue_shard};
use super::gate::{GateChange, opened};
use super::happy::{self, Ending, is_happy};
use super::held::Hand;
use super::moment::{LeaseClock, moment};
use super::pool::{Pool, Taken};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::{Advanced, Move, Moved};

/// What is to be done with an effect.
#[derive(Clone)]
pub(super) enum Wish {
    /// A worker moves it, showing its fence.
    Advance(Fence, Move),
    /// Somebody settles what is uncertain.
    Resolve(Resolution, Resolver),
}

/// A wish and the effect it is about.
#[derive(Clone)]
pub(super) struct MoveAsk {
    pub(super) effect: EffectId,
    pub(super) wish: Wish,
}

/// Carries out moves, any number of them in one commit.
pub(super) struct Moves {
    pub(super) pool: Pool,
    pub(super) clock: LeaseClock,
}

impl Work for Moves {
    type Ask = MoveAsk;
    type Answer = Advanced;
    const ASKS: &'static str = "moves";
    type Way = Taken;
    const BEHIND: Option<usize> = None;

    async fn way(&self, pool: &Pool) -> Result<Taken, StoreError> {
        pool.take().await
    }

    fn too_much(_: &MoveAsk) -> TooMuch {
        TooMuch::Waits
    }

    fn bytes(ask: &MoveAsk) -> usize {
        let brought = match &ask.wish {
            Wish::Advance(_, Move::Start(snapshot)) => {
                snapshot.as_ref().map_or(0, |body| body.len())
            }
            Wish::Advance(_, Move::Settle(settlement)) => {
                let excerpt = settlement.said.excerpt.as_ref();
                excerpt.map_or(0, |excerpt| excerpt.len())
            }
            Wish::Advance(..) | Wish::Resolve(..) => 0,
        };
        size_of::<MoveAsk>() + brought
    }

    /// One group: those that ended happily in one commit, the rest and what did not fit in another.
    async fn step(&self, taken: Taken, jobs: Vec<Job<Moves>>) {
        let effects: BTreeSet<EffectId> = jobs.iter().map(|job| job.ask.effect).collect();
        // Of two moves of the same effect, the second has to see what the first one did.
        let apart = effects.len() == jobs.len();
        let (happy, mut rest): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .partition(|job| apart && job.ask.ending().is_some());
        let mut free = Some(taken);
        if let Some(taken) = free.take_if(|_| !happy.is_empty()) {
            rest.extend(self.settle(taken, happy).await);
        }
        if rest.is_empty() {
            return;
        }
        let taken = match free {
            Some(taken) => Ok(taken),
            None => self.pool.take().await,
        };
        let asks: Vec<&MoveAsk> = rest.iter().map(|job| &job.ask).collect();
        let moved = match taken {
            Ok(taken) => advance(taken, &asks, &self.clock).await,
            Err(error) => Err(error),
        };
        match moved {
            Ok(moved) => {
                for (job, moved) in rest.into_iter().zip(moved) {
                    job.answer(Ok(moved));
                }
            }
            Err(error) => {
                tracing::error!(%error, moves = rest.len(), "a group of moves failed");
                Job::refuse(rest, &error);
            }
        }
    }
}

impl MoveAsk {
    /// The settlement, if it may be a happy one.
    fn ending(&self) -> Option<Ending<'_>> {
        match &self.wish {
            Wish::Advance(fence, Move::Settle(settlement)) if is_happy(self.effect, settlement) => {
                Some((self.effect, *fence, settlement))
            }
            Wish::Advance(..) | Wish::Resolve(..) => None,
        }
    }
}

impl Moves {
    /// Answers those that ended happily and gives back the others.
    async fn settle(&self, taken: Taken, jobs: Vec<Job<Moves>>) -> Vec<Job<Moves>> {
        let endings: Vec<Ending<'_>> = jobs.iter().filter_map(|job| job.ask.ending()).collect();
        let settled = match happy::settle(taken, endings, &self.clock).await {
            Ok(settled) => settled,
            Err(error) => {
                tracing::error!(%error, moves = jobs.len(), "a group of moves failed");
                Job::refuse(jobs, &error);
                return Vec::new();
            }
        };
        let mut rest = Vec::new();
        for job in jobs {
            match settled.get(&job.ask.effect) {
                Some(change) => job.answer(Ok(Advanced {
                    moved: Moved::Done(*change),
                    opened: Vec::new(),
                })),
                None => rest.push(job),
            }
        }
        rest
    }
}

/// Moves effects, all in one transaction, one after the other.
async fn advance(
    taken: Taken,
    asks: &[&MoveAsk],
    clock: &LeaseClock,
) -> Result<Vec<Advanced>, StoreError> {
    let ids: BTreeSet<EffectId> = asks.iter().map(|ask| ask.effect).collect();
    let starts = asks.iter().filter(|ask| match &ask.wish {
        Wish::Advance(_, what) => matches!(what, Move::Start(_)),
        Wish::Resolve(..) => false,
    });
    let starting: BTreeSet<EffectId> = starts.map(|ask| ask.effect).collect();
    // Earlier moves of the group may end so many of those that stand before another.
    let nearest = ids.iter().filter(|id| is_ordered(**id)).count() + 1;
    let ((), chains, found, moment, ahead) = tokio::try_join!(
        biased;
        taken.open(),
        chain::lock_of(&taken, &ids),
        lock_effects(&taken, &ids),
        moment(&taken, clock),
        chain::ahead(&taken, &starting, nearest),
    )?;
    let mut hand = Hand::new(moment, found.iter().map(to_held));
    hand.chains = chains;
    hand.ahead = ahead;
    let moved: Vec<Moved> = asks.iter().map(|ask| hand.grant(ask)).collect();
    let changes = carry_out(taken, &hand).await?;
    Ok(hand.tell(asks, moved, &changes))
}

/// Locks the effects in the order of their ids. A row that had to be waited for is read as its last holder left it.
pub(super) async fn lock_effects(
    taken: &Taken,
    ids: &BTreeSet<EffectId>,
) -> Result<Vec<Row>, StoreError> {
    let queue_shards: Vec<i16> = ids.iter().map(|id| queue_shard(*id)).collect();
    let key_shards: Vec<i16> = ids.iter().map(|id| key_shard(*id)).collect();
    let ids: Vec<Uuid> = ids.iter().map(|id| Uuid(id.bytes())).collect();
    taken
        .query(
            effect_columns!(
                "",
                "FROM (SELECT unnest($1::int2[]), unnest($2::int2[]), unnest($3::uuid[])) AS k (queue_shard, shard, id)
                 JOIN hapax.queue q ON q.shard = k.queue_shard AND q.effect = k.id
                 JOIN hapax.effect e ON e.shard = k.shard AND e.id = k.id
                 ORDER BY q.effect FOR UPDATE OF q"
            ),
            &[
                (&queue_shards, Type::INT2_ARRAY),
                (&key_shards, Type::INT2_ARRAY),
                (&ids, Type::UUID_ARRAY),
            ],
        )
        .await
}

impl Hand {
    fn grant(&mut self, ask: &MoveAsk) -> Moved {
        match &ask.wish {
            Wish::Advance(fence, what) => self.advance(ask.effect, *fence, what),
            Wish::Resolve(resolution, by) => {
                let wanted = EffectStep::Resolve {
                    resolution: *resolution,
                    by: *by,
                    now: self.now,
                };
                self.take_step(ask.effect, &wanted)
            }
        }
    }

    /// Says to each what became of its wish, and to the last of those that can have opened a gate that it opened.
    fn tell(&self, asks: &[&MoveAsk], moved: Vec<Moved>, changes: &[GateChange]) -> Vec<Advanced> {
        let opener = |change: &GateChange| {
            let concerned = |ask: &&MoveAsk| {
                let chain = self
                    .held
                    .get(&ask.effect)
                    .and_then(|held| held.seat.as_ref());
                change.called_for.contains(&ask.effect)
                    || chain.is_some_and(|seat| Some(seat.chain) == change.chain)
            };
            asks.iter().rposition(concerned).unwrap_or_default()
        };
        let openers: Vec<usize> = changes.iter().map(opener).collect();
        let told = moved.into_iter().enumerate().map(|(place, moved)| {
            let its = changes.iter().zip(&openers);
            let its = its.filter(|(_, opener)| **opener == place);
            Advanced {
                moved,
                opened: opened(its.map(|(change, _)| change)),
            }
        });
        told.collect()
    }
}
