//! Effects in memory: the ledger's machine over a map.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::claim::born_started;
use hapax_ledger::effect::{EffectRecord, EffectState, Repeat, SkipReason};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::order::{Gate, OrderVerdict};
use hapax_ledger::outcome::{Lost, Outcome};
use hapax_ledger::time::Time;
use hapax_ledger::transition::{Change, EffectStep, Rejected, Resolution, Resolver, step};

use super::order::{Chain, ChainKey};
use super::tiding::Kept;
use crate::nouns::{
    Attempt, ClaimAsk, Claimed, Effect, Move, Moved, NewEffect, Review, Said, Settlement, Tally,
    Tiding,
};
use crate::outcome_code::OutcomeCode;

/// The model never restarts, so its epoch never rises.
pub(super) const EPOCH: u32 = 1;

/// An effect with what only the store needs to know of it.
pub(super) struct Row {
    pub(super) effect: Effect,
    /// When the event came that called for it first.
    pub(super) received_at: Time,
    pub(super) events: Vec<EventId>,
    /// What it comes after, of the event that called for it first.
    pub(super) after: Vec<EffectId>,
    /// The type that had ended its entity when it was accepted.
    pub(super) ended_by: Option<String>,
    pub(super) snapshot: Option<Bytes>,
    pub(super) attempts: Vec<Attempt>,
    attempts_max: u32,
    pub(super) node: Arc<str>,
    pub(super) started_at: Time,
}

/// All effects, in the order of their ids.
#[derive(Default)]
pub(super) struct Effects {
    pub(super) rows: BTreeMap<EffectId, Row>,
    pub(super) chains: HashMap<ChainKey, Chain>,
    /// Of endpoints, by lane and hour.
    pub(super) tallies: BTreeMap<(Arc<str>, Time), Tally>,
    pub(super) tidings: Kept,
}

/// The event that effects are planned for.
pub(super) struct Planning<'a> {
    pub(super) now: Time,
    pub(super) event: EventId,
    pub(super) received_at: Time,
    pub(super) event_type: &'a str,
}

impl Effects {
    /// Plans the effects of an event: each is new, or linked where its key exists already (D6).
    pub(super) fn plan(
        &mut self,
        planning: &Planning<'_>,
        new: &[NewEffect],
        mut id: impl FnMut() -> EffectId,
    ) -> Vec<Option<Claimed>> {
        let mut places = Vec::new();
        let mut added = Vec::new();
        for (place, new) in new.iter().enumerate() {
            let same = |row: &&mut Row| row.effect.name == new.name && row.effect.key == new.key;
            if let Some(row) = self.rows.values_mut().find(same) {
                if !row.events.contains(&planning.event) {
                    row.events.push(planning.event);
                }
                places.push(row.effect.id);
            } else {
                places.push(id());
                added.push(place);
                self.insert(planning, new, places[place]);
            }
        }
        // What comes first may stand later in the plan, so all have to be there before any can be named.
        for place in &added {
            let after = new[*place].after.iter();
            let named = after.filter_map(|first| places.get(usize::from(*first)).copied());
            if let Some(row) = self.rows.get_mut(&places[*place]) {
                row.after = named.collect();
            }
        }
        let claim = |place: usize| {
            let row = self
                .rows
                .get(&places[place])
                .filter(|_| added.contains(&place))?;
            row.effect.record.started.then(|| row.claimed())
        };
        (0..new.len()).map(claim).collect()
    }

    fn insert(&mut self, planning: &Planning<'_>, new: &NewEffect, id: EffectId) {
        let planned = EffectRecord::planned(new.repeat, planning.now + new.wait);
        let may_wait = !new.after.is_empty() || new.order.is_some();
        let born = new.born.as_ref().filter(|_| !may_wait).and_then(|born| {
            let record = born_started(&planned, planning.now, EPOCH, born.lease)?;
            Some((record, born.node.clone()))
        });
        let order = new.order.as_ref();
        let ended_by =
            order.and_then(|order| self.join_chain(&new.name, order, planning.event_type));
        // What is pending gets its gate when all of the plan is there.
        let (record, gate, node) = match born {
            Some((record, node)) => (record, Gate::Open, node),
            None => (planned, Gate::Waiting, "".into()),
        };
        let effect = Effect {
            id,
            event: planning.event,
            name: new.name.clone(),
            key: new.key.clone(),
            lane: new.lane.clone(),
            record,
            gate,
            order: new.order.clone(),
            released: false,
            last: None,
        };
        let row = Row {
            effect,
            received_at: planning.received_at,
            events: vec![planning.event],
            after: Vec::new(),
            ended_by,
            snapshot: None,
            attempts: Vec::new(),
            attempts_max: new.attempts_max,
            node,
            started_at: planning.now,
        };
        self.rows.insert(id, row);
    }

