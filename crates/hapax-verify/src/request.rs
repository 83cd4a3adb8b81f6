//! What arrived: a request as the verifier sees it, free of any HTTP library.

/// What a request carries under one header name.
///
/// A name that arrives twice is its own answer and not a list: two signature headers mean that somebody between
/// the provider and us added one, and choosing either would be a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderValue<'a> {
    /// The header is not there.
    Missing,
    /// The header is there once.
    One(&'a [u8]),
    /// The header is there more than once.
    Many,
}

impl<'a> HeaderValue<'a> {
    /// The value if there is exactly one.
    #[must_use]
    pub fn one(self) -> Option<&'a [u8]> {
        match self {
            HeaderValue::One(value) => Some(value),
            HeaderValue::Missing | HeaderValue::Many => None,
        }
    }

    /// Folds one more value of the same name in; handy when implementing [`Headers`].
    #[must_use]
    pub fn and(self, value: &'a [u8]) -> HeaderValue<'a> {
        match self {
            HeaderValue::Missing => HeaderValue::One(value),
            HeaderValue::One(_) | HeaderValue::Many => HeaderValue::Many,
        }
    }
}

/// The headers of a request. Implement it for your server's header map: one lookup, no copying.
pub trait Headers {
    /// What is under `name`, which is always given in lower case; implementors compare without regard to case.
    fn get(&self, name: &str) -> HeaderValue<'_>;
}

fn find<'a, N: AsRef<str>, V: AsRef<[u8]>>(pairs: &'a [(N, V)], name: &str) -> HeaderValue<'a> {
    pairs
        .iter()
        .filter(|(have, _)| have.as_ref().eq_ignore_ascii_case(name))
        .fold(HeaderValue::Missing, |seen, (_, value)| {
            seen.and(value.as_ref())
        })
}

impl<N: AsRef<str>, V: AsRef<[u8]>> Headers for Vec<(N, V)> {
    fn get(&self, name: &str) -> HeaderValue<'_> {
        find(self, name)
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> Headers for &[(N, V)] {
    fn get(&self, name: &str) -> HeaderValue<'_> {
        find(self, name)
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>, const K: usize> Headers for [(N, V); K] {
    fn get(&self, name: &str) -> HeaderValue<'_> {
        find(self, name)
    }
}

/// One request, as it came over the wire.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The HTTP method in upper case.
    pub method: &'a str,
    /// The public URL as the provider was told it, with path and query; some providers sign it.
    pub url: Option<&'a str>,
    /// The headers.
    pub headers: &'a dyn Headers,
    /// The raw bytes of the body, before any parser saw them.
    pub body: &'a [u8],
    /// The current time in unix microseconds. It is passed in: this crate never reads a clock.
    pub now: i64,
}

impl std::fmt::Debug for Request<'_> {
    // Bodies hold other people's data: the length is enough for a log line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("body_bytes", &self.body.len())
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
