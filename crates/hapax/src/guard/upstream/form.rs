//! A request in the form that each version of HTTP wants it in.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, COOKIE, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Request, Uri, Version};
use hyper::body::Body;

use super::moving::Length;

/// A request cannot be told over HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the caller's host is no name that HTTP/2 could carry")]
pub(super) struct Unfit;

/// Scheme and authority of an upstream.
pub(super) fn origin(upstream: &Uri) -> Uri {
    let mut parts = upstream.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::from_static("/"));
    // A path does not make a URI worse.
    Uri::from_parts(parts).unwrap_or_else(|_| upstream.clone())
}

/// As HTTP/1.1 has it: one line of cookies (RFC 9113, 8.2.3), and chunks where nobody knows how much will come. Without that word the client
/// would send a body of unknown length only with methods that usually have one.
pub(super) fn for_http1<B: Body<Data = Bytes>>(mut request: Request<B>) -> Request<B> {
    let flows = flows(request.headers(), request.body());
    let headers = request.headers_mut();
    if headers.get_all(COOKIE).iter().nth(1).is_some() {
        let all: Vec<&[u8]> = headers
            .get_all(COOKIE)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        if let Ok(line) = HeaderValue::from_bytes(&all.join(&b"; "[..])) {
            headers.insert(COOKIE, line);
        }
    }
    if flows {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    *request.version_mut() = Version::HTTP_11;
    request
}

/// As HTTP/2 has it: the host is part of the target and stands nowhere else (RFC 9113, 8.3.1), and a length that is known is told.
pub(super) fn for_http2<B: Body<Data = Bytes>>(
    mut request: Request<B>,
) -> Result<Request<B>, Unfit> {
    if let Some(host) = request.headers_mut().remove(HOST) {
        let host = Authority::try_from(host.as_bytes()).map_err(|_| Unfit)?;
        if host.as_str().contains('@') {
            return Err(Unfit);
        }
        let mut parts = request.uri().clone().into_parts();
        parts.authority = Some(host);
        *request.uri_mut() = Uri::from_parts(parts).map_err(|_| Unfit)?;
    }
    let length = request.body().size_hint().exact();
    // A request without a body needs no length, unless its method leads to expect one.
    let expected = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
    if let Some(length) = length.filter(|length| *length > 0 || expected) {
        let headers = request.headers_mut();
        headers
            .entry(CONTENT_LENGTH)
            .or_insert_with(|| HeaderValue::from(length));
    }
    *request.version_mut() = Version::HTTP_2;
    Ok(request)
}

/// Takes the length of an empty body out of the head, so that the body itself tells it.
pub(super) fn told_by_body<B: Body<Data = Bytes>>(request: &mut Request<B>) -> Length {
    let empty = request.body().is_end_stream();
    match empty && request.headers_mut().remove(CONTENT_LENGTH).is_some() {
        true => Length::ByBody,
        false => Length::InHead,
    }
}

/// Is there a body whose length nobody knows beforehand?
fn flows(headers: &HeaderMap, body: &impl Body) -> bool {
    let known = body.is_end_stream() || body.size_hint().exact().is_some();
    !known && !headers.contains_key(CONTENT_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    fn request(host: &'static [u8]) -> Request<Full<Bytes>> {
        let mut request = Request::post("http://10.0.0.1:3000/v1/x?y")
            .body(Full::new(Bytes::from_static(b"{}")))
            .expect("a request");
        let host = HeaderValue::from_bytes(host).expect("a value");
        request.headers_mut().insert(HOST, host);
        request
    }

    #[test]
    fn over_http2_the_host_is_part_of_the_target() {
        let told = for_http2(request(b"api.test:8443")).expect("it fits");
        assert_eq!(told.uri(), "http://api.test:8443/v1/x?y");
        assert!(!told.headers().contains_key(HOST));
        assert_eq!(told.headers()[CONTENT_LENGTH], "2");
        for unfit in [&b"u@api.test"[..], b"a b", b"", b"\xff"] {
            assert_eq!(for_http2(request(unfit)).err(), Some(Unfit), "{unfit:?}");
        }
    }

    #[test]
    fn cookies_that_came_one_by_one_are_one_line_over_http1() {
        let mut given = request(b"api.test");
        for cookie in ["a=1", "b=2"] {
            let cookie = HeaderValue::from_static(cookie);
            given.headers_mut().append(COOKIE, cookie);
        }
        let told = for_http1(given);
        let cookies: Vec<&HeaderValue> = told.headers().get_all(COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; b=2"]);
    }
}
