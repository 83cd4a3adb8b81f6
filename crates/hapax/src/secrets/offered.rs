//! Secrets that a provider chooses and offers in its handshake.
//!
//! Nobody vouches for an offer: whoever knows the URL can make one. So a secret is taken only while a person expects it, the first
//! that comes, and it verifies from then on beside those of the config. The table is read at start, every few seconds, and at once
//! after a change on this node.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{Authority, Changed, SealedSecret, SecretChange};
use hapax_store::{Store, StoreError, StoreErrorKind};
use hapax_verify::Secret;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::safe::{Safe, Unusable};
use crate::entropy;
use crate::inbox::Inbox;

/// How long another node may take to hear of a secret.
const REFRESH_EVERY: Duration = Duration::from_secs(5);

/// A person expects an offer. Sealed with the rest: who expects what is nobody's business.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Expectation {
    until: i64,
    actor: String,
    reason: String,
}

/// Secrets as they are known here.
#[derive(Default)]
struct Known {
    expected: HashMap<String, (SealedSecret, Expectation)>,
    secrets: HashMap<String, Vec<Secret>>,
}

/// A secret that was taken, without the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its name within its source.
    pub id: String,
    /// When it was taken.
    pub at: Time,
    /// Is it sealed with the key that seals now?
    pub current: bool,
}

/// Offers, and those who expect them.
pub struct Offered {
    store: Arc<dyn Store>,
    safe: Arc<Safe>,
    known: ArcSwap<Known>,
}

fn under(source: &str) -> String {
    format!("source/{source}/offered/")
}

fn expected_at(source: &str) -> String {
    format!("source/{source}/expected")
}

impl Offered {
    /// Knows nothing yet; [`Offered::refresh`] reads.
    pub fn new(store: Arc<dyn Store>, safe: Arc<Safe>) -> Offered {
        Offered {
            store,
            safe,
            known: ArcSwap::default(),
        }
    }

    /// The secrets that were taken for a source.
    pub fn of(&self, source: &str) -> Vec<Secret> {
        self.known
            .load()
            .secrets
            .get(source)
            .cloned()
            .unwrap_or_default()
    }

    /// Reads the table again.
    ///
    /// # Errors
    /// If the store cannot say or a secret does not open; what was read before counts on.
    pub async fn refresh(&self) -> Result<(), Unusable> {
        let mut known = Known::default();
        let mut after = None;
        loop {
            let page = self.store.secrets("source/", after.take()).await?;
            let Some(last) = page.last().map(|last| last.place.clone()) else {
                break;
            };
            page.into_iter()
                .try_for_each(|secret| self.learn(&mut known, secret))?;
            after = Some(last);
        }
        self.known.store(Arc::new(known));
        Ok(())
    }

