//! The server's header map, as the pure crates like to read it.

use hapax_ledger::extract::HeaderLookup;
use hapax_verify::{HeaderValue, Headers};
use http::HeaderMap;

/// The headers of a request.
#[derive(Clone, Debug, Default)]
pub struct RequestHeaders(pub HeaderMap);

impl Headers for RequestHeaders {
    fn get(&self, name: &str) -> HeaderValue<'_> {
        let mut values = self.0.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => HeaderValue::Missing,
            (Some(value), None) => HeaderValue::One(value.as_bytes()),
            (Some(_), Some(_)) => HeaderValue::Many,
        }
    }
}

impl HeaderLookup for RequestHeaders {
    fn header(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            HeaderValue::One(value) => std::str::from_utf8(value).ok(),
            HeaderValue::Missing | HeaderValue::Many => None,
        }
    }
}
