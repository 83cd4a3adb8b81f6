//! All that a verdict on an event depends on: read in one picture for whoever asks, and under locks for whoever decides.

use std::collections::BTreeMap;

use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::time::Time;
use hapax_ledger::verdict::Kept;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::chain::{chain_columns, to_ahead, to_chain, under_way};
use super::effect::{KEY_HASH, effect_columns, to_held};
use super::held::Hand;
use super::moment::{LeaseClock, MOMENT, to_moment};
use super::pool::{Param, Pool, Statement, Taken};
use super::wire::{Uuid, received};
use crate::error::StoreError;
use crate::nouns::{EffectFacts, EventFacts};

/// So many statements read the facts.
pub(super) const STATEMENTS: usize = 6;

const EVENT: &str = "SELECT v.review_code IS NOT NULL, v.review_message,
         EXISTS (SELECT FROM hapax.payload p WHERE p.shard = v.shard AND p.event = v.id),
         (SELECT count(*) FROM hapax.delivery d
          WHERE d.shard = v.shard AND d.event = v.id AND d.conflict AND d.decided IS NULL),
         coalesce((SELECT total - made FROM hapax.fan_out f WHERE f.shard = v.shard AND f.event = v.id), 0),
         v.ledger_until
     FROM hapax.event v WHERE v.shard = $1 AND v.id = $2";

/// In the order of [`super::effect::OF_EVENT`]. Behind the columns of an effect: its place in the plan of the event, and the places of
/// what must be done first, in the plan of the event that called for it first.
const EFFECTS: &str = effect_columns!(
    "",
    ", c.place, e.after FROM (
         SELECT shard, id, place, true FROM hapax.effect WHERE event = $2
         UNION ALL
         SELECT effect_shard, effect, place, false FROM hapax.effect_link WHERE shard = $1 AND event = $2
     ) AS c (shard, id, place, own)
     JOIN hapax.effect e ON e.shard = c.shard AND e.id = c.id
     JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id
     ORDER BY c.own DESC, CASE WHEN c.own THEN c.place END, e.id"
);
const PLACE: usize = KEY_HASH + 1;
const AFTER: usize = KEY_HASH + 2;

/// Of effects that another event called for first, and that have to wait for others: the plan of that event.
const SHARED: &str = "SELECT e.id, p.place, p.effect FROM hapax.effect_link l
     JOIN hapax.effect e ON e.shard = l.effect_shard AND e.id = l.effect
     CROSS JOIN LATERAL (
         SELECT id, place FROM hapax.effect WHERE event = e.event
         UNION ALL
         SELECT effect, place FROM hapax.effect_link WHERE shard = e.event_shard AND event = e.event
     ) AS p (effect, place)
     WHERE l.shard = $1 AND l.event = $2 AND e.after IS NOT NULL";

/// The queue rows of what the event calls for, as `q`.
macro_rules! called_for {
    () => {
        "FROM (
             SELECT id, queue_shard FROM hapax.effect WHERE event = $2
             UNION ALL
             SELECT effect, queue_shard FROM hapax.effect_link WHERE shard = $1 AND event = $2
         ) AS k (effect, queue_shard)
         JOIN hapax.queue q ON q.shard = k.queue_shard AND q.effect = k.effect "
    };
}

const CHAINS: &str = chain_columns!(concat!(
    called_for!(),
    "JOIN hapax.chain c ON c.shard = q.chain_shard AND c.chain = q.chain"
));

/// Of each effect that has an order, the nearest live one that stands before it, and a later one that is under way.
const AHEAD: &str = concat!(
    "SELECT q.effect, p.effect, p.state, p.later ",
    called_for!(),
    "CROSS JOIN LATERAL (
         (SELECT effect, state, turn, false FROM hapax.queue
          WHERE chain = q.chain AND turn < q.turn AND state IN (0, 1, 3) ORDER BY turn DESC LIMIT 1)
         UNION ALL ",
    under_way!(),
    ") p (effect, state, turn, later)
     WHERE q.chain IS NOT NULL ORDER BY p.turn"
);

