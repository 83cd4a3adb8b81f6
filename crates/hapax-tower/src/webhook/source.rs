//! A source of webhooks: how it signs, and where the names of its events stand.

use std::sync::Arc;

use hapax_ledger::extract::{BodyFormat, Fields, HeaderLookup, Slot};
use hapax_ledger::field::{BadField, Field};
use hapax_ledger::key::BodyHash;
use hapax_ledger::ladder::{Ladder, ProviderId, body_key};
use hapax_verify::{Headers, Refusal, Request, Scheme, Secret, SecretError, Verifier, provider};

/// Bytes of a webhook's body; more than any provider sends.
const BYTES_MAX_DEFAULT: usize = 1024 * 1024;

/// Why a source cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WebhookProblem {
    /// There is no preset of this name.
    #[error(
        "`{0}` is no provider that is known here: give its scheme with `WebhookSource::custom`"
    )]
    Provider(String),
    /// Its requests prove nothing.
    #[error("`{0}` does not sign its webhooks: anybody could send them")]
    Unsigned(String),
    /// Its requests carry several events.
    #[error("`{0}` sends several events in one request")]
    Batches(String),
    /// The secrets do not fit.
    #[error("{0}")]
    Secret(#[from] SecretError),
    /// The field has no such form.
    #[error(transparent)]
    Field(#[from] BadField),
}

/// A source of webhooks.
#[derive(Debug)]
pub struct WebhookSource {
    name: Arc<str>,
    verifier: Verifier,
    url: Option<String>,
    pub(super) bytes_max: usize,
    fields: Fields,
    event_type: Option<Slot>,
    ladder: Ladder,
}

/// What a verified request says about itself.
pub(super) struct Names {
    pub(super) key: String,
    pub(super) event_id: Option<String>,
    pub(super) event_type: Option<String>,
}

impl WebhookSource {
    /// A provider that is known here, by the name of its preset (`stripe`, `github`, `standard-webhooks`, ...). Any of the secrets may
    /// match, so that they can be rotated.
    ///
    /// # Errors
    /// If there is no such provider, it sends what this extractor does not read, or the secrets do not fit.
    pub fn provider(name: &str, secrets: Vec<Secret>) -> Result<WebhookSource, WebhookProblem> {
        let Some(provider) = provider::find(name) else {
            return Err(WebhookProblem::Provider(name.to_owned()));
        };
        if provider.batch.is_some() {
            return Err(WebhookProblem::Batches(name.to_owned()));
        }
        let verifier = Verifier::new(provider.scheme(), secrets)?;
        let mut source = WebhookSource::custom(name, verifier)?;
        let mut slot = |text: &str| Ok::<_, BadField>(source.fields.add(&text.parse()?));
        if let Some(field) = &provider.event_type {
            source.event_type = Some(slot(field.as_str())?);
        }
        if let Some(id) = &provider.event_id {
            source.ladder.provider_id = Some(ProviderId {
                field: slot(id.field.as_str())?,
                signed: id.signed,
            });
        }
        let composed = provider.composed_key.iter();
        let composed: Result<Vec<Slot>, BadField> =
            composed.map(|field| slot(field.as_str())).collect();
        source.ladder.composed = composed?;
        source.ladder.body_varies = provider.body_varies;
        Ok(source)
    }

    /// A source of your own, by its scheme and secrets. Its events are known by the hash of their body, until a field is named.
    ///
    /// # Errors
    /// If the scheme verifies nothing.
    pub fn custom(
        name: impl Into<Arc<str>>,
        verifier: Verifier,
    ) -> Result<WebhookSource, WebhookProblem> {
        let name = name.into();
        if matches!(verifier.scheme(), Scheme::Unverified) {
            return Err(WebhookProblem::Unsigned(name.to_string()));
        }
        Ok(WebhookSource {
            name,
            verifier,
            url: None,
            bytes_max: BYTES_MAX_DEFAULT,
            fields: Fields::new(),
            event_type: None,
            ladder: Ladder::default(),
        })
    }

    /// The fields that an event is known by: paths in the body (`data.id`), or `header.NAME`. To name one is to say that the
    /// signature covers it.
    ///
    /// # Errors
    /// If a text names no field.
    pub fn known_by(mut self, fields: &[&str]) -> Result<WebhookSource, WebhookProblem> {
        let slots = fields.iter().map(|field| {
            let field: Field = field.parse()?;
            Ok(self.fields.add(&field))
        });
        let slots: Result<Vec<Slot>, BadField> = slots.collect();
        self.ladder.business = slots?;
        Ok(self)
    }

    /// Where the type of an event stands.
    ///
    /// # Errors
    /// If the text names no field.
    pub fn event_type(mut self, field: &str) -> Result<WebhookSource, WebhookProblem> {
        self.event_type = Some(self.fields.add(&field.parse()?));
        Ok(self)
    }

    /// The URL that the provider was told, for providers that sign it.
    pub fn url(mut self, url: impl Into<String>) -> WebhookSource {
        self.url = Some(url.into());
        self
    }

    /// Bytes of a body; longer ones are refused with 413. One mebibyte unless this says otherwise.
    pub fn bytes_max(mut self, bytes_max: usize) -> WebhookSource {
        self.bytes_max = bytes_max;
        self
    }

    /// Its name: what ids of events are unique in.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Is this request authentic?
    pub(super) fn verify(
        &self,
        method: &str,
        headers: &dyn Headers,
        body: &[u8],
        now: i64,
    ) -> Result<(), Refusal> {
        let request = Request {
            method,
            url: self.url.as_deref(),
            headers,
            body,
            now,
        };
        self.verifier.verify(&request).map(|_| ())
    }

    /// What a verified request says about itself. One whose body cannot be read is known by its hash.
    pub(super) fn names(&self, headers: &impl HeaderLookup, body: &[u8]) -> Names {
        let hash = BodyHash::of(body);
        let Ok(fields) = self.fields.extract(format_of(body), body, headers) else {
            return Names {
                key: body_key(hash),
                event_id: None,
                event_type: None,
            };
        };
        let event_type = self.event_type.and_then(|slot| fields.get(slot));
        Names {
            key: self.ladder.derive(&fields, hash).text().to_owned(),
            event_id: self.ladder.provider_event_id(&fields).map(str::to_owned),
            event_type: event_type.map(str::to_owned),
        }
    }
}

/// By its bytes alone: no signature covers the content type, and whoever changes it must not get another key.
fn format_of(body: &[u8]) -> BodyFormat {
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => BodyFormat::Json,
        _ if body.contains(&b'=') && body.iter().all(u8::is_ascii_graphic) => BodyFormat::Form,
        _ => BodyFormat::Json,
    }
}
