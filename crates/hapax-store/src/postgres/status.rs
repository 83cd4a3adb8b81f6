//! What a move means for others, inside the same transaction: where their events stand (D7), and whose gate opens.
//!
//! The effects of one event may be moved by different nodes at once. So its row is locked before its effects are looked at, and they
//! are looked at by a statement that begins after the lock is held: whoever comes second sees what the first one did.
//!
//! An effect whose gate has to change is not ours: nobody may wait for it who holds an event, since its holder may want that
//! event. So a gate that somebody else holds is left to them, and whoever holds a pending effect that others can make wait looks at
//! its gate before letting go, under the event's lock and the chain's. Either they look after us and see what we did, or we find
//! their row free.

use std::collections::BTreeSet;

use hapax_ledger::effect::{EffectState, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::KeyHash;
use hapax_ledger::order::Gate;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::gate::{Part, Stand};
use super::held::Hand;
use super::pool::{Param, Taken};
use super::wire::{Uuid, received};
use crate::error::StoreError;

/// The events to look at, as shards, ids, and whether gates of theirs may have changed: those given, those linked to effects,
/// and those of the first `$7` live ones in chains.
macro_rules! around {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            " FROM (
                 SELECT shard, id, bool_or(turned) FROM (
                     SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::bool[])
                     UNION ALL
                     SELECT l.shard, l.event, k.turned FROM (SELECT unnest($4::uuid[]), unnest($5::bool[])) AS k (effect, turned)
                     JOIN hapax.effect_link l ON l.effect = k.effect
                     UNION ALL
                     SELECT e.event_shard, e.event, false FROM unnest($6::uuid[]) AS k (chain)
                     CROSS JOIN LATERAL (
                         SELECT effect FROM hapax.queue
                         WHERE chain = k.chain AND state IN (0, 1, 3) ORDER BY turn LIMIT $7
                     ) h
                     JOIN hapax.effect e ON e.id = h.effect
                 ) AS a (shard, id, turned)
                 GROUP BY shard, id
             ) AS c (shard, id, turned) ",
            $after
        )
    };
}

/// Which events have to be looked at, and why.
#[derive(Default)]
pub(super) struct Around {
    event_shards: Vec<i16>,
    events: Vec<Uuid>,
    events_turned: Vec<bool>,
    effects: Vec<Uuid>,
    effects_turned: Vec<bool>,
    chains: Vec<Uuid>,
    moved_on: BTreeSet<KeyHash>,
    /// As many of a chain as may have a new place: the first, and all that came back may stand before it.
    heads: i64,
    gated: BTreeSet<EffectId>,
}

impl Around {
    /// Around all that a transaction has moved, and all that waits and was held by it.
    pub(super) fn of(hand: &Hand) -> Around {
        let mut around = Around {
            chains: hand
                .moved_on
                .iter()
                .map(|hash| Uuid(hash.bytes()))
                .collect(),
            moved_on: hand.moved_on.clone(),
            heads: hand.came_back as i64 + 1,
            ..Around::default()
        };
        for (effect, turned) in hand.shown() {
            around.push_event(effect.event, turned);
            around.effects.push(Uuid(effect.id.bytes()));
            around.effects_turned.push(turned);
        }
        for effect in hand.gated() {
            around.push_event(effect.event, false);
            around.gated.insert(effect.id);
        }
        around
    }

    /// Around all that a transaction holds, whatever it will move of it: what [`Around::of`] gives later is part of this.
    pub(super) fn all_of(hand: &Hand) -> Around {
        let mut around = Around {
            chains: hand.chains.keys().map(|hash| Uuid(hash.bytes())).collect(),
            heads: hand.held.len() as i64 + 1,
            ..Around::default()
        };
        for held in hand.held.values() {
            around.push_event(held.effect.event, false);
            around.effects.push(Uuid(held.effect.id.bytes()));
            around.effects_turned.push(false);
        }
        around
    }

    /// One more event whose row will be needed: all of them are locked at once, in their order.
    pub(super) fn lock_too(&mut self, event: EventId) {
        self.push_event(event, false);
    }

    fn push_event(&mut self, event: EventId, turned: bool) {
        self.event_shards.push(event.0.shard() as i16);
        self.events.push(Uuid(event.bytes()));
        self.events_turned.push(turned);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.chains.is_empty()
    }

    fn params(&self) -> [Param<'_>; 7] {
        [
            (&self.event_shards, Type::INT2_ARRAY),
            (&self.events, Type::UUID_ARRAY),
            (&self.events_turned, Type::BOOL_ARRAY),
            (&self.effects, Type::UUID_ARRAY),
            (&self.effects_turned, Type::BOOL_ARRAY),
            (&self.chains, Type::UUID_ARRAY),
            (&self.heads, Type::INT8),
        ]
    }