    fn learn(&self, known: &mut Known, secret: SealedSecret) -> Result<(), Unusable> {
        let mut parts = secret.place.split('/').skip(1);
        let (source, kind) = (parts.next(), parts.next());
        match (source.map(str::to_owned), kind) {
            (Some(source), Some("offered")) => {
                let plain = Secret::new(self.safe.unseal(&secret)?);
                known.secrets.entry(source).or_default().push(plain);
            }
            (Some(source), Some("expected")) => {
                let text = self.safe.unseal(&secret)?;
                if let Ok(expectation) = serde_json::from_slice(&text) {
                    known.expected.insert(source, (secret, expectation));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Until when an offer is expected for a source.
    pub fn expected_until(&self, source: &str, now: Time) -> Option<Time> {
        let known = self.known.load();
        let (_, expectation) = known.expected.get(source)?;
        Some(Time::from_micros(expectation.until)).filter(|until| now < *until)
    }

    /// Somebody expects an offer: the next one that comes in so long is taken.
    ///
    /// # Errors
    /// If there is no key, or the store does not answer.
    pub async fn expect(
        &self,
        source: &str,
        length: Span,
        by: Authority,
        answer: String,
    ) -> Result<Changed, Unusable> {
        let expectation = Expectation {
            until: (by.at + length).micros(),
            actor: by.actor.to_string(),
            reason: by.reason.clone(),
        };
        let place = expected_at(source);
        let text = serde_json::to_vec(&expectation).unwrap_or_default();
        let sealed = self.safe.seal(&place, &text)?;
        let at = by.at;
        let secret = SealedSecret { place, sealed, at };
        let change = SecretChange::Expect(secret);
        let changed = self.store.change_secret(change, by, answer).await?;
        self.refresh().await?;
        Ok(changed)
    }

    /// Takes an offer if one is expected. `false`: nobody expects it, and the store was not asked.
    ///
    /// # Errors
    /// If it cannot be kept; whoever offers it has to come again.
    pub async fn take(
        &self,
        source: &str,
        secret: &Secret,
        now: Time,
    ) -> Result<bool, StoreErrorKind> {
        let known = self.known.load_full();
        let Some((expected, expectation)) = known
            .expected
            .get(source)
            .filter(|(_, expectation)| now.micros() < expectation.until)
        else {
            return Ok(false);
        };
        let id = hex::encode(entropy::bytes::<8>());
        let place = format!("{}{id}", under(source));
        let unavailable = |_| StoreErrorKind::Unavailable;
        let sealed = self
            .safe
            .seal(&place, secret.expose())
            .map_err(unavailable)?;
        let change = SecretChange::Keep {
            secret: SealedSecret {
                place,
                sealed,
                at: now,
            },
            expected: expected.clone(),
        };
        // Whoever expected it has decided that it is kept.
        let by = Authority {
            actor: expectation.actor.as_str().into(),
            reason: expectation.reason.clone(),
            at: now,
            request: None,
        };
        let answer = serde_json::json!({ "source": source, "id": id }).to_string();
        let kept = self.store.change_secret(change, by, answer).await;
        let kept = kept.map_err(|error: StoreError| {
            tracing::warn!(source, %error, "a secret that was expected could not be kept");
            error.kind()
        })?;
        if let Err(error) = self.refresh().await {
            tracing::warn!(%error, "secrets could not be read again; the new one counts within seconds");
        }
        Ok(kept == Changed::Done)
    }

    /// The secrets that were taken for a source, without what they say.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn list(&self, source: &str) -> Result<Vec<Taken>, StoreError> {
        let under = under(source);
        let secrets = self.store.secrets(&under, None).await?.into_iter();
        let taken = secrets.map(|secret| Taken {
            id: secret.place[under.len()..].to_owned(),
            at: secret.at,
            current: self.safe.is_current(&secret),
        });
        Ok(taken.collect())
    }

    /// A secret that was taken does not count any more.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn drop_one(
        &self,
        source: &str,
        id: &str,
        by: Authority,
        answer: String,
    ) -> Result<Changed, Unusable> {
        let change = SecretChange::Drop(format!("{}{id}", under(source)));
        let changed = self.store.change_secret(change, by, answer).await?;
        self.refresh().await?;
        Ok(changed)
    }
}

/// Keeps what is known fresh, and seals anew what other keys have sealed, until told to stop.
pub async fn run(
    inbox: Arc<Inbox>,
    safe: Arc<Safe>,
    store: Arc<dyn Store>,
    mut stopping: watch::Receiver<bool>,
) {
    loop {
        let other_keys = tokio::select! {
            stopped = stopping.wait_for(|stop| *stop) => {
                drop(stopped);
                return;
            }
            () = safe.changed() => true,
            () = tokio::time::sleep(REFRESH_EVERY) => false,
        };
        if other_keys {
            seal_anew(&safe, &*store).await;
        }
        if let Err(error) = inbox.learn().await {
            tracing::error!(%error, "secrets could not be read again; those read before count on");
        }
    }
}

async fn seal_anew(safe: &Safe, store: &dyn Store) {
    match safe.rekey(store).await {
        Ok(0) => {}
        Ok(anew) => tracing::info!(anew, "secrets are sealed with the new vault key"),
        Err(error) => {
            tracing::error!(%error, "secrets could not be sealed anew; the old vault key is still needed");
        }
    }
}
