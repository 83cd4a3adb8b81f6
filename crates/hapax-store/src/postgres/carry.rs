//! Carrying out what the ledger decided of locked effects: their rows, then all that stands around them, then the commit.

use hapax_ledger::key::KeyHash;
use tokio_postgres::types::Type;

use super::attempt::{AttemptColumns, LateRow, SnapshotRow};
use super::chain::{Chain, ChainColumns};
use super::effect_columns::QueueColumns;
use super::effect_id::queue_shard;
use super::gate::GateChange;
use super::held::Hand;
use super::pool::{Param, Statement, Taken};
use super::status::Around;
use super::tally::TallyColumns;
use super::tiding::TidingColumns;
use super::wire::Uuid;
use crate::error::StoreError;

/// Writes all that was decided, brings events and gates level with it, and commits. Says which gates have changed.
pub(super) async fn carry_out(taken: Taken, hand: &Hand) -> Result<Vec<GateChange>, StoreError> {
    let rows = HandRows::of(hand);
    let around = Around::of(hand);
    let (tallies, tidings) = (TallyColumns::of(hand), TidingColumns::of_hand(hand));
    if around.is_empty() {
        let mut last = rows.statements();
        last.extend(tidings.statement());
        last.extend(tallies.statement());
        taken.commit_behind(&last).await?;
        return Ok(Vec::new());
    }
    let written = rows.statements();
    // One behind the other without waiting: none of them needs the other's answer, but each sees what the other did.
    let (_, stand) = tokio::try_join!(biased; taken.run_all(&written), around.look(&taken))?;
    // The tallies last: see there.
    let rest = tidings.statement().into_iter().chain(tallies.statement());
    let rest = rest.collect();
    stand.commit(taken, &hand.reviews, rest).await
}

/// The rows of all that was decided of the effects themselves.
pub(super) struct HandRows<'a> {
    queue: QueueColumns<'a>,
    chains: ChainColumns<'a>,
    attempts: AttemptColumns<'a>,
    late: Vec<LateRow<'a>>,
    snapshots: Vec<SnapshotRow<'a>>,
    released: ReleasedColumns,
}

impl<'a> HandRows<'a> {
    pub(super) fn of(hand: &'a Hand) -> HandRows<'a> {
        let chains = hand.written_chains.iter();
        let chains = chains.filter_map(|hash| Some((*hash, hand.chains.get(hash)?)));
        let chains: Vec<(KeyHash, &Chain)> = chains.collect();
        let late = hand.late.iter();
        let snapshots = hand.snapshots.iter().map(|(id, body)| {
            let repeat = hand.held.get(id).map(|held| held.effect.record.repeat);
            SnapshotRow::of(*id, body, repeat)
        });
        HandRows {
            queue: QueueColumns::of(hand.written()),
            chains: ChainColumns::of(&chains),
            attempts: AttemptColumns::of(&hand.ended),
            late: late.map(|late| LateRow::of(late, hand.now)).collect(),
            snapshots: snapshots.collect(),
            released: ReleasedColumns::of(hand),
        }
    }

    pub(super) fn statements(&self) -> Vec<Statement<'_>> {
        let mut statements: Vec<Statement<'_>> = Vec::new();
        statements.extend(self.update_queue());
        statements.extend(self.chains.statement());
        statements.extend(self.attempts.statement());
        statements.extend(self.late.iter().map(LateRow::statement));
        statements.extend(self.snapshots.iter().map(SnapshotRow::statement));
        statements.extend(self.released.statement());
        statements
    }

    fn update_queue(&self) -> Option<Statement<'_>> {
        let sql = "UPDATE hapax.queue q SET fence = x.fence, lease_until = x.lease_until, next_at = x.next_at,
                 generation = x.generation, attempts = x.attempts, pass_from = x.pass_from, state = x.state,
                 gate = x.gate, repeat = x.repeat, started = x.started, ambiguous = x.ambiguous, skip = x.skip,
                 last_outcome = x.last_outcome, last_detail = x.last_detail, last_retry_after = x.last_retry_after,
                 started_at = x.started_at, node = x.node
             FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
                 unnest($6::int4[]), unnest($7::int4[]), unnest($8::int4[]), unnest($9::int2[]), unnest($10::int2[]), unnest($11::int2[]),
                 unnest($12::bool[]), unnest($13::bool[]), unnest($14::int2[]), unnest($15::int2[]), unnest($16::int2[]),
                 unnest($17::int8[]), unnest($18::int8[]), unnest($19::text[]))
                 AS x (shard, effect, fence, lease_until, next_at, generation, attempts, pass_from, state, gate, repeat,
                 started, ambiguous, skip, last_outcome, last_detail, last_retry_after, started_at, node)
             WHERE q.shard = x.shard AND q.effect = x.effect";
        (!self.queue.is_empty()).then(|| (sql, self.queue.params().into()))
    }
}

/// Effects that a person let go ahead. Seldom any, so they are not among the columns of every move.
struct ReleasedColumns {
    shard: Vec<i16>,
    effect: Vec<Uuid>,
}

impl ReleasedColumns {
    fn of(hand: &Hand) -> ReleasedColumns {
        ReleasedColumns {
            shard: hand.released.iter().map(|id| queue_shard(*id)).collect(),
            effect: hand.released.iter().map(|id| Uuid(id.bytes())).collect(),
        }
    }

    /// `None` if there are none.
    fn statement(&self) -> Option<Statement<'_>> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.effect, Type::UUID_ARRAY),
        ];
        let sql = "UPDATE hapax.queue q SET released = true FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS x (shard, effect)
             WHERE q.shard = x.shard AND q.effect = x.effect";
        (!self.effect.is_empty()).then_some((sql, params))
    }
}
