//! Carrying out what a command comes to: locking all that it concerns, and writing it down.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::id::EventId;
use tokio_postgres::types::Type;

use super::Entropy;
use super::called;
use super::conflict::{Decided, Named};
use super::decide::Decisions;
use super::erase::Erasure;
use super::facts;
use super::gate::opened;
use super::held::Hand;
use super::known::{self, Slots};
use super::moment::{LeaseClock, moment};
use super::plan::{self, Calling, Plan};
use super::pool::{Param, Statement, Taken};
use super::run::RunRow;
use super::status::Around;
use super::stored::GroupRows;
use super::wire::{Uuid, received};
use crate::deeds::{self, Deed, Deeds};
use crate::error::StoreError;
use crate::nouns::{Arrival, Command, ConflictDecision, Decision, Done, EffectFacts, EventFacts};

/// All that a command has locked, and what it plans.
pub(super) struct Locked<'a> {
    plan: Plan,
    decisions: Decisions<'a>,
    slots: Slots<'a>,
    /// The event that a conflict becomes.
    promoted: Option<EventId>,
}

impl<'a> Locked<'a> {
    /// Locks what the event calls for, or what of it has one of these names, what the command brings, and all events around both. The
    /// transaction is open.
    pub(super) async fn take(
        taken: &Taken,
        (event, names): (EventId, Option<&[String]>),
        calling: Option<Calling<'a>>,
        arrival: Option<&'a Arrival>,
        entropy: &Entropy,
        clock: &LeaseClock,
    ) -> Result<Locked<'a>, StoreError> {
        let (mut decisions, mut slots) = (Decisions::default(), Slots::new());
        let mut receipts = Vec::new();
        if let Some(arrival) = arrival {
            slots = known::take_keys(taken, &[arrival], entropy).await?;
            known::read_holders(taken, &mut slots).await?;
            receipts = decisions.arrive(arrival, &mut slots, entropy)?;
        }
        let wanted = plan::wanted(decisions.calling().chain(calling), entropy);
        let take = called::take_keys(taken, &wanted);
        let (fresh, moment) = tokio::try_join!(biased; take, moment(taken, clock))?;
        let mut plan = Plan::new(&wanted, &fresh, moment);
        let mut events = decisions.retried();
        events.insert(event);
        called::lock_rest(taken, &wanted, &events, names, &mut plan).await?;
        let mut around = Around::all_of(&plan.hand);
        around.lock_too(event);
        decisions
            .extended
            .keys()
            .for_each(|id| around.lock_too(*id));
        around.lock(taken).await?;
        if let Some(calling) = &calling {
            plan.call(calling)?;
            if calling.from > 0 {
                // All that the event calls for is locked: what was alone will not be.
                plan.joined.insert(event);
            }
        }
        plan.carry_out(&mut decisions.events, &decisions.deeds)?;
        Ok(Locked {
            plan,
            decisions,
            slots,
            promoted: receipts.first().map(|receipt| receipt.event),
        })
    }

    /// Is all locked that the facts are about, or that has one of these names? Those that have one stand for themselves: where one waits for
    /// another of the event, all are to be locked.
    pub(super) fn covers(&self, facts: &EventFacts, names: Option<&[String]>) -> bool {
        let held = &self.plan.hand.held;
        facts
            .effects
            .iter()
            .all(|EffectFacts { effect, after, .. }| {
                let is_held = held.contains_key(&effect.id);
                let Some(names) = names else {
                    return is_held;
                };
                let is_named = |of: &str| names.iter().any(|name| name == of);
                match is_named(&effect.name) {
                    true => is_held && after.is_empty(),
                    false => !after.iter().any(|first| is_named(first)),
                }
            })
    }
}

impl Hand {
    /// Does to one effect what was decided.
    fn carry_out(&mut self, deed: &Deed, snapshot: Option<&Bytes>) {
        if deed.release {
            self.release(deed.effect);
        }
        if deed.anew {
            self.gate_anew(deed.effect);
        }
        if let Some(snapshot) = snapshot.filter(|_| deed.with_snapshot) {
            self.snapshots.insert(deed.effect, snapshot.clone());
        }
        if let Some(step) = &deed.step {
            self.take_step(deed.effect, step);
        }
    }
}

