//! Where events stand and whose gate opens, given all their effects. No SQL but what writes it down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hapax_ledger::effect::{EffectState, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::KeyHash;
use hapax_ledger::order::{ChainPlace, Gate, gate};
use hapax_ledger::status::Hold;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::effect_id::queue_shard;
use super::pool::{Param, Statement, Taken};
use super::wire::{Uuid, sendable};
use crate::error::StoreError;
use crate::nouns::Review;

/// One effect of an event, as it stands.
pub(super) struct Part {
    /// May gates of this event's effects have changed?
    pub(super) turned: bool,
    pub(super) place: u16,
    /// Did this event call for it first?
    pub(super) own: bool,
    pub(super) after: Vec<u16>,
    pub(super) effect: EffectId,
    pub(super) state: EffectState,
    pub(super) skip: Option<SkipReason>,
    pub(super) gate: Gate,
    pub(super) chain: Option<KeyHash>,
    pub(super) lane: Arc<str>,
    /// Is there a live one before it in its chain, or did a person let it go beside a later one that is under way?
    pub(super) behind: bool,
}

/// All that stands around what was moved.
#[derive(Default)]
pub(super) struct Stand {
    /// Where each event stood, and whether it waits for a person.
    pub(super) events: BTreeMap<EventId, (Option<EventStatus>, bool)>,
    pub(super) parts: BTreeMap<EventId, Vec<Part>>,
    /// Messages whose deliveries are not all made.
    pub(super) to_come: BTreeSet<EventId>,
    /// Chains in which one has ended or come back.
    pub(super) moved_on: BTreeSet<KeyHash>,
    /// Pending effects that others can make wait and that are held here.
    pub(super) gated: BTreeSet<EffectId>,
}

/// A gate that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GateChange {
    pub(super) effect: EffectId,
    /// All that its event calls for.
    pub(super) called_for: Vec<EffectId>,
    pub(super) chain: Option<KeyHash>,
    lane: Arc<str>,
    from: Gate,
    pub(super) to: Gate,
}

/// An effect, the event that called for it first, and what a person has to look at.
type Asked = (EffectId, EventId, Review);

impl Stand {
    /// The events that have to say why a person must look. It is the first to call for the effect, of those that are still known,
    /// and what it says first stays: nobody has looked at that yet.
    fn reviewed<'r>(&self, reviews: &'r [Asked]) -> BTreeMap<EventId, &'r Review> {
        let mut said = BTreeMap::new();
        for (effect, first, review) in reviews {
            let calls = |event: &EventId| {
                let parts = self.parts.get(event).into_iter().flatten();
                event == first || parts.into_iter().any(|part| part.effect == *effect)
            };
            let known = |event: &EventId| self.events.contains_key(event);
            let others = self.parts.keys().filter(|event| calls(event));
            let mut events = std::iter::once(first).chain(others);
            if let Some(event) = events.find(|event| known(event)) {
                said.entry(*event).or_insert(review);
            }
        }
        said
    }

    /// Events that stand elsewhere now. One that waits for a person does so whatever its effects say.
    fn statuses(&self, reviews: &BTreeMap<EventId, &Review>) -> BTreeMap<EventId, EventStatus> {
        let events = self.events.iter().filter_map(|(id, (before, review))| {
            let hold = match *review || reviews.contains_key(id) {
                true => Hold::Review,
                false => Hold::Free,
            };
            let parts = self.parts.get(id).into_iter().flatten();
            let states = parts.map(|part| (part.state, part.skip));
            // What is still to be made waits like any other.
            let to_come = self.to_come.get(id).map(|_| (EffectState::Pending, None));
            let now = EventStatus::of_effects(states.chain(to_come), hold);
            (*before != Some(now) || reviews.contains_key(id)).then_some((*id, now))
        });
        events.collect()
    }

    /// Gates that have to change.
    fn gates(&self) -> Vec<GateChange> {
        let mut changes = Vec::new();
        for parts in self.parts.values() {
            let states: BTreeMap<u16, EffectState> =
                parts.iter().map(|part| (part.place, part.state)).collect();
            for part in parts.iter().filter(|part| self.concerns(part)) {
                let place = match part.behind {
                    true => ChainPlace::Behind,
                    false => ChainPlace::Free,
                };
                let after = part.after.iter().filter_map(|at| states.get(at).copied());
                let to = gate(part.gate, after, place);
                if to != part.gate {
                    changes.push(GateChange {
                        effect: part.effect,
                        called_for: parts.iter().map(|part| part.effect).collect(),
                        chain: part.chain,
                        lane: part.lane.clone(),
                        from: part.gate,
                        to,
                    });
                }
            }
        }
        changes
    }

    /// An effect's gate is looked at with the effects of the event that called for it first, while nobody holds it.
    fn concerns(&self, part: &Part) -> bool {
        let moved_on = || {
            part.chain
                .is_some_and(|chain| self.moved_on.contains(&chain))
        };
        part.own
            && part.state == EffectState::Pending
            && (part.turned || self.gated.contains(&part.effect) || moved_on())
    }

    /// Writes where events stand and which gates change, and whatever else is left, and commits, in one round trip. Says which
    /// gates have changed.
    pub(super) async fn commit(
        &self,
        taken: Taken,
        reviews: &[Asked],
        rest: Vec<Statement<'_>>,
    ) -> Result<Vec<GateChange>, StoreError> {
        let level = Level::of(self, reviews);
        let mut last = level.statements();
        last.extend(rest);
        let found = taken.commit_behind(&last).await?;
        drop(last);
        Ok(level.changed(&found))
    }

    /// The same without the commit.
    pub(super) async fn write(
        &self,
        taken: &Taken,
        reviews: &[Asked],
        rest: Vec<Statement<'_>>,
    ) -> Result<Vec<GateChange>, StoreError> {
        let level = Level::of(self, reviews);
        let mut last = level.statements();
        last.extend(rest);
        let found = taken.run_all(&last).await?;
        drop(last);
        Ok(level.changed(&found))
    }
}