    pub(super) fn claim(&mut self, now: Time, ask: &ClaimAsk) -> Vec<Claimed> {
        let wanted = EffectStep::Claim {
            now,
            epoch: EPOCH,
            lease: ask.lease,
        };
        let mut claimed = Vec::new();
        for lane in &ask.lanes {
            let mut due: Vec<&mut Row> = self
                .rows
                .values_mut()
                .filter(|row| row.effect.lane == lane.lane && row.effect.gate == Gate::Open)
                .filter(|row| step(&row.effect.record, &wanted).is_ok())
                .collect();
            due.sort_by_key(|row| (row.effect.record.next_attempt_at, row.effect.id));
            for row in due.into_iter().take(lane.room as usize) {
                if let Ok(change) = step(&row.effect.record, &wanted) {
                    row.node = ask.node.clone();
                    row.effect.record = change.next;
                    claimed.push(row.claimed());
                }
            }
        }
        claimed
    }

    /// Moves an effect. A review is what its event has to say of it.
    pub(super) fn advance(
        &mut self,
        now: Time,
        id: EffectId,
        fence: Fence,
        what: Move,
    ) -> (Moved, Option<Review>) {
        let Some(row) = self.rows.get_mut(&id) else {
            return (Moved::NoEffect, None);
        };
        let change = match (step(&row.effect.record, &what.step(fence, now)), &what) {
            (Ok(change), _) => change,
            (Err(rejected), Move::Settle(settlement)) => {
                if rejected == Rejected::StaleFence {
                    row.keep_late(now, fence, settlement);
                }
                return (Moved::Refused(rejected), None);
            }
            (Err(rejected), _) => return (Moved::Refused(rejected), None),
        };
        match what {
            Move::Start(snapshot) => self.start(now, id, change, snapshot),
            Move::Settle(settlement) => {
                let moved = row.end(now, settlement.outcome, settlement.said.kept(), change);
                let lane = row.effect.lane.clone();
                let gave_up = change.next.state == EffectState::Dead;
                let (outcome, began) = (settlement.outcome, row.started_at);
                let tiding = Tiding::of_attempt(&row.effect, outcome, began, now);
                tiding.into_iter().for_each(|one| self.tidings.write(one));
                self.tally(&lane, now, settlement.outcome, gave_up);
                (moved, None)
            }
            Move::Review(review) => {
                row.effect.gate = Gate::Review;
                (row.become_(change), Some(review))
            }
            Move::Extend(_) | Move::Release(_) | Move::Skip(_) | Move::Tighten(_) => {
                (row.become_(change), None)
            }
        }
    }

    /// A start that the fence allows: now its order decides.
    fn start(
        &mut self,
        now: Time,
        id: EffectId,
        change: Change,
        snapshot: Option<Bytes>,
    ) -> (Moved, Option<Review>) {
        let verdict = self.rows.get(&id).map(|row| self.verdict(row));
        let (Some(verdict), Some(row)) = (verdict, self.rows.get_mut(&id)) else {
            return (Moved::NoEffect, None);
        };
        let fence = row.effect.record.fence;
        match verdict {
            OrderVerdict::Go => {
                row.started_at = now;
                if row.snapshot.is_none() || row.effect.record.repeat == Repeat::Converges {
                    row.snapshot = snapshot.or(row.snapshot.take());
                }
                let moved = row.become_(change);
                self.started_in_chain(id);
                (moved, None)
            }
            OrderVerdict::Wait { behind } => {
                row.take(EffectStep::Release { fence, due: now });
                (Moved::Waits(behind), None)
            }
            OrderVerdict::Stale => {
                let reason = SkipReason::Stale;
                let skipped = row.take(EffectStep::SkipClaimed { fence, reason });
                (Moved::Stale(skipped), None)
            }
            OrderVerdict::Review { why } => {
                row.take(EffectStep::Release { fence, due: now });
                row.effect.gate = Gate::Review;
                let review = Review::of_order(&why);
                (Moved::Review(why), Some(review))
            }
        }
    }

    pub(super) fn resolve(
        &mut self,
        now: Time,
        id: EffectId,
        resolution: Resolution,
        by: Resolver,
    ) -> Moved {
        let Some(row) = self.rows.get_mut(&id) else {
            return Moved::NoEffect;
        };
        let wanted = EffectStep::Resolve {
            resolution,
            by,
            now,
        };
        match step(&row.effect.record, &wanted) {
            Ok(change) => row.become_(change),
            Err(rejected) => Moved::Refused(rejected),
        }
    }

    /// Revives what of an event was given up; the lanes in which something was.
    pub(super) fn revive(&mut self, event: EventId, now: Time) -> Vec<Arc<str>> {
        let mut revived = BTreeSet::new();
        for row in self.rows.values_mut() {
            let dead = row.effect.record.state == EffectState::Dead;
            if dead && row.events.contains(&event) {
                row.take(EffectStep::Revive { now });
                revived.insert(row.effect.lane.clone());
            }
        }
        revived.into_iter().collect()
    }

