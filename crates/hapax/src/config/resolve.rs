//! From what is written to what it means: the settings of the server. Sources are in [`super::source`],
//! effects in [`super::effect`].

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use hapax_ledger::time::Span;
use hapax_verify::Secret;

use super::raw::{Raw, RawLimits, RawSource};
use super::resolved::{Config, Limits, StoreTarget};
use super::scan::{At, Scan, Text};
use super::table::Number;
use super::{alerts, effect, guard, outbox, portal, size, source};
use crate::secrets::VaultKeys;

/// Where the server listens unless told: only this machine can reach it.
const LISTEN_DEFAULT: &str = "127.0.0.1:8080";
/// Where the ledger is kept unless told.
const STORE_DEFAULT: &str = "sqlite:hapax.db";
/// The shortest lease: three beats of a node.
const LEASE_MIN: Duration = Duration::from_secs(3);
/// The longest lease.
const LEASE_MAX: Duration = Duration::from_secs(600);
/// A token that is shorter can be guessed.
const TOKEN_BYTES_GOOD: usize = 16;

/// Values from outside the file; each beats the file's.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    pub(super) listen: Option<Text>,
    pub(super) store: Option<Text>,
    pub(super) admin_token: Option<Text>,
    pub(super) vault_key: Option<Text>,
}

/// Resolves the whole; nothing if there was an error, which is reported.
pub(super) fn config(scan: &Scan<'_>, raw: Raw, overlay: Overlay) -> Option<Config> {
    let listen = settle(raw.listen, overlay.listen, |text| listen(scan, text));
    let store = settle(raw.store, overlay.store, |text| store(scan, text));
    let admin_token = settle(raw.admin_token, overlay.admin_token, |text| {
        token(scan, text)
    });
    let vault_keys = settle(raw.vault_key, overlay.vault_key, |text| {
        vault_keys(scan, text)
    });
    let public_url = raw.public_url.map(|text| public_url(scan, &text));
    let limits = limits(scan, &raw.limits);
    let guards = guard::guards(scan, &raw.guards);
    let alerts = alerts::resolve(scan, raw.alerts.as_ref());
    let outbox = outbox::resolve(scan, raw.outbox.as_ref());
    let portal = portal::resolve(scan, raw.portal.as_ref());
    unique_names(scan, &raw.sources);
    let known_url = public_url.as_ref().map(Option::as_deref);
    let names = raw.sources.iter().map(|source| source.name.as_ref());
    let names: Vec<_> = names.map(|name| Some(name?.value.clone())).collect();
    let sources = raw
        .sources
        .into_iter()
        .map(|raw| source::resolve(scan, raw, known_url));
    let mut sources: Vec<Option<_>> = sources.collect();
    let effects = effect::effects(scan, &raw.effects, &names, &mut sources);
    effect::expected_fields(&raw.effect_keys, &mut sources);
    Some(Config {
        listen: listen.unwrap_or_else(|| LISTEN_DEFAULT.parse().ok())?,
        store: store.unwrap_or_else(|| parse_store(STORE_DEFAULT))?,
        public_url: match public_url {
            Some(url) => Some(url?),
            None => None,
        },
        admin_token: match admin_token {
            Some(token) => Some(token?),
            None => None,
        },
        vault_keys: match vault_keys {
            Some(keys) => Some(keys?),
            None => None,
        },
        sources: sources.into_iter().collect::<Option<Vec<_>>>()?,
        effects: effects?,
        guards: guards?,
        limits: limits?,
        alerts: alerts?,
        outbox: outbox?,
        portal: portal?,
    })
}

/// The value that counts. The file's is looked at even if it does not: a mistake in the file is a mistake.
/// The outer option says whether there is a value at all, the inner one whether it is right.
fn settle<T>(
    file: Option<Text>,
    overlay: Option<Text>,
    resolve: impl Fn(&Text) -> Option<T>,
) -> Option<Option<T>> {
    // `token = "env:HAPAX_ADMIN_TOKEN"` names the same value twice: one warning is enough.
    let overlay =
        overlay.filter(|overlay| file.as_ref().is_none_or(|file| file.value != overlay.value));
    let file = file.map(|text| resolve(&text));
    let overlay = overlay.map(|text| resolve(&text));
    match (file, overlay) {
        (Some(None), _) => Some(None),
        (file, overlay) => overlay.or(file),
    }
}

