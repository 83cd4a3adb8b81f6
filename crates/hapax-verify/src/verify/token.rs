//! Static tokens and basic authentication: the sender is known, the body is not vouched for.

use super::content::one;
use super::layout::Parsed;
use crate::decode::Encoding;
use crate::json::Ragged;
use crate::mac::same_secret;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::scheme::{Place, TokenScheme};
use crate::secret::Secret;

/// Which of the secrets the text is. All are compared, whichever matches.
pub(crate) fn which(secrets: &[Secret], text: &[u8]) -> Option<u8> {
    (0u8..).zip(secrets).fold(None, |found, (index, secret)| {
        let same = bool::from(same_secret(secret.bytes(), text));
        found.or(same.then_some(index))
    })
}

/// Every value at the token's place has to be one of the secrets.
pub(crate) fn verify(
    scheme: &TokenScheme,
    request: &Request<'_>,
    secrets: &[Secret],
) -> Result<u8, Refusal> {
    let parsed = Parsed::of(&scheme.place, None, request)?;
    let one = |value: &[u8]| {
        let token = value
            .strip_prefix(scheme.prefix.as_bytes())
            .ok_or(Refusal::MalformedSignature)?;
        which(secrets, token).ok_or(Refusal::Mismatch)
    };
    let mut last = Err(Refusal::MissingSignature);
    if let (Place::Body(path), Some(json)) = (&scheme.place, parsed.json()) {
        // A batch repeats its token in every element, and may have more of them than a request has signatures.
        for value in path.every(json).map_err(|Ragged| Refusal::MalformedBody)? {
            let text = value.as_str().ok_or(Refusal::MalformedSignature)?;
            last = Ok(one(text.as_bytes())?);
        }
    } else {
        for value in parsed.values(&scheme.place, request, None)?.iter() {
            last = Ok(one(value)?);
        }
    }
    last
}

/// HTTP basic authentication; a secret is `user:password`.
pub(crate) fn verify_basic(request: &Request<'_>, secrets: &[Secret]) -> Result<u8, Refusal> {
    let value = one(request, "authorization", Refusal::MissingSignature)?;
    let (scheme, credentials) = value
        .split_at_checked(6)
        .ok_or(Refusal::MalformedSignature)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return Err(Refusal::MalformedSignature);
    }
    let credentials = Encoding::Base64
        .decode_vec(credentials.trim_ascii())
        .ok_or(Refusal::MalformedSignature)?;
    which(secrets, &credentials).ok_or(Refusal::Mismatch)
}
