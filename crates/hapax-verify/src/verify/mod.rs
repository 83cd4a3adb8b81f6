//! The verifier: a scheme together with its secrets, ready to be asked.

mod content;
mod hmac;
mod jwt;
mod keys;
mod layout;
mod public_key;
mod token;

pub(crate) use content::Content;

use std::hint::black_box;

use self::keys::Keys;
use self::layout::Checked;
use crate::mac::{Algorithm, Construction, Mac, Sink, same_secret};
use crate::refusal::{Coverage, Refusal, Verified};
use crate::request::Request;
use crate::scheme::{HmacScheme, Scheme};
use crate::secret::{SECRET_BYTES_MIN, Secret, SecretError};

/// A scheme with its secrets. Making one does the key schedule; verifying does not.
///
/// The `Debug` form shows the scheme and never a secret.
#[derive(Clone)]
pub struct Verifier {
    scheme: Scheme,
    secrets: Vec<Secret>,
    verify_token: Option<Secret>,
    keys: Keys,
    /// Hashes the body when a request is refused before its own hash was due, so that a refusal costs the same
    /// whatever its reason.
    pace: Mac,
    decoy: bool,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier")
            .field("scheme", &self.scheme)
            .field("secrets", &self.secrets.len())
            .finish_non_exhaustive()
    }
}

impl Verifier {
    /// Joins a scheme and its secrets; any of them may match, so that they can be rotated.
    ///
    /// # Errors
    /// If there is no secret though the scheme needs one, or one is empty, shorter than [`SECRET_BYTES_MIN`], or not
    /// of the form that the scheme asks for.
    pub fn new(scheme: Scheme, secrets: Vec<Secret>) -> Result<Verifier, SecretError> {
        Verifier::with_secret_bytes_min(scheme, secrets, SECRET_BYTES_MIN)
    }

    /// As [`Verifier::new`] with another minimum length, for published test vectors: their secrets are `12345`.
    /// An empty secret is refused all the same.
    ///
    /// # Errors
    /// As [`Verifier::new`].
    pub fn with_secret_bytes_min(
        scheme: Scheme,
        secrets: Vec<Secret>,
        bytes_min: usize,
    ) -> Result<Verifier, SecretError> {
        let keys = Keys::new(&scheme, &secrets, bytes_min)?;
        Ok(Verifier {
            scheme,
            secrets,
            verify_token: None,
            keys,
            pace: pace(),
            decoy: false,
        })
    }

    /// Adds the token that a provider quotes in its `GET` handshake (Meta, Strava). It answers handshakes and nothing
    /// else: it travels in URLs, so that it must never be good for signing.
    #[must_use]
    pub fn with_verify_token(mut self, token: Secret) -> Verifier {
        self.verify_token = Some(token);
        self
    }

    /// A verifier whose secrets are not known yet: it refuses everything until [`Verifier::with_more`] brings some.
    #[must_use]
    pub fn closed(scheme: Scheme) -> Verifier {
        Verifier {
            scheme,
            decoy: false,
            ..Verifier::decoy()
        }
    }

    /// The same with more secrets, behind those it has.
    ///
    /// # Errors
    /// As [`Verifier::new`].
    pub fn with_more(&self, more: &[Secret]) -> Result<Verifier, SecretError> {
        if more.is_empty() {
            return Ok(self.clone());
        }
        let secrets = self.secrets.iter().chain(more).cloned().collect();
        let verifier = Verifier::new(self.scheme.clone(), secrets)?;
        Ok(Verifier {
            verify_token: self.verify_token.clone(),
            ..verifier
        })
    }

    /// A verifier for sources that do not exist: it does the work of an ordinary one and always refuses.
    #[must_use]
    pub fn decoy() -> Verifier {
        Verifier {
            scheme: Scheme::Unverified,
            secrets: Vec::new(),
            verify_token: None,
            keys: Keys::Plain,
            pace: pace(),
            decoy: true,
        }
    }

    /// The scheme this verifier follows.
    #[must_use]
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Whether the request is authentic. It reads the raw bytes; a signature made with the first secret costs one pass
    /// over the body, and every further secret one more.
    ///
    /// # Errors
    /// The reason it is not; give all of them the same answer.
    pub fn verify(&self, request: &Request<'_>) -> Result<Verified, Refusal> {
        let result = if self.decoy {
            Err(Refusal::UnknownSource)
        } else {
            self.check(request)
        };
        match result {
            Ok(checked) => Ok(Verified {
                scheme: self.scheme.name(),
                secret_index: checked.map(|checked| checked.secret_index),
                signed_at: checked.and_then(|checked| checked.signed_at),
                covers: self.scheme.covers(),
            }),
            Err(refusal) => {
                if !self.has_hashed(refusal) {
                    self.keep_pace(request.body);
                }
                Err(refusal)
            }
        }
    }

    fn check(&self, request: &Request<'_>) -> Result<Option<Checked>, Refusal> {
        let plain = |secret_index| {
            Some(Checked {
                secret_index,
                signed_at: None,
            })
        };
        match (&self.scheme, &self.keys) {
            (Scheme::Unverified, _) => Ok(None),
            (Scheme::Token(scheme), _) => token::verify(scheme, request, &self.secrets).map(plain),
            (Scheme::Basic, _) => token::verify_basic(request, &self.secrets).map(plain),
            (Scheme::Jwt(scheme), keys) => {
                keys.with(|check| jwt::verify(scheme, request, check).map(Some))
            }
            (Scheme::Hmac(HmacScheme { layout, .. }), keys) => {
                keys.with(|check| layout::verify(layout, request, check).map(Some))
            }
            (Scheme::Ed25519(scheme) | Scheme::EcdsaP256(scheme) | Scheme::Rsa(scheme), keys) => {
                keys.with(|check| layout::verify(&scheme.layout, request, check).map(Some))
            }
        }
    }

    /// Whether the way to this refusal already hashed the body.
    fn has_hashed(&self, refusal: Refusal) -> bool {
        let reached =
            matches!(refusal, Refusal::Mismatch | Refusal::BodyDigest) || refusal.is_clock();
        reached && self.scheme.layout().is_some() && !self.secrets.is_empty()
    }

    fn keep_pace(&self, body: &[u8]) {
        let mut mac = self.pace.clone();
        mac.put(body);
        black_box(mac.finish());
    }

    pub(crate) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// The ready MACs of the secrets, if the scheme has MACs.
    pub(crate) fn macs(&self) -> &[Mac] {
        match &self.keys {
            Keys::Macs(macs, _) => macs,
            Keys::Plain | Keys::Public(_) => &[],
        }
    }

    /// The ready MAC of the first secret, if the scheme has MACs.
    pub(crate) fn first_mac(&self) -> Option<Mac> {
        self.macs().first().cloned()
    }

    /// Whether a handshake quoted the right token: the verify token if one is set, any secret otherwise.
    pub(crate) fn knows_token(&self, quoted: &[u8]) -> bool {
        match &self.verify_token {
            Some(token) => bool::from(same_secret(token.bytes(), quoted)),
            None => token::which(&self.secrets, quoted).is_some(),
        }
    }

    /// How much of the body a good signature vouches for.
    #[must_use]
    pub fn covers(&self) -> Coverage {
        self.scheme.covers()
    }
}

fn pace() -> Mac {
    // The key is no secret: the result is thrown away.
    Mac::new(
        Construction::Hmac,
        Algorithm::Sha256,
        b"same work for every refusal",
    )
}
