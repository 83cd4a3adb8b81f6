//! The signature of a delivery: Standard Webhooks with a shared secret or with a key pair, or as Stripe has it.
//!
//! Every secret that is live signs, so that consumers can change theirs at any time of the overlap. Which are live is a question of time,
//! and answered anew for each attempt.

use std::fmt;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hapax_ledger::time::Time;
use hapax_verify::provider;
use hapax_verify::{Secret, SignInput, Verifier, sign};
use http::{HeaderMap, HeaderName, HeaderValue};

/// How the private key of a pair begins, and the public one.
pub const PRIVATE_PREFIX: &str = "whsk_";
/// See [`PRIVATE_PREFIX`].
pub const PUBLIC_PREFIX: &str = "whpk_";
/// Where a signature of Stripe's form goes unless the endpoint names another header.
pub const STRIPE_HEADER: HeaderName = HeaderName::from_static("hapax-signature");
/// The shortest secret, as Standard Webhooks has it.
const SECRET_BYTES_MIN: usize = 24;
/// The longest, as Standard Webhooks has it.
const SECRET_BYTES_MAX: usize = 64;
const SEED_BYTES: usize = 32;

/// How an endpoint's deliveries are signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// `v1`: a keyed hash, with a secret `whsec_...` that both sides have.
    #[default]
    Hmac,
    /// `v1a`: with a private key `whsk_...`; the consumer has the public one.
    Ed25519,
    /// `t=...,v1=...` in a header of this name.
    Stripe(HeaderName),
}

/// Under which names the id, the time and the signature go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// `webhook-*` and `svix-*`.
    #[default]
    Both,
    /// `webhook-*`.
    Webhook,
    /// `svix-*`.
    Svix,
}

impl Names {
    fn prefixes(self) -> &'static [&'static str] {
        match self {
            Names::Both => &["webhook", "svix"],
            Names::Webhook => &["webhook"],
            Names::Svix => &["svix"],
        }
    }
}

/// A secret, and until when it signs; the current one has no end.
#[derive(Clone, Debug)]
pub struct LiveSecret {
    /// As the consumer knows it: `whsec_...` or `whsk_...`.
    pub key: Secret,
    /// When it stops signing.
    pub expires_at: Option<Time>,
}

/// Why a secret cannot sign. It never quotes the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// Not `whsec_` and the base64 of a key.
    #[error(
        "the secret has to be whsec_ and the base64 of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes"
    )]
    Shared,
    /// Not `whsk_` and the base64 of a key.
    #[error(
        "the key has to be whsk_ and the base64 of an ed25519 seed of 32 bytes, or of seed and public key"
    )]
    Private,
    /// Nothing to sign with.
    #[error("there is no secret that signs")]
    Nothing,
}

/// Signs deliveries of one endpoint.
pub struct DeliverySigner {
    scheme: Scheme,
    names: Names,
    /// What signs until when, the first end first. The last has none.
    spans: Vec<(Option<Time>, Keys)>,
}

enum Keys {
    Shared(Box<Verifier>),
    Pairs(Vec<Ed25519KeyPair>),
}

impl DeliverySigner {
    /// A signer with these secrets, the current one among them.
    ///
    /// # Errors
    /// If one of them does not fit the scheme, or none stays.
    pub fn new(
        scheme: Scheme,
        names: Names,
        secrets: &[LiveSecret],
    ) -> Result<DeliverySigner, BadSecret> {
        let mut ends: Vec<Time> = secrets.iter().filter_map(|one| one.expires_at).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut spans = Vec::with_capacity(ends.len() + 1);
        for end in ends.into_iter().map(Some).chain([None]) {
            let lives = |one: &&LiveSecret| match (one.expires_at, end) {
                (None, _) => true,
                (Some(at), Some(end)) => at >= end,
                (Some(_), None) => false,
            };
            let live = secrets.iter().filter(lives).map(|one| &one.key);
            spans.push((end, Keys::new(&scheme, live.collect())?));
        }
        Ok(DeliverySigner {
            scheme,
            names,
            spans,
        })
    }

    /// Public keys of what signs at this time, the current one first; none where the secret is shared.
    pub fn public_keys(&self, now: Time) -> Vec<[u8; 32]> {
        match self.live(now) {
            Keys::Shared(_) => Vec::new(),
            Keys::Pairs(pairs) => pairs.iter().map(public_key).collect(),
        }
    }

    fn live(&self, now: Time) -> &Keys {
        let live = self
            .spans
            .iter()
            .find(|(end, _)| end.is_none_or(|end| now < end));
        &live.expect("the last span has no end; `new` makes it so").1
    }