    /// Frees what is held beyond its lease.
    pub(super) fn rescue(&mut self, now: Time) -> Vec<EffectId> {
        let mut freed = Vec::new();
        let mut ended = Vec::new();
        for row in self.rows.values_mut() {
            let was_started = row.effect.record.started;
            if row.expire(now) {
                freed.push(row.effect.id);
                let gave_up = row.effect.record.state == EffectState::Dead;
                let outcome = row.effect.last.filter(|_| was_started);
                let began = row.started_at;
                let tiding = outcome
                    .and_then(|outcome| Tiding::of_attempt(&row.effect, outcome, began, now));
                tiding.into_iter().for_each(|one| self.tidings.write(one));
                ended.extend(outcome.map(|outcome| (row.effect.lane.clone(), outcome, gave_up)));
            }
        }
        for (lane, outcome, gave_up) in ended {
            self.tally(&lane, now, outcome, gave_up);
        }
        freed
    }

    /// An effect's key holds as long as any event that calls for it is known (B5).
    pub(super) fn forget_event(&mut self, event: EventId) {
        let mut gone = Vec::new();
        for row in self.rows.values_mut() {
            row.events.retain(|other| *other != event);
            if row.events.is_empty() {
                gone.push((row.effect.id, row.chain()));
            }
        }
        for (id, chain) in gone {
            self.rows.remove(&id);
            if let Some(chain) = chain {
                self.leave_chain(&chain);
            }
        }
    }
}

impl Effects {
    /// Forgets the attempts at what an event calls for, unless another event tells of them.
    pub(super) fn trim(&mut self, event: EventId, told: impl Fn(&EventId) -> bool) {
        let called = self.rows.values_mut();
        for row in called.filter(|row| row.events.contains(&event)) {
            if !row.events.iter().any(&told) {
                row.attempts.clear();
            }
        }
    }

    /// Forgets what was said about what an event calls for.
    pub(super) fn erase(&mut self, event: EventId) {
        let called = self.rows.values_mut();
        for row in called.filter(|row| row.events.contains(&event)) {
            row.snapshot = None;
            for attempt in &mut row.attempts {
                attempt.said.excerpt = None;
                attempt.said.error = None;
            }
        }
    }
}

impl Row {
    /// Its place in the order of acceptance: ids count rows as they come.
    pub(super) fn position(&self) -> u64 {
        self.effect.id.0.row()
    }

    fn claimed(&self) -> Claimed {
        Claimed {
            effect: self.effect.clone(),
            snapshot: self.snapshot.clone(),
        }
    }

    /// Takes a step that cannot be refused here.
    pub(super) fn take(&mut self, wanted: EffectStep) -> Change {
        let change = step(&self.effect.record, &wanted).expect("the step fits the state");
        self.effect.record = change.next;
        change
    }

    /// Frees it if it is held beyond its lease.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let wanted = EffectStep::Expire {
            now,
            attempts_max: self.attempts_max,
        };
        let was_started = self.effect.record.started;
        if self.effect.record.state != EffectState::Claimed {
            return false;
        }
        let Ok(change) = step(&self.effect.record, &wanted) else {
            return false;
        };
        let why = Lost::LostLease;
        match was_started {
            true => self.end(now, Outcome::Lost { why }, Said::default(), change),
            false => self.become_(change),
        };
        true
    }

    fn become_(&mut self, change: Change) -> Moved {
        self.effect.record = change.next;
        Moved::Done(change)
    }

    fn end(&mut self, now: Time, outcome: Outcome, said: Said, change: Change) -> Moved {
        let record = self.effect.record;
        self.attempts.push(Attempt {
            generation: record.generation,
            number: record.attempts,
            fence: record.fence,
            node: self.node.clone(),
            started_at: self.started_at,
            ended_at: now,
            outcome,
            late: None,
            said,
        });
        self.effect.last = Some(outcome);
        self.become_(change)
    }

    /// Keeps what a worker says that was fenced off, unless the ledger has it from that very worker.
    fn keep_late(&mut self, now: Time, fence: Fence, settlement: &Settlement) {
        let ran = self
            .attempts
            .iter_mut()
            .find(|attempt| attempt.fence == fence && attempt.late.is_none());
        let word = |outcome, said: &Said| {
            let code = OutcomeCode::of(outcome);
            (code.kind, code.detail, said.error.clone())
        };
        let says = word(settlement.outcome, &settlement.said);
        let news = |attempt: &&mut Attempt| word(attempt.outcome, &attempt.said) != says;
        if let Some(attempt) = ran.filter(news) {
            attempt.late = Some((now, settlement.outcome));
        }
    }
}
