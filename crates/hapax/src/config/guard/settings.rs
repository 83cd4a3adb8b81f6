//! The settings of a guard: words, numbers, sizes and lengths of time.

use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::guard::{GuardPolicy, KeyForm, OnUnknown, Preset, check_ttl};
use hapax_ledger::time::Span;
use hapax_tower::headers::{KEPT_BY_DEFAULT, may_be_kept};
use http::{HeaderName, Method};

use super::raw::RawGuard;
use crate::config::effect::settings::word;
use crate::config::resolve::{bytes, span};
use crate::config::scan::{Scan, Text};
use crate::config::size;
use crate::config::table::{Number, Texts};

/// How long the upstream may take to begin its answer, unless told.
const TIMEOUT_DEFAULT: Span = Span::from_secs(30);
/// How long a body may stand still, unless told: longer than the pings of common event streams.
const IDLE_DEFAULT: Span = Span::from_secs(300);
/// How long a caller may wait for another request's answer, unless told.
const WAIT_DEFAULT: Span = Span::from_secs(30);
/// How long an expired key is answered as expired, unless told: as long again as callers commonly retry.
const GRACE_DEFAULT: Span = Span::from_hours(24);
const SHORT: Span = Span::from_millis(100);
const TIMEOUT_MAX: Span = Span::from_secs(3_600);
const WAIT_MAX: Span = Span::from_secs(300);
const GRACE_MAX: Span = Span::from_days(90);
const TTL_MAX: Span = Span::from_days(365);
/// The largest guarded request, unless told. It is spooled: the first 64 KiB in memory, the rest on disk.
const BODY_DEFAULT: usize = 8 << 20;
const BODY_MAX: usize = 1 << 30;
/// The largest answer that is kept, unless told.
const ANSWER_DEFAULT: usize = 1 << 20;
/// An answer is one row of the store.
const ANSWER_MAX: usize = 16 << 20;

const ON_UNKNOWN: [(&str, OnUnknown); 2] = [("hold", OnUnknown::Hold), ("keyed", OnUnknown::Keyed)];
const PRESETS: [(&str, Option<Preset>); 2] = [
    ("ietf", Some(Preset::Ietf)),
    ("stripe", Some(Preset::Stripe)),
];
/// Methods that are not guarded: they are safe, or idempotent by themselves, or no requests to a resource.
const NEVER: [&str; 7] = [
    "GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PUT", "DELETE",
];

/// Lengths of time.
pub(super) struct Times {
    pub(super) timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) wait_max: Duration,
}

/// Sizes.
pub(super) struct Sizes {
    pub(super) body_bytes_max: usize,
    pub(super) answer_bytes_max: usize,
}

pub(super) fn methods(scan: &Scan<'_>, texts: Option<&Texts>) -> Option<Arc<[Method]>> {
    let Some(texts) = texts else {
        return Some([Method::POST, Method::PATCH].into());
    };
    if texts.found.is_empty() && texts.complete {
        let wrong = "`methods` is empty: nothing would be guarded";
        scan.error("H0151", &texts.at, wrong, "write [\"POST\", \"PATCH\"]");
        return None;
    }
    let methods: Vec<Option<Method>> = texts.found.iter().map(|text| method(scan, text)).collect();
    let methods: Option<Vec<Method>> = methods.into_iter().collect();
    methods.filter(|_| texts.complete).map(Into::into)
}

fn method(scan: &Scan<'_>, text: &Text) -> Option<Method> {
    let is_word =
        !text.value.is_empty() && text.value.bytes().all(|byte| byte.is_ascii_uppercase());
    let wrong = match is_word {
        false => format!("{} is not a method", text.shown()),
        true if NEVER.contains(&text.value.as_str()) => {
            format!(
                "{} is not guarded: repeating it is safe by its definition",
                text.shown()
            )
        }
        true => return Method::from_bytes(text.value.as_bytes()).ok(),
    };
    let remedy = "write methods in capitals, such as POST and PATCH; all others are passed through";
    scan.error("H0151", &text.at, wrong, remedy);
    None
}

/// The preset's rules, and over them the guard's own lines.
pub(super) fn policy(scan: &Scan<'_>, raw: &RawGuard) -> Option<GuardPolicy> {
    let preset = word(scan, "preset", raw.preset.as_ref(), &PRESETS, None);
    let base =
        preset.map(|preset| preset.map_or_else(GuardPolicy::default, GuardPolicy::of_preset));
    let known = base.clone().unwrap_or_default();
    let on_unknown = word(
        scan,
        "on_unknown",
        raw.on_unknown.as_ref(),
        &ON_UNKNOWN,
        known.on_unknown,
    );
    let ttl = ttl(scan, raw, known.ttl);
    let mismatch_status = match &raw.mismatch_status {
        Some(number) => mismatch(scan, number),
        None => Some(known.mismatch_status),
    };
    let not_executed = match &raw.not_executed {
        Some(numbers) => {
            let statuses: Vec<Option<u16>> = numbers
                .found
                .iter()
                .map(|number| refusal(scan, number))
                .collect();
            let statuses: Option<Vec<u16>> = statuses.into_iter().collect();
            statuses.filter(|_| numbers.complete)
        }
        None => Some(known.not_executed.clone()),
    };
    base?;
    Some(GuardPolicy {
        on_unknown: on_unknown?,
        ttl: ttl?,
        mismatch_status: mismatch_status?,
        store_5xx: raw.store_5xx.unwrap_or(known.store_5xx),
        not_executed: not_executed?,
    })
}

/// Only the IETF draft asks for the expiry to be published.
pub(super) fn is_ietf(raw: &RawGuard) -> bool {
    let preset = raw.preset.as_ref();
    preset.is_some_and(|text| text.value == Preset::Ietf.word())
}