/// Writes all that a command comes to, but for its audit record, and commits nothing.
pub(super) async fn carry_out(
    taken: &Taken,
    command: &Command,
    locked: Locked<'_>,
    deeds: Deeds,
    clock: &LeaseClock,
) -> Result<Done, StoreError> {
    let Locked {
        mut plan,
        decisions,
        slots,
        promoted,
    } = locked;
    for deed in &deeds.steps {
        plan.hand.carry_out(deed, command.decision.snapshot());
    }
    let mut around = Around::of(&plan.hand);
    around.lock_too(command.event);
    decisions
        .extended
        .keys()
        .for_each(|id| around.lock_too(*id));
    let rows = GroupRows::of(decisions, Some(&plan), &slots);
    let (change, run) = (
        EventChange::of(command, &deeds, promoted),
        RunRow::of(command),
    );
    let mut first = rows.first();
    first.extend(change.statements());
    first.extend(run.as_ref().map(RunRow::statement));
    let (_, stand) = tokio::try_join!(biased; taken.run_all(&first), around.look(taken))?;
    let changes = stand.write(taken, &plan.hand.reviews, rows.rest()).await?;
    let facts = async {
        match run {
            // What is shown is what the run began with.
            Some(_) => Ok(None),
            None => facts::of_locked(taken, command.event, clock).await,
        }
    };
    let (facts, mut lanes) = tokio::try_join!(
        biased;
        facts,
        claimable(taken, [Some(command.event), promoted].into_iter().flatten()),
    )?;
    lanes.extend(opened(&changes));
    let run = run.map(|_| command.run);
    let verdict = match facts {
        Some(facts) => facts.verdict(command.decision.action(), &command.classes),
        None => deeds.verdict,
    };
    Ok(Done {
        run,
        answer: deeds::answer(command, run, promoted, &verdict),
        verdict,
        promoted,
        opened: lanes.into_iter().collect(),
    })
}

/// What a command changes about its event and one of its deliveries.
struct EventChange {
    shard: i16,
    event: Uuid,
    frees_event: bool,
    conflict: Option<Decided>,
    erasure: Option<Erasure>,
}

impl EventChange {
    fn of(command: &Command, deeds: &Deeds, promoted: Option<EventId>) -> EventChange {
        let decided = match (&command.decision, promoted) {
            (Decision::Promote { .. }, Some(event)) => ConflictDecision::Promoted(event),
            _ => ConflictDecision::Acknowledged,
        };
        let delivery = command.decision.delivery();
        let named = delivery.map(|number| Named::of(command.event, number));
        EventChange {
            shard: command.event.0.shard() as i16,
            event: Uuid(command.event.bytes()),
            frees_event: deeds.frees_event,
            conflict: named.map(|named| Decided::of(named, decided)),
            erasure: matches!(command.decision, Decision::Erase)
                .then(|| Erasure::of(command.event)),
        }
    }

    fn statements(&self) -> Vec<Statement<'_>> {
        let mut statements: Vec<Statement<'_>> = Vec::new();
        if self.frees_event {
            let params: Vec<Param<'_>> = vec![(&self.shard, Type::INT2), (&self.event, Type::UUID)];
            let sql = "UPDATE hapax.event SET review_code = NULL, review_message = NULL WHERE shard = $1 AND id = $2";
            statements.push((sql, params));
        }
        statements.extend(self.conflict.as_ref().map(Decided::statement));
        statements.extend(self.erasure.iter().flat_map(Erasure::statements));
        statements
    }
}

/// Lanes in which something that these events call for can be claimed.
async fn claimable(
    taken: &Taken,
    events: impl Iterator<Item = EventId>,
) -> Result<BTreeSet<Arc<str>>, StoreError> {
    let events = events.map(|event| (event.0.shard() as i16, Uuid(event.bytes())));
    let (shards, ids): (Vec<i16>, Vec<Uuid>) = events.unzip();
    let rows = taken
        .query(
            "SELECT q.lane FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS v (shard, event)
             CROSS JOIN LATERAL (
                 SELECT id, queue_shard FROM hapax.effect WHERE event = v.event
                 UNION ALL
                 SELECT effect, queue_shard FROM hapax.effect_link WHERE shard = v.shard AND event = v.event
             ) AS k (effect, queue_shard)
             JOIN hapax.queue q ON q.shard = k.queue_shard AND q.effect = k.effect
             WHERE q.state = 0 AND q.gate = 0",
            &[(&shards, Type::INT2_ARRAY), (&ids, Type::UUID_ARRAY)],
        )
        .await?;
    Ok(rows.iter().map(|row| received(row.get(0)).into()).collect())
}
