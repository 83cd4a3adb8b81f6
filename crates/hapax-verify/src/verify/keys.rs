//! From the secrets of a source to keys that are ready to use, or to a reason why they are not fit to be used.

use super::hmac::MacKeys;
use super::layout::Check;
use super::public_key::{PublicKey, PublicKeyKind, PublicKeys};
use crate::decode::Encoding;
use crate::mac::{Construction, Mac};
use crate::refusal::Refusal;
use crate::scheme::{JwtAlgorithm, Scheme};
use crate::secret::{KeyForm, SECRETS_MAX, Secret, SecretError};

#[derive(Clone)]
pub(super) enum Keys {
    /// The secrets are compared as they are, or there is nothing to compare.
    Plain,
    Macs(Vec<Mac>, usize),
    Public(Vec<PublicKey>),
}

impl Keys {
    pub(super) fn new(
        scheme: &Scheme,
        secrets: &[Secret],
        bytes_min: usize,
    ) -> Result<Keys, SecretError> {
        if secrets.len() > SECRETS_MAX {
            return Err(SecretError::TooMany);
        }
        if let Some(index) = secrets.iter().position(|secret| secret.bytes().is_empty()) {
            return Err(SecretError::Empty { index });
        }
        if secrets.is_empty() && *scheme != Scheme::Unverified {
            return Err(SecretError::None);
        }
        match scheme {
            Scheme::Hmac(hmac) => macs(secrets, hmac.key, bytes_min, |key| {
                Mac::new(hmac.construction, hmac.algorithm, key)
            })
            .map(|macs| Keys::Macs(macs, hmac.algorithm.tag_bytes())),
            Scheme::Jwt(jwt) => match (jwt.algorithm, jwt.algorithm.hmac()) {
                (_, Some(algorithm)) => macs(secrets, jwt.key, bytes_min, |key| {
                    Mac::new(Construction::Hmac, algorithm, key)
                })
                .map(|macs| Keys::Macs(macs, algorithm.tag_bytes())),
                (JwtAlgorithm::Es256, None) => {
                    public(secrets, PublicKeyKind::EcdsaFixed, Encoding::Base64)
                }
                (_, None) => public(secrets, PublicKeyKind::Rsa, Encoding::Base64),
            },
            Scheme::Ed25519(scheme) => public(secrets, PublicKeyKind::Ed25519, scheme.key),
            Scheme::EcdsaP256(scheme) => public(secrets, PublicKeyKind::EcdsaDer, scheme.key),
            Scheme::Rsa(scheme) => public(secrets, PublicKeyKind::Rsa, scheme.key),
            Scheme::Token(_) => long_enough(secrets, bytes_min).map(|()| Keys::Plain),
            Scheme::Basic => basic(secrets, bytes_min).map(|()| Keys::Plain),
            Scheme::Unverified => Ok(Keys::Plain),
        }
    }

    pub(super) fn with<T>(
        &self,
        ask: impl FnOnce(&dyn Check) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match self {
            Keys::Macs(macs, tag_bytes) => ask(&MacKeys {
                macs,
                tag_bytes: *tag_bytes,
            }),
            Keys::Public(keys) => ask(&PublicKeys(keys)),
            // A scheme that signs is made with keys, by `new` above.
            Keys::Plain => Err(Refusal::Mismatch),
        }
    }
}

fn macs(
    secrets: &[Secret],
    form: KeyForm,
    bytes_min: usize,
    make: impl Fn(&[u8]) -> Mac,
) -> Result<Vec<Mac>, SecretError> {
    let mac = |(index, secret): (usize, &Secret)| {
        let key = form.key(secret).ok_or(SecretError::Malformed {
            index,
            expected: form.as_str(),
        })?;
        match key.len() {
            0 => Err(SecretError::Empty { index }),
            // A hash is long however short its text is: the text is what counts.
            _ if key.len().min(secret.bytes().len()) < bytes_min => {
                Err(SecretError::TooShort { index, bytes_min })
            }
            _ => Ok(make(&key)),
        }
    };
    secrets.iter().enumerate().map(mac).collect()
}

fn public(
    secrets: &[Secret],
    kind: PublicKeyKind,
    encoding: Encoding,
) -> Result<Keys, SecretError> {
    let parse = |(index, secret)| PublicKey::new(kind, encoding, secret, index);
    let keys: Result<Vec<_>, _> = secrets.iter().enumerate().map(parse).collect();
    keys.map(Keys::Public)
}

fn long_enough(secrets: &[Secret], bytes_min: usize) -> Result<(), SecretError> {
    match secrets.iter().position(|s| s.bytes().len() < bytes_min) {
        Some(index) => Err(SecretError::TooShort { index, bytes_min }),
        None => Ok(()),
    }
}

fn basic(secrets: &[Secret], bytes_min: usize) -> Result<(), SecretError> {
    for (index, secret) in secrets.iter().enumerate() {
        let colon = secret.bytes().iter().position(|b| *b == b':');
        let password = colon.and_then(|at| secret.bytes().get(at + 1..));
        match password {
            None => {
                return Err(SecretError::Malformed {
                    index,
                    expected: "user:password",
                });
            }
            Some(password) if password.len() < bytes_min => {
                return Err(SecretError::TooShort { index, bytes_min });
            }
            Some(_) => {}
        }
    }
    Ok(())
}
