//! Headers that an endpoint's owner wants to go along.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Headers of one endpoint, at most, and how large they may be together: receivers refuse heads of more than 8 KiB.
pub const HEADERS_MAX: usize = 32;
/// See [`HEADERS_MAX`].
pub const HEADERS_BYTES_MAX: usize = 4 * 1024;

/// Names that Hapax or the connection speaks for itself.
const OWN: [&str; 14] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];
const OWN_PREFIXES: [&str; 5] = ["hapax-", "webhook-", "svix-", "proxy-", "sec-"];

/// Why a header cannot go along. Never quotes its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// Ours.
    #[error("`{0}` is a header that Hapax sets itself")]
    Own(String),
    /// No name.
    #[error("`{0}` is not the name of a header")]
    Name(String),
    /// No value.
    #[error("no header can carry the value of `{0}`; use printable ASCII on one line")]
    Value(String),
    /// The same name twice, in another case.
    #[error("`{0}` is set twice")]
    Twice(String),
    /// Too many or too large.
    #[error("at most {HEADERS_MAX} headers of {HEADERS_BYTES_MAX} bytes together can go along")]
    Many,
}

/// Checks headers. Their values are secrets: they are never shown.
///
/// # Errors
/// The first that cannot go along, and why.
pub fn check(given: &BTreeMap<String, String>) -> Result<HeaderMap, BadHeader> {
    let bytes: usize = given
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if given.len() > HEADERS_MAX || bytes > HEADERS_BYTES_MAX {
        return Err(BadHeader::Many);
    }
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let lower = name.to_ascii_lowercase();
        let own = OWN.contains(&lower.as_str());
        if own || OWN_PREFIXES.iter().any(|prefix| lower.starts_with(prefix)) {
            return Err(BadHeader::Own(name.clone()));
        }
        let header = HeaderName::try_from(lower).map_err(|_| BadHeader::Name(name.clone()))?;
        let value = HeaderValue::from_str(value).map_err(|_| BadHeader::Value(name.clone()));
        let mut value = value?;
        // Shown by nobody's `Debug`, and not kept in the tables of HTTP/2.
        value.set_sensitive(true);
        if headers.insert(header, value).is_some() {
            return Err(BadHeader::Twice(name.clone()));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &str, value: &str) -> Result<(), BadHeader> {
        let given = [(name.to_owned(), value.to_owned())].into();
        check(&given).map(drop)
    }

    #[test]
    fn what_is_ours_or_no_header_does_not_go_along() {
        assert_eq!(checked("X-Tenant", "a b"), Ok(()));
        assert_eq!(checked("Authorization", "Bearer x"), Ok(()));
        for own in [
            "Host",
            "content-length",
            "Webhook-Id",
            "svix-x",
            "HAPAX-Y",
            "Proxy-Authorization",
        ] {
            assert_eq!(checked(own, "x"), Err(BadHeader::Own(own.to_owned())));
        }
        assert_eq!(checked("a b", "x"), Err(BadHeader::Name("a b".to_owned())));
        assert_eq!(
            checked("a", "x\r\ny: z"),
            Err(BadHeader::Value("a".to_owned()))
        );
        assert_eq!(checked("a", &"x".repeat(5_000)), Err(BadHeader::Many));
        let twice = [
            ("A".to_owned(), String::new()),
            ("a".to_owned(), String::new()),
        ]
        .into();
        assert_eq!(
            check(&twice).map(drop),
            Err(BadHeader::Twice("a".to_owned()))
        );
    }
}
