//! The rules: from what was measured to what somebody should look at. Pure functions; whether an alert is raised, kept or cleared
//! is the board's to say.

use hapax_ledger::event::EventStatus;
use hapax_ledger::time::Span;
use hapax_store::nouns::{DiskState, Endpoint, Standing};

use super::facts::{Bounced, Counts, DeadLetters, Facts, Reviews, Traffic};
use super::kind::{Kind, Severity};
use super::notice::ALERT_LANE;
use crate::clock::text as time_text;
use crate::metrics::{LATE_FROM, Lag};

/// Fewer than this in a window are chance, whatever their share.
pub const JUMP_MIN: f64 = 20.0;
/// A share this many times the usual one is a jump.
pub const JUMP_FACTOR: f64 = 4.0;
/// A share below this counts as this: a source that never had a duplicate does not jump with its first ones.
pub const USUAL_SHARE_MIN: f64 = 0.05;
/// The usual share is known from so many deliveries on.
pub const USUAL_FROM: f64 = 100.0;
/// Deliveries of an event that is not done from which on it bounces: more than a lost answer and a repeat by hand.
pub const BOUNCES_MIN: u32 = 5;
/// Fewer events that wait for a person are a morning's work.
pub const REVIEWS_MIN: u64 = 10;
/// So many more within a window, and they become more.
pub const REVIEWS_GROWTH: u64 = 5;
/// So many are too many, growing or not.
pub const REVIEWS_MANY: u64 = 100;
/// So many dead letters are an outage, not a bad request.
pub const DEAD_MANY: u64 = 100;
/// Fewer late attempts in a window may be what a restart left.
pub const LATE_MIN: u64 = 5;
/// One late attempt in so many is too many.
pub const LATE_ONE_IN: u64 = 10;
/// Below so many times the space at which the store stops, the disk is filling up.
pub const DISK_LOW_FACTOR: u64 = 4;
/// Names that a sentence holds.
const NAMES_SAID_MAX: usize = 3;

/// Somebody should look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// At what.
    pub kind: Kind,
    /// Where: a source, a lane, or a part of the ledger.
    pub subject: String,
    /// How urgently.
    pub severity: Severity,
    /// A sentence with figures.
    pub text: String,
}

/// What the rules say.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// Kinds whose facts were there. About all others nothing is said.
    pub judged: Vec<Kind>,
    /// What somebody should look at.
    pub findings: Vec<Finding>,
}

/// Judges everything that was measured.
pub fn judge(facts: &Facts) -> Judgement {
    let window = facts.window;
    let mut said = Judgement::default();
    let traffic = facts.traffic.iter();
    said.put(
        Kind::DuplicateSpike,
        traffic.clone().filter_map(|each| duplicates(each, window)),
    );
    said.put(
        Kind::SignatureFailures,
        traffic.filter_map(|each| refusals(each, window)),
    );
    let lags = facts.lags.iter();
    said.put(
        Kind::DispatchLag,
        lags.filter_map(|(lane, lag)| late(lane, *lag, window)),
    );
    if let Some(repeated) = &facts.repeated {
        said.put(Kind::Bouncing, bouncing(repeated));
    }
    if let Some(disk) = facts.disk {
        said.put(Kind::Disk, filling(disk));
    }
    if let Some(letters) = &facts.dead {
        said.put(Kind::DeadLetters, dead(letters));
    }
    if let Some(queue) = facts.reviews {
        said.put(Kind::ReviewQueue, reviews(queue, window));
    }
    if let Some(endpoints) = &facts.closed {
        let closed = endpoints.iter();
        said.put(
            Kind::EndpointDisabled,
            closed.filter_map(|endpoint| closed_by_us(endpoint)),
        );
    }
    said
}

impl Judgement {
    fn put(&mut self, kind: Kind, findings: impl IntoIterator<Item = Finding>) {
        self.judged.push(kind);
        self.findings.extend(findings);
    }
}

