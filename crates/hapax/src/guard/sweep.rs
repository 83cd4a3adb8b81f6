//! Runs that were lost become unknown, so that operators see them without anybody asking for the key; and probes ask what became of them.
//!
//! A probe's "yes" counts at once. Its "no" counts only when the upstream cannot be at work any more: after lease, grace and time limit,
//! measured from when this process first saw the outcome unknown, so that no clock's jump makes it too early.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_ledger::guard::{GuardState, LEASE_GRACE};
use hapax_ledger::id::KeyId;
use hapax_store::StoreError;
use hapax_store::nouns::{
    Authority, Changed, KEYS_PER_STEP_MAX, KeyFilter, KeyRecord, KeyResolution, PAGE_MAX, Page,
    PageFrom,
};
use http::HeaderMap;
use tokio::sync::watch;

use super::Guards;
use crate::clock;
use crate::config::GuardConfig;
use crate::dispatch::Sender;
use crate::dispatch::ask::{self, ProbeAnswer};

/// How often lost runs are looked for. A caller who asks for the key sees them sooner.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How long after a question the next one about the same key is asked, at first; the wait doubles.
const ASK_AGAIN: Duration = Duration::from_secs(5);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(3_600);
/// Unknown keys of one guard that are asked about in one round. Beyond this, a person has more to decide than a probe.
const ASKED_MAX: usize = 1_000;
/// How long a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Looks after keys whose outcome is unknown.
pub struct Sweep {
    guards: Arc<Guards>,
    sender: Arc<Sender>,
    asked: HashMap<KeyId, Asked>,
}

#[derive(Clone, Copy)]
struct Asked {
    first: Instant,
    next: Instant,
    wait: Duration,
}

impl Sweep {
    /// Nothing asked yet.
    pub fn new(guards: Arc<Guards>, sender: Arc<Sender>) -> Sweep {
        Sweep {
            guards,
            sender,
            asked: HashMap::new(),
        }
    }

    /// Goes round until `stop` says so.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            if let Err(error) = self.step().await {
                tracing::warn!(%error, "lost requests could not be looked for; trying again");
            }
            let stopping = stop.wait_for(|stop| *stop);
            if tokio::time::timeout(SWEEP_EVERY, stopping).await.is_ok() {
                return;
            }
        }
    }

    /// One round.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn step(&mut self) -> Result<(), StoreError> {
        let store = self.guards.parts().store.clone();
        loop {
            let lost = store.lose_keys().await?;
            for id in &lost {
                tracing::warn!(key = %id, "a guarded request was lost: its outcome is unknown");
            }
            if lost.len() < KEYS_PER_STEP_MAX {
                break;
            }
        }
        let configs = self.guards.all().iter().map(|served| served.config());
        let probed: Vec<Arc<GuardConfig>> =
            configs.filter(|config| config.probe.is_some()).collect();
        let mut open = HashMap::new();
        for config in probed {
            for record in self.unknown(&config).await? {
                let asked = self.asked.get(&record.id).copied();
                if let Some(asked) = self.ask(&config, &record, asked).await? {
                    open.insert(record.id, asked);
                }
            }
        }
        self.asked = open;
        Ok(())
    }

    async fn unknown(&self, config: &GuardConfig) -> Result<Vec<KeyRecord>, StoreError> {
        let filter = KeyFilter {
            guard: Some(config.scope().to_string()),
            state: Some(GuardState::Unknown),
            ..KeyFilter::default()
        };
        let mut found = Vec::new();
        let mut from = PageFrom::Newest;
        loop {
            let page = Page {
                limit: PAGE_MAX,
                from,
            };
            let listed = self.guards.parts().store.keys(filter.clone(), page).await?;
            found.extend(listed.rows);
            match listed.next {
                Some(next) if found.len() < ASKED_MAX => from = PageFrom::OlderThan(next),
                _ => return Ok(found),
            }
        }
    }

    /// Asks about one key, if it is time. What is remembered of it; nothing if it is settled.
    async fn ask(
        &self,
        config: &GuardConfig,
        record: &KeyRecord,
        asked: Option<Asked>,
    ) -> Result<Option<Asked>, StoreError> {
        let now = clock::tick();
        let asked = asked.unwrap_or(Asked {
            first: now,
            next: now,
            wait: ASK_AGAIN,
        });
        if now < asked.next {
            return Ok(Some(asked));
        }
        let again = Asked {
            next: now + asked.wait,
            wait: (asked.wait * 2).min(ASK_AGAIN_MAX),
            ..asked
        };
        let Some(answer) = self.answer(config, record).await else {
            return Ok(Some(again));
        };
        self.guards
            .parts()
            .metrics
            .guards
            .probed(&config.scope(), answer.word());
        let resolution = match answer {
            ProbeAnswer::Applied => KeyResolution::Executed {
                ttl: config.policy.ttl,
            },
            ProbeAnswer::NotApplied if clock::since(asked.first) >= self.settled_after(config) => {
                KeyResolution::NotExecuted
            }
            ProbeAnswer::NotApplied | ProbeAnswer::NoAnswer(_) => return Ok(Some(again)),
        };
        self.resolve(config, record.id, resolution).await?;
        Ok(None)
    }

    /// From then on nothing that was sent can still be carried out.
    fn settled_after(&self, config: &GuardConfig) -> Duration {
        let lease = self.guards.parts().lease + LEASE_GRACE;
        Duration::from_micros(lease.micros().unsigned_abs()) + config.timeout
    }

    async fn answer(&self, config: &GuardConfig, record: &KeyRecord) -> Option<ProbeAnswer> {
        let url = config.probe.as_ref()?.fill(|name| match name {
            "key" => Some(record.key.as_str()),
            "principal" => Some(&*record.principal),
            "method" => Some(&*record.method),
            "path" => Some(&*record.path),
            _ => None,
        });
        let answer = match url {
            Ok(url) => {
                let question = ask::get(url, HeaderMap::new(), PROBE_TIMEOUT);
                ask::probe_answer(&self.sender.send(question).await)
            }
            Err(unfit) => ProbeAnswer::NoAnswer(unfit.to_string()),
        };
        if let ProbeAnswer::NoAnswer(why) = &answer {
            tracing::warn!(guard = &*config.name, key = %record.id, why, "a probe settles nothing");
        }
        Some(answer)
    }

    async fn resolve(
        &self,
        config: &GuardConfig,
        id: KeyId,
        resolution: KeyResolution,
    ) -> Result<(), StoreError> {
        let by = Authority {
            actor: format!("probe:{}", config.scope()).into(),
            reason: "the guard's probe has answered".to_owned(),
            at: clock::now(),
            request: None,
        };
        let store = &self.guards.parts().store;
        if store.resolve_key(id, resolution, by, String::new()).await? == Changed::Done {
            tracing::info!(key = %id, ?resolution, "a probe has decided what was unknown");
        }
        Ok(())
    }
}
