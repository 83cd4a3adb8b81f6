//! From `[[guard]]` to a guard.

use std::net::SocketAddr;
use std::sync::Arc;

use super::raw::RawGuard;
use super::resolved::{ForwardedRule, GuardConfig, HostRule, UpstreamHttp};
use super::{caller, settings, tls};
use crate::config::effect::{Url, UrlTemplate, request, settings::word};
use crate::config::scan::{Scan, Text};

/// The longest name of a guard, and of a tenant: they are part of metrics.
const NAME_BYTES_MAX: usize = 64;
const HOSTS: [(&str, HostRule); 2] = [("keep", HostRule::Keep), ("upstream", HostRule::Upstream)];
/// HTTP/1.1 unless told, also over TLS: a connection that breaks leaves one outcome unknown, and not those of all who shared it.
const HTTP_DEFAULT: UpstreamHttp = UpstreamHttp::One;
const VERSIONS: [(&str, UpstreamHttp); 3] = [
    ("1.1", UpstreamHttp::One),
    ("2", UpstreamHttp::Two),
    ("auto", UpstreamHttp::Auto),
];
/// What a probe's URL may ask about.
const PROBE_PLACES: [&str; 4] = ["key", "principal", "method", "path"];

/// Resolves one guard; nothing if there was an error, which is reported.
pub(super) fn guard(scan: &Scan<'_>, raw: &RawGuard) -> Option<GuardConfig> {
    let name = name(scan, raw);
    let tenant = match &raw.tenant {
        Some(text) => named(scan, text, "a tenant"),
        None => Some("".into()),
    };
    let listen = listen(scan, raw);
    let tls = match &raw.tls {
        Some(raw) => tls::server(scan, raw).map(Some),
        None => Some(None),
    };
    let upstream = upstream(scan, raw);
    let host = word(scan, "host", raw.host.as_ref(), &HOSTS, HostRule::Keep);
    let http = raw.upstream_http.as_ref();
    let upstream_http = word(scan, "upstream_http", http, &VERSIONS, HTTP_DEFAULT);
    let forwarded = match raw.trust_forwarded {
        Some(true) => ForwardedRule::Trust,
        Some(false) | None => ForwardedRule::Overwrite,
    };
    let methods = settings::methods(scan, raw.methods.as_ref());
    let caller = caller::caller(scan, raw);
    let forward_auth = match &raw.forward_auth {
        Some(text) => request::url(scan, "forward_auth", text).map(Some),
        None => Some(None),
    };
    let policy = settings::policy(scan, raw);
    let headers = settings::headers(scan, raw.headers.as_ref());
    let grace = settings::grace(scan, raw.grace.as_ref());
    let probe = probe(scan, raw.probe.as_ref());
    let times = settings::times(scan, raw);
    let sizes = settings::sizes(scan, raw);
    let (times, sizes) = (times?, sizes?);
    Some(GuardConfig {
        name: name?,
        tenant: tenant?,
        listen: listen?,
        tls: tls?,
        upstream: upstream?,
        upstream_http: upstream_http?,
        host: host?,
        forwarded,
        key_form: settings::key_form(raw),
        methods: methods?,
        caller: caller?,
        forward_auth: forward_auth?,
        required: raw.required.unwrap_or(false),
        policy: policy?,
        headers: headers?,
        publish_expiry: settings::is_ietf(raw),
        grace: grace?,
        probe: probe?,
        timeout: times.timeout,
        idle_timeout: times.idle_timeout,
        wait_max: times.wait_max,
        body_bytes_max: sizes.body_bytes_max,
        answer_bytes_max: sizes.answer_bytes_max,
    })
}

pub(super) fn missing(scan: &Scan<'_>, raw: &RawGuard, field: &str, remedy: &str) {
    if !raw.meant.contains(&field) {
        let wrong = format!("this [[guard]] has no `{field}`");
        scan.error("H0109", &raw.at, wrong, remedy);
    }
}

fn name(scan: &Scan<'_>, raw: &RawGuard) -> Option<Arc<str>> {
    let Some(name) = &raw.name else {
        let remedy = "write name = \"charges\": its keys are unique under this name";
        missing(scan, raw, "name", remedy);
        return None;
    };
    named(scan, name, "a guard")
}

fn named(scan: &Scan<'_>, name: &Text, of: &str) -> Option<Arc<str>> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let fits = (1..=NAME_BYTES_MAX).contains(&name.value.len()) && name.value.bytes().all(letter);
    if !fits {
        let wrong = format!("{} cannot be the name of {of}", name.shown());
        let remedy = format!("use 1 to {NAME_BYTES_MAX} letters, digits, -, _ and .");
        scan.error("H0150", &name.at, wrong, remedy);
    }
    fits.then(|| name.value.as_str().into())
}

fn listen(scan: &Scan<'_>, raw: &RawGuard) -> Option<SocketAddr> {
    let Some(text) = &raw.listen else {
        let remedy =
            "write listen = \"127.0.0.1:8081\": callers come there instead of the upstream";
        missing(scan, raw, "listen", remedy);
        return None;
    };
    crate::config::resolve::listen(scan, text)
}

fn upstream(scan: &Scan<'_>, raw: &RawGuard) -> Option<Url> {
    let Some(text) = &raw.upstream else {
        let remedy = "write upstream = \"http://127.0.0.1:3000\": the API that is guarded";
        missing(scan, raw, "upstream", remedy);
        return None;
    };
    let url = request::url(scan, "upstream", text)?;
    if url.uri().query().is_some() {
        let wrong = "`upstream` has a query, and every request brings its own";
        let remedy = "write scheme, host and perhaps a path";
        scan.error("H0130", &text.at, wrong, remedy);
        return None;
    }
    Some(url)
}

fn probe(scan: &Scan<'_>, text: Option<&Text>) -> Option<Option<UrlTemplate>> {
    let Some(text) = text else {
        return Some(None);
    };
    let template = request::template(scan, "probe", text)?;
    let unknown = template.names().find(|name| !PROBE_PLACES.contains(name));
    let wrong = match unknown {
        Some(name) => format!("the `probe` of a guard has no `{{{name}}}`"),
        None if template.names().all(|name| name != "key") => {
            "the `probe` asks about no key: every unknown outcome would get the same answer"
                .to_owned()
        }
        None => return Some(Some(template)),
    };
    let remedy = "write {key}, and {principal}, {method} or {path} where the upstream needs them";
    scan.error("H0130", &text.at, wrong, remedy);
    None
}
