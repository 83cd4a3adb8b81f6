//! Faults that can be read off the request: headers that are missing or doubled, clocks, units of time.

use super::trials::other_provider;
use super::{Cause, CauseKind};
use crate::refusal::Refusal;
use crate::request::{HeaderValue, Request};
use crate::scheme::{Place, Scheme, TimePlace, TimeUnit};
use crate::template::Part;
use crate::verify::Verifier;

const SECOND_US: i64 = 1_000_000;

pub(super) fn repeated(verifier: &Verifier, request: &Request<'_>) -> Cause {
    let name = needed_headers(verifier.scheme())
        .into_iter()
        .find(|name| request.headers.get(name) == HeaderValue::Many)
        .unwrap_or_else(|| "a header".to_owned());
    Cause::new(
        CauseKind::HeaderRepeated,
        format!("{name} arrived more than once"),
        "find the proxy that adds or merges headers; which one is right cannot be told",
    )
}

pub(super) fn missing(verifier: &Verifier, request: &Request<'_>, refusal: Refusal) -> Vec<Cause> {
    if let Some(cause) = other_provider(verifier, request) {
        return vec![cause];
    }
    if refusal == Refusal::MissingPart && request.url.is_none() && verifier.scheme().needs_url() {
        return vec![Cause::new(
            CauseKind::UrlDiffers,
            "the scheme signs the public URL and none is known",
            "set public_url",
        )];
    }
    let absent: Vec<String> = needed_headers(verifier.scheme())
        .into_iter()
        .filter(|name| request.headers.get(name) == HeaderValue::Missing)
        .collect();
    if !absent.is_empty() {
        return vec![Cause::new(
            CauseKind::HeaderMissing,
            format!("not in the request: {}", absent.join(", ")),
            "check that the provider has a secret set for this endpoint, and that no proxy drops headers",
        )];
    }
    vec![Cause::new(
        CauseKind::WrongScheme,
        format!("{refusal}, though every header is there"),
        "compare a real request with the scheme: a signed field is missing",
    )]
}

/// The headers that a scheme reads, in the order in which it reads them.
fn needed_headers(scheme: &Scheme) -> Vec<String> {
    let mut names: Vec<String> = match scheme.place() {
        Some(Place::Headers(names)) => names.clone(),
        _ if *scheme == Scheme::Basic => vec!["authorization".to_owned()],
        _ => Vec::new(),
    };
    let Some(layout) = scheme.layout() else {
        return names;
    };
    if let Some(TimePlace::Header(name)) = layout.timestamp.as_ref().map(|t| &t.place) {
        names.push(name.clone());
    }
    names.extend(layout.id.clone());
    for part in &layout.template.parts {
        if let Part::Header(name) | Part::SignedHeaders(name) = part {
            names.push(name.clone());
        }
    }
    names
}

pub(super) fn clock(verifier: &Verifier, request: &Request<'_>, refusal: Refusal) -> Cause {
    // Seconds read as milliseconds, or the other way round, are decades off.
    const DECADE_US: i64 = 10 * 365 * 86_400 * SECOND_US;
    let off_us = match refusal {
        Refusal::TooOld { age_us, .. } => age_us,
        Refusal::TooNew { ahead_us, .. } => ahead_us,
        _ => 0,
    };
    if off_us > DECADE_US {
        return time_unit(verifier, request);
    }
    let remedy = match refusal {
        Refusal::TooOld { .. } => {
            "check the clock here; if it is right, the request was held up or captured, or the \
             provider does not stamp retries anew: then widen `tolerance`"
        }
        _ => "set the clock here: it is behind the provider's",
    };
    Cause::new(
        CauseKind::Clock,
        format!("the signature holds, but it was {refusal}"),
        remedy,
    )
}

pub(super) fn time_unit(verifier: &Verifier, request: &Request<'_>) -> Cause {
    let timestamp = verifier
        .scheme()
        .layout()
        .and_then(|l| l.timestamp.as_ref());
    let text = match timestamp.map(|t| &t.place) {
        Some(TimePlace::Header(name)) => request.headers.get(name).one(),
        _ => None,
    };
    let text = text.map(|text| String::from_utf8_lossy(text).into_owned());
    let units = [
        (TimeUnit::Seconds, "s"),
        (TimeUnit::Milliseconds, "ms"),
        (TimeUnit::Rfc3339, "rfc3339"),
        (TimeUnit::HttpDate, "http-date"),
    ];
    const DAY_US: i64 = 86_400 * SECOND_US;
    let likely = text.as_ref().and_then(|text| {
        units.iter().find(|(unit, _)| {
            let at = unit.parse(text.as_bytes());
            at.is_some_and(|at| request.now.saturating_sub(at).saturating_abs() < DAY_US)
        })
    });
    let shown = text.unwrap_or_else(|| "beside the signature".to_owned());
    match likely {
        Some((_, name)) => Cause::new(
            CauseKind::WrongScheme,
            format!("the timestamp {shown} is a time of today if it is read as `{name}`"),
            format!("set unit = \"{name}\" for the timestamp"),
        ),
        None => Cause::new(
            CauseKind::WrongScheme,
            format!("the timestamp ({shown}) is not a time of today in the configured unit"),
            "set the unit of the timestamp to what the provider documents",
        ),
    }
}
