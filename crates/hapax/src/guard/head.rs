//! Heads of requests and answers on their way through: what is about one connection stays behind, and what is told of the caller.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use hapax_ledger::guard::{KeyForm, write_key};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, FORWARDED, HOST,
    HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    VIA,
};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, Version};

use crate::config::{ForwardedRule, HostRule};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// What is about one connection and never about the request (RFC 9110, 7.6.1). `Expect` is answered by our own server.
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
    HTTP2_SETTINGS,
];
/// What `Connection` may name without effect: a caller must not make us drop what the upstream decides by.
const END_TO_END: [HeaderName; 6] = [
    IDEMPOTENCY_KEY,
    AUTHORIZATION,
    COOKIE,
    HOST,
    CONTENT_LENGTH,
    CONTENT_TYPE,
];

/// How many headers tell the upstream who calls.
const INTRODUCTION_HEADERS: usize = 5;

/// Who is at the other end of a connection, as every request over it tells the upstream.
#[derive(Clone, Debug)]
pub struct Peer(Arc<Known>);

#[derive(Debug)]
struct Known {
    address: HeaderValue,
    scheme: HeaderValue,
    /// Its element in `Forwarded` without a host.
    forwarded: HeaderValue,
    /// The first host that was asked for over the connection, and the element with it. Hardly anybody asks for another.
    first: OnceLock<(HeaderValue, HeaderValue)>,
}

impl Peer {
    /// Who calls from this address, over TLS or not.
    pub fn new(address: IpAddr, encrypted: bool) -> Peer {
        let address = address.to_canonical();
        let scheme = match encrypted {
            true => "https",
            false => "http",
        };
        let node = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("\"[{address}]\""),
        };
        let value = |text: String| HeaderValue::try_from(text).expect("an address is ASCII");
        Peer(Arc::new(Known {
            address: value(address.to_string()),
            scheme: HeaderValue::from_static(scheme),
            forwarded: value(format!("for={node};proto={scheme}")),
            first: OnceLock::new(),
        }))
    }

    /// How the end of a host is written that says nothing: the port that its scheme has anyway.
    fn usual_port(&self) -> &'static str {
        match self.0.scheme.as_bytes() {
            b"https" => ":443",
            _ => ":80",
        }
    }

    /// Its element in `Forwarded`, for this host.
    fn element(&self, host: Option<&HeaderValue>) -> HeaderValue {
        let Some(host) = host else {
            return self.0.forwarded.clone();
        };
        let (first, element) = self
            .0
            .first
            .get_or_init(|| (host.clone(), self.about(host)));
        match first == host {
            true => element.clone(),
            false => self.about(host),
        }
    }

    fn about(&self, host: &HeaderValue) -> HeaderValue {
        let own = &self.0.forwarded;
        let text = own.to_str().ok().zip(quotable(host));
        let text = text.map(|(own, host)| format!("{own};host=\"{host}\""));
        let element = text.and_then(|text| HeaderValue::try_from(text).ok());
        element.unwrap_or_else(|| own.clone())
    }
}

/// Takes away what is about one connection. What of `TE` is about the message stays; and so does the header that names the caller, whatever
/// `Connection` says.
pub fn strip(headers: &mut HeaderMap, caller: Option<&HeaderName>) {
    // Most heads have none of them, and looking is cheaper than ten times taking away nothing.
    if !headers.keys().any(|name| HOP_BY_HOP.contains(name)) {
        return;
    }
    let named: Vec<HeaderName> = words(headers, &CONNECTION)
        .filter_map(|word| HeaderName::from_bytes(word.as_bytes()).ok())
        .filter(|name| !END_TO_END.contains(name) && Some(name) != caller)
        .collect();
    let trailers = words(headers, &TE).any(|word| word.eq_ignore_ascii_case("trailers"));
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// The comma-separated words of a header.
fn words<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim)
}