/// Does a share jump? Gives it, and the usual one.
fn jump(part: f64, all: f64, usual_part: f64, usual_all: f64) -> Option<(f64, f64)> {
    if part < JUMP_MIN || all <= 0.0 {
        return None;
    }
    let usual = match usual_all >= USUAL_FROM {
        true => usual_part / usual_all,
        false => 0.0,
    };
    let share = part / all;
    // Where the usual share is high, more than halfway from there to all of them is a jump, too.
    let halfway = f64::midpoint(usual, 1.0);
    let mark = (JUMP_FACTOR * usual.max(USUAL_SHARE_MIN)).min(halfway);
    (share > mark).then_some((share, usual))
}

fn all(counts: Counts) -> f64 {
    counts.believed + counts.refused
}

fn duplicates(traffic: &Traffic, window: Span) -> Option<Finding> {
    let (recent, usual) = (traffic.recent, traffic.usual);
    let (share, usually) = jump(
        recent.duplicates,
        recent.believed,
        usual.duplicates,
        usual.believed,
    )?;
    let text = format!(
        "{} of {} deliveries of source `{}` in the last {window} were duplicates ({}, usually {}){}{}",
        recent.duplicates,
        recent.believed,
        traffic.source,
        percent(share),
        percent(usually),
        named("; most of type", &traffic.types),
        named("; most of key", &traffic.keys),
    );
    Some(Finding {
        kind: Kind::DuplicateSpike,
        subject: traffic.source.to_string(),
        severity: Severity::Warning,
        text,
    })
}

