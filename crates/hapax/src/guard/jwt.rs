//! Tokens that name callers: JSON Web Tokens whose signature verifies with a key of the operator's set.
//!
//! Each key has one algorithm, by its own type. What a token says about its algorithm has to agree with that and decides nothing.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hapax_ledger::time::{Span, Time};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The longest token that is looked at: what servers commonly take as one header.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// The most keys in a set; a signature may be tried with each.
const KEYS_MAX: usize = 32;
/// How far the clocks of issuer and guard may be apart.
const LEEWAY: Span = Span::from_secs(60);
/// The smallest RSA key, in bytes of its modulus: 2048 bits.
const RSA_BYTES_MIN: usize = 256;
const P256_BYTES: usize = 32;

/// The keys that tokens are signed with.
#[derive(Debug)]
pub struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// What the program demands of a token beside its signature.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demands<'d> {
    /// Who must have made it.
    pub issuer: Option<&'d str>,
    /// For whom.
    pub audience: Option<&'d str>,
}

/// Why a token names nobody. Says nothing of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// Not a token.
    #[error("the token is not a JSON Web Token")]
    Form,
    /// No key of the set signed it.
    #[error("the token is not signed by a key that is trusted here")]
    Signature,
    /// Expired, not valid yet, or without an end.
    #[error("the token is expired, not valid yet, or has no `exp`")]
    Time,
    /// From another issuer, or for somebody else.
    #[error("the token is not meant for this API")]
    Demand,
}

#[derive(Deserialize)]
struct RawSet {
    keys: Vec<RawKey>,
}

#[derive(Deserialize)]
struct RawKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a JWK set. Keys of other kinds are left out: sets commonly hold some that are for something else.
    ///
    /// # Errors
    /// Says in a few words why no key can be used.
    pub fn parse(text: &str) -> Result<KeySet, String> {
        let raw: RawSet =
            serde_json::from_str(text).map_err(|_| "it is not a JWK set".to_owned())?;
        if raw.keys.len() > KEYS_MAX {
            return Err(format!("it has more than {KEYS_MAX} keys"));
        }
        let keys: Vec<Key> = raw.keys.into_iter().filter_map(key).collect();
        match keys.is_empty() {
            true => Err("none of its keys is of a kind that is known here".to_owned()),
            false => Ok(KeySet { keys }),
        }
    }

    /// The claims of a token that is signed by one of the keys, counts now, and meets the demands.
    ///
    /// # Errors
    /// If it does not.
    pub fn claims(
        &self,
        token: &str,
        now: Time,
        demands: Demands<'_>,
    ) -> Result<Map<String, Value>, BadToken> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(BadToken::Form);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(BadToken::Form)?;
        let (header, claims) = signed.split_once('.').ok_or(BadToken::Form)?;
        let header = object(header)?;
        // `crit` names extensions that a reader must understand; this one understands none.
        if header.contains_key("crit") {
            return Err(BadToken::Form);
        }
        let signature = decode(signature)?;
        let id = header.get("kid").and_then(Value::as_str);
        let algorithm = header.get("alg").and_then(Value::as_str);
        let signer = self
            .keys
            .iter()
            .filter(|key| id.is_none() || key.id.is_none() || key.id.as_deref() == id)
            .filter(|key| Some(key.material.algorithm()) == algorithm)
            .find(|key| key.material.signed(signed.as_bytes(), &signature));
        signer.ok_or(BadToken::Signature)?;
        let claims = object(claims)?;
        check_times(&claims, now)?;
        check_demands(&claims, demands)?;
        Ok(claims)
    }
}

impl Material {
    const fn algorithm(&self) -> &'static str {
        match self {
            Material::Rsa { .. } => "RS256",
            Material::P256(_) => "ES256",
            Material::Ed25519(_) => "EdDSA",
        }
    }

    fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Material::Rsa { n, e } => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            Material::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(message, signature)
                .is_ok(),
            Material::Ed25519(point) => UnparsedPublicKey::new(&ED25519, point)
                .verify(message, signature)
                .is_ok(),
        }
    }
}

fn key(raw: RawKey) -> Option<Key> {
    if raw.usage.as_deref().is_some_and(|usage| usage != "sig") {
        return None;
    }
    let part = |text: &Option<String>| decode(text.as_deref()?).ok();
    let material = match (raw.kty.as_str(), raw.crv.as_deref()) {
        ("RSA", _) => {
            let (n, e) = (part(&raw.n)?, part(&raw.e)?);
            let modulus = n.iter().skip_while(|byte| **byte == 0).count();
            (modulus >= RSA_BYTES_MIN).then_some(Material::Rsa { n, e })?
        }
        ("EC", Some("P-256")) => {
            let (x, y) = (part(&raw.x)?, part(&raw.y)?);
            let fits = x.len() == P256_BYTES && y.len() == P256_BYTES;
            // The point as it is written out in full.
            fits.then(|| Material::P256([&[4], &x[..], &y[..]].concat()))?
        }
        ("OKP", Some("Ed25519")) => Material::Ed25519(part(&raw.x).filter(|x| x.len() == 32)?),
        _ => return None,
    };
    // A key that says it is for another algorithm is not for ours.
    let agrees = raw.alg.is_none_or(|alg| alg == material.algorithm());
    agrees.then_some(Key {
        id: raw.kid,
        material,
    })
}

fn decode(text: &str) -> Result<Vec<u8>, BadToken> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| BadToken::Form)
}

fn object(text: &str) -> Result<Map<String, Value>, BadToken> {
    match serde_json::from_slice(&decode(text)?) {
        Ok(Value::Object(map)) => Ok(map),
        _ => Err(BadToken::Form),
    }
}

/// `exp` has to be there: a replay asks nobody else, so a token without an end would open stored answers for ever.
fn check_times(claims: &Map<String, Value>, now: Time) -> Result<(), BadToken> {
    let at = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or(BadToken::Form),
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 are exact in a float for longer than anybody will look"
    )]
    let seconds = |time: Time| (time.micros() / 1_000_000) as f64;
    let ends = at("exp")?.ok_or(BadToken::Time)?;
    let begins = at("nbf")?.unwrap_or(f64::MIN);
    let counts = seconds(now - LEEWAY) < ends && begins <= seconds(now + LEEWAY);
    counts.then_some(()).ok_or(BadToken::Time)
}

fn check_demands(claims: &Map<String, Value>, demands: Demands<'_>) -> Result<(), BadToken> {
    let issuer = claims.get("iss").and_then(Value::as_str);
    let issued = demands.issuer.is_none_or(|want| issuer == Some(want));
    let meant = demands.audience.is_none_or(|want| match claims.get("aud") {
        Some(Value::String(one)) => one == want,
        Some(Value::Array(many)) => many.iter().any(|one| one.as_str() == Some(want)),
        _ => false,
    });
    (issued && meant).then_some(()).ok_or(BadToken::Demand)
}

/// A claim as a name: text as it is, a whole number as it is written; anything else names nobody.
pub fn name(claims: &Map<String, Value>, claim: &str) -> Option<String> {
    match claims.get(claim)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