/// The protocol that a request wants to change to. Only plain reads over HTTP/1.1 may; HTTP/2 in disguise may not, since what comes
/// after it would pass unguarded.
pub fn upgrade<B>(request: &Request<B>) -> Option<HeaderValue> {
    let asked =
        words(request.headers(), &CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
    let mut values = request.headers().get_all(UPGRADE).iter();
    let (Some(wanted), None) = (values.next(), values.next()) else {
        return None;
    };
    let may = request.method() == Method::GET && request.version() == Version::HTTP_11;
    let disguised = |word: &str| word.to_ascii_lowercase().starts_with("h2");
    let known = wanted.to_str().is_ok() && !words(request.headers(), &UPGRADE).any(disguised);
    (asked && may && known).then(|| wanted.clone())
}

/// Is the body coded for its way here by more than being cut into chunks? Those codings belong to one connection; whoever does not undo
/// them must not pass the bytes on as if they were plain (RFC 9112, 6.1).
pub fn is_coded(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(TRANSFER_ENCODING).iter();
    let readable = values.all(|value| value.to_str().is_ok());
    let mut codings = words(headers, &TRANSFER_ENCODING).filter(|word| !word.is_empty());
    !readable || codings.any(|word| !word.eq_ignore_ascii_case("chunked"))
}

/// Says that the next connection shall change its protocol.
pub fn put_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// The name by which the caller knows the API: from the request's target, or else its `Host`.
pub fn host_of(uri: &Uri, headers: &HeaderMap) -> Option<HeaderValue> {
    let authority = uri.authority().map(|authority| authority.as_str());
    match authority {
        Some(authority) => {
            // Without who logs in there.
            let host = authority
                .rsplit_once('@')
                .map_or(authority, |(_, host)| host);
            HeaderValue::from_str(host).ok()
        }
        None => headers.get(HOST).cloned(),
    }
}

/// The place that a request's key is unique in, where the upstream is told the caller's host: it may be one of several that have users and
/// answers of their own. Names of hosts are compared as they are meant: in small letters, and without the port that goes without saying.
pub fn place(head: &Parts) -> Arc<str> {
    let host = host_of(&head.uri, &head.headers);
    let host = host.as_ref().map_or(&[][..], HeaderValue::as_bytes);
    let host = host.to_ascii_lowercase();
    let usual = head.extensions.get::<Peer>().map_or("", Peer::usual_port);
    let host = host.strip_suffix(usual.as_bytes()).unwrap_or(&host);
    format!("//{}{}", host.escape_ascii(), head.uri.path()).into()
}

/// What a key's run is sent with: always the same form of its key, however this caller has written it, so that an upstream that compares
/// letter by letter knows a repetition. And no word of trailers: what was held until its key was known has none.
pub fn put_key(headers: &mut HeaderMap, key: &str, form: KeyForm) {
    // It is printable ASCII, or it would be no key.
    if let Ok(value) = HeaderValue::try_from(write_key(key, form)) {
        headers.insert(IDEMPOTENCY_KEY, value);
    }
    headers.remove(TRAILER);
}

/// Tells the upstream who calls, over what, and under which name. Lists are appended to: their end is ours, whatever stands before it.
pub fn introduce(
    headers: &mut HeaderMap,
    peer: &Peer,
    host: Option<&HeaderValue>,
    (rule, forwarded): (HostRule, ForwardedRule),
) {
    headers.reserve(INTRODUCTION_HEADERS);
    append(headers, FORWARDED_FOR, peer.0.address.clone());
    if forwarded == ForwardedRule::Overwrite {
        headers.remove(FORWARDED_PROTO);
        headers.remove(FORWARDED_HOST);
    }
    headers
        .entry(FORWARDED_PROTO)
        .or_insert_with(|| peer.0.scheme.clone());
    if let Some(host) = host {
        headers
            .entry(FORWARDED_HOST)
            .or_insert_with(|| host.clone());
    }
    if !joined(headers, &FORWARDED).is_some_and(|list| is_closed(&list)) {
        headers.remove(FORWARDED);
    }
    append(headers, FORWARDED, peer.element(host));
    append(headers, VIA, HeaderValue::from_static("1.1 hapax"));
    match (rule, host) {
        (HostRule::Keep, Some(host)) => headers.insert(HOST, host.clone()),
        // The client writes the upstream's own.
        (HostRule::Keep, None) | (HostRule::Upstream, _) => headers.remove(HOST),
    };
}

/// Does every quoted text of a list end? In one that does not, what is appended would be a part of it.
fn is_closed(list: &str) -> bool {
    let mut bytes = list.bytes();
    let mut quoted = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            // The next one counts as a letter.
            b'\\' if quoted => drop(bytes.next()),
            _ => {}
        }
    }
    !quoted
}

