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
use hapax_store::nouns::{Endpoint, Mark, News, Put, Tiding};
use hapax_store::outbox::MARKS_PER_COMMIT;

use super::health::{self, Remembered, Verdict};
use super::registry::Registry;
use crate::clock;

/// How often marks are tried again because endpoints were changed meanwhile.
const MARKS_MAX: u32 = 8;
/// Endpoints whose owners were warned that are remembered. Of more, some are warned again, with the same event.
const WARNED_MAX: usize = 10_000;
/// Endpoints that have begun to fail that are remembered. Of more, some are said to fail a little later.
const FAILED_MAX: usize = 100_000;

/// The attempt by which an endpoint is to be marked: the latest, or the one that was its end.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    outcome: Outcome,
    at: Time,
    ends: bool,
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
        let known = Remembered {
            failed_at: self.failed().get(&id).copied(),
            warned_at: self.warned_at(&endpoint),
        };
        let patience = self.settings().patience;
        match health::judge(&endpoint, outcome, known, patience, now) {
            Verdict::AsBefore => None,
            Verdict::Failed => {
                let mut failed = self.failed();
                if failed.len() >= FAILED_MAX {
                    failed.clear();
                }
                failed.entry(id).or_insert(now);
                None
            }
            Verdict::WellAgain => {
                self.failed().remove(&id);
                None
            }
            verdict => Some((endpoint, verdict)),
        }
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<EndpointId, Time>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the owner was warned of the failures of now.
    fn warned_at(&self, endpoint: &Endpoint) -> Option<Time> {
        let warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, at) = warned.get(&endpoint.id).copied()?;
        (Some(since) == endpoint.failing_since).then_some(at)
    }

    /// Writes it all down; those whose endpoints were changed meanwhile.
    async fn follow(&self, turned: Vec<Turned>) -> Result<Vec<(EndpointId, Noted)>, StoreError> {
        let (mut marked, mut marks, mut warned) = (Vec::new(), Vec::new(), Vec::new());
        for one in turned {
            let endpoint = &one.endpoint;
            let (standing, failing_since) = match one.verdict {
                Verdict::AsBefore | Verdict::Failed | Verdict::WellAgain => continue,
                Verdict::Warn => {
                    warned.push(one);
                    continue;
                }
                Verdict::Turned { failing_since } => (endpoint.standing, failing_since),
                Verdict::Disable(standing) => (standing, endpoint.failing_since),
            };
            marks.push(Mark {
                endpoint: one.id,
                was: endpoint.revision,
                standing,
                failing_since,
            });
            marked.push(one);
        }
        self.warn(&warned).await?;
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
        if let Verdict::Disable(standing) = one.verdict {
            tracing::warn!(endpoint = %one.id, app = %one.endpoint.app, why = standing.word(),
                "an endpoint is disabled; its deliveries are skipped");
        }
    }

    /// Has owners warned. One whose warning is not kept is warned by the next attempt.
    async fn warn(&self, warned: &[Turned]) -> Result<(), StoreError> {
        let patience = self.settings().patience;
        let mut tidings = Vec::new();
        for one in warned {
            let Some(failing_since) = one.endpoint.failing_since else {
                continue;
            };
            let end = failing_since + patience.disabled_after;
            let disabled_from = end.max(one.noted.at + patience.warned_before);
            let news = News::Disabling {
                failing_since,
                disabled_from,
            };
            tidings.push(Tiding::about(&one.endpoint, one.noted.at, news));
        }
        if tidings.is_empty() {
            return Ok(());
        }
        self.store.tell(tidings).await?;
        self.untold.notify_one();
        let mut known = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        for one in warned {
            let Some(failing_since) = one.endpoint.failing_since else {
                continue;
            };
            if known.len() >= WARNED_MAX {
                known.clear();
            }
            known.insert(one.id, (failing_since, one.noted.at));
            tracing::warn!(endpoint = %one.id, app = %one.endpoint.app, since = clock::text(failing_since),
                "nothing but failures come back from an endpoint; it will be disabled");
        }
        Ok(())
    }
}
