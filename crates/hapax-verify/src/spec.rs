//! A verification scheme as configuration writes it: the `[source.verify]` table and the provider data.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::decode::Encoding;
use crate::mac::Construction;
use crate::refusal::Coverage;
use crate::scheme::{Scheme, TimeUnit};
use crate::secret::KeyForm;

/// The scheme's name in configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemeName {
    /// A keyed hash over a template.
    Hmac,
    /// A static token.
    Token,
    /// HTTP basic authentication.
    Basic,
    /// Ed25519.
    Ed25519,
    /// ECDSA on P-256 with SHA-256.
    EcdsaP256,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rsa,
    /// A JSON Web Token.
    Jwt,
    /// Nothing is verified.
    Unverified,
}

/// How signatures are written in their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum FormName {
    /// The signature alone, after the prefix.
    #[default]
    Plain,
    /// `t=1,v1=signature`.
    Pairs,
    /// Several signatures, each after the prefix.
    List,
    /// The timestamp, then signatures.
    Positional,
}

/// The raw `[source.verify]` table. Unknown fields are errors; fields without meaning for the scheme are too.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemeSpec {
    /// Which kind of scheme.
    pub scheme: SchemeName,
    /// The header that carries the signature or token.
    #[serde(default)]
    pub header: Option<String>,
    /// Several headers, any of which may carry it (numbered or rotating).
    #[serde(default)]
    pub headers: Vec<String>,
    /// Another place: `body.PATH`, `form.NAME`, `query.NAME`, or `body` for the whole of it.
    #[serde(default)]
    pub field: Option<String>,
    /// `sha1`, `sha256` (default), `sha384`, `sha512`; for a JWT `hs256` (default), `hs384`, `hs512`, `rs256`, `es256`.
    #[serde(default)]
    pub algorithm: Option<String>,
    /// How the signature is written; hex unless told.
    #[serde(default)]
    pub encoding: Option<Encoding>,
    /// Text before each signature.
    #[serde(default)]
    pub prefix: Option<String>,
    /// How several signatures share a place.
    #[serde(default)]
    pub form: Option<FormName>,
    /// What separates pairs or list elements.
    #[serde(default)]
    pub separator: Option<String>,
    /// What separates whole groups of pairs, each with its own timestamp.
    #[serde(default)]
    pub group_separator: Option<String>,
    /// The name of the signature among pairs, e.g. `v1`.
    #[serde(default)]
    pub signature_key: Option<String>,
    /// The signature starts after this text within a list element.
    #[serde(default)]
    pub after: Option<String>,
    /// The signed content, `{body}` unless told. Parts: `{body}` `{timestamp}` `{id}` `{url}` `{path}` `{method}`
    /// `{method-lower}` `{header.NAME}` `{body.PATH}` (`{body.PATH?}`: may be missing) `{form.NAME}` `{query.NAME}`
    /// `{sorted-form}` `{sorted-unique-form}` `{signed-headers.NAME}` `{secret}`.
    #[serde(default)]
    pub signed: Option<String>,
    /// What `{id}` is.
    #[serde(default)]
    pub id: Option<IdSpec>,
    /// The signed time.
    #[serde(default)]
    pub timestamp: Option<TimestampSpec>,
    /// How the key comes out of the secret's text.
    #[serde(default)]
    pub key: Option<KeyForm>,
    /// `hmac`, or `digest` for a plain hash with `{secret}` in the content.
    #[serde(default)]
    pub construction: Option<Construction>,
    /// A path of the JSON body: every value there is signed by itself.
    #[serde(default)]
    pub each: Option<String>,
    /// Try the URL with and without its default port.
    #[serde(default)]
    pub url_ports: bool,
    /// A SHA-256 of the body in a signed place.
    #[serde(default)]
    pub digest: Option<DigestSpec>,
    /// Claims of a JWT that must have these values.
    #[serde(default)]
    pub claims: BTreeMap<String, String>,
    /// The claim that holds the hex SHA-256 of the body.
    #[serde(default)]
    pub body_hash_claim: Option<String>,
    /// The claim that holds the hex SHA-256 of the URL.
    #[serde(default)]
    pub url_hash_claim: Option<String>,
    /// Clock leeway for `exp`, `nbf` and `iat`, e.g. `10s`.
    #[serde(default)]
    pub leeway: Option<String>,
    /// How much of the body is vouched for, where it is less than the template suggests.
    #[serde(default)]
    pub covers: Option<Coverage>,
}

/// What `{id}` is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdSpec {
    /// The header that carries it.
    pub header: String,
}

/// The signed time. Give one of `header`, `pair` and `body`; none for a positional signature.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct TimestampSpec {
    /// The header that carries it.
    #[serde(default)]
    pub header: Option<String>,
    /// Its name among the pairs of the signature.
    #[serde(default)]
    pub pair: Option<String>,
    /// Its path in the JSON body.
    #[serde(default)]
    pub body: Option<String>,
    /// How it is written; seconds unless told.
    #[serde(default)]
    pub unit: TimeUnit,
    /// How old it may be, `5m` unless told; `off` checks neither direction.
    #[serde(default)]
    pub tolerance: Option<String>,
    /// How far ahead it may be; as `tolerance` unless told.
    #[serde(default)]
    pub future: Option<String>,
}

/// Where a SHA-256 of the body travels.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigestSpec {
    /// In this header, which the signed content must name.
    #[serde(default)]
    pub header: Option<String>,
    /// In this query parameter of the signed URL.
    #[serde(default)]
    pub query: Option<String>,
    /// Text before it.
    #[serde(default)]
    pub prefix: String,
    /// How it is written; hex unless told.
    #[serde(default)]
    pub encoding: Encoding,
}

impl SchemeSpec {
    /// A table with nothing but its scheme.
    #[must_use]
    pub fn new(scheme: SchemeName) -> SchemeSpec {
        SchemeSpec {
            scheme,
            header: None,
            headers: Vec::new(),
            field: None,
            algorithm: None,
            encoding: None,
            prefix: None,
            form: None,
            separator: None,
            group_separator: None,
            signature_key: None,
            after: None,
            signed: None,
            id: None,
            timestamp: None,
            key: None,
            construction: None,
            each: None,
            url_ports: false,
            digest: None,
            claims: BTreeMap::new(),
            body_hash_claim: None,
            url_hash_claim: None,
            leeway: None,
            covers: None,
        }
    }

    /// Checks the table and turns it into a scheme.
    ///
    /// # Errors
    /// The first field that is missing, malformed or without meaning.
    pub fn resolve(&self) -> Result<Scheme, SpecError> {
        crate::resolve::resolve(self)
    }
}

/// What is wrong with a `[source.verify]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The field in question.
    pub field: &'static str,
    /// What is wrong with it, as a sentence fragment.
    pub message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for SpecError {}