/// An address to listen on.
pub(super) fn listen(scan: &Scan<'_>, text: &Text) -> Option<SocketAddr> {
    let parsed = text.value.parse().ok();
    if parsed.is_none() {
        let wrong = format!("{} is not an address to listen on", text.shown());
        let remedy = "write an IP address and a port, such as 127.0.0.1:8080 or [::]:8080";
        scan.error("H0119", &text.at, wrong, remedy);
    }
    parsed
}

fn store(scan: &Scan<'_>, text: &Text) -> Option<StoreTarget> {
    let parsed = parse_store(&text.value);
    if parsed.is_none() {
        // Not quoted: a database URL may hold a password, however it is misspelt.
        let remedy = "write sqlite:FILE, such as sqlite:hapax.db, or postgres://USER@HOST/DATABASE";
        scan.error(
            "H0120",
            &text.at,
            "`store` does not name a place for the ledger",
            remedy,
        );
    }
    parsed
}

/// The store that a text names.
pub fn store_target(text: &str) -> Option<StoreTarget> {
    parse_store(text)
}

fn parse_store(text: &str) -> Option<StoreTarget> {
    match text.split_once(':')? {
        // SQLite's own notation for a database in memory: a ledger that forgets is none.
        ("sqlite", "" | ":memory:") => None,
        ("sqlite", path) => Some(StoreTarget::Sqlite(path.into())),
        ("postgres" | "postgresql", rest) if rest.len() > 2 && rest.starts_with("//") => {
            Some(StoreTarget::Postgres(text.to_owned()))
        }
        _ => None,
    }
}

fn token(scan: &Scan<'_>, text: &Text) -> Option<Secret> {
    let token = &text.value;
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let wrong = "the admin token is empty or has characters that no header carries";
        let remedy =
            "use printable ASCII without spaces, such as the output of `openssl rand -hex 24`";
        scan.error("H0123", &text.at, wrong, remedy);
        return None;
    }
    if token.len() < TOKEN_BYTES_GOOD {
        let short = format!("the admin token is shorter than {TOKEN_BYTES_GOOD} characters");
        let remedy = "use a long random one, such as the output of `openssl rand -hex 24`";
        scan.warn("H0123", &text.at, short, remedy);
    }
    Some(Secret::new(token.as_bytes()))
}

fn vault_keys(scan: &Scan<'_>, text: &Text) -> Option<VaultKeys> {
    let keys = VaultKeys::parse(&text.value);
    if let Err(why) = &keys {
        let remedy =
            "write a line of base64 for each key, such as the output of `openssl rand -base64 32`";
        scan.error("H0136", &text.at, format!("`vault_key` {why}"), remedy);
    }
    keys.ok()
}

fn public_url(scan: &Scan<'_>, text: &Text) -> Option<String> {
    let url = text.value.trim_end_matches('/');
    let uri: Option<http::Uri> = url.parse().ok();
    let fits = uri.is_some_and(|uri| {
        let plain = uri.query().is_none() && !url.contains(['#', '@']);
        let scheme = matches!(uri.scheme_str(), Some("http" | "https"));
        plain && scheme && uri.host().is_some_and(|host| !host.is_empty())
    });
    if !fits {
        let wrong = format!("{} is not a URL that providers could call", text.shown());
        let remedy = "write scheme and host, such as https://hooks.example.com";
        scan.error("H0118", &text.at, wrong, remedy);
    }
    fits.then(|| url.to_owned())
}