fn refusals(traffic: &Traffic, window: Span) -> Option<Finding> {
    let (recent, usual) = (traffic.recent, traffic.usual);
    let (share, usually) = jump(recent.refused, all(recent), usual.refused, all(usual))?;
    let text = format!(
        "{} of {} requests to source `{}` in the last {window} were refused ({}, usually {}){}",
        recent.refused,
        all(recent),
        traffic.source,
        percent(share),
        percent(usually),
        named("; the latest for", &traffic.causes),
    );
    Some(Finding {
        kind: Kind::SignatureFailures,
        subject: traffic.source.to_string(),
        // Nothing gets in any more where something used to: most likely our secret is not theirs.
        severity: match recent.believed == 0.0 && usual.believed >= 1.0 {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        text,
    })
}

fn late(lane: &str, lag: Lag, window: Span) -> Option<Finding> {
    if lag.late < LATE_MIN || lag.late * LATE_ONE_IN < lag.attempts {
        return None;
    }
    let text = format!(
        "{} of {} attempts in lane `{lane}` in the last {window} began more than {} s after they were due, the latest {} s",
        lag.late,
        lag.attempts,
        LATE_FROM.as_secs(),
        lag.worst.as_secs(),
    );
    Some(Finding {
        kind: Kind::DispatchLag,
        subject: lane.to_owned(),
        severity: Severity::Warning,
        text,
    })
}

/// One finding for each source, so that a provider that bounces everything is one alert.
fn bouncing(repeated: &[Bounced]) -> Vec<Finding> {
    let bounces = |each: &&Bounced| {
        let ended = matches!(each.status, EventStatus::Completed | EventStatus::Stale);
        !ended && each.deliveries >= BOUNCES_MIN
    };
    let mut bouncing: Vec<&Bounced> = repeated.iter().filter(bounces).collect();
    bouncing.sort_by(|a, b| (&a.source, b.deliveries).cmp(&(&b.source, a.deliveries)));
    let by_source = bouncing.chunk_by(|a, b| a.source == b.source);
    let finding = |events: &[&Bounced]| {
        let source = &events[0].source;
        let shown = events.iter().take(NAMES_SAID_MAX).map(|each| {
            let Bounced {
                event,
                deliveries,
                status,
                ..
            } = each;
            format!("{event} ({deliveries} deliveries, {status})")
        });
        let text = format!(
            "{} of source `{source}` {} being delivered and not done: {}",
            counted(events.len() as u64, "event"),
            verb(events.len() as u64, "keeps", "keep"),
            shown.collect::<Vec<_>>().join(", "),
        );
        Finding {
            kind: Kind::Bouncing,
            subject: source.to_string(),
            severity: Severity::Warning,
            text,
        }
    };
    by_source.map(finding).collect()
}

fn filling(disk: DiskState) -> Option<Finding> {
    let DiskState {
        free_bytes,
        free_bytes_min,
    } = disk;
    if free_bytes >= free_bytes_min.saturating_mul(DISK_LOW_FACTOR) {
        return None;
    }
    let (free, stop) = (mebibytes(free_bytes), mebibytes(free_bytes_min));
    let (severity, text) = match free_bytes < free_bytes_min {
        true => (
            Severity::Critical,
            format!(
                "{free} are free on the disk of the store, less than {stop}: nothing is taken, and senders hear 503"
            ),
        ),
        false => (
            Severity::Warning,
            format!("{free} are free on the disk of the store; below {stop} nothing is taken"),
        ),
    };
    Some(Finding {
        kind: Kind::Disk,
        subject: "store".to_owned(),
        severity,
        text,
    })
}

fn dead(letters: &DeadLetters) -> Vec<Finding> {
    let severity = |effects| match effects >= DEAD_MANY {
        true => Severity::Critical,
        false => Severity::Warning,
    };
    let mut findings = Vec::new();
    if letters.effects > 0 {
        findings.push(Finding {
            kind: Kind::DeadLetters,
            subject: "effects".to_owned(),
            severity: severity(letters.effects),
            text: format!(
                "{} {} given up and {} among the dead letters{}",
                counted(letters.effects, "effect"),
                verb(letters.effects, "was", "were"),
                verb(letters.effects, "waits", "wait"),
                named("; the newest in lane", &letters.lanes),
            ),
        });
    }
    if letters.alerts > 0 {
        findings.push(Finding {
            kind: Kind::DeadLetters,
            subject: ALERT_LANE.to_owned(),
            severity: severity(letters.alerts),
            text: format!(
                "{} could not be delivered to the URL in [alerts]",
                counted(letters.alerts, "alert")
            ),
        });
    }
    findings
}

fn reviews(queue: Reviews, window: Span) -> Option<Finding> {
    let Reviews { waiting, before } = queue;
    let grown = waiting.saturating_sub(before);
    let growing = waiting >= REVIEWS_MIN && grown >= REVIEWS_GROWTH;
    if !growing && waiting < REVIEWS_MANY {
        return None;
    }
    let more = match grown {
        0 => String::new(),
        grown => format!(", {grown} more than {window} ago"),
    };
    Some(Finding {
        kind: Kind::ReviewQueue,
        subject: "events".to_owned(),
        severity: Severity::Warning,
        text: format!("{waiting} events or more wait for a person{more}"),
    })
}

/// One finding for each endpoint: they have different owners. Its URL is not said, since some carry a secret.
fn closed_by_us(endpoint: &Endpoint) -> Option<Finding> {
    let why = match (endpoint.standing, endpoint.failing_since) {
        (Standing::Enabled | Standing::Disabled, _) => return None,
        (Standing::Gone, _) => "answered that it is gone (410)".to_owned(),
        (Standing::Failed, Some(since)) => {
            format!("has done nothing but fail since {}", time_text(since))
        }
        (Standing::Failed, None) => "failed for too long".to_owned(),
    };
    let (id, app) = (endpoint.id, endpoint.app);
    Some(Finding {
        kind: Kind::EndpointDisabled,
        subject: id.to_string(),
        severity: Severity::Warning,
        text: format!(
            "endpoint {id} of application {app} {why} and is disabled: its deliveries are skipped"
        ),
    })
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

fn verb(number: u64, one: &'static str, many: &'static str) -> &'static str {
    match number {
        1 => one,
        _ => many,
    }
}

/// Names with their counts after a few words; nothing if there are none.
fn named(words: &str, names: &[(String, u64)]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names = names.iter().take(NAMES_SAID_MAX);
    let names = names.map(|(name, count)| format!("{name} ({count})"));
    format!("{words} {}", names.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