/// And for a key to be a string of structured fields.
pub(super) fn key_form(raw: &RawGuard) -> KeyForm {
    match is_ietf(raw) {
        true => KeyForm::Quoted,
        false => KeyForm::Bare,
    }
}

/// Which headers of an answer are kept.
pub(super) fn headers(scan: &Scan<'_>, texts: Option<&Texts>) -> Option<Arc<[HeaderName]>> {
    let Some(texts) = texts else {
        return Some(KEPT_BY_DEFAULT.into());
    };
    let names: Vec<Option<HeaderName>> =
        texts.found.iter().map(|text| header(scan, text)).collect();
    let names: Option<Vec<HeaderName>> = names.into_iter().collect();
    names.filter(|_| texts.complete).map(Into::into)
}

fn header(scan: &Scan<'_>, text: &Text) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(text.value.as_bytes()).ok();
    let wrong = match &name {
        Some(name) if may_be_kept(name) => return Some(name.clone()),
        Some(_) => format!(
            "{} is never kept: it is a credential, about one connection, or made anew for each answer",
            text.shown()
        ),
        None => format!("{} names no header", text.shown()),
    };
    let remedy = "write names of headers whose values mean the same in a repeated answer";
    scan.error("H0156", &text.at, wrong, remedy);
    None
}

fn ttl(scan: &Scan<'_>, raw: &RawGuard, default: Span) -> Option<Span> {
    let Some(text) = &raw.ttl else {
        return Some(default);
    };
    let ttl = within(scan, "ttl", text, Span::from_secs(1), TTL_MAX)?;
    match check_ttl(ttl) {
        Err(short) if raw.force_short_ttl != Some(true) => {
            let remedy = "raise `ttl`, or write force_short_ttl = true if callers give up sooner";
            scan.error("H0152", &text.at, short.to_string(), remedy);
            None
        }
        _ => Some(ttl),
    }
}

fn mismatch(scan: &Scan<'_>, number: &Number) -> Option<u16> {
    let status = u16::try_from(number.value).ok();
    let status = status.filter(|status| matches!(status, 400 | 409 | 422));
    if status.is_none() {
        let wrong = format!("a `mismatch_status` of {} is out of range", number.value);
        scan.error("H0135", &number.at, wrong, "write 409, 422 or 400");
    }
    status
}

/// A success proves that the work was done.
fn refusal(scan: &Scan<'_>, number: &Number) -> Option<u16> {
    let status = u16::try_from(number.value).ok();
    let status = status.filter(|status| (400..=599).contains(status));
    if status.is_none() {
        let wrong = format!(
            "{} in `not_executed` proves nothing about work that did not run",
            number.value
        );
        scan.error("H0135", &number.at, wrong, "write statuses from 400 to 599");
    }
    status
}

pub(super) fn grace(scan: &Scan<'_>, text: Option<&Text>) -> Option<Span> {
    match text {
        Some(text) => within(scan, "grace", text, Span::ZERO, GRACE_MAX),
        None => Some(GRACE_DEFAULT),
    }
}

pub(super) fn times(scan: &Scan<'_>, raw: &RawGuard) -> Option<Times> {
    let timeout = length(
        scan,
        "timeout",
        raw.timeout.as_ref(),
        TIMEOUT_DEFAULT,
        (SHORT, TIMEOUT_MAX),
    );
    let idle = length(
        scan,
        "idle_timeout",
        raw.idle_timeout.as_ref(),
        IDLE_DEFAULT,
        (SHORT, TIMEOUT_MAX),
    );
    let wait = length(
        scan,
        "wait_max",
        raw.wait_max.as_ref(),
        WAIT_DEFAULT,
        (Span::ZERO, WAIT_MAX),
    );
    Some(Times {
        timeout: timeout?,
        idle_timeout: idle?,
        wait_max: wait?,
    })
}

pub(super) fn sizes(scan: &Scan<'_>, raw: &RawGuard) -> Option<Sizes> {
    let body = size(
        scan,
        "body_max",
        raw.body_max.as_ref(),
        BODY_DEFAULT,
        BODY_MAX,
    );
    let answer = size(
        scan,
        "answer_max",
        raw.answer_max.as_ref(),
        ANSWER_DEFAULT,
        ANSWER_MAX,
    );
    Some(Sizes {
        body_bytes_max: body?,
        answer_bytes_max: answer?,
    })
}

fn size(
    scan: &Scan<'_>,
    field: &str,
    text: Option<&Text>,
    default: usize,
    max: usize,
) -> Option<usize> {
    let size = bytes(scan, text, default)?;
    if let (true, Some(text)) = (size > max, text) {
        let wrong = format!("a `{field}` of {} is out of range", text.shown());
        let remedy = format!("write {} or less", size::show(max));
        scan.error("H0135", &text.at, wrong, remedy);
        return None;
    }
    Some(size)
}

fn length(
    scan: &Scan<'_>,
    field: &str,
    text: Option<&Text>,
    default: Span,
    (min, max): (Span, Span),
) -> Option<Duration> {
    let span = match text {
        Some(text) => within(scan, field, text, min, max)?,
        None => default,
    };
    Some(Duration::from_micros(span.micros().unsigned_abs()))
}

fn within(scan: &Scan<'_>, field: &str, text: &Text, min: Span, max: Span) -> Option<Span> {
    let span = span(scan, text)?;
    if !(min..=max).contains(&span) {
        let wrong = format!("a `{field}` of {span} is out of range");
        scan.error("H0135", &text.at, wrong, format!("write {min} to {max}"));
        return None;
    }
    Some(span)
}