fn limits(scan: &Scan<'_>, raw: &RawLimits) -> Option<Limits> {
    let default = Limits::default();
    let body = bytes(scan, raw.body_size.as_ref(), default.body_bytes_max);
    let inflight = bytes(scan, raw.inflight.as_ref(), default.inflight_bytes_max);
    let connections = connections(scan, raw.connections.as_ref(), default.connections_max);
    let header = timeout(scan, raw.header_timeout.as_ref(), default.header_timeout);
    let body_time = timeout(scan, raw.body_timeout.as_ref(), default.body_timeout);
    let lease = lease(scan, raw.lease.as_ref(), default.lease);
    let limits = Limits {
        body_bytes_max: body?,
        connections_max: connections?,
        inflight_bytes_max: inflight?,
        header_timeout: header?,
        body_timeout: body_time?,
        lease: lease?,
    };
    if limits.inflight_bytes_max < limits.body_bytes_max {
        let given = raw.inflight.as_ref().or(raw.body_size.as_ref());
        let at = given.map_or(At::Named("[limits]".to_owned()), |text| text.at.clone());
        let body = size::show(limits.body_bytes_max);
        let wrong =
            format!("one body of `body_size` ({body}) is more than `inflight` allows for all");
        scan.error(
            "H0122",
            &at,
            wrong,
            format!("raise `inflight` to {body} or more"),
        );
        return None;
    }
    Some(limits)
}

/// Shorter than three beats, a node that is merely busy would lose its lanes; longer than minutes, nobody would take over.
fn lease(scan: &Scan<'_>, text: Option<&Text>, default: Duration) -> Option<Duration> {
    let lease = timeout(scan, text, default)?;
    let fits = (LEASE_MIN..=LEASE_MAX).contains(&lease);
    if let (false, Some(text)) = (fits, text) {
        let wrong = format!("a lease of {} is out of bounds", text.shown());
        scan.error("H0122", &text.at, wrong, "write a length from 3s to 10m");
    }
    fits.then_some(lease)
}

/// A size, more than zero.
pub(super) fn bytes(scan: &Scan<'_>, text: Option<&Text>, default: usize) -> Option<usize> {
    let Some(text) = text else {
        return Some(default);
    };
    match size::parse(&text.value) {
        None => {
            let wrong = format!("{} is not a size", text.shown());
            let remedy = "write a whole number and a unit, such as 64KiB or 1MiB";
            scan.error("H0105", &text.at, wrong, remedy);
            None
        }
        Some(0) => {
            scan.error(
                "H0122",
                &text.at,
                "a size of zero lets nothing in",
                "write 1KiB or more",
            );
            None
        }
        some => some,
    }
}

fn connections(scan: &Scan<'_>, number: Option<&Number>, default: usize) -> Option<usize> {
    let Some(number) = number else {
        return Some(default);
    };
    let count = usize::try_from(number.value)
        .ok()
        .filter(|count| *count > 0);
    if count.is_none() {
        let wrong = format!("`connections` is {}: nobody could connect", number.value);
        scan.error(
            "H0122",
            &number.at,
            wrong,
            format!("write 1 or more; the default is {default}"),
        );
    }
    count
}

fn timeout(scan: &Scan<'_>, text: Option<&Text>, default: Duration) -> Option<Duration> {
    let Some(text) = text else {
        return Some(default);
    };
    match span(scan, text)? {
        Span::ZERO => {
            scan.error(
                "H0122",
                &text.at,
                "a timeout of zero ends every request",
                "write 1s or more",
            );
            None
        }
        span => Some(Duration::from_micros(span.micros().unsigned_abs())),
    }
}

/// A length of time.
pub(super) fn span(scan: &Scan<'_>, text: &Text) -> Option<Span> {
    let parsed = text.value.parse().ok();
    if parsed.is_none() {
        let wrong = format!("{} is not a length of time", text.shown());
        let remedy = "write a whole number and a unit, such as 200ms, 10s, 5m, 72h or 30d";
        scan.error("H0104", &text.at, wrong, remedy);
    }
    parsed
}

fn unique_names(scan: &Scan<'_>, sources: &[RawSource]) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for name in sources.iter().filter_map(|source| source.name.as_ref()) {
        let count = seen.entry(&name.value).or_default();
        *count += 1;
        if *count == 2 {
            let wrong = format!("two sources are named {}", name.shown());
            let remedy =
                "give each its own name: it is the last part of its URL and the scope of its keys";
            scan.error("H0111", &name.at, wrong, remedy);
        }
    }
}
