//! Headers that the guard reads, writes and keeps.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// The key of a request.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// On answers that were given before: `true`.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// When the key expires: an IMF-fixdate (RFC 9110, 5.6.7), as in `Expires` and `Last-Modified`.
pub const IDEMPOTENCY_EXPIRES: HeaderName = HeaderName::from_static("idempotency-expires");
/// What the caller would like (RFC 7240).
pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");

/// What is kept of an answer's headers unless the guard says otherwise: what its body and its result mean, and who may read them
/// in a browser.
pub const KEPT_BY_DEFAULT: [HeaderName; 17] = [
    header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
    header::ACCESS_CONTROL_EXPOSE_HEADERS,
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::ETAG,
    header::LAST_MODIFIED,
    header::LINK,
    header::LOCATION,
    header::RETRY_AFTER,
    header::VARY,
    HeaderName::from_static("preference-applied"),
];

/// What is never kept, whoever asks: credentials, what belongs to one connection, and what is made anew for each answer.
static NEVER_KEPT: [HeaderName; 17] = [
    header::AUTHORIZATION,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::COOKIE,
    header::DATE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::SET_COOKIE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("set-cookie2"),
    IDEMPOTENCY_EXPIRES,
    IDEMPOTENT_REPLAYED,
];

/// May an answer's header of this name be kept at all?
pub fn may_be_kept(name: &HeaderName) -> bool {
    !NEVER_KEPT.contains(name)
}

/// The headers of an answer that are kept: listed, allowed, and not named by `Connection` as this connection's own.
pub(crate) fn kept(headers: &HeaderMap, listed: &[HeaderName]) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        if listed.contains(name) && may_be_kept(name) && !of_this_connection(headers, name) {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

/// The trailers of an answer that are kept: those that may be. The guard's list does not choose among them, since they are the end of
/// the body.
pub(crate) fn behind(trailers: &HeaderMap) -> HeaderMap {
    let may = trailers.iter().filter(|(name, _)| may_be_kept(name));
    may.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What says in an answer's head that these come behind it: over HTTP/1.1 nothing else may. Nothing if there are none.
pub(crate) fn announced(trailers: &HeaderMap) -> Option<HeaderValue> {
    let names: Vec<&str> = trailers.keys().map(HeaderName::as_str).collect();
    let list = (!names.is_empty()).then(|| names.join(", "));
    list.and_then(|list| HeaderValue::try_from(list).ok())
}

fn of_this_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|token| token.trim().eq_ignore_ascii_case(name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_is_kept_and_credentials_never() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "text/plain"),
            ("link", "</a>; rel=next"),
            ("link", "</b>; rel=prev"),
            ("etag", "\"1\""),
            ("x-other", "1"),
            ("set-cookie", "session=secret"),
            ("connection", "close, ETag"),
        ] {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let mut listed = KEPT_BY_DEFAULT.to_vec();
        listed.extend(NEVER_KEPT.clone());
        let kept = kept(&headers, &listed);
        let names: Vec<_> = kept
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().expect("text")))
            .collect();
        assert_eq!(
            names,
            [
                ("content-type", "text/plain"),
                ("link", "</a>; rel=next"),
                ("link", "</b>; rel=prev")
            ]
        );
    }
}