/// What brings events and gates level with what was moved.
struct Level {
    gates: Vec<GateChange>,
    queue: GateColumns,
    events: StatusColumns,
}

impl Level {
    fn of(stand: &Stand, reviews: &[Asked]) -> Level {
        let reviews = stand.reviewed(reviews);
        let statuses = stand.statuses(&reviews);
        let gates = stand.gates();
        Level {
            queue: GateColumns::of(&gates),
            gates,
            events: StatusColumns::of(&statuses, &reviews),
        }
    }

    fn statements(&self) -> Vec<Statement<'_>> {
        let gates = (!self.gates.is_empty()).then(|| self.queue.statement());
        let events = (!self.events.id.is_empty()).then(|| self.events.statement());
        [gates, events].into_iter().flatten().collect()
    }

    /// Which gates have changed, by what [`Level::statements`] found.
    fn changed(mut self, found: &[Vec<Row>]) -> Vec<GateChange> {
        let changed = found.first().filter(|_| !self.gates.is_empty());
        let changed: BTreeSet<Uuid> = changed
            .into_iter()
            .flatten()
            .map(|row| row.get(0))
            .collect();
        self.gates
            .retain(|change| changed.contains(&Uuid(change.effect.bytes())));
        self.gates
    }
}

/// The lanes in which gates opened, each once.
pub(super) fn opened<'c>(changes: impl IntoIterator<Item = &'c GateChange>) -> Vec<Arc<str>> {
    let opened = changes.into_iter().filter(|change| change.to == Gate::Open);
    let lanes: BTreeSet<Arc<str>> = opened.map(|change| change.lane.clone()).collect();
    lanes.into_iter().collect()
}

#[derive(Default)]
struct GateColumns {
    shard: Vec<i16>,
    effect: Vec<Uuid>,
    from: Vec<i16>,
    to: Vec<i16>,
}

impl GateColumns {
    fn of(changes: &[GateChange]) -> GateColumns {
        let mut columns = GateColumns::default();
        for change in changes {
            columns.shard.push(queue_shard(change.effect));
            columns.effect.push(Uuid(change.effect.bytes()));
            columns.from.push(change.from.code().into());
            columns.to.push(change.to.code().into());
        }
        columns
    }

    /// Leaves out what somebody else holds: they look themselves (see [`super::status`]).
    fn statement(&self) -> Statement<'_> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.effect, Type::UUID_ARRAY),
            (&self.from, Type::INT2_ARRAY),
            (&self.to, Type::INT2_ARRAY),
        ];
        let sql = "WITH free AS MATERIALIZED (
                 SELECT q.shard, q.effect, k.gate
                 FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int2[]), unnest($4::int2[]))
                     AS k (shard, effect, before, gate)
                 JOIN hapax.queue q ON q.shard = k.shard AND q.effect = k.effect
                 WHERE q.state = 0 AND q.gate = k.before
                 FOR UPDATE OF q SKIP LOCKED
             )
             UPDATE hapax.queue q SET gate = free.gate FROM free
             WHERE q.shard = free.shard AND q.effect = free.effect
             RETURNING q.effect";
        (sql, params)
    }
}

#[derive(Default)]
struct StatusColumns {
    shard: Vec<i16>,
    id: Vec<Uuid>,
    status: Vec<i16>,
    review_code: Vec<Option<String>>,
    review_message: Vec<Option<String>>,
}

impl StatusColumns {
    fn of(
        statuses: &BTreeMap<EventId, EventStatus>,
        reviews: &BTreeMap<EventId, &Review>,
    ) -> StatusColumns {
        let mut columns = StatusColumns::default();
        for (id, status) in statuses {
            let review = reviews.get(id);
            columns.shard.push(id.0.shard() as i16);
            columns.id.push(Uuid(id.bytes()));
            columns.status.push(status.code().into());
            let code = review.map(|review| sendable(&review.code).into_owned());
            columns.review_code.push(code);
            let message = review.map(|review| sendable(&review.message).into_owned());
            columns.review_message.push(message);
        }
        columns
    }

    fn statement(&self) -> Statement<'_> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.id, Type::UUID_ARRAY),
            (&self.status, Type::INT2_ARRAY),
            (&self.review_code, Type::TEXT_ARRAY),
            (&self.review_message, Type::TEXT_ARRAY),
        ];
        let sql = "UPDATE hapax.event v SET status = x.status,
                 review_message = CASE WHEN v.review_code IS NULL THEN x.review_message ELSE v.review_message END,
                 review_code = coalesce(v.review_code, x.review_code)
             FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int2[]), unnest($4::text[]), unnest($5::text[]))
                 AS x (shard, id, status, review_code, review_message)
             WHERE v.shard = x.shard AND v.id = x.id";
        (sql, params)
    }
}
