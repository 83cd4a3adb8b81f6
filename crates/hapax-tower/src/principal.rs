//! Who is calling? A key belongs to its caller: nobody gets an answer that was given to somebody else (H3).
//!
//! The question is asked on every guarded request, before the store is: on replays too, which never reach the service
//! and its own checks. A [`Principal`] may therefore also be the place that asks whether the caller still may.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use hapax_ledger::key::BodyHash;
use http::header::HeaderName;
use http::request::Parts;
use http::{Response, StatusCode};

use crate::problem::Problem;

/// The longest name that is kept as it is; longer ones are kept as their hash.
const PLAIN_BYTES_MAX: usize = 128;
/// Stands before a hash.
const HASH_PREFIX: &str = "sha256:";
/// Words by which a header is known to carry a credential.
const CREDENTIAL_WORDS: [&str; 8] = [
    "auth",
    "cookie",
    "key",
    "password",
    "secret",
    "session",
    "signature",
    "token",
];

/// The answer to a caller who is refused. Nothing has run and no key was claimed.
pub type Refusal = Response<Bytes>;

/// Tells callers apart.
#[async_trait]
pub trait Principal: Send + Sync + 'static {
    /// Who sent this request. The name is stored: it must never be a secret. The same caller must have the same name on
    /// every retry, so what is refreshed now and then (a session, a short-lived token) is a poor name.
    async fn principal(&self, head: &Parts) -> Result<Arc<str>, Refusal>;
}

/// All callers are one: whoever knows a key gets its answer. For services with one caller, and for callers who are told
/// apart before they come here.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedScope;

#[async_trait]
impl Principal for SharedScope {
    async fn principal(&self, _head: &Parts) -> Result<Arc<str>, Refusal> {
        Ok(Arc::from(""))
    }
}

/// Callers are told apart by a header that somebody before this service vouches for.
#[derive(Clone, Debug)]
pub struct ByHeader {
    name: HeaderName,
    hashed: bool,
}

impl ByHeader {
    /// By this header. Its value is kept as a hash if the header's name sounds like a credential (`Authorization`, `Cookie`,
    /// `X-Api-Key`), else as it is.
    pub fn new(name: HeaderName) -> ByHeader {
        let hashed = CREDENTIAL_WORDS
            .iter()
            .any(|word| name.as_str().contains(word));
        ByHeader { name, hashed }
    }

    /// By this header, whose value is kept as a hash.
    pub fn hashed(name: HeaderName) -> ByHeader {
        ByHeader { name, hashed: true }
    }

    fn named(&self, value: &[u8]) -> Arc<str> {
        match std::str::from_utf8(value) {
            // A name that looks like a hash is hashed, so that no name can pass for another one's hash.
            Ok(text)
                if !self.hashed
                    && text.len() <= PLAIN_BYTES_MAX
                    && !text.starts_with(HASH_PREFIX)
                    && !text.contains(char::is_control) =>
            {
                Arc::from(text)
            }
            _ => Arc::from(format!("{HASH_PREFIX}{}", BodyHash::of(value))),
        }
    }
}

#[async_trait]
impl Principal for ByHeader {
    async fn principal(&self, head: &Parts) -> Result<Arc<str>, Refusal> {
        let mut values = head.headers.get_all(&self.name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) if !value.is_empty() => Ok(self.named(value.as_bytes())),
            _ => Err(Problem::caller_unknown(&self.name).refusal()),
        }
    }
}

/// What a closure given to [`by`] answers.
pub type Named = Pin<Box<dyn Future<Output = Result<Arc<str>, Refusal>> + Send>>;

/// Callers are told apart by a function, at once.
///
/// ```
/// use hapax_tower::principal::by;
///
/// #[derive(Clone)]
/// struct User { id: u64 }
///
/// // A layer before this one has put the user into the request's extensions.
/// let principal = by(|head| match head.extensions.get::<User>() {
///     Some(user) => Ok(user.id.to_string().into()),
///     None => Err(hapax_tower::principal::unauthorized()),
/// });
/// ```
pub fn by<F>(name: F) -> impl Principal
where
    F: Fn(&Parts) -> Result<Arc<str>, Refusal> + Send + Sync + 'static,
{
    By(name)
}

/// Callers are told apart by a function that takes its time: one that asks another service, say. It gets a clone of what it
/// needs from the head before its future begins.
pub fn by_asking<F>(ask: F) -> impl Principal
where
    F: Fn(&Parts) -> Named + Send + Sync + 'static,
{
    ByAsking(ask)
}

/// A plain 401 for callers that are not known.
pub fn unauthorized() -> Refusal {
    let mut refusal = Response::new(Bytes::new());
    *refusal.status_mut() = StatusCode::UNAUTHORIZED;
    refusal
}

struct By<F>(F);

#[async_trait]
impl<F> Principal for By<F>
where
    F: Fn(&Parts) -> Result<Arc<str>, Refusal> + Send + Sync + 'static,
{
    async fn principal(&self, head: &Parts) -> Result<Arc<str>, Refusal> {
        (self.0)(head)
    }
}

struct ByAsking<F>(F);

#[async_trait]
impl<F> Principal for ByAsking<F>
where
    F: Fn(&Parts) -> Named + Send + Sync + 'static,
{
    async fn principal(&self, head: &Parts) -> Result<Arc<str>, Refusal> {
        (self.0)(head).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_kept_as_hashes_and_names_as_they_are() {
        let named = |header: &'static str, value: &str| {
            ByHeader::new(HeaderName::from_static(header)).named(value.as_bytes())
        };
        assert_eq!(&*named("x-user", "anna"), "anna");
        for (header, value) in [
            ("authorization", "Bearer abc"),
            ("cookie", "session=abc"),
            ("x-api-key", "abc"),
            ("x-user", "sha256:abc"),
            ("x-user", &"long".repeat(100)),
        ] {
            let name = named(header, value);
            assert!(
                name.starts_with(HASH_PREFIX) && !name.contains(value),
                "{header}"
            );
            assert_eq!(name, named(header, value), "the same caller, the same name");
        }
        let user = ByHeader::hashed(HeaderName::from_static("x-user"));
        assert!(user.named(b"anna").starts_with(HASH_PREFIX));
    }
}
