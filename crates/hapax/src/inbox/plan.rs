//! Which effects an event calls for, with which keys: decided at accept, from the event and the config alone.
//!
//! An authentic event that cannot be planned is kept without effects, and a person looks: half a plan would be a guess.

use hapax_ledger::extract::Extracted;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::plan::{EventFacts, PlannedEffect, plan as plan_effects};
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_store::nouns::{NewEffect, Review};

use super::source::Source;
use crate::config::EffectConfig;
use crate::config::effect::{Expression, Payload, Unreadable};

/// Review code: the plan could not be derived.
pub const NO_PLAN: &str = "H0212";

/// What of an event decides its plan.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Its type.
    pub event_type: Option<&'a str>,
    /// Its key.
    pub key: &'a str,
    /// The fields of its source.
    pub fields: &'a Extracted<'a>,
    /// Its bytes.
    pub body: &'a [u8],
}

/// The effects of an event, in the order of the config, or why a person has to look at it.
pub fn plan(source: &Source, facts: &Facts<'_>) -> Result<Vec<NewEffect>, Review> {
    if source.effects.is_empty() {
        return Ok(Vec::new());
    }
    let mut asked = Asked {
        body: facts.body,
        payload: None,
    };
    let event = EventFacts {
        event_type: facts.event_type.unwrap_or_default(),
        key: facts.key,
        fields: facts.fields,
        names: &source.fields,
        elsewhere: &elsewhere(source, facts, &mut asked)?,
    };
    let mut planned =
        plan_effects(&event, &source.rules).map_err(|error| review(&error.to_string()))?;
    for effect in &mut planned {
        let config = source.effect(&effect.name);
        let condition = config.and_then(|config| Some((config, config.review_at_accept()?)));
        if let (Some(order), Some((config, condition))) = (&mut effect.order, condition) {
            order.review = asked.holds(config, condition)?;
        }
    }
    let effect = |effect: &PlannedEffect| {
        let config = source.effect(&effect.name)?;
        Some(NewEffect {
            after: places(effect, &planned),
            ..new_effect(effect, config)
        })
    };
    // Every planned effect comes from a rule of this source, so that each has its config and keeps its place.
    Ok(planned.iter().filter_map(effect).collect())
}

/// The answers to conditions that are no plain comparisons, by the places of their effects. Those of other types are
/// not asked.
fn elsewhere(
    source: &Source,
    facts: &Facts<'_>,
    asked: &mut Asked<'_>,
) -> Result<Vec<bool>, Review> {
    let event_type = facts.event_type.unwrap_or_default();
    let answers = source.effects.iter().map(|effect| {
        let types = &effect.rule.types;
        let typed = types.is_empty() || types.iter().any(|glob| glob.matches(event_type));
        match &effect.when {
            Some(condition) if typed => asked.holds(effect, condition),
            _ => Ok(false),
        }
    });
    answers.collect()
}

/// A body that is built when it is first asked about.
struct Asked<'a> {
    body: &'a [u8],
    payload: Option<Payload>,
}

impl Asked<'_> {
    fn holds(&mut self, effect: &EffectConfig, condition: &Expression) -> Result<bool, Review> {
        let unreadable = |why: Unreadable| {
            let name = &effect.name;
            review(&format!(
                "a condition of effect `{name}` cannot be asked: {why}"
            ))
        };
        let payload = match self.payload.take() {
            Some(payload) => payload,
            None => Payload::new(self.body).map_err(unreadable)?,
        };
        condition
            .holds(self.payload.insert(payload))
            .map_err(unreadable)
    }
}

fn review(message: &str) -> Review {
    Review {
        code: NO_PLAN.into(),
        message: message.into(),
    }
}

/// A planned effect as the store takes it, but for the effects that come first. Whether it is born claimed is the dispatcher's to say.
fn new_effect(planned: &PlannedEffect, config: &EffectConfig) -> NewEffect {
    let wait = match config.retry.next(0, None, 0.0) {
        Next::At(wait) => wait,
        Next::Exhausted => Span::ZERO,
    };
    NewEffect {
        name: config.name.clone(),
        key_hash: KeyHash::of(KeyKind::Effect, &planned.name, &planned.key),
        key: planned.key.clone(),
        repeat: planned.repeat,
        lane: config.name.clone(),
        wait,
        attempts_max: config.retry.attempts_max(),
        after: Vec::new(),
        order: planned.order.clone(),
        born: None,
    }
}

/// The places in a plan of the effects that must be done before this one.
fn places(planned: &PlannedEffect, plan: &[PlannedEffect]) -> Vec<u16> {
    let named = |name: &String| plan.iter().position(|other| other.name == *name);
    let places = planned.after.iter().filter_map(named);
    // A source has at most a thousand effects.
    places
        .filter_map(|place| u16::try_from(place).ok())
        .collect()
}
