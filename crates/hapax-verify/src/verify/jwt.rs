//! JSON Web Tokens with a static key. The algorithm is the configured one; a token that names another is refused
//! before anything is computed.

use serde_json::{Map, Value};
use subtle::ConstantTimeEq;

use super::content::Content;
use super::layout::{Check, Checked, Parsed};
use crate::decode::Encoding;
use crate::json;
use crate::mac;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::scheme::JwtScheme;
use crate::signature::Candidates;
use crate::template::{Part, Template};
use crate::url::UrlForm;

const SECOND_US: f64 = 1_000_000.0;

/// The longest header of a token that is looked at, in base64 characters.
const HEADER_TEXT_MAX: usize = 4096;

pub(crate) fn verify(
    scheme: &JwtScheme,
    request: &Request<'_>,
    check: &dyn Check,
) -> Result<Checked, Refusal> {
    let parsed = Parsed::of(&scheme.place, None, request)?;
    let values = parsed.values(&scheme.place, request, parsed.json())?;
    let token = values.iter().next().ok_or(Refusal::MissingSignature)?;
    let token = token
        .strip_prefix(scheme.prefix.as_bytes())
        .ok_or(Refusal::MalformedSignature)?
        .trim_ascii();
    let (signed, header, claims, signature) = split(token).ok_or(Refusal::MalformedSignature)?;
    check_header(scheme, header)?;
    let secret_index = check_signature(request, check, signed, signature)?;
    let claims = object(claims).ok_or(Refusal::MalformedSignature)?;
    check_claims(scheme, &claims)?;
    check_hashes(scheme, &claims, request)?;
    check_times(scheme, &claims, request.now)?;
    Ok(Checked {
        secret_index,
        signed_at: time_us(&claims, "iat").or_else(|| time_us(&claims, "nbf")),
    })
}

type Parts<'a> = (&'a [u8], &'a [u8], &'a [u8], &'a [u8]);

/// The signed text, then header, claims and signature.
fn split(token: &[u8]) -> Option<Parts<'_>> {
    let first = token.iter().position(|b| *b == b'.')?;
    let last = token.iter().rposition(|b| *b == b'.')?;
    let claims = token.get(first + 1..last)?;
    if claims.contains(&b'.') {
        return None;
    }
    Some((&token[..last], &token[..first], claims, &token[last + 1..]))
}

fn object(text: &[u8]) -> Option<Map<String, Value>> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(text)
        .ok()?;
    match json::parse_strict(&bytes)? {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

fn check_header(scheme: &JwtScheme, text: &[u8]) -> Result<(), Refusal> {
    if text.len() > HEADER_TEXT_MAX {
        return Err(Refusal::MalformedSignature);
    }
    let header = object(text).ok_or(Refusal::MalformedSignature)?;
    // `crit` names extensions that a reader must understand; this one understands none.
    if header.contains_key("crit") {
        return Err(Refusal::MalformedSignature);
    }
    match header.get("alg").and_then(Value::as_str) {
        Some(name) if name == scheme.algorithm.name() => Ok(()),
        _ => Err(Refusal::WrongAlgorithm),
    }
}

fn check_signature(
    request: &Request<'_>,
    check: &dyn Check,
    signed: &[u8],
    signature: &[u8],
) -> Result<u8, Refusal> {
    let mut candidates = Candidates::new();
    candidates.push(signature)?;
    let token_request = Request {
        body: signed,
        ..*request
    };
    let template = Template {
        parts: vec![Part::Body],
    };
    let content = Content {
        template: &template,
        request: &token_request,
        timestamp: None,
        timestamp_header: None,
        id: None,
        url: UrlForm::AsIs,
        json: None,
        form: None,
        body_by_digest: false,
    };
    check.check(&candidates, Encoding::Base64Url, &content)
}

fn check_claims(scheme: &JwtScheme, claims: &Map<String, Value>) -> Result<(), Refusal> {
    let holds = |(name, want): (&String, &String)| {
        claims.get(name).and_then(Value::as_str) == Some(want.as_str())
    };
    if scheme.claims.iter().all(holds) {
        Ok(())
    } else {
        Err(Refusal::WrongClaim)
    }
}

fn check_hashes(
    scheme: &JwtScheme,
    claims: &Map<String, Value>,
    request: &Request<'_>,
) -> Result<(), Refusal> {
    if let Some(name) = &scheme.body_hash_claim {
        match claims.get(name) {
            // A token for a request without a body has nothing to vouch for.
            None if request.body.is_empty() => {}
            Some(Value::String(text)) if is_hash_of(text, request.body) => {}
            Some(Value::String(_)) => return Err(Refusal::BodyDigest),
            _ => return Err(Refusal::WrongClaim),
        }
    }
    if let Some(name) = &scheme.url_hash_claim {
        let url = request.url.ok_or(Refusal::MissingPart)?;
        match claims.get(name).and_then(Value::as_str) {
            Some(text) if is_hash_of(text, url.as_bytes()) => {}
            _ => return Err(Refusal::WrongClaim),
        }
    }
    Ok(())
}

fn is_hash_of(text: &str, bytes: &[u8]) -> bool {
    let mut hash = [0; 32];
    Encoding::Hex
        .decode_exact(text.as_bytes(), &mut hash)
        .is_some_and(|()| bool::from(hash.ct_eq(&mac::sha256(bytes))))
}

/// A numeric date; it may have a fraction.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a float cast saturates, and a saturated time is out of every tolerance"
)]
fn time_us(claims: &Map<String, Value>, name: &str) -> Option<i64> {
    let seconds = claims.get(name)?.as_f64()?;
    Some((seconds * SECOND_US) as i64)
}

fn check_times(scheme: &JwtScheme, claims: &Map<String, Value>, now: i64) -> Result<(), Refusal> {
    let tolerance_us = scheme.leeway_us;
    for name in ["exp", "nbf", "iat"] {
        let Some(value) = claims.get(name) else {
            continue;
        };
        if !value.is_number() {
            return Err(Refusal::MalformedTimestamp);
        }
        let at = time_us(claims, name).ok_or(Refusal::MalformedTimestamp)?;
        let (age_us, ahead_us) = (now.saturating_sub(at), at.saturating_sub(now));
        if name == "exp" && age_us >= tolerance_us {
            return Err(Refusal::TooOld {
                age_us,
                tolerance_us,
            });
        }
        if name != "exp" && ahead_us > tolerance_us {
            return Err(Refusal::TooNew {
                ahead_us,
                tolerance_us,
            });
        }
    }
    Ok(())
}