    /// Locks the events, in the order of their ids.
    pub(super) async fn lock(&self, taken: &Taken) -> Result<Vec<Row>, StoreError> {
        taken
            .query(
                around!(
                    "SELECT v.id, v.status, v.review_code IS NOT NULL",
                    "JOIN hapax.event v ON v.shard = c.shard AND v.id = c.id ORDER BY v.id FOR UPDATE OF v"
                ),
                &self.params(),
            )
            .await
    }

    /// Locks the events and reads their effects. What was moved is locked already, so no event can begin to call for it meanwhile.
    pub(super) async fn look(&self, taken: &Taken) -> Result<Stand, StoreError> {
        if self.is_empty() {
            return Ok(Stand::default());
        }
        let params = self.params();
        let locked = self.lock(taken);
        // Sent behind the first without waiting, and begun when that holds its locks.
        let parts = taken.query(
            around!(
                "SELECT c.id, c.turned, s.place, s.own, s.after, s.effect, q.state, q.skip, q.gate, q.chain, q.lane,
                     CASE WHEN s.order_rule & 1 = 1 AND q.state = 0 THEN EXISTS (
                         SELECT FROM hapax.queue p
                         WHERE p.chain = q.chain AND p.turn < q.turn AND p.state IN (0, 1, 3)
                     ) OR q.released AND EXISTS (
                         SELECT FROM hapax.chain h
                         JOIN hapax.queue r ON r.chain = h.chain AND r.turn = h.running_turn AND r.state IN (0, 1, 3)
                         WHERE h.shard = q.chain_shard AND h.chain = q.chain AND r.turn > q.turn AND r.state = 1
                     ) ELSE false END",
                "CROSS JOIN LATERAL (
                     SELECT e.place, true, e.after, e.order_rule, e.id, e.queue_shard FROM hapax.effect e
                     WHERE e.event = c.id
                     UNION ALL
                     SELECT l.place, false, NULL, NULL, l.effect, l.queue_shard FROM hapax.effect_link l
                     WHERE l.shard = c.shard AND l.event = c.id
                 ) AS s (place, own, after, order_rule, effect, queue_shard)
                 JOIN hapax.queue q ON q.shard = s.queue_shard AND q.effect = s.effect"
            ),
            &params,
        );
        // Looked at under the locks too: the last step of a fan-out holds the event's.
        let fanning = taken.query(
            around!(
                "SELECT c.id",
                "JOIN hapax.fan_out f ON f.shard = c.shard AND f.event = c.id"
            ),
            &params,
        );
        let (locked, parts, fanning) = tokio::try_join!(biased; locked, parts, fanning)?;
        let mut stand = Stand {
            moved_on: self.moved_on.clone(),
            gated: self.gated.clone(),
            ..Stand::default()
        };
        for row in &locked {
            let id = EventId::from_bytes(row.get::<_, Uuid>(0).0);
            let status = EventStatus::from_code(row.get::<_, i16>(1) as u8);
            stand.events.insert(id, (status, row.get(2)));
        }
        let to_come = fanning.iter().map(|row| row.get::<_, Uuid>(0));
        stand.to_come = to_come.map(|id| EventId::from_bytes(id.0)).collect();
        for row in &parts {
            let event = EventId::from_bytes(row.get::<_, Uuid>(0).0);
            stand.parts.entry(event).or_default().push(to_part(row));
        }
        Ok(stand)
    }
}

fn to_part(row: &Row) -> Part {
    let code = |column| row.get::<_, i16>(column) as u8;
    let skip = row.get::<_, Option<i16>>(7);
    let chain = row.get::<_, Option<Uuid>>(9);
    let after = row.get::<_, Option<&[u8]>>(4).unwrap_or_default();
    Part {
        turned: row.get(1),
        place: row.get::<_, i32>(2) as u16,
        own: row.get(3),
        after: after
            .chunks_exact(2)
            .map(|at| u16::from_be_bytes([at[0], at[1]]))
            .collect(),
        effect: EffectId::from_bytes(row.get::<_, Uuid>(5).0),
        // What cannot be read counts as the strictest there is.
        state: EffectState::from_code(code(6)).unwrap_or(EffectState::Uncertain),
        skip: skip.and_then(|code| SkipReason::from_code(code as u8)),
        gate: Gate::from_code(code(8)).unwrap_or(Gate::Review),
        chain: chain.map(|chain| KeyHash::from_bytes(chain.0)),
        lane: received(row.get(10)).into(),
        behind: row.get(11),
    }
}
