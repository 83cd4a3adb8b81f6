//! A source compiled for speed: all fields it asks for are read in one pass over the body.

use std::sync::Arc;

use arc_swap::ArcSwap;
use hapax_ledger::extract::{Fields, Slot};
use hapax_ledger::field::Field;
use hapax_ledger::ladder::{Ladder, ProviderId};
use hapax_ledger::plan::EffectRule;
use hapax_verify::{Secret, Verifier};

use crate::config::{EffectConfig, SourceConfig};
use crate::inbox::refused::Refused;
use crate::inbox::repeats::Repeats;

/// A source, ready to receive.
pub struct Source {
    /// As configured.
    pub config: SourceConfig,
    /// Verifies its requests: with the secrets of the config, and those that were taken from its provider since.
    pub verifier: ArcSwap<Verifier>,
    /// Every field it asks for.
    pub fields: Fields,
    /// What identifies its events.
    pub ladder: Ladder,
    /// Where its events' properties stand.
    pub slots: Slots,
    /// What its events call for, in the order of the config. Kept here, so that a reload changes both together.
    pub effects: Vec<Arc<EffectConfig>>,
    /// Their rules, in the same order.
    pub rules: Vec<EffectRule>,
    /// Does it ask for anything in the body? If not, the body may be of any kind.
    pub reads_body: bool,
    /// How its requests are split, if its provider batches.
    pub batch: Option<Batch>,
    /// The label of its verification scheme, with a mark if it does not cover the body (A2).
    pub scheme_label: Arc<str>,
    /// The latest requests that it did not believe.
    pub refused: Refused,
    /// Which of its events came again lately.
    pub repeats: Repeats,
}

/// Where an event's properties stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slots {
    /// Its type.
    pub event_type: Option<Slot>,
    /// Its business object.
    pub object_id: Option<Slot>,
    /// The object that order is about.
    pub entity: Option<Slot>,
    /// The object's version.
    pub version: Option<Slot>,
}

/// Where the elements of a batch stand.
#[derive(Clone, Debug)]
pub enum Batch {
    /// The body itself is the array.
    Root,
    /// The array stands there.
    At(Field),
}

impl Source {
    /// Compiles a source and its effects.
    pub fn new(config: SourceConfig, effects: Vec<Arc<EffectConfig>>) -> Source {
        // The rules of the effects point into this set; what the source itself asks for joins it.
        let mut fields = config.fields.clone();
        let slots = Slots {
            event_type: config.event_type.as_ref().map(|field| fields.add(field)),
            object_id: config.object_id.as_ref().map(|field| fields.add(field)),
            entity: config.entity.as_ref().map(|field| fields.add(field)),
            version: config.version.as_ref().map(|field| fields.add(field)),
        };
        let ladder = Ladder {
            business: config.key.iter().map(|field| fields.add(field)).collect(),
            provider_id: config.provider_id.as_ref().map(|id| ProviderId {
                field: fields.add(&id.field),
                signed: id.signed,
            }),
            trust_unsigned_id: config.trust_unsigned_id,
            composed: config
                .composed
                .iter()
                .map(|field| fields.add(field))
                .collect(),
            body_varies: config.body_varies,
        };
        let asks_body = |effect: &Arc<EffectConfig>| {
            effect.when.is_some() || effect.review_at_accept().is_some()
        };
        let reads_body = fields.iter().any(|field| !field.is_header())
            || config.batch.is_some()
            || effects.iter().any(asks_body);
        let batch = config
            .batch
            .as_deref()
            .map(|path| match path.parse::<Field>() {
                Ok(field) => Batch::At(field),
                // The empty path is no field: it is the body itself.
                Err(_) => Batch::Root,
            });
        let scheme_label = scheme_label(&config);
        Source {
            verifier: ArcSwap::from_pointee(config.verifier.clone()),
            config,
            fields,
            ladder,
            slots,
            rules: effects.iter().map(|effect| effect.rule.clone()).collect(),
            effects,
            reads_body,
            batch,
            scheme_label,
            refused: Refused::default(),
            repeats: Repeats::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.config.name
    }

    /// From now on these secrets count too.
    pub fn know(&self, secrets: &[Secret]) {
        match self.config.verifier.with_more(secrets) {
            Ok(verifier) => self.verifier.store(Arc::new(verifier)),
            Err(error) => {
                tracing::error!(source = %self.name(), %error, "secrets that were taken from the provider cannot be used");
            }
        }
    }

    /// The effect of this name.
    pub fn effect(&self, name: &str) -> Option<&Arc<EffectConfig>> {
        self.effects.iter().find(|effect| *effect.name == *name)
    }
}

fn scheme_label(config: &SourceConfig) -> Arc<str> {
    use hapax_verify::Coverage;
    let scheme = config.verifier.scheme().name();
    match config.verifier.covers() {
        Coverage::Body => scheme.into(),
        Coverage::Partial => format!("{scheme} (covers part of the body)").into(),
        Coverage::Nothing => format!("{scheme} (does not cover the body)").into(),
    }
}