/// A host that can stand in quotes as it is; a caller could otherwise write parts of the header.
fn quotable(host: &HeaderValue) -> Option<&str> {
    let host = host.to_str().ok()?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    host.bytes().all(fits).then_some(host)
}

/// The values of a header as one list, as it is sent. None if there are none, or one is no text: nobody knows what it would make of the others.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values = headers.get_all(name).iter();
    let texts: Result<Vec<&str>, _> = values.map(HeaderValue::to_str).collect();
    texts
        .ok()
        .filter(|texts| !texts.is_empty())
        .map(|texts| texts.join(", "))
}

/// One list in one line, so that nobody reads half of it. What is no list is replaced.
fn append(headers: &mut HeaderMap, name: HeaderName, word: HeaderValue) {
    let list = joined(headers, &name).zip(word.to_str().ok());
    let longer =
        list.and_then(|(list, word)| HeaderValue::try_from(format!("{list}, {word}")).ok());
    headers.insert(name, longer.unwrap_or(word));
}

/// Where a request goes: the upstream's path before its own.
pub fn target(upstream: &Uri, request: &Uri) -> Option<Uri> {
    let own = request.path_and_query();
    // `*`, as `OPTIONS *` has it, is no path.
    let own = own.filter(|own| own.as_str().starts_with('/'));
    let own = own.cloned().unwrap_or(PathAndQuery::from_static("/"));
    let before = upstream.path().trim_end_matches('/');
    let path = match before {
        "" => own,
        before => format!("{before}{own}").parse().ok()?,
    };
    let mut parts = upstream.clone().into_parts();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn what_is_about_a_connection_stays_behind() {
        let mut given = headers(&[
            ("connection", "close, X-Private , Idempotency-Key"),
            ("connection", "Authorization, X-User"),
            ("x-user", "ada"),
            ("keep-alive", "timeout=5"),
            ("te", "gzip, trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("x-private", "1"),
            ("idempotency-key", "k"),
            ("authorization", "a"),
            ("trailer", "x-sum"),
            ("x-public", "2"),
        ]);
        let caller = HeaderName::from_static("x-user");
        strip(&mut given, Some(&caller));
        let kept = headers(&[
            ("te", "trailers"),
            ("x-user", "ada"),
            ("idempotency-key", "k"),
            ("authorization", "a"),
            ("trailer", "x-sum"),
            ("x-public", "2"),
        ]);
        assert_eq!(given, kept);
    }

    #[test]
    fn the_upstream_is_told_who_calls() {
        let peer = Peer::new("::ffff:10.0.0.7".parse().expect("an address"), true);
        let host = HeaderValue::from_static("api.example.com");
        let mut given = headers(&[
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-for", "5.6.7.8"),
            ("forwarded", "for=1.2.3.4"),
            ("x-forwarded-proto", "caller's"),
            ("x-forwarded-host", "caller's"),
            ("host", "caller's"),
        ]);
        let mut trusted = given.clone();
        let rules = (HostRule::Keep, ForwardedRule::Overwrite);
        introduce(&mut given, &peer, Some(&host), rules);
        let want = headers(&[
            ("x-forwarded-for", "1.2.3.4, 5.6.7.8, 10.0.0.7"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "api.example.com"),
            (
                "forwarded",
                "for=1.2.3.4, for=10.0.0.7;proto=https;host=\"api.example.com\"",
            ),
            ("via", "1.1 hapax"),
            ("host", "api.example.com"),
        ]);
        assert_eq!(given, want);
        let rules = (HostRule::Keep, ForwardedRule::Trust);
        introduce(&mut trusted, &peer, Some(&host), rules);
        for name in [FORWARDED_PROTO, FORWARDED_HOST] {
            assert_eq!(trusted[name], "caller's");
        }
        let mut own = HeaderMap::new();
        let strange = HeaderValue::from_static("x\";for=evil");
        let rules = (HostRule::Upstream, ForwardedRule::Overwrite);
        introduce(&mut own, &peer, Some(&strange), rules);
        assert_eq!(own["forwarded"], "for=10.0.0.7;proto=https");
        assert!(!own.contains_key(HOST));
    }

    #[test]
    fn a_host_is_compared_as_it_is_meant() {
        let place = |encrypted, uri: &str, host: &'static [u8]| {
            let mut request = Request::new(());
            *request.uri_mut() = uri.parse().expect("a URI");
            let host = HeaderValue::from_bytes(host).expect("a value");
            request.headers_mut().insert(HOST, host);
            let address = "10.0.0.7".parse().expect("an address");
            request
                .extensions_mut()
                .insert(Peer::new(address, encrypted));
            place(&request.into_parts().0)
        };
        let table: [(bool, &str, &'static [u8], &str); 7] = [
            (false, "/x?y", b"Api.Test", "//api.test/x"),
            (false, "/x", b"api.test:80", "//api.test/x"),
            (false, "/x", b"api.test:443", "//api.test:443/x"),
            (true, "/x", b"api.test:443", "//api.test/x"),
            (true, "/x", b"api.test:8443", "//api.test:8443/x"),
            (false, "http://u@B.test/x", b"api.test", "//b.test/x"),
            (false, "/x", b"\xff", "//\\xff/x"),
        ];
        for (encrypted, uri, host, want) in table {
            assert_eq!(&*place(encrypted, uri, host), want);
        }
    }

    #[test]
    fn the_upstream_s_path_stands_before_the_request_s() {
        let table = [
            ("http://a:1", "/x?y=%20", "http://a:1/x?y=%20"),
            ("http://a:1/", "/x", "http://a:1/x"),
            ("http://a:1/v1/", "http://b/x", "http://a:1/v1/x"),
            ("http://a:1/v1", "*", "http://a:1/v1/"),
            ("http://a:1", "//x/../y", "http://a:1//x/../y"),
        ];
        for (upstream, request, want) in table {
            let parse = |text: &str| text.parse::<Uri>().expect("a URI");
            let target = target(&parse(upstream), &parse(request)).expect("a target");
            assert_eq!(target.to_string(), want);
        }
    }

    #[test]
    fn only_a_plain_read_may_change_the_protocol() {
        let ask = |method: Method, version, protocol: &'static str| {
            let mut request = Request::new(());
            *request.method_mut() = method;
            *request.version_mut() = version;
            put_upgrade(request.headers_mut(), HeaderValue::from_static(protocol));
            upgrade(&request).is_some()
        };
        assert!(ask(Method::GET, Version::HTTP_11, "websocket"));
        assert!(!ask(Method::POST, Version::HTTP_11, "websocket"));
        assert!(!ask(Method::GET, Version::HTTP_2, "websocket"));
        assert!(!ask(Method::GET, Version::HTTP_11, "H2C"));
    }

    /// A caller cannot swallow what is said of it.
    #[test]
    fn a_quote_that_does_not_end_is_not_appended_to() {
        let table = [
            ("for=1", true),
            (r#"for="1""#, true),
            (r#"for="a\"b""#, true),
            (r#"for=1;x=""#, false),
            (r#"for="a\""#, false),
            (r#"for="a\\""#, true),
        ];
        for (value, closed) in table {
            assert_eq!(is_closed(value), closed, "{value}");
        }
    }

    /// What counts is the list as it is sent, and not its parts.
    #[test]
    fn a_caller_cannot_write_into_what_is_said_of_it() {
        let peer = Peer::new([10, 0, 0, 7].into(), false);
        let lists: [&[&[u8]]; 4] = [
            &[b"for=\"\\", b"\"\""],
            &[b"for=\"", b"\xff\""],
            &[b"for=\""],
            &[b"for=\"", b"a"],
        ];
        for values in lists {
            let mut headers = HeaderMap::new();
            for value in values {
                let value = HeaderValue::from_bytes(value).expect("a value");
                headers.append(FORWARDED, value);
            }
            let rules = (HostRule::Keep, ForwardedRule::Trust);
            introduce(&mut headers, &peer, None, rules);
            let sent: Vec<&HeaderValue> = headers.get_all(FORWARDED).iter().collect();
            assert_eq!(sent, ["for=10.0.0.7;proto=http"], "{values:?}");
        }
    }

    #[test]
    fn http2_in_disguise_is_found_anywhere_in_the_list() {
        let asked = |protocol: &'static str| {
            let request = Request::get("/").header(CONNECTION, "upgrade");
            let request = request.header(UPGRADE, protocol).body(());
            upgrade(&request.expect("a request")).is_some()
        };
        assert!(asked("websocket"));
        assert!(asked("websocket, other"));
        for protocol in ["h2c", "foo, h2c", "foo,H2C", "h2"] {
            assert!(!asked(protocol), "{protocol}");
        }
    }
}