/// The statements that read the facts of one event.
pub(super) struct Look {
    shard: i16,
    event: Uuid,
    given: Option<i64>,
}

impl Look {
    pub(super) fn at(event: EventId, clock: &LeaseClock) -> Look {
        Look {
            shard: event.0.shard() as i16,
            event: Uuid(event.bytes()),
            given: clock.given(),
        }
    }

    pub(super) fn statements(&self) -> [Statement<'_>; STATEMENTS] {
        let named =
            || -> Vec<Param<'_>> { vec![(&self.shard, Type::INT2), (&self.event, Type::UUID)] };
        [
            (EVENT, named()),
            (EFFECTS, named()),
            (SHARED, named()),
            (CHAINS, named()),
            (AHEAD, named()),
            (MOMENT, vec![(&self.given, Type::INT8)]),
        ]
    }
}

/// The facts of an event, in one picture.
pub(super) async fn facts(
    pool: &Pool,
    event: EventId,
    clock: &LeaseClock,
) -> Result<Option<EventFacts>, StoreError> {
    let found = pool.read_all(&Look::at(event, clock).statements()).await?;
    to_facts(&found)
}

/// The facts of an event whose locks are held.
pub(super) async fn of_locked(
    taken: &Taken,
    event: EventId,
    clock: &LeaseClock,
) -> Result<Option<EventFacts>, StoreError> {
    let found = taken.run_all(&Look::at(event, clock).statements()).await?;
    to_facts(&found)
}

/// What the statements of [`Look`] found. `None` if there is no such event.
pub(super) fn to_facts(found: &[Vec<Row>]) -> Result<Option<EventFacts>, StoreError> {
    let [event, effects, shared, chains, ahead, moment, ..] = found else {
        return Ok(None);
    };
    let Some(event) = event.first() else {
        return Ok(None);
    };
    let mut hand = Hand::new(to_moment(moment)?, effects.iter().map(to_held));
    hand.chains = chains.iter().map(to_chain).collect();
    hand.ahead = to_ahead(ahead);
    let held = event.get::<_, bool>(0);
    let message = event.get::<_, Option<String>>(1).unwrap_or_default();
    Ok(Some(EventFacts {
        now: hand.now,
        payload: match event.get(2) {
            true => Kept::Whole,
            false => Kept::Reaped,
        },
        ledger: match Time::from_micros(event.get(5)) {
            Time::MIN => Kept::Reaped,
            _ => Kept::Whole,
        },
        held: held.then(|| received(message)),
        conflicts_open: event.get::<_, i64>(3) as u32,
        to_come: event.get::<_, i32>(4) as u64,
        effects: of_effects(effects, shared, &hand),
    }))
}

fn of_effects(rows: &[Row], shared: &[Row], hand: &Hand) -> Vec<EffectFacts> {
    let id = |row: &Row, column| EffectId::from_bytes(row.get::<_, Uuid>(column).0);
    let ours = rows.iter().map(|row| (row.get(PLACE), id(row, 0)));
    let ours: BTreeMap<i32, EffectId> = ours.collect();
    let mut theirs: BTreeMap<EffectId, BTreeMap<i32, EffectId>> = BTreeMap::new();
    for row in shared {
        let plan = theirs.entry(id(row, 0)).or_default();
        plan.insert(row.get(1), id(row, 2));
    }
    let facts = rows.iter().filter_map(|row| {
        let effect = &hand.held.get(&id(row, 0))?.effect;
        let plan = theirs.get(&effect.id).unwrap_or(&ours);
        let places = row.get::<_, Option<&[u8]>>(AFTER).unwrap_or_default();
        let places = places.chunks_exact(2);
        let first = places.filter_map(|at| plan.get(&u16::from_be_bytes([at[0], at[1]]).into()));
        let of_this_event = first.filter_map(|id| hand.held.get(id));
        Some(EffectFacts {
            after: of_this_event
                .map(|held| held.effect.name.to_string())
                .collect(),
            order: hand.verdict(effect.id),
            effect: effect.clone(),
        })
    });
    facts.collect()
}
