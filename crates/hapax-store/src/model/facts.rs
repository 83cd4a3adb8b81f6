//! What a verdict on an event depends on.

use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use hapax_ledger::verdict::Kept;

use super::effects::Effects;
use super::message::ToCome;
use super::state::{Row, State};
use crate::nouns::{EffectFacts, EventFacts};

impl State {
    pub(super) fn facts(&self, id: EventId, now: Time) -> Option<EventFacts> {
        let row = self.events.get(&id)?;
        let payload = match row.payload {
            Some(_) => Kept::Whole,
            None => Kept::Reaped,
        };
        let review = row.event.review.as_ref();
        Some(EventFacts {
            now,
            payload,
            ledger: match row.ledger_until {
                Time::MIN => Kept::Reaped,
                _ => Kept::Whole,
            },
            held: review.map(|review| review.message.clone()),
            conflicts_open: row.open_conflicts().count() as u32,
            to_come: row.to_come.as_ref().map_or(0, ToCome::len),
            effects: self.effects.facts(id),
        })
    }
}

impl Row {
    /// Numbers of the deliveries with another body that nobody has decided on.
    pub(super) fn open_conflicts(&self) -> impl Iterator<Item = u32> {
        let deliveries = self.deliveries.iter();
        deliveries
            .filter(|delivery| delivery.conflict && delivery.decided.is_none())
            .map(|delivery| delivery.number)
    }
}

impl Effects {
    fn facts(&self, event: EventId) -> Vec<EffectFacts> {
        let effects = self.of_event(event).into_iter();
        let facts = effects.filter_map(|effect| {
            let row = self.rows.get(&effect.id)?;
            let before = row.after.iter().filter_map(|id| self.rows.get(id));
            let of_this = before.filter(|other| other.events.contains(&event));
            Some(EffectFacts {
                effect,
                after: of_this.map(|other| other.effect.name.to_string()).collect(),
                order: self.verdict(row),
            })
        });
        facts.collect()
    }
}
