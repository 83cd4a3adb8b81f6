//! `[outbox]`: where consumers' endpoints may be, and when deliveries to them are tried again.

use std::sync::Arc;

use hapax_ledger::retry::Schedule;

use super::effect::settings;
use super::scan::Scan;
use super::table::{Numbers, Table, Texts};
use crate::dispatch::gate::{PORTS_MAX, Rules, SUBNETS_MAX, Subnet};

/// `[outbox]` as it is written.
#[derive(Debug)]
pub(super) struct RawOutbox {
    allow_subnets: Option<Texts>,
    allow_ports: Option<Numbers>,
    retry: Option<Texts>,
}

/// `[outbox]` as the program uses it.
#[derive(Clone, Debug, Default)]
pub struct OutboxConfig {
    /// Where endpoints may be.
    pub rules: Arc<Rules>,
    /// When deliveries that have no schedule of their own are tried again.
    pub retry: Arc<Schedule>,
}

pub(super) fn read(mut table: Table<'_, '_>) -> RawOutbox {
    let outbox = RawOutbox {
        allow_subnets: table.texts("allow_subnets"),
        allow_ports: table.numbers("allow_ports"),
        retry: table.texts("retry"),
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
    Some(OutboxConfig {
        rules: Arc::new(Rules::new(subnets?, ports?)),
        retry: Arc::new(retry?),
    })
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