    /// Adds id, time and signature to a delivery. The id is the same on all attempts and the time is not (G4).
    pub(super) fn add(&self, headers: &mut HeaderMap, id: &str, now: Time, body: &[u8]) {
        let time = now.micros().div_euclid(1_000_000);
        let signature = match self.live(now) {
            Keys::Shared(verifier) => self.scheme.keyed(verifier, id, now, body),
            Keys::Pairs(pairs) => signed_by(pairs, id, time, body),
        };
        let value = |text: &str| {
            HeaderValue::from_str(text).expect("letters, numbers and base64 are header values")
        };
        let mut parts = vec![("id", value(id)), ("timestamp", value(&time.to_string()))];
        match &self.scheme {
            Scheme::Hmac | Scheme::Ed25519 => parts.push(("signature", value(&signature))),
            Scheme::Stripe(header) => {
                headers.insert(header.clone(), value(&signature));
            }
        }
        for prefix in self.names.prefixes() {
            for (part, value) in &parts {
                let name = HeaderName::try_from(format!("{prefix}-{part}"))
                    .expect("two words and a hyphen are a header's name");
                headers.insert(name, value.clone());
            }
        }
    }
}

impl fmt::Debug for DeliverySigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeliverySigner({:?}, {:?})", self.scheme, self.names)
    }
}

impl Scheme {
    /// The preset that verifies the same.
    fn preset(&self) -> &'static str {
        match self {
            Scheme::Stripe(_) => "stripe",
            Scheme::Hmac | Scheme::Ed25519 => "standard-webhooks",
        }
    }

    fn keyed(&self, verifier: &Verifier, id: &str, now: Time, body: &[u8]) -> String {
        let input = SignInput {
            method: "POST",
            url: None,
            headers: &[],
            body,
            id,
            now: now.micros(),
        };
        let signed =
            sign(verifier, &input).expect("the schemes sign an id, a time and the body, all given");
        let mut all = signed.headers.into_iter();
        let signature = all.find(|(name, _)| name.ends_with("-signature"));
        signature.expect("both presets have such a header").1
    }
}

impl Keys {
    fn new(scheme: &Scheme, secrets: Vec<&Secret>) -> Result<Keys, BadSecret> {
        if secrets.is_empty() {
            return Err(BadSecret::Nothing);
        }
        match scheme {
            Scheme::Ed25519 => {
                let pairs = secrets.into_iter().map(key_pair);
                pairs.collect::<Result<_, _>>().map(Keys::Pairs)
            }
            Scheme::Hmac | Scheme::Stripe(_) => {
                for secret in &secrets {
                    shared_key(secret)?;
                }
                let preset = provider::find(scheme.preset()).expect("a built-in preset");
                let secrets = secrets.into_iter().cloned().collect();
                Verifier::new(preset.scheme(), secrets)
                    .map(|verifier| Keys::Shared(Box::new(verifier)))
                    .map_err(|_| BadSecret::Shared)
            }
        }
    }
}

/// Checks a shared secret.
fn shared_key(secret: &Secret) -> Result<(), BadSecret> {
    let encoded = secret.expose().strip_prefix(b"whsec_");
    let key = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
    let fits = key.is_some_and(|key| (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&key.len()));
    fits.then_some(()).ok_or(BadSecret::Shared)
}

fn key_pair(secret: &Secret) -> Result<Ed25519KeyPair, BadSecret> {
    let encoded = secret.expose().strip_prefix(PRIVATE_PREFIX.as_bytes());
    let bytes = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
    let bytes = bytes.ok_or(BadSecret::Private)?;
    let pair = match bytes.len() {
        SEED_BYTES => Ed25519KeyPair::from_seed_unchecked(&bytes),
        length if length == 2 * SEED_BYTES => {
            let (seed, public) = bytes.split_at(SEED_BYTES);
            Ed25519KeyPair::from_seed_and_public_key(seed, public)
        }
        _ => return Err(BadSecret::Private),
    };
    pair.map_err(|_| BadSecret::Private)
}

fn public_key(pair: &Ed25519KeyPair) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(pair.public_key().as_ref());
    key
}

/// The public key of a private one, as the consumer gets it: `whpk_...`.
///
/// # Errors
/// If the text is no private key.
pub fn public_text(secret: &Secret) -> Result<String, BadSecret> {
    let key = public_key(&key_pair(secret)?);
    Ok(format!("{PUBLIC_PREFIX}{}", STANDARD.encode(key)))
}

fn signed_by(pairs: &[Ed25519KeyPair], id: &str, time: i64, body: &[u8]) -> String {
    let content = [format!("{id}.{time}.").as_bytes(), body].concat();
    let one = |pair: &Ed25519KeyPair| format!("v1a,{}", STANDARD.encode(pair.sign(&content)));
    pairs.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
