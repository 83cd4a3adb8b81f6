//! A verification scheme after validation: what is signed, where the signature sits, and how it is made.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::decode::Encoding;
use crate::json::Path;
use crate::mac::{Algorithm, Construction};
use crate::refusal::Coverage;
use crate::secret::KeyForm;
use crate::template::Template;

/// A validated way to verify. Made by [`SchemeSpec::resolve`](crate::SchemeSpec::resolve).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Scheme {
    /// A keyed hash over a template.
    Hmac(HmacScheme),
    /// A static token, sent along in clear.
    Token(TokenScheme),
    /// HTTP basic authentication with `user:password` as the secret.
    Basic,
    /// Ed25519 with a static public key as the secret.
    Ed25519(PublicKeyScheme),
    /// ECDSA on P-256 with SHA-256 and a static public key as the secret.
    EcdsaP256(PublicKeyScheme),
    /// RSA PKCS #1 v1.5 with SHA-256 and a static public key as the secret.
    Rsa(PublicKeyScheme),
    /// A JSON Web Token, in a header or as the whole body.
    Jwt(JwtScheme),
    /// Nothing is verified. Loud on purpose.
    Unverified,
}

impl Scheme {
    /// A short stable name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Scheme::Hmac(hmac) => match (hmac.construction, hmac.algorithm) {
                (Construction::Hmac, Algorithm::Sha1) => "hmac-sha1",
                (Construction::Hmac, Algorithm::Sha256) => "hmac-sha256",
                (Construction::Hmac, Algorithm::Sha384) => "hmac-sha384",
                (Construction::Hmac, Algorithm::Sha512) => "hmac-sha512",
                (Construction::Digest, Algorithm::Sha1) => "digest-sha1",
                (Construction::Digest, Algorithm::Sha256) => "digest-sha256",
                (Construction::Digest, Algorithm::Sha384) => "digest-sha384",
                (Construction::Digest, Algorithm::Sha512) => "digest-sha512",
            },
            Scheme::Token(_) => "token",
            Scheme::Basic => "basic",
            Scheme::Ed25519(_) => "ed25519",
            Scheme::EcdsaP256(_) => "ecdsa-p256",
            Scheme::Rsa(_) => "rsa",
            Scheme::Jwt(_) => "jwt",
            Scheme::Unverified => "unverified",
        }
    }

    /// How much of the body a good signature vouches for.
    #[must_use]
    pub fn covers(&self) -> Coverage {
        match self {
            Scheme::Hmac(hmac) => hmac.layout.covers,
            Scheme::Ed25519(key) | Scheme::EcdsaP256(key) | Scheme::Rsa(key) => key.layout.covers,
            Scheme::Jwt(jwt) => jwt.covers(),
            Scheme::Token(_) | Scheme::Basic | Scheme::Unverified => Coverage::Nothing,
        }
    }

    /// Whether the public URL is part of what is signed, so that a wrong one makes every request fail.
    #[must_use]
    pub fn needs_url(&self) -> bool {
        use crate::template::Part;
        match self {
            Scheme::Hmac(HmacScheme { layout, .. })
            | Scheme::Ed25519(PublicKeyScheme { layout, .. })
            | Scheme::EcdsaP256(PublicKeyScheme { layout, .. })
            | Scheme::Rsa(PublicKeyScheme { layout, .. }) => layout
                .template
                .has(|part| matches!(part, Part::Url | Part::Path | Part::Query(_))),
            Scheme::Jwt(jwt) => jwt.url_hash_claim.is_some(),
            Scheme::Token(_) | Scheme::Basic | Scheme::Unverified => false,
        }
    }

    /// Whether checking needs public-key cryptography: 50 µs instead of 2, and the `asymmetric` feature.
    #[must_use]
    pub fn is_asymmetric(&self) -> bool {
        match self {
            Scheme::Ed25519(_) | Scheme::EcdsaP256(_) | Scheme::Rsa(_) => true,
            Scheme::Jwt(jwt) => !jwt.algorithm.is_hmac(),
            Scheme::Hmac(_) | Scheme::Token(_) | Scheme::Basic | Scheme::Unverified => false,
        }
    }

    pub(crate) fn layout(&self) -> Option<&Layout> {
        match self {
            Scheme::Hmac(hmac) => Some(&hmac.layout),
            Scheme::Ed25519(key) | Scheme::EcdsaP256(key) | Scheme::Rsa(key) => Some(&key.layout),
            Scheme::Token(_) | Scheme::Basic | Scheme::Jwt(_) | Scheme::Unverified => None,
        }
    }

    /// The place in which the credentials are looked for.
    pub(crate) fn place(&self) -> Option<&Place> {
        match self {
            Scheme::Token(token) => Some(&token.place),
            Scheme::Jwt(jwt) => Some(&jwt.place),
            _ => self.layout().map(|layout| &layout.place),
        }
    }
}

