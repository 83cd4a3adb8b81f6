//! What attempts say about an endpoint: written down when it turns, told to operators when they should hear of it.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use hapax_ledger::id::{EndpointId, MessageId};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Time;
use hapax_ledger::transition::Did;
use hapax_store::StoreError;
use hapax_store::nouns::{Endpoint, Put, Standing};
use tokio::sync::mpsc;

use super::health::{self, Remembered, Verdict};
use super::operational::{Attempted, Operational, What};
use super::registry::Registry;
use crate::clock;
use crate::dispatch::directory::Settled;

/// How often a mark is tried again because the endpoint was changed meanwhile.
const MARKS_MAX: u32 = 8;
/// Endpoints whose owners were warned that are remembered. Of more, some are warned again, with the same event.
const WARNED_MAX: usize = 10_000;
/// Endpoints that have begun to fail that are remembered. Of more, some are said to fail a little later.
const FAILED_MAX: usize = 100_000;

impl Registry {
    /// An attempt at an endpoint came back with this.
    pub async fn note(&self, id: EndpointId, outcome: Outcome, now: Time) {
        if self.judge(id, outcome, now).is_none() {
            return;
        }
        let _turn = self.marking.lock().await;
        for _ in 0..MARKS_MAX {
            // Whoever was before us may have said the same.
            let Some((endpoint, verdict)) = self.judge(id, outcome, now) else {
                return;
            };
            match self.follow(&endpoint, verdict, now).await {
                Ok(Put::Moved) => {
                    if let Err(error) = self.ask().await {
                        tracing::warn!(%error, endpoint = %id, "an endpoint could not be marked");
                        return;
                    }
                }
                Ok(Put::Done { .. } | Put::Repeated(_) | Put::Taken) => return,
                Err(error) => {
                    // The next attempt says it again.
                    tracing::warn!(%error, endpoint = %id, "an endpoint could not be marked");
                    return;
                }
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

    async fn follow(
        &self,
        endpoint: &Endpoint,
        verdict: Verdict,
        now: Time,
    ) -> Result<Put, StoreError> {
        let failing_since = endpoint.failing_since;
        let (standing, failing_since) = match verdict {
            Verdict::AsBefore | Verdict::Failed | Verdict::WellAgain => {
                (endpoint.standing, failing_since)
            }
            Verdict::Turned { failing_since } => (endpoint.standing, failing_since),
            Verdict::Disable(standing) => (standing, failing_since),
            Verdict::Warn => {
                self.warn(endpoint, now);
                return Ok(Put::Done {
                    revision: endpoint.revision,
                });
            }
        };
        let (id, was) = (endpoint.id, endpoint.revision);
        let marked = self
            .store
            .mark_endpoint(id, was, standing, failing_since, now);
        let put = marked.await?;
        if matches!(put, Put::Done { .. }) {
            // What is written down need not be remembered.
            self.failed().remove(&id);
            self.ask().await?;
            if let Verdict::Disable(standing) = verdict {
                self.disabled(endpoint, standing, now);
            }
        }
        Ok(put)
    }

    fn warn(&self, endpoint: &Endpoint, now: Time) {
        let Some(failing_since) = endpoint.failing_since else {
            return;
        };
        let patience = self.settings().patience;
        let end = failing_since + patience.disabled_after;
        let disabled_from = end.max(now + patience.warned_before);
        {
            let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
            if warned.len() >= WARNED_MAX {
                warned.clear();
            }
            warned.insert(endpoint.id, (failing_since, now));
        }
        tracing::warn!(endpoint = %endpoint.id, app = %endpoint.app, since = clock::text(failing_since),
            "nothing but failures come back from an endpoint; it will be disabled");
        let what = What::Disabling {
            failing_since,
            disabled_from,
        };
        self.tell(endpoint, now, what);
    }

    fn disabled(&self, endpoint: &Endpoint, standing: Standing, now: Time) {
        let failing_since = endpoint.failing_since;
        tracing::warn!(endpoint = %endpoint.id, app = %endpoint.app, why = standing.word(),
            "an endpoint is disabled; its deliveries are skipped");
        let what = What::Disabled {
            standing,
            failing_since,
        };
        self.tell(endpoint, now, what);
    }

    fn tell(&self, endpoint: &Endpoint, at: Time, what: What) {
        let app = self.catalog().app_by_id(endpoint.app).cloned();
        let uid = app.as_ref().and_then(|app| app.uid.as_deref());
        let operational = Operational::about(endpoint, uid, at, what);
        if let Err(error) = self.told.try_send(operational) {
            let (mpsc::error::TrySendError::Full(lost) | mpsc::error::TrySendError::Closed(lost)) =
                error;
            tracing::warn!(
                event = lost.event_type(),
                key = lost.key(),
                "an operational event is not told: too many wait"
            );
        }
    }

    /// What of an attempt operators should hear: that a delivery was given up, or that one got through after that.
    pub(super) fn tell_of_attempt(&self, id: EndpointId, settled: &Settled<'_>, now: Time) {
        let record = &settled.change.next;
        let attempted = Attempted {
            message: MessageId(settled.effect.event.0),
            outcome: settled.outcome,
            generation: record.generation,
            attempts: record.attempts,
        };
        let what = match settled.change.did {
            Did::Dead => What::Exhausted(attempted),
            // A pass of its own: somebody had to send it again.
            Did::Done if record.pass_from > 0 => What::Recovered(attempted),
            _ => return,
        };
        let endpoint = self.catalog().endpoint_by_id(id).cloned();
        if let Some(endpoint) = endpoint {
            self.tell(&endpoint, now, what);
        }
    }
}
