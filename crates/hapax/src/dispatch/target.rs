//! Where effects go: the current word of the config, or of the endpoint's owner, which counts for URL, secrets and times whatever was
//! frozen at accept.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use hapax_ledger::effect::Repeat;
use hapax_ledger::retry::Schedule;
use hapax_store::nouns::{Parcel, lane_shard};
use hapax_verify::Secret;
use http::HeaderMap;

use super::connect::Reach;
use super::delivery::Payload;
use super::gate::ConsumerUrl;
use super::lane::Caps;
use super::signature::DeliverySigner;
use super::signer::Signer;
use crate::config::effect::ReconcileConfig;
use crate::config::{EffectConfig, SourceConfig};

/// All targets of the config, by the name of their effect, which is also the name of their lane.
#[derive(Default)]
pub struct Targets {
    by_name: HashMap<Arc<str>, Arc<Target>>,
}

/// Where one effect goes.
pub struct Target {
    /// How much may be sent.
    pub caps: Caps,
    /// The shard of its lane.
    pub shard: u16,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// What must not be found in anything that is kept of an answer.
    pub secrets: Arc<[Secret]>,
    /// What kind of target it is.
    pub way: Way,
}

/// What is sent where.
pub enum Way {
    /// An effect of the config, to a service of the operator's.
    Effect(Box<EffectTarget>),
    /// A delivery, to a consumer's endpoint.
    Endpoint(Box<EndpointTarget>),
}

/// An effect of the config.
pub struct EffectTarget {
    /// The effect as the config declares it.
    pub effect: Arc<EffectConfig>,
    /// Where the current state can be asked for.
    pub reconcile: Option<Arc<ReconcileConfig>>,
    /// Signs its requests.
    pub signer: Option<Signer>,
    /// When it is tried again.
    pub retry: Arc<Schedule>,
}

/// An endpoint, ready to be sent to.
pub struct EndpointTarget {
    /// Where to, as the gate has read it.
    pub url: ConsumerUrl,
    /// The gate's rules, asked again whenever it is connected to.
    pub reach: Reach,
    /// Headers that go along.
    pub headers: HeaderMap,
    /// Signs its deliveries.
    pub signer: DeliverySigner,
    /// What the body is.
    pub payload: Payload,
    /// When failed deliveries are tried again.
    pub retries: Retries,
}

/// The schedules that an endpoint's deliveries may have: its own, else that of the event's type, else its application's or the
/// config's.
pub struct Retries {
    /// The endpoint's.
    pub own: Option<Arc<Schedule>>,
    /// Those of types of events; they change without the endpoint.
    pub by_type: Arc<SchedulesByType>,
    /// For all others.
    pub otherwise: Arc<Schedule>,
}

/// Schedules of types of events, by their name.
pub type SchedulesByType = ArcSwap<HashMap<Arc<str>, Arc<Schedule>>>;

impl Retries {
    /// The schedule of deliveries of this type.
    pub fn of(&self, event_type: Option<&str>) -> Arc<Schedule> {
        let of_type = || self.by_type.load().get(event_type?).cloned();
        let own = self.own.clone();
        own.or_else(of_type)
            .unwrap_or_else(|| self.otherwise.clone())
    }
}

impl Target {
    /// The effect of the config that it is of.
    pub fn effect(&self) -> Option<&Arc<EffectConfig>> {
        match &self.way {
            Way::Effect(target) => Some(&target.effect),
            Way::Endpoint(_) => None,
        }
    }

    /// The class that counts at least. Consumers drop what they have seen, by its id.
    pub fn repeat(&self) -> Repeat {
        self.effect()
            .map_or(Repeat::Keyed, |effect| effect.rule.repeat)
    }

    /// When to try again what did not get through.
    pub fn retry(&self, parcel: &Parcel) -> Arc<Schedule> {
        match &self.way {
            Way::Effect(target) => target.retry.clone(),
            Way::Endpoint(target) => target.retries.of(parcel.event_type.as_deref()),
        }
    }
}

impl Targets {
    /// The targets of a config, in a store of so many shards.
    pub fn new(effects: &[Arc<EffectConfig>], sources: &[SourceConfig], shards: u16) -> Targets {
        let target = |effect: &Arc<EffectConfig>| {
            let source = sources.iter().find(|source| source.name == effect.source);
            Target {
                caps: Caps {
                    concurrency: u32::try_from(effect.concurrency).unwrap_or(u32::MAX),
                    rate: effect.rate.map(Into::into),
                },
                shard: lane_shard(&effect.name, shards),
                timeout: effect.timeout,
                secrets: secrets(effect),
                way: Way::Effect(Box::new(EffectTarget {
                    reconcile: source.and_then(|source| source.reconcile.clone()),
                    signer: effect.signer.clone().map(Signer::from),
                    retry: Arc::new(effect.retry.clone()),
                    effect: effect.clone(),
                })),
            }
        };
        Targets {
            by_name: effects
                .iter()
                .map(|effect| (effect.name.clone(), Arc::new(target(effect))))
                .collect(),
        }
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Target>)> {
        self.by_name.iter()
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
