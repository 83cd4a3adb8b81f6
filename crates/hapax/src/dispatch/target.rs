//! Where effects go: the config's current word on each, which counts for URL, secrets and times whatever was frozen at accept.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hapax_store::nouns::lane_shard;
use hapax_verify::Secret;

use super::lane::Caps;
use super::signer::Signer;
use crate::config::effect::ReconcileConfig;
use crate::config::{EffectConfig, SourceConfig};

/// All targets, by the name of their effect, which is also the name of their lane.
#[derive(Default)]
pub struct Targets {
    by_name: HashMap<Arc<str>, Arc<Target>>,
}

/// Where one effect goes.
pub struct Target {
    /// The effect as the config declares it.
    pub effect: Arc<EffectConfig>,
    /// Where the current state can be asked for.
    pub reconcile: Option<Arc<ReconcileConfig>>,
    /// How much may be sent.
    pub caps: Caps,
    /// The shard of its lane.
    pub shard: u16,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Signs its requests.
    pub signer: Option<Signer>,
    /// What must not be found in anything that is kept of an answer.
    pub secrets: Arc<[Secret]>,
}

impl Targets {
    /// The targets of a config, in a store of so many shards.
    pub fn new(effects: &[Arc<EffectConfig>], sources: &[SourceConfig], shards: u16) -> Targets {
        let target = |effect: &Arc<EffectConfig>| {
            let source = sources.iter().find(|source| source.name == effect.source);
            Target {
                reconcile: source.and_then(|source| source.reconcile.clone()),
                caps: Caps {
                    concurrency: u32::try_from(effect.concurrency).unwrap_or(u32::MAX),
                    rate: effect.rate.map(Into::into),
                },
                shard: lane_shard(&effect.name, shards),
                timeout: effect.timeout,
                signer: effect.signer.clone().map(Signer::from),
                secrets: secrets(effect),
                effect: effect.clone(),
            }
        };
        Targets {
            by_name: effects
                .iter()
                .map(|effect| (effect.name.clone(), Arc::new(target(effect))))
                .collect(),
        }
    }

    /// The target of an effect.
    pub fn get(&self, name: &str) -> Option<&Arc<Target>> {
        self.by_name.get(name)
    }
}

fn secrets(effect: &EffectConfig) -> Arc<[Secret]> {
    let values = effect.headers.values();
    let secret = values.filter(|value| value.is_sensitive());
    secret.map(|value| Secret::new(value.as_bytes())).collect()
}
