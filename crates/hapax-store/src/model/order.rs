//! Order in memory: chains of effects that speak of one entity, and the gates that open and close with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::EffectId;
use hapax_ledger::order::{
    self, ChainPlace, EntityKnown, Gate, LifeStep, OrderVerdict, PlannedOrder,
};
use hapax_ledger::version::is_stale;

use super::effects::{Effects, Row};

/// What one chain is about: an effect's name, and an entity.
pub(super) type ChainKey = (Arc<str>, String);

/// What is known of an entity, for one effect.
#[derive(Default)]
pub(super) struct Chain {
    /// So many effects belong to it.
    members: u32,
    highest_version: Option<String>,
    /// Of all that were started, the one that was accepted last.
    latest_started: Option<(u64, EffectId)>,
    /// Whichever was started last: of all that are held, it alone can be under way.
    running: Option<EffectId>,
    ended_by: Option<String>,
}

impl Row {
    /// The chain it belongs to, if it has an order.
    pub(super) fn chain(&self) -> Option<ChainKey> {
        let order = self.effect.order.as_ref()?;
        Some((self.effect.name.clone(), order.entity.clone()))
    }

    /// Has it not ended?
    pub(super) fn is_live(&self) -> bool {
        match self.effect.record.state {
            EffectState::Pending | EffectState::Claimed | EffectState::Uncertain => true,
            EffectState::Done | EffectState::Dead | EffectState::Skipped => false,
        }
    }
}

impl Effects {
    /// A new effect joins its chain. Gives the type that had ended the entity before.
    pub(super) fn join_chain(
        &mut self,
        name: &Arc<str>,
        order: &PlannedOrder,
        event_type: &str,
    ) -> Option<String> {
        let key = (name.clone(), order.entity.clone());
        let chain = self.chains.entry(key).or_default();
        chain.members += 1;
        let before = chain.ended_by.clone();
        match order.life_step {
            LifeStep::Ordinary => {}
            LifeStep::Ends => chain.ended_by = Some(event_type.to_owned()),
            LifeStep::Reopens => chain.ended_by = None,
        }
        before
    }

    /// An effect is gone, and with the last of a chain all that is known of it.
    pub(super) fn leave_chain(&mut self, key: &ChainKey) {
        if let Some(chain) = self.chains.get_mut(key) {
            chain.members -= 1;
        }
        self.chains.retain(|_, chain| chain.members > 0);
    }

    /// An effect was started: what is older is stale or out of order from now on.
    pub(super) fn started_in_chain(&mut self, id: EffectId) {
        let Some(row) = self.rows.get(&id) else {
            return;
        };
        let Some(chain) = row.chain().and_then(|key| self.chains.get_mut(&key)) else {
            return;
        };
        let version = row
            .effect
            .order
            .as_ref()
            .and_then(|order| order.version.as_ref());
        if let Some(version) = version {
            let highest = chain.highest_version.get_or_insert_with(|| version.clone());
            if is_stale(highest, version) {
                highest.clone_from(version);
            }
        }
        chain.latest_started = chain.latest_started.max(Some((row.position(), id)));
        chain.running = Some(id);
    }

    /// May it start, as far as its order is concerned?
    pub(super) fn verdict(&self, row: &Row) -> OrderVerdict {
        let Some(order) = &row.effect.order else {
            return OrderVerdict::Go;
        };
        let chain = row.chain().and_then(|key| self.chains.get(&key));
        let mut earlier: Vec<&Row> = self.earlier(row).collect();
        earlier.sort_by_key(|row| row.position());
        let predecessors: Vec<(EffectId, EffectState)> = earlier
            .iter()
            .map(|row| (row.effect.id, row.effect.record.state))
            .collect();
        let known = EntityKnown {
            predecessors: &predecessors,
            under_way: self.under_way(row),
            later_started: chain
                .and_then(|chain| chain.latest_started)
                .filter(|(position, _)| *position > row.position())
                .map(|(_, id)| id),
            highest_started: chain.and_then(|chain| chain.highest_version.as_deref()),
            ended_by: row.ended_by.as_deref(),
            released: row.effect.released,
        };
        order::decide(order, &known)
    }

    /// Those of its chain that were accepted before it.
    fn earlier(&self, row: &Row) -> impl Iterator<Item = &Row> {
        let (chain, position) = (row.chain(), row.position());
        self.rows.values().filter(move |other| {
            chain.is_some() && other.chain() == chain && other.position() < position
        })
    }

    /// The later one of its chain that somebody holds.
    fn under_way(&self, row: &Row) -> Option<EffectId> {
        let chain = self.chains.get(&row.chain()?)?;
        let other = self.rows.get(&chain.running?)?;
        let is_held = other.effect.record.state == EffectState::Claimed;
        (is_held && other.position() > row.position()).then_some(other.effect.id)
    }

    /// The gate of an effect that nobody holds. What it comes after and is gone had ended long ago.
    fn gate(&self, row: &Row) -> Gate {
        let after = row.after.iter().filter_map(|id| self.rows.get(id));
        let states = after.map(|other| other.effect.record.state);
        let place = match &row.effect.order {
            Some(order) if order.serial => {
                let beside = row.effect.released && self.under_way(row).is_some();
                match beside || self.earlier(row).any(Row::is_live) {
                    true => ChainPlace::Behind,
                    false => ChainPlace::First,
                }
            }
            Some(_) | None => ChainPlace::Free,
        };
        order::gate(row.effect.gate, states, place)
    }

    /// Brings the gates of all that is pending level with the rest. Gives the lanes in which one opened.
    pub(super) fn settle_gates(&mut self) -> Vec<Arc<str>> {
        let pending = |row: &&Row| row.effect.record.state == EffectState::Pending;
        let gates: Vec<(EffectId, Gate)> = self
            .rows
            .values()
            .filter(pending)
            .map(|row| (row.effect.id, self.gate(row)))
            .collect();
        let mut opened = BTreeSet::new();
        for (id, gate) in gates {
            let Some(row) = self.rows.get_mut(&id) else {
                continue;
            };
            if gate == Gate::Open && row.effect.gate != Gate::Open {
                opened.insert(row.effect.lane.clone());
            }
            row.effect.gate = gate;
        }
        opened.into_iter().collect()
    }
}
