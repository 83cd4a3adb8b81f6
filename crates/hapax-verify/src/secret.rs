//! Secrets: kept out of logs, wiped when dropped, turned into key bytes in the one configured way.

use std::fmt;

use serde::Deserialize;
use sha1::{Digest, Sha1};
use zeroize::Zeroizing;

use crate::decode::Encoding;

/// The shortest key that is accepted. Whoever sees one signed request can try keys at leisure, and everything below
/// eight bytes falls in hours.
pub const SECRET_BYTES_MIN: usize = 8;

/// The most secrets a verifier takes: each costs a MAC for every forged request.
pub const SECRETS_MAX: usize = 16;

/// A signing secret, token, `user:password` pair or public key, as configured. It never prints itself.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Wraps the secret as the operator wrote it.
    pub fn new(secret: impl Into<Vec<u8>>) -> Secret {
        Secret(Zeroizing::new(secret.into()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as they are, for a caller that has to hash or hand them on; the name makes such places easy to find.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The same secret without white space around it, if it has any: the commonest slip of a secrets file.
    pub(crate) fn trimmed(&self) -> Option<Secret> {
        let trimmed = self.0.trim_ascii();
        (trimmed.len() != self.0.len()).then(|| Secret::new(trimmed))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret::new(text)
    }
}

/// How the bytes of the key come out of the secret's text. Providers that look alike differ here: `whsec_...` is text
/// at Stripe and base64 at Svix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum KeyForm {
    /// The text itself, as UTF-8.
    #[default]
    Text,
    /// Hexadecimal.
    Hex,
    /// Base64.
    Base64,
    /// Standard Webhooks: base64 after `whsec_` (or `v1,whsec_`), which may be left out.
    Whsec,
    /// Base64 if it starts with `whsec_`, text if not.
    WhsecOrText,
    /// SHA-1 of the text.
    Sha1,
}

impl KeyForm {
    pub(crate) const ALL: [KeyForm; 5] = [
        KeyForm::Text,
        KeyForm::Whsec,
        KeyForm::Base64,
        KeyForm::Hex,
        KeyForm::Sha1,
    ];

    /// The word used in configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            KeyForm::Text => "text",
            KeyForm::Hex => "hex",
            KeyForm::Base64 => "base64",
            KeyForm::Whsec => "whsec",
            KeyForm::WhsecOrText => "whsec-or-text",
            KeyForm::Sha1 => "sha1",
        }
    }

    /// The key bytes of a secret.
    pub(crate) fn key(self, secret: &Secret) -> Option<Zeroizing<Vec<u8>>> {
        let text = secret.bytes();
        let key = match self {
            KeyForm::Text => text.to_vec(),
            KeyForm::Hex => Encoding::Hex.decode_vec(text)?,
            KeyForm::Base64 => Encoding::Base64.decode_vec(text)?,
            KeyForm::Whsec => Encoding::Base64.decode_vec(without_whsec(text).unwrap_or(text))?,
            KeyForm::WhsecOrText => match without_whsec(text) {
                Some(encoded) => Encoding::Base64.decode_vec(encoded)?,
                None => text.to_vec(),
            },
            // An empty secret has a fine-looking hash; it stays empty here, so that it is refused.
            KeyForm::Sha1 if text.is_empty() => Vec::new(),
            KeyForm::Sha1 => Sha1::digest(text).to_vec(),
        };
        Some(Zeroizing::new(key))
    }
}

fn without_whsec(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b"v1,").unwrap_or(text);
    text.strip_prefix(b"whsec_")
}

/// Why a secret cannot be used. The secret itself is never part of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretError {
    /// The scheme needs at least one secret.
    None,
    /// There are more than [`SECRETS_MAX`].
    TooMany,
    /// The secret at this index is empty.
    Empty {
        /// Position in the list of secrets.
        index: usize,
    },
    /// The secret at this index has fewer key bytes than the minimum.
    TooShort {
        /// Position in the list of secrets.
        index: usize,
        /// The minimum in bytes.
        bytes_min: usize,
    },
    /// The secret at this index does not have the form that the scheme asks for.
    Malformed {
        /// Position in the list of secrets.
        index: usize,
        /// What it should look like.
        expected: &'static str,
    },
    /// The scheme needs public-key cryptography and the crate was built without its `asymmetric` feature.
    NoAsymmetric,
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretError::None => f.write_str("no secret is given"),
            SecretError::TooMany => write!(f, "more than {SECRETS_MAX} secrets are given"),
            SecretError::Empty { index } => write!(f, "secret {} is empty", index + 1),
            SecretError::TooShort { index, bytes_min } => {
                write!(f, "secret {} is shorter than {bytes_min} bytes", index + 1)
            }
            SecretError::Malformed { index, expected } => {
                write!(f, "secret {} is not {expected}", index + 1)
            }
            SecretError::NoAsymmetric => {
                f.write_str("this build has no public-key schemes (feature `asymmetric`)")
            }
        }
    }
}

impl std::error::Error for SecretError {}
