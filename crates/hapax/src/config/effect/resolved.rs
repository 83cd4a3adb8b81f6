//! Effects as the program uses them.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::extract::{Fields, NoHeaders, Slot};
use hapax_ledger::plan::EffectRule;
use hapax_ledger::retry::Schedule;
use hapax_verify::Verifier;
use http::{HeaderMap, Uri};

use super::expression::Expression;
use super::payload::{Payload, format_of};
use super::url::{Unfilled, Url, UrlTemplate};

/// One `[[effect]]`.
#[derive(Debug)]
pub struct EffectConfig {
    /// Its name, unique over the file: the scope of its keys, and its lane.
    pub name: Arc<str>,
    /// The source whose events call for it.
    pub source: Arc<str>,
    /// When it is called for and under which key, over [`super::super::SourceConfig::fields`].
    pub rule: EffectRule,
    /// Its condition, if that is no plain comparison.
    pub when: Option<Arc<Expression>>,
    /// The review condition of its order, if that is no plain comparison.
    pub review: Option<Arc<Expression>>,
    /// Where it is sent.
    pub url: Url,
    /// What is sent.
    pub body: BodyForm,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// When it is tried again.
    pub retry: Schedule,
    /// Attempts in flight at a time.
    pub concurrency: usize,
    /// Attempts that start in a second, if that is bounded.
    pub rate: Option<NonZeroU32>,
    /// Where to ask whether a key was applied; its one place is `key`.
    pub probe: Option<UrlTemplate>,
    /// Headers that its requests carry, probes too. None of them is one that Hapax sets.
    pub headers: HeaderMap,
    /// Signs its requests as Standard Webhooks has it, with [`hapax_verify::sign`].
    pub signer: Option<Verifier>,
}

/// What an effect's request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// The event's bytes as they came.
    Raw,
    /// `{event, effect, snapshot}`.
    Envelope,
}

/// What a repeat of an event does whose effects were given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicateOfFailed {
    /// It is linked, no more.
    #[default]
    Link,
    /// It also tries them again.
    Retry,
}

impl From<OnDuplicateOfFailed> for hapax_store::nouns::OnFailed {
    fn from(rule: OnDuplicateOfFailed) -> hapax_store::nouns::OnFailed {
        match rule {
            OnDuplicateOfFailed::Link => hapax_store::nouns::OnFailed::Link,
            OnDuplicateOfFailed::Retry => hapax_store::nouns::OnFailed::Retry,
        }
    }
}

/// Where a source's current state can be asked for.
#[derive(Debug)]
pub struct ReconcileConfig {
    pub(super) url: UrlTemplate,
    pub(super) fields: Fields,
    /// Where the value of each place of the URL is found.
    pub(super) slots: Vec<(String, Slot)>,
    /// Headers that the request carries.
    pub headers: HeaderMap,
}

impl EffectConfig {
    /// Does its order ask for a person, now that the snapshot is there? False where its review condition does not speak
    /// of the snapshot: that was asked at accept. What cannot be read is for a person.
    pub fn review_with_snapshot(&self, body: &[u8], snapshot: &[u8]) -> bool {
        let Some(review) = self
            .review
            .as_ref()
            .filter(|review| review.mentions_snapshot())
        else {
            return false;
        };
        let payload = Payload::with_snapshot(body, snapshot);
        payload
            .and_then(|payload| review.holds(&payload))
            .unwrap_or(true)
    }

    /// Where to ask whether this key was applied. Nothing without a probe, or for a key that no URL can hold.
    pub fn probe_url(&self, key: &str) -> Option<Uri> {
        self.probe.as_ref()?.fill(|_| Some(key)).ok()
    }

    /// The review condition that can be asked at accept and is no plain comparison.
    pub(crate) fn review_at_accept(&self) -> Option<&Expression> {
        let review = self.review.as_deref();
        review.filter(|review| !review.mentions_snapshot())
    }
}

impl ReconcileConfig {
    /// The URL to ask about an event, from its bytes.
    ///
    /// # Errors
    /// If the event does not have what the URL needs.
    pub fn url_for(&self, body: &[u8]) -> Result<Uri, Unfilled> {
        let values = self.fields.extract(format_of(body), body, &NoHeaders);
        let values = values.unwrap_or_default();
        self.url.fill(|name| {
            let (_, slot) = self.slots.iter().find(|(place, _)| place == name)?;
            values.filled(*slot)
        })
    }
}
