//! The small settings of an effect: words, numbers and lengths of time.

use std::num::NonZeroU32;
use std::time::Duration;

use hapax_ledger::effect::Repeat;
use hapax_ledger::retry::Schedule;
use hapax_ledger::time::Span;

use super::resolved::{BodyForm, OnDuplicateOfFailed};
use crate::config::resolve::span;
use crate::config::scan::{Scan, Text};
use crate::config::suggest;
use crate::config::table::{Number, Texts};

/// How long an attempt may take unless told: what senders of webhooks commonly allow.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
const TIMEOUT_MIN: Span = Span::from_secs(1);
/// An attempt holds a place in its lane; whoever works longer answers first and reports later.
const TIMEOUT_MAX: Span = Span::from_secs(300);
/// Attempts in flight at a time unless told: enough for 1,600 a second at 10 ms each.
const CONCURRENCY_DEFAULT: usize = 16;
const CONCURRENCY_MAX: u32 = 1_024;
/// Beyond this a bound on the rate bounds nothing.
const RATE_MAX: u32 = 100_000;

const REPEATS: [(&str, Repeat); 3] = [
    ("converges", Repeat::Converges),
    ("keyed", Repeat::Keyed),
    ("once", Repeat::Once),
];
const BODIES: [(&str, BodyForm); 2] = [("raw", BodyForm::Raw), ("envelope", BodyForm::Envelope)];
const ON_DUPLICATE: [(&str, OnDuplicateOfFailed); 2] = [
    ("link", OnDuplicateOfFailed::Link),
    ("retry", OnDuplicateOfFailed::Retry),
];

pub(super) fn repeat(scan: &Scan<'_>, text: Option<&Text>) -> Option<Repeat> {
    word(scan, "repeat", text, &REPEATS, Repeat::Keyed)
}

pub(super) fn body(scan: &Scan<'_>, text: Option<&Text>) -> Option<BodyForm> {
    word(scan, "body", text, &BODIES, BodyForm::Raw)
}

pub(in crate::config) fn on_duplicate_of_failed(
    scan: &Scan<'_>,
    text: Option<&Text>,
) -> Option<OnDuplicateOfFailed> {
    let default = OnDuplicateOfFailed::Link;
    word(scan, "on_duplicate_of_failed", text, &ON_DUPLICATE, default)
}

/// One of the words that a field takes.
pub(in crate::config) fn word<T: Copy>(
    scan: &Scan<'_>,
    field: &str,
    text: Option<&Text>,
    words: &[(&str, T)],
    default: T,
) -> Option<T> {
    let Some(text) = text else {
        return Some(default);
    };
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text.value) {
        return Some(*value);
    }
    let names = words.iter().map(|(word, _)| *word);
    let remedy = match suggest::nearest(&text.value, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of: {}", names.collect::<Vec<_>>().join(", ")),
    };
    let wrong = format!("{} is not a value of `{field}`", text.shown());
    scan.error("H0134", &text.at, wrong, remedy);
    None
}

pub(super) fn timeout(scan: &Scan<'_>, text: Option<&Text>) -> Option<Duration> {
    let Some(text) = text else {
        return Some(TIMEOUT_DEFAULT);
    };
    let span = span(scan, text)?;
    if !(TIMEOUT_MIN..=TIMEOUT_MAX).contains(&span) {
        let wrong = format!("a `timeout` of {span} is out of range");
        let remedy = format!("write {TIMEOUT_MIN} to {TIMEOUT_MAX}; the default is 10s");
        scan.error("H0135", &text.at, wrong, remedy);
        return None;
    }
    Some(Duration::from_micros(span.micros().unsigned_abs()))
}

pub(in crate::config) fn retry(scan: &Scan<'_>, texts: Option<&Texts>) -> Option<Schedule> {
    let Some(texts) = texts else {
        return Some(Schedule::default());
    };
    let waits: Vec<Option<Span>> = texts.found.iter().map(|text| span(scan, text)).collect();
    let waits: Option<Vec<Span>> = waits.into_iter().collect();
    match Schedule::new(waits.filter(|_| texts.complete)?) {
        Ok(schedule) => Some(schedule),
        Err(bad) => {
            let remedy = "write the wait before each attempt, such as [\"0s\", \"1m\", \"30m\"]";
            scan.error("H0135", &texts.at, bad.to_string(), remedy);
            None
        }
    }
}

pub(super) fn concurrency(scan: &Scan<'_>, number: Option<&Number>) -> Option<usize> {
    match number {
        None => Some(CONCURRENCY_DEFAULT),
        Some(number) => {
            let count = within(scan, "concurrency", number, CONCURRENCY_MAX)?;
            usize::try_from(count.get()).ok()
        }
    }
}

/// The outer option says whether it is right, the inner one whether there is one.
pub(super) fn rate(scan: &Scan<'_>, number: Option<&Number>) -> Option<Option<NonZeroU32>> {
    match number {
        None => Some(None),
        Some(number) => within(scan, "rate", number, RATE_MAX).map(Some),
    }
}

fn within(scan: &Scan<'_>, field: &str, number: &Number, max: u32) -> Option<NonZeroU32> {
    let found = u32::try_from(number.value).ok().and_then(NonZeroU32::new);
    let found = found.filter(|found| found.get() <= max);
    if found.is_none() {
        let wrong = format!("a `{field}` of {} is out of range", number.value);
        scan.error("H0135", &number.at, wrong, format!("write 1 to {max}"));
    }
    found
}