/// A keyed hash over a template.
#[derive(Debug, Clone, PartialEq)]
pub struct HmacScheme {
    pub(crate) layout: Layout,
    pub(crate) algorithm: Algorithm,
    pub(crate) construction: Construction,
    pub(crate) key: KeyForm,
}

/// A public-key signature over a template.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicKeyScheme {
    pub(crate) layout: Layout,
    /// How the public key is written, if it is not PEM.
    pub(crate) key: Encoding,
}

/// A static token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenScheme {
    pub(crate) place: Place,
    pub(crate) prefix: String,
}

/// A JSON Web Token.
#[derive(Debug, Clone, PartialEq)]
pub struct JwtScheme {
    pub(crate) place: Place,
    pub(crate) prefix: String,
    pub(crate) algorithm: JwtAlgorithm,
    pub(crate) key: KeyForm,
    pub(crate) claims: BTreeMap<String, String>,
    pub(crate) body_hash_claim: Option<String>,
    pub(crate) url_hash_claim: Option<String>,
    pub(crate) leeway_us: i64,
}

impl JwtScheme {
    fn covers(&self) -> Coverage {
        if self.body_hash_claim.is_some() || self.place == Place::WholeBody {
            Coverage::Body
        } else {
            Coverage::Nothing
        }
    }
}

/// The one algorithm a token may use; what the token says about itself has to agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JwtAlgorithm {
    Hs256,
    Hs384,
    Hs512,
    Rs256,
    Es256,
}

impl JwtAlgorithm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            JwtAlgorithm::Hs256 => "HS256",
            JwtAlgorithm::Hs384 => "HS384",
            JwtAlgorithm::Hs512 => "HS512",
            JwtAlgorithm::Rs256 => "RS256",
            JwtAlgorithm::Es256 => "ES256",
        }
    }

    pub(crate) fn hmac(self) -> Option<Algorithm> {
        match self {
            JwtAlgorithm::Hs256 => Some(Algorithm::Sha256),
            JwtAlgorithm::Hs384 => Some(Algorithm::Sha384),
            JwtAlgorithm::Hs512 => Some(Algorithm::Sha512),
            JwtAlgorithm::Rs256 | JwtAlgorithm::Es256 => None,
        }
    }

    pub(crate) fn is_hmac(self) -> bool {
        self.hmac().is_some()
    }
}

/// What is signed and where the signature sits; shared by keyed hashes and public keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    pub(crate) place: Place,
    pub(crate) form: SignatureForm,
    pub(crate) encoding: Encoding,
    pub(crate) template: Template,
    /// The header that `{id}` stands for.
    pub(crate) id: Option<String>,
    pub(crate) timestamp: Option<Timestamp>,
    /// Whether the URL is tried with and without its default port.
    pub(crate) url_ports: bool,
    pub(crate) digest: Option<Digest>,
    /// Every value at this path of the JSON body is signed by itself.
    pub(crate) each: Option<Path>,
    pub(crate) covers: Coverage,
}

/// Where a signature or token is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Any of these headers, lower case. Several for numbered or rotating headers.
    Headers(Vec<String>),
    Body(Path),
    Form(String),
    Query(String),
    WholeBody,
}

/// How signatures are written in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignatureForm {
    /// `PREFIXsignature`
    Plain { prefix: String },
    /// `t=1,v1=signature,v1=signature`; groups are whole lists of their own, each with its timestamp.
    Pairs {
        separator: String,
        group: Option<String>,
        key: String,
    },
    /// `PREFIXsignature PREFIXsignature`; what lacks the prefix is another version and is passed over.
    List {
        separator: String,
        prefix: String,
        /// The signature starts after this text within an element (`public-key|signature`).
        after: Option<String>,
    },
    /// `timestamp,signature,signature`
    Positional { separator: String },
}

/// A signed time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timestamp {
    pub(crate) place: TimePlace,
    pub(crate) unit: TimeUnit,
    /// How old it may be; nothing means that age is not checked.
    pub(crate) past_us: Option<i64>,
    pub(crate) future_us: Option<i64>,
}

/// Where the timestamp is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TimePlace {
    Header(String),
    /// A pair beside the signature.
    Pair(String),
    /// The first element of a positional signature.
    First,
    Body(Path),
}

/// How a timestamp is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
pub enum TimeUnit {
    /// Unix seconds.
    #[default]
    #[serde(rename = "s")]
    Seconds,
    /// Unix milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// RFC 3339.
    #[serde(rename = "rfc3339")]
    Rfc3339,
    /// The form of the HTTP `Date` header.
    #[serde(rename = "http-date")]
    HttpDate,
}

/// A SHA-256 of the body that travels in a signed place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) place: DigestPlace,
    pub(crate) prefix: String,
    pub(crate) encoding: Encoding,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DigestPlace {
    Header(String),
    /// A query parameter of the signed URL; without it the body is a form and is signed field by field.
    Query(String),
}
