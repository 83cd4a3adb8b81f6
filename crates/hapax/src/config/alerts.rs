//! `[alerts]`: how often somebody looks whether somebody should look, and where that is told.

use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::effect::Repeat;
use hapax_ledger::plan::{EffectRule, When};
use hapax_ledger::retry::Schedule;
use hapax_ledger::time::Span;
use http::HeaderMap;

use super::effect::{BodyForm, EffectConfig, request};
use super::resolve::span;
use super::scan::{At, Scan, Text};
use super::table::Table;

/// The source of events that Hapax tells about itself. No source of a config can be called so.
pub const ALERT_SOURCE: &str = "~hapax";
/// The effect that delivers them, and its lane. No effect of a config can be called so.
pub const ALERT_LANE: &str = "~alerts";

/// How often the rules are looked at unless told.
const EVERY_DEFAULT: Duration = Duration::from_secs(10);
/// More often, and looking becomes work.
const EVERY_MIN: Span = Span::from_millis(100);
/// More rarely, and an alert comes when everybody knows.
const EVERY_MAX: Span = Span::from_secs(300);
/// How long a delivery may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Deliveries at a time: alerts are few.
const CONCURRENCY: usize = 4;

/// `[alerts]` as it is written.
#[derive(Debug)]
pub(super) struct RawAlerts {
    at: At,
    /// Is there a URL, wrong or misspelt as it may be?
    meant: Vec<&'static str>,
    url: Option<Text>,
    secret: Option<Text>,
    every: Option<Text>,
}

/// `[alerts]` as the program uses it.
#[derive(Clone, Debug)]
pub struct AlertsConfig {
    /// How often the rules are looked at.
    pub every: Duration,
    /// What delivers alerts, if they go anywhere.
    pub effect: Option<Arc<EffectConfig>>,
}

impl Default for AlertsConfig {
    fn default() -> AlertsConfig {
        AlertsConfig {
            every: EVERY_DEFAULT,
            effect: None,
        }
    }
}

pub(super) fn read(mut table: Table<'_, '_>) -> RawAlerts {
    let mut alerts = RawAlerts {
        at: table.at(),
        meant: table.has("url").then_some("url").into_iter().collect(),
        url: table.url("url"),
        secret: table.secret("secret"),
        every: table.text("every"),
    };
    alerts.meant.extend(table.finish(&[]));
    alerts
}

/// Resolves it; nothing if there was an error, which is reported.
pub(super) fn resolve(scan: &Scan<'_>, raw: Option<&RawAlerts>) -> Option<AlertsConfig> {
    let Some(raw) = raw else {
        return Some(AlertsConfig::default());
    };
    let every = every(scan, raw.every.as_ref());
    let signer = match &raw.secret {
        Some(text) => request::signer(scan, text).map(Some),
        None => Some(None),
    };
    if raw.secret.is_some() && !raw.meant.contains(&"url") {
        let wrong = "[alerts] has a `secret` and no `url`";
        let remedy = "write url = \"https://ops.example.com/hapax\": that is where alerts are sent";
        scan.error("H0109", &raw.at, wrong, remedy);
        return None;
    }
    let url = match &raw.url {
        Some(text) => request::url(scan, "url", text).map(Some),
        None => Some(None),
    };
    let (signer, url) = (signer?, url?);
    let effect = url.map(|url| EffectConfig {
        name: ALERT_LANE.into(),
        source: ALERT_SOURCE.into(),
        rule: EffectRule {
            name: ALERT_LANE.to_owned(),
            types: Vec::new(),
            when: When::Always,
            key: None,
            repeat: Repeat::Keyed,
            after: Vec::new(),
            order: None,
        },
        when: None,
        review: None,
        url,
        body: BodyForm::Raw,
        timeout: TIMEOUT,
        retry: Schedule::default(),
        concurrency: CONCURRENCY,
        rate: None,
        probe: None,
        headers: HeaderMap::new(),
        signer,
    });
    Some(AlertsConfig {
        every: every?,
        effect: effect.map(Arc::new),
    })
}

fn every(scan: &Scan<'_>, text: Option<&Text>) -> Option<Duration> {
    let Some(text) = text else {
        return Some(EVERY_DEFAULT);
    };
    let every = span(scan, text)?;
    if !(EVERY_MIN..=EVERY_MAX).contains(&every) {
        let wrong = format!("`every` of {every} is out of range");
        scan.error("H0135", &text.at, wrong, "write 100ms to 5m");
        return None;
    }
    Some(Duration::from_micros(every.micros().unsigned_abs()))
}
