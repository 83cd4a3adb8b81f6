//! What attempts say about endpoints: written down when one turns, many of them in one commit, and told with it.
//!
//! Whoever has something to write leaves it in a queue; one of them at a time writes what is there for all. So nobody waits for anybody
//! else's commit, and where thousands of endpoints turn at once there are few of them.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use hapax_ledger::id::EndpointId;
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Time;
use hapax_store::StoreError;
use hapax_store::nouns::{Endpoint, Mark, Put, lane_shard};
use hapax_store::outbox::MARKS_PER_COMMIT;

use super::health::{self, Verdict};
use super::registry::Registry;
use crate::clock;

/// How often marks are tried again because endpoints were changed meanwhile.
const MARKS_MAX: u32 = 8;
/// Endpoints that have begun to fail that are remembered. Of more, some are said to fail a little later.
const FAILED_MAX: usize = 100_000;

/// The attempt by which an endpoint is to be marked: the latest, or the one that was its end.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    outcome: Outcome,
    at: Time,
    ends: bool,
}

/// The first failure of an endpoint after a success, while it is not written down.
#[derive(Clone, Copy)]
pub(super) struct FirstFailure {
    at: Time,
    /// The endpoint as it was then: what its owner has changed since may be what was wrong.
    revision: u64,
}

/// What is to be written about one endpoint.
struct Turned {
    id: EndpointId,
    noted: Noted,
    endpoint: Arc<Endpoint>,
    verdict: Verdict,
}

impl Registry {
    /// An attempt at an endpoint came back with this. Waits for nothing, unless it is the one that writes for all.
    pub async fn note(&self, id: EndpointId, outcome: Outcome, now: Time) {
        let Some((_, verdict)) = self.judge(id, outcome, now) else {
            return;
        };
        let noted = Noted {
            outcome,
            at: now,
            ends: matches!(verdict, Verdict::Disable(_)),
        };
        let waiting = self.noted().get(&id).copied();
        if noted.ends || !waiting.is_some_and(|waiting| waiting.ends) {
            self.noted().insert(id, noted);
        }
        // Whoever is at it looks once more when it has let go, and so sees what was left meanwhile.
        while !self.noted().is_empty() {
            let Ok(_turn) = self.marking.try_lock() else {
                return;
            };
            self.mark_some().await;
        }
    }

    /// Endpoints that are to be marked: one entry each, so there are never more than endpoints.
    fn noted(&self) -> MutexGuard<'_, HashMap<EndpointId, Noted>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what waits, as much as goes into one commit, and writes it. What the store does not take the next attempt says again.
    async fn mark_some(&self) {
        let mut waiting: Vec<(EndpointId, Noted)> = {
            let mut noted = self.noted();
            let some: Vec<EndpointId> = noted.keys().take(MARKS_PER_COMMIT).copied().collect();
            let taken = some.into_iter().filter_map(|id| noted.remove_entry(&id));
            taken.collect()
        };
        for _ in 0..MARKS_MAX {
            let turned: Vec<Turned> = waiting
                .into_iter()
                .filter_map(|(id, noted)| {
                    // Whoever was before us may have said the same.
                    let (endpoint, verdict) = self.judge(id, noted.outcome, noted.at)?;
                    Some(Turned {
                        id,
                        noted,
                        endpoint,
                        verdict,
                    })
                })
                .collect();
            waiting = match self.follow(turned).await {
                Ok(moved) => moved,
                Err(error) => {
                    tracing::warn!(%error, "endpoints could not be marked");
                    return;
                }
            };
            if waiting.is_empty() {
                return;
            }
        }
    }

    fn judge(
        &self,
        id: EndpointId,
        outcome: Outcome,
        now: Time,
    ) -> Option<(Arc<Endpoint>, Verdict)> {
        let endpoint = self.catalog().endpoint_by_id(id)?.clone();
        let first = self.failed().get(&id).copied();
        let first = first.filter(|first| first.revision == endpoint.revision);
        let failed_at = first.map(|first| first.at);
        let patience = self.settings().patience;
        match health::judge(&endpoint, outcome, failed_at, patience, now) {
            Verdict::AsBefore => None,
            Verdict::Failed => {
                let mut failed = self.failed();
                if failed.len() >= FAILED_MAX {
                    failed.clear();
                }
                let revision = endpoint.revision;
                failed.insert(id, FirstFailure { at: now, revision });
                None
            }
            Verdict::WellAgain => {
                self.failed().remove(&id);
                None
            }
            verdict => Some((endpoint, verdict)),
        }
    }

    /// Forgets first failures of the lanes in these shards: another node may have seen successes since.
    pub(super) fn forget_failures(&self, shards: &[u16]) {
        let of = self.store.shards();
        let mut failed = self.failed();
        failed.retain(|id, _| !shards.contains(&lane_shard(&id.to_string(), of)));
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<EndpointId, FirstFailure>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes it all down; those whose endpoints were changed meanwhile.
    async fn follow(&self, turned: Vec<Turned>) -> Result<Vec<(EndpointId, Noted)>, StoreError> {
        let (mut marked, mut marks) = (Vec::new(), Vec::new());
        for one in turned {
            if let Some(mark) = one.mark() {
                marks.push(mark);
                marked.push(one);
            }
        }
        let Some(now) = marked.iter().map(|one| one.noted.at).max() else {
            return Ok(Vec::new());
        };
        let puts = self.store.mark_endpoints(marks, now).await?;
        self.ask().await?;
        let mut moved = Vec::new();
        for (one, put) in marked.into_iter().zip(puts) {
            match put {
                Put::Done { .. } | Put::Repeated(_) | Put::Taken => self.is_marked(&one),
                Put::Moved => moved.push((one.id, one.noted)),
            }
        }
        self.untold.notify_one();
        Ok(moved)
    }

    fn is_marked(&self, one: &Turned) {
        // What is written down need not be remembered.
        self.failed().remove(&one.id);
        match one.verdict {
            Verdict::Disable(standing) => {
                tracing::warn!(endpoint = %one.id, app = %one.endpoint.app, why = standing.word(),
                    "an endpoint is disabled; its deliveries are skipped");
            }
            Verdict::Warn { disabled_from } => {
                tracing::warn!(endpoint = %one.id, app = %one.endpoint.app, from = clock::text(disabled_from),
                    "nothing but failures come back from an endpoint; it will be disabled");
            }
            Verdict::AsBefore | Verdict::Failed | Verdict::WellAgain | Verdict::Turned { .. } => {}
        }
    }
}

impl Turned {
    /// What is written down of it, if anything is.
    fn mark(&self) -> Option<Mark> {
        let endpoint = &self.endpoint;
        let as_before = Mark {
            endpoint: self.id,
            was: endpoint.revision,
            standing: endpoint.standing,
            failing_since: endpoint.failing_since,
            disabled_from: endpoint.disabled_from,
        };
        match self.verdict {
            Verdict::AsBefore | Verdict::Failed | Verdict::WellAgain => None,
            // Whoever was told has been told of other failures than those that may come.
            Verdict::Turned { failing_since } => Some(Mark {
                failing_since,
                disabled_from: None,
                ..as_before
            }),
            Verdict::Warn { disabled_from } => Some(Mark {
                disabled_from: Some(disabled_from),
                ..as_before
            }),
            Verdict::Disable(standing) => Some(Mark {
                standing,
                ..as_before
            }),
        }
    }
}
