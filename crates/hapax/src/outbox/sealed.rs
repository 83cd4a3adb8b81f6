//! What of an endpoint is secret: the headers that go along and the keys that sign. Kept sealed, for this endpoint alone.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hapax_ledger::id::EndpointId;
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::OLD_SECRETS_MAX;
use hapax_store::vault::{Draw, Vault, VaultError};
use hapax_verify::Secret;
use serde::{Deserialize, Serialize};

use super::headers::HEADERS_BYTES_MAX;
use crate::dispatch::signature::{LiveSecret, PRIVATE_PREFIX, Scheme};

/// How long old and new sign together unless told.
pub const OVERLAP_DEFAULT: Span = Span::from_hours(24);
/// The longest overlap.
pub const OVERLAP_MAX: Span = Span::from_days(7);
/// The form of what is sealed.
const VERSION: u32 = 1;
/// Headers, and eleven keys with their times: what is larger was not written by us.
const SEALED_BYTES_MAX: usize = 2 * HEADERS_BYTES_MAX + 16 * 1024;
/// Bytes of a secret that we draw.
const SHARED_BYTES: usize = 24;
const SEED_BYTES: usize = 32;

/// The secret part of an endpoint, open. It never prints itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    v: u32,
    /// Headers that go along.
    pub headers: BTreeMap<String, String>,
    /// The current secret first, then older ones that still sign, the latest first.
    pub secrets: Vec<KeptSecret>,
}

/// One secret of an endpoint.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSecret {
    /// As the consumer knows it.
    pub key: String,
    created_at_us: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_us: Option<i64>,
}

/// Why a sealed part stays closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSealed {
    /// The vault does not open it.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// It opens, and is not of a form that this version knows.
    #[error("the secrets of an endpoint are of a form that this version does not know")]
    Form,
}

impl KeptSecret {
    /// When it was made.
    pub fn created_at(&self) -> Time {
        Time::from_micros(self.created_at_us)
    }

    /// When it stops signing.
    pub fn expires_at(&self) -> Option<Time> {
        self.expires_at_us.map(Time::from_micros)
    }
}

impl Opened {
    /// A new endpoint's: one secret.
    pub fn new(key: String, headers: BTreeMap<String, String>, now: Time) -> Opened {
        Opened {
            v: VERSION,
            headers,
            secrets: vec![KeptSecret {
                key,
                created_at_us: now.micros(),
                expires_at_us: None,
            }],
        }
    }

    /// Opens what is kept of an endpoint.
    ///
    /// # Errors
    /// If it was sealed with another key, changed, moved, or made by another version.
    pub fn open(vault: &Vault, endpoint: EndpointId, sealed: &[u8]) -> Result<Opened, BadSealed> {
        if sealed.len() > SEALED_BYTES_MAX {
            return Err(BadSealed::Form);
        }
        let plain = vault.open(place(endpoint).as_bytes(), sealed)?;
        let opened: Option<Opened> = serde_json::from_slice(&plain).ok();
        let known = |opened: &Opened| opened.v == VERSION && !opened.secrets.is_empty();
        opened.filter(known).ok_or(BadSealed::Form)
    }

    /// Seals it for an endpoint.
    pub fn seal(&self, vault: &Vault, endpoint: EndpointId, draw: Draw) -> Bytes {
        let plain = serde_json::to_vec(self).expect("texts and numbers are JSON");
        Bytes::from(vault.seal(place(endpoint).as_bytes(), draw, &plain))
    }

    /// The secret that consumers are told.
    pub fn current(&self) -> &str {
        self.secrets.first().map_or("", |secret| &secret.key)
    }

    /// Another secret from now on; the one before signs as long as the overlap lasts. Those whose time is over are forgotten, and of
    /// too many the oldest.
    pub fn rotate(&mut self, key: String, overlap: Span, now: Time) {
        let end = now + overlap.min(OVERLAP_MAX);
        if let Some(current) = self.secrets.first_mut() {
            current.expires_at_us = Some(end.micros());
        }
        let fresh = KeptSecret {
            key,
            created_at_us: now.micros(),
            expires_at_us: None,
        };
        self.secrets.insert(0, fresh);
        self.secrets
            .retain(|secret| secret.expires_at().is_none_or(|at| now < at));
        self.secrets.truncate(1 + OLD_SECRETS_MAX);
    }

    /// What signs, and until when.
    pub fn live(&self) -> Vec<LiveSecret> {
        let secrets = self.secrets.iter().map(|secret| LiveSecret {
            key: Secret::from(secret.key.as_str()),
            expires_at: secret.expires_at(),
        });
        secrets.collect()
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (headers, secrets) = (self.headers.len(), self.secrets.len());
        write!(f, "Opened({headers} headers, {secrets} secrets)")
    }
}

/// What an endpoint's secrets are bound to.
fn place(endpoint: EndpointId) -> String {
    format!("endpoint/{endpoint}")
}

/// A secret for a scheme, from bytes that were drawn for it.
pub fn fresh_key(scheme: &Scheme, drawn: [u8; SEED_BYTES]) -> String {
    match scheme {
        Scheme::Hmac | Scheme::Stripe(_) => {
            format!("whsec_{}", STANDARD.encode(&drawn[..SHARED_BYTES]))
        }
        Scheme::Ed25519 => format!("{PRIVATE_PREFIX}{}", STANDARD.encode(drawn)),
    }
}

#[cfg(test)]
mod tests {
    use hapax_ledger::id::RawId;

    use super::*;

    const NOW: Time = Time::from_secs(1_000_000);

    fn endpoint(row: u64) -> EndpointId {
        EndpointId(RawId::new(NOW, 0, row))
    }

    #[test]
    fn secrets_open_for_their_endpoint_and_for_no_other() {
        let vault = Vault::new(&[[1; 32]]).expect("a key");
        let opened = Opened::new("whsec_x".to_owned(), BTreeMap::new(), NOW);
        let sealed = opened.seal(&vault, endpoint(1), [0; 12]);
        assert_eq!(Opened::open(&vault, endpoint(1), &sealed), Ok(opened));
        let moved = Opened::open(&vault, endpoint(2), &sealed);
        assert_eq!(moved, Err(BadSealed::Vault(VaultError::Broken)));
        let other = vault.seal(place(endpoint(1)).as_bytes(), [1; 12], b"{\"v\":2}");
        assert_eq!(
            Opened::open(&vault, endpoint(1), &other),
            Err(BadSealed::Form)
        );
    }

    #[test]
    fn old_secrets_sign_for_the_overlap_and_there_are_never_too_many() {
        let mut opened = Opened::new("k0".to_owned(), BTreeMap::new(), NOW);
        opened.rotate("k1".to_owned(), Span::from_hours(1), NOW);
        assert_eq!(opened.current(), "k1");
        let ends: Vec<_> = opened.secrets.iter().map(KeptSecret::expires_at).collect();
        assert_eq!(ends, [None, Some(NOW + Span::from_hours(1))]);
        for number in 2..40 {
            opened.rotate(format!("k{number}"), Span::from_days(30), NOW);
        }
        assert_eq!(opened.secrets.len(), 1 + OLD_SECRETS_MAX);
        let last = opened.secrets[1].expires_at();
        assert_eq!(last, Some(NOW + OVERLAP_MAX));
        opened.rotate("last".to_owned(), Span::ZERO, NOW + OVERLAP_MAX);
        assert_eq!(opened.secrets.len(), 1, "all others are over");
    }
}
