//! `[outbox]`: where consumers' endpoints may be, who resolves their names, when deliveries to them are tried again, and how long they may fail.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hapax_ledger::retry::Schedule;

use super::effect::settings;
use super::resolve::span;
use super::scan::{Scan, Text};
use super::table::{Numbers, Table, Texts};
use crate::dispatch::gate::{PORTS_MAX, Rules, SUBNETS_MAX, Subnet};
use crate::outbox::health::{DISABLED_AFTER_MAX, DISABLED_AFTER_MIN, Patience};

/// The usual port of name servers.
const NAME_SERVER_PORT: u16 = 53;

/// `[outbox]` as it is written.
#[derive(Debug)]
pub(super) struct RawOutbox {
    allow_subnets: Option<Texts>,
    allow_ports: Option<Numbers>,
    retry: Option<Texts>,
    disable_after: Option<Text>,
    resolver: Option<Text>,
}

/// `[outbox]` as the program uses it.
#[derive(Clone, Debug, Default)]
pub struct OutboxConfig {
    /// Where endpoints may be.
    pub rules: Arc<Rules>,
    /// When deliveries that have no schedule of their own are tried again.
    pub retry: Arc<Schedule>,
    /// How long an endpoint may fail.
    pub patience: Patience,
    /// Who is asked for the addresses of endpoints, instead of this machine's name servers.
    pub resolver: Option<SocketAddr>,
}

pub(super) fn read(mut table: Table<'_, '_>) -> RawOutbox {
    let outbox = RawOutbox {
        allow_subnets: table.texts("allow_subnets"),
        allow_ports: table.numbers("allow_ports"),
        retry: table.texts("retry"),
        disable_after: table.text("disable_after"),
        resolver: table.text("resolver"),
    };
    table.finish(&[]);
    outbox
}

/// Resolves it; nothing if there was an error, which is reported.
pub(super) fn resolve(scan: &Scan<'_>, raw: Option<&RawOutbox>) -> Option<OutboxConfig> {
    let Some(raw) = raw else {
        return Some(OutboxConfig::default());
    };
    let subnets = subnets(scan, raw.allow_subnets.as_ref());
    let ports = ports(scan, raw.allow_ports.as_ref());
    let retry = settings::retry(scan, raw.retry.as_ref());
    let patience = patience(scan, raw.disable_after.as_ref());
    let resolver = resolver(scan, raw.resolver.as_ref());
    Some(OutboxConfig {
        rules: Arc::new(Rules::new(subnets?, ports?)),
        retry: Arc::new(retry?),
        patience: patience?,
        resolver: resolver?,
    })
}

/// The outer nothing is an error, the inner one that nothing is said.
fn resolver(scan: &Scan<'_>, text: Option<&Text>) -> Option<Option<SocketAddr>> {
    let Some(text) = text else {
        return Some(None);
    };
    let whole = text.value.parse::<SocketAddr>().ok();
    let address = || text.value.parse::<IpAddr>().ok();
    let server = whole.or_else(|| Some(SocketAddr::new(address()?, NAME_SERVER_PORT)));
    if server.is_none_or(|server| server.port() == 0) {
        let wrong = format!("{} is not the address of a name server", text.shown());
        let remedy = "write an IP address, with a port if it is not 53: 127.0.0.1:5353";
        scan.error("H0143", &text.at, wrong, remedy);
        return None;
    }
    Some(server)
}

fn patience(scan: &Scan<'_>, text: Option<&Text>) -> Option<Patience> {
    let Some(text) = text else {
        return Some(Patience::default());
    };
    let span = span(scan, text)?;
    if !(DISABLED_AFTER_MIN..=DISABLED_AFTER_MAX).contains(&span) {
        let wrong = format!("a `disable_after` of {span} is out of range");
        let remedy =
            format!("write {DISABLED_AFTER_MIN} to {DISABLED_AFTER_MAX}; the default is 5d");
        scan.error("H0135", &text.at, wrong, remedy);
        return None;
    }
    Some(Patience::new(span))
}

fn subnets(scan: &Scan<'_>, texts: Option<&Texts>) -> Option<Vec<Subnet>> {
    let Some(texts) = texts else {
        return Some(Vec::new());
    };
    if texts.found.len() > SUBNETS_MAX {
        let wrong = format!("`allow_subnets` has more than {SUBNETS_MAX} entries");
        scan.error("H0135", &texts.at, wrong, "write fewer, larger subnets");
        return None;
    }
    let parsed = texts.found.iter().map(|text| {
        let subnet = text.value.parse::<Subnet>();
        subnet
            .map_err(|bad| {
                let wrong = format!("{} cannot be opened: {bad}", text.shown());
                let remedy = "write what endpoints may be in, such as 127.0.0.0/8 or fd00::/8";
                scan.error("H0140", &text.at, wrong, remedy);
            })
            .ok()
    });
    let parsed: Vec<Option<Subnet>> = parsed.collect();
    let parsed: Option<Vec<Subnet>> = parsed.into_iter().collect();
    parsed.filter(|_| texts.complete)
}

fn ports(scan: &Scan<'_>, numbers: Option<&Numbers>) -> Option<Vec<u16>> {
    let Some(numbers) = numbers else {
        return Some(Vec::new());
    };
    let parsed = numbers.found.iter().enumerate().map(|(index, number)| {
        let port = u16::try_from(number.value).ok().filter(|port| *port > 0);
        let port = port.filter(|_| index < PORTS_MAX);
        if port.is_none() {
            let wrong = format!("`allow_ports` cannot have {}", number.value);
            let remedy = format!("write up to {PORTS_MAX} ports of 1 to 65535");
            scan.error("H0135", &number.at, wrong, remedy);
        }
        port
    });
    let parsed: Vec<Option<u16>> = parsed.collect();
    let parsed: Option<Vec<u16>> = parsed.into_iter().collect();
    parsed.filter(|_| numbers.complete)
}
