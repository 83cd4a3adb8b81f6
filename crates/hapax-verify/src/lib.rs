#![doc = include_str!("../README.md")]

mod civil;
mod decode;
mod duration;
mod explain;
mod form;
mod json;
mod mac;
pub mod provider;
mod refusal;
mod request;
mod resolve;
mod scheme;
mod secret;
mod sign;
mod signature;
mod spec;
mod template;
mod timestamp;
mod url;
mod verify;

pub use decode::Encoding;
pub use explain::{Cause, CauseKind, Explanation, explain, explain_with};
pub use mac::{Algorithm, Construction};
pub use refusal::{Coverage, Refusal, Verified};
pub use request::{HeaderValue, Headers, Request};
pub use resolve::TOLERANCE_DEFAULT_US;
pub use scheme::{HmacScheme, JwtScheme, PublicKeyScheme, Scheme, TimeUnit, TokenScheme};
pub use secret::{KeyForm, SECRET_BYTES_MIN, SECRETS_MAX, Secret, SecretError};
pub use sign::{SignError, SignInput, Signed, sign};
pub use spec::{DigestSpec, FormName, IdSpec, SchemeName, SchemeSpec, SpecError, TimestampSpec};
pub use verify::Verifier;
