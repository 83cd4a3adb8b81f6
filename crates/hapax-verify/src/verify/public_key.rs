//! Public-key signatures, behind the `asymmetric` feature. Without it the type is there and cannot be made.

use super::content::Content;
use super::layout::Check;
use crate::decode::{Encoding, SIGNATURE_BYTES_MAX};
use crate::refusal::Refusal;
use crate::secret::{Secret, SecretError};
use crate::signature::Candidates;

/// Which signature algorithm a public key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublicKeyKind {
    Ed25519,
    /// ECDSA P-256 with the signature in DER.
    EcdsaDer,
    /// ECDSA P-256 with the signature as two fixed numbers, as JWT writes it.
    EcdsaFixed,
    Rsa,
}

impl PublicKeyKind {
    #[cfg(feature = "asymmetric")]
    fn algorithm(self) -> &'static dyn aws_lc_rs::signature::VerificationAlgorithm {
        use aws_lc_rs::signature;
        match self {
            PublicKeyKind::Ed25519 => &signature::ED25519,
            PublicKeyKind::EcdsaDer => &signature::ECDSA_P256_SHA256_ASN1,
            PublicKeyKind::EcdsaFixed => &signature::ECDSA_P256_SHA256_FIXED,
            PublicKeyKind::Rsa => &signature::RSA_PKCS1_2048_8192_SHA256,
        }
    }

    #[cfg(feature = "asymmetric")]
    fn expected(self) -> &'static str {
        match self {
            PublicKeyKind::Ed25519 => "an Ed25519 public key (32 bytes in hex or base64, or PEM)",
            PublicKeyKind::EcdsaDer | PublicKeyKind::EcdsaFixed => {
                "a P-256 public key (base64 DER, or PEM)"
            }
            PublicKeyKind::Rsa => "an RSA public key of at least 2048 bits (base64 DER, or PEM)",
        }
    }
}

/// A public key, parsed once.
#[derive(Clone, Debug)]
pub(crate) struct PublicKey {
    #[cfg(feature = "asymmetric")]
    key: aws_lc_rs::signature::ParsedPublicKey,
    #[cfg(not(feature = "asymmetric"))]
    never: std::convert::Infallible,
}

impl PublicKey {
    #[cfg(feature = "asymmetric")]
    pub(crate) fn new(
        kind: PublicKeyKind,
        encoding: Encoding,
        secret: &Secret,
        index: usize,
    ) -> Result<PublicKey, SecretError> {
        let malformed = SecretError::Malformed {
            index,
            expected: kind.expected(),
        };
        let der = der(encoding, secret.bytes()).ok_or(malformed)?;
        aws_lc_rs::signature::ParsedPublicKey::new(kind.algorithm(), der)
            .map(|key| PublicKey { key })
            .map_err(|_| malformed)
    }

    #[cfg(not(feature = "asymmetric"))]
    pub(crate) fn new(
        _kind: PublicKeyKind,
        _encoding: Encoding,
        _secret: &Secret,
        _index: usize,
    ) -> Result<PublicKey, SecretError> {
        Err(SecretError::NoAsymmetric)
    }

    #[cfg(feature = "asymmetric")]
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.key.verify_sig(message, signature).is_ok()
    }

    #[cfg(not(feature = "asymmetric"))]
    pub(crate) fn verifies(&self, _message: &[u8], _signature: &[u8]) -> bool {
        match self.never {}
    }
}

/// The bytes of a key that is PEM, or Standard Webhooks' `whpk_`, or plain text in the given encoding.
#[cfg(feature = "asymmetric")]
fn der(encoding: Encoding, text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii();
    if !text.starts_with(b"-----BEGIN") {
        return encoding.decode_vec(text.strip_prefix(b"whpk_").unwrap_or(text));
    }
    let inner: Vec<u8> = text
        .split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.starts_with(b"-----"))
        .flatten()
        .copied()
        .collect();
    Encoding::Base64.decode_vec(&inner)
}

/// The parsed keys of a source.
pub(crate) struct PublicKeys<'a>(pub(crate) &'a [PublicKey]);

impl Check for PublicKeys<'_> {
    fn check(
        &self,
        candidates: &Candidates<'_>,
        encoding: Encoding,
        content: &Content<'_>,
    ) -> Result<u8, Refusal> {
        let signatures: Vec<Vec<u8>> = candidates
            .iter()
            .filter_map(|text| encoding.decode_vec(text))
            .filter(|bytes| !bytes.is_empty() && bytes.len() <= SIGNATURE_BYTES_MAX)
            .collect();
        if signatures.is_empty() {
            return Err(Refusal::MalformedSignature);
        }
        let mut message = Vec::with_capacity(content.request.body.len() + 64);
        content.render(&mut message)?;
        (0u8..)
            .zip(self.0)
            .find(|(_, key)| signatures.iter().any(|s| key.verifies(&message, s)))
            .map(|(index, _)| index)
            .ok_or(Refusal::Mismatch)
    }
}
