//! Tokens with a keyed hash, as the provider would make them.

use serde_json::{Map, Value, json};

use super::SignError;
use super::draft::Draft;
use crate::decode::Encoding;
use crate::mac::{self, Mac, Sink};
use crate::scheme::JwtScheme;

/// How long a token of ours is good for; MessageBird's own are good for one minute.
const LIFETIME_S: i64 = 60;

const SECOND_US: i64 = 1_000_000;

pub(super) fn token(
    scheme: &JwtScheme,
    mut mac: Mac,
    draft: &Draft<'_>,
) -> Result<String, SignError> {
    let now_s = draft.input.now.div_euclid(SECOND_US);
    let mut claims = Map::new();
    for (name, value) in &scheme.claims {
        claims.insert(name.clone(), Value::from(value.as_str()));
    }
    claims.insert("iat".to_owned(), now_s.into());
    claims.insert("nbf".to_owned(), now_s.into());
    claims.insert("exp".to_owned(), (now_s + LIFETIME_S).into());
    claims.insert("jti".to_owned(), draft.input.id.into());
    let hash = |bytes: &[u8]| Value::from(Encoding::Hex.encode(&mac::sha256(bytes)));
    if let Some(name) = &scheme.body_hash_claim {
        claims.insert(name.clone(), hash(draft.body()));
    }
    if let Some(name) = &scheme.url_hash_claim {
        let url = draft.url().ok_or(SignError::MissingUrl)?;
        claims.insert(name.clone(), hash(url.as_bytes()));
    }
    let header = json!({"alg": scheme.algorithm.name(), "typ": "JWT"});
    let text = |value: &Value| Encoding::Base64Url.encode(value.to_string().as_bytes());
    let signed = format!("{}.{}", text(&header), text(&Value::Object(claims)));
    mac.put(signed.as_bytes());
    let signature = Encoding::Base64Url.encode(mac.finish().as_slice());
    Ok(format!("{signed}.{signature}"))
}
