//! The plan: which effects does an event call for, and under which keys? A pure function of event and config.

use std::collections::HashSet;
use std::fmt;

use crate::condition::Condition;
use crate::effect::Repeat;
use crate::extract::{Extracted, Fields, Slot};
use crate::glob::Glob;
use crate::order::{OrderRule, PlannedOrder, Sequence};
use crate::template::Template;

mod after;

pub use after::{AfterError, check_after};

/// What of an event decides its plan.
#[derive(Clone, Copy, Debug)]
pub struct EventFacts<'a> {
    /// Its type.
    pub event_type: &'a str,
    /// Its key: the effect key where none is declared.
    pub key: &'a str,
    /// The fields that keys, conditions and order ask for.
    pub fields: &'a Extracted<'a>,
    /// The set they were extracted with: it names a missing field.
    pub names: &'a Fields,
    /// The answers to conditions that are not plain, as [`When::Elsewhere`] numbers them.
    pub elsewhere: &'a [bool],
}

/// When an effect is called for, beyond its types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// When a plain condition holds.
    Plain(Condition),
    /// When the full interpreter says so; its answer has this number.
    Elsewhere(usize),
}

/// One effect as the config declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectRule {
    /// Its name.
    pub name: String,
    /// The types that call for it; none means all.
    pub types: Vec<Glob>,
    /// The condition.
    pub when: When,
    /// Its key; without one, the event's key.
    pub key: Option<Template>,
    /// Its class.
    pub repeat: Repeat,
    /// Effects of the same event that come first.
    pub after: Vec<String>,
    /// Its order, if it has one.
    pub order: Option<OrderRule>,
}

/// One effect that an event calls for: name, key and class are frozen from here on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEffect {
    /// Its name.
    pub name: String,
    /// Its key, unique per name across events (D6).
    pub key: String,
    /// Its class.
    pub repeat: Repeat,
    /// The planned effects that come first.
    pub after: Vec<String>,
    /// Its order, if it has one.
    pub order: Option<PlannedOrder>,
}

/// An authentic event that cannot be planned: it is kept, and a person looks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("effect `{effect}` needs the field `{field}` for its {part}, and the event has none")]
pub struct PlanError {
    /// The effect.
    pub effect: String,
    /// What the field is for.
    pub part: PlanPart,
    /// The missing field.
    pub field: String,
}

/// What a missing field was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanPart {
    /// The effect key.
    Key,
    /// The entity that order is about.
    Entity,
    /// The version that order compares.
    Version,
}

impl fmt::Display for PlanPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PlanPart::Key => "key",
            PlanPart::Entity => "entity",
            PlanPart::Version => "version",
        })
    }
}

/// Plans an event: the effects it calls for, in the order of the rules.
///
/// What comes `after` an effect that this event does not call for does not wait for it.
pub fn plan(facts: &EventFacts<'_>, rules: &[EffectRule]) -> Result<Vec<PlannedEffect>, PlanError> {
    let called: Vec<&EffectRule> = rules
        .iter()
        .filter(|rule| rule.is_called_for(facts))
        .collect();
    let names: HashSet<&str> = called.iter().map(|rule| rule.name.as_str()).collect();
    called
        .iter()
        .map(|rule| rule.planned(facts, &names))
        .collect()
}

impl EffectRule {
    fn is_called_for(&self, facts: &EventFacts<'_>) -> bool {
        let typed =
            self.types.is_empty() || self.types.iter().any(|glob| glob.matches(facts.event_type));
        typed
            && match &self.when {
                When::Always => true,
                When::Plain(condition) => condition.holds(facts.fields),
                When::Elsewhere(number) => facts.elsewhere.get(*number) == Some(&true),
            }
    }

    fn planned(
        &self,
        facts: &EventFacts<'_>,
        names: &HashSet<&str>,
    ) -> Result<PlannedEffect, PlanError> {
        let key = match &self.key {
            None => facts.key.to_owned(),
            Some(template) => {
                let key = template.render(facts.fields);
                key.map_err(|missing| self.error(PlanPart::Key, missing.field))?
            }
        };
        let order = self
            .order
            .as_ref()
            .map(|order| self.planned_order(order, facts));
        let after = self
            .after
            .iter()
            .filter(|name| names.contains(name.as_str()));
        Ok(PlannedEffect {
            name: self.name.clone(),
            key,
            repeat: self.repeat,
            after: after.cloned().collect(),
            order: order.transpose()?,
        })
    }

    fn planned_order(
        &self,
        rule: &OrderRule,
        facts: &EventFacts<'_>,
    ) -> Result<PlannedOrder, PlanError> {
        let needed = |slot: Slot, part: PlanPart| match facts.fields.filled(slot) {
            Some(text) => Ok(text.to_owned()),
            None => {
                let name = facts.names.field(slot).map(ToString::to_string);
                Err(self.error(part, name.unwrap_or_default()))
            }
        };
        let (serial, version) = match rule.sequence {
            Sequence::Free => (false, None),
            Sequence::Serial => (true, None),
            Sequence::Versioned(slot) => (true, Some(needed(slot, PlanPart::Version)?)),
        };
        Ok(PlannedOrder {
            entity: needed(rule.entity, PlanPart::Entity)?,
            serial,
            version,
            life_step: rule.life_step(facts.event_type),
            snapshot: rule.snapshot,
            review: rule
                .review
                .as_ref()
                .is_some_and(|condition| condition.holds(facts.fields)),
        })
    }

    fn error(&self, part: PlanPart, field: String) -> PlanError {
        PlanError {
            effect: self.name.clone(),
            part,
            field,
        }
    }
}

#[cfg(test)]
mod tests;
