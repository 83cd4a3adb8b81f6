//! Guards as they are written.

use crate::config::scan::{At, Text};
use crate::config::table::{Number, Numbers, Table, Texts};

/// `[[guard]]`.
#[derive(Debug)]
pub(in crate::config) struct RawGuard {
    pub(super) at: At,
    /// Fields that are there, wrong or misspelt as they may be: that they are missing would be said in vain.
    pub(super) meant: Vec<&'static str>,
    pub(super) name: Option<Text>,
    pub(super) tenant: Option<Text>,
    pub(super) listen: Option<Text>,
    pub(super) upstream: Option<Text>,
    pub(super) upstream_http: Option<Text>,
    pub(super) host: Option<Text>,
    pub(super) trust_forwarded: Option<bool>,
    pub(super) methods: Option<Texts>,
    pub(super) principal: Option<Text>,
    pub(super) shared_scope: Option<bool>,
    pub(super) jwks: Option<Text>,
    pub(super) issuer: Option<Text>,
    pub(super) audience: Option<Text>,
    pub(super) tls: Option<RawTls>,
    pub(super) forward_auth: Option<Text>,
    pub(super) required: Option<bool>,
    pub(super) preset: Option<Text>,
    pub(super) on_unknown: Option<Text>,
    pub(super) probe: Option<Text>,
    pub(super) ttl: Option<Text>,
    pub(super) force_short_ttl: Option<bool>,
    pub(super) grace: Option<Text>,
    pub(super) mismatch_status: Option<Number>,
    pub(super) store_5xx: Option<bool>,
    pub(super) not_executed: Option<Numbers>,
    pub(super) headers: Option<Texts>,
    pub(super) timeout: Option<Text>,
    pub(super) idle_timeout: Option<Text>,
    pub(super) wait_max: Option<Text>,
    pub(super) body_max: Option<Text>,
    pub(super) answer_max: Option<Text>,
}

/// `tls` of a guard.
#[derive(Debug)]
pub(in crate::config) struct RawTls {
    pub(super) at: At,
    pub(super) meant: Vec<&'static str>,
    pub(super) cert: Option<Text>,
    pub(super) key: Option<Text>,
    pub(super) client_ca: Option<Text>,
}

/// Reads one `[[guard]]`.
pub(in crate::config) fn guard(mut table: Table<'_, '_>) -> RawGuard {
    let needed = ["name", "listen", "upstream", "principal", "jwks", "tls"].into_iter();
    let there: Vec<&str> = needed.filter(|name| table.has(name)).collect();
    let mut guard = RawGuard {
        at: table.at(),
        meant: there,
        name: table.text("name"),
        tenant: table.text("tenant"),
        listen: table.text("listen"),
        upstream: table.url("upstream"),
        upstream_http: table.text("upstream_http"),
        host: table.text("host"),
        trust_forwarded: table.flag("trust_forwarded"),
        methods: table.texts("methods"),
        principal: table.text("principal"),
        shared_scope: table.flag("shared_scope"),
        jwks: table.text("jwks"),
        issuer: table.text("issuer"),
        audience: table.text("audience"),
        tls: table.table("tls", "tls").map(tls),
        forward_auth: table.url("forward_auth"),
        required: table.flag("required"),
        preset: table.text("preset"),
        on_unknown: table.text("on_unknown"),
        probe: table.url("probe"),
        ttl: table.text("ttl"),
        force_short_ttl: table.flag("force_short_ttl"),
        grace: table.text("grace"),
        mismatch_status: table.number("mismatch_status"),
        store_5xx: table.flag("store_5xx"),
        not_executed: table.numbers("not_executed"),
        headers: table.texts("headers"),
        timeout: table.text("timeout"),
        idle_timeout: table.text("idle_timeout"),
        wait_max: table.text("wait_max"),
        body_max: table.text("body_max"),
        answer_max: table.text("answer_max"),
    };
    guard.meant.extend(table.finish(&[]));
    guard
}

fn tls(mut table: Table<'_, '_>) -> RawTls {
    let needed = ["cert", "key"].into_iter();
    let there: Vec<&str> = needed.filter(|name| table.has(name)).collect();
    let mut tls = RawTls {
        at: table.at(),
        meant: there,
        cert: table.text("cert"),
        key: table.secret("key"),
        client_ca: table.text("client_ca"),
    };
    tls.meant.extend(table.finish(&[]));
    tls
}
