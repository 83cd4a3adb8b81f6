//! What the answers say. Pure: answers in, a line of the table out.

use std::collections::BTreeSet;

use hapax_ledger::time::Time;

use super::check::{Check, Rules};
use super::evidence::Evidence;
use super::target::Said;

const EXPIRES: &str = "idempotency-expires";

/// Requests with keys of their own: do their answers differ?
pub(super) fn distinct(answers: &[(&str, &Said)]) -> Check {
    let name = "executions differ";
    if let Some((_, refused)) = answers.iter().find(|(_, said)| !said.is_good()) {
        let why = format!(
            "the request is not carried out ({}): look at --method, --body and --header",
            refused.status
        );
        return Check::failed(name, why);
    }
    let marks: BTreeSet<_> = answers
        .iter()
        .map(|(key, said)| said.mark_beside(key))
        .collect();
    match marks.len() == answers.len() {
        true => Check::passed(name, "each execution gives an answer of its own"),
        false => Check::skipped(
            name,
            "executions gave the same answer, so they cannot be counted; let the answer contain a new id, or name its header with --id-header",
        ),
    }
}

/// The same request again.
pub(super) fn replay(first: &Said, again: &Said, evidence: Evidence) -> Check {
    let name = "replay";
    if !first.is_good() {
        return Check::unproven(name, "the first request was not carried out");
    }
    if first.is_replay() {
        return Check::failed(name, "the answer to a new key is marked as a replay");
    }
    if again.mark() != first.mark() {
        let why = match again.status == first.status {
            true => "the answer differs from the first one: it was carried out twice, or is not stored byte for byte".to_owned(),
            false => format!("{} at first, {} again", first.status, again.status),
        };
        return Check::failed(name, why);
    }
    let same = format!("the same {} again", first.status);
    match (again.is_replay(), evidence.shows(again)) {
        (true, _) => Check::passed(name, format!("{same}, marked as a replay")),
        (false, true) => Check::passed(name, format!("{same}, without Idempotent-Replayed")),
        (false, false) => Check::unproven(
            name,
            format!("{same}, and nothing in it tells whether it was carried out again"),
        ),
    }
}

/// The same key in quotes.
pub(super) fn quoted(rules: Rules, first: &Said, said: &Said, evidence: Evidence) -> Check {
    let name = "quoted key";
    match (said.mark() == first.mark(), rules) {
        (true, _) if evidence.shows(said) => {
            Check::passed(name, "the bare and the quoted form are one key")
        }
        (true, Rules::Ietf) => Check::unproven(
            name,
            "the same answer, and nothing in it tells whether it was carried out again",
        ),
        (false, Rules::Ietf) => Check::failed(
            name,
            format!(
                "{} instead of the stored answer: the quotes became part of the key",
                said.status
            ),
        ),
        (true, _) => Check::skipped(name, "executions cannot be counted"),
        (false, _) => Check::skipped(name, "the quoted form is another key here"),
    }
}

/// The same key with another body; and that body under a key of its own.
pub(super) fn mismatch(rules: Rules, said: &Said, own: &Said) -> Check {
    let name = "mismatch";
    let wanted: &[u16] = match rules {
        Rules::Ietf => &[422],
        Rules::Stripe => &[400],
        Rules::Any => &[400, 409, 422],
    };
    let status = said.status;
    match (wanted.contains(&status), own.is_good()) {
        (true, true) => Check::passed(
            name,
            format!("another body under the same key is refused with {status}"),
        ),
        (true, false) => Check::unproven(
            name,
            format!(
                "the other body gets {} under a key of its own, too; give one that is accepted with --other-body",
                own.status
            ),
        ),
        (false, _) => {
            let wanted: Vec<String> = wanted.iter().map(u16::to_string).collect();
            let why = format!(
                "another body under the same key gets {status}; {} is expected",
                wanted.join(", ")
            );
            Check::failed(name, why)
        }
    }
}

/// Many requests with one key at a time.
pub(super) fn race(said: &[Said], evidence: Evidence) -> Check {
    let name = "race";
    let good: Vec<&Said> = said.iter().filter(|one| one.is_good()).collect();
    let strange: BTreeSet<u16> = said
        .iter()
        .filter(|one| !one.is_good() && one.status != 409)
        .map(|one| one.status)
        .collect();
    let executions: BTreeSet<_> = good.iter().map(|one| one.mark()).collect();
    let unmarked = good.iter().filter(|one| !one.is_replay()).count();
    let (many, waiting) = (said.len(), said.len() - good.len());
    if let Some(status) = strange.first() {
        let why = format!(
            "of {many} requests at a time, one got {status}; 409 or the answer is expected"
        );
        return Check::failed(name, why);
    }
    match executions.len() {
        0 => Check::failed(
            name,
            format!("none of {many} requests at a time was carried out"),
        ),
        1 if evidence.told_apart || unmarked == 1 => Check::passed(
            name,
            format!(
                "{many} at a time: one execution, {} got its answer, {waiting} got 409",
                good.len()
            ),
        ),
        1 => Check::unproven(
            name,
            format!(
                "{many} at a time: {unmarked} got the same answer without Idempotent-Replayed, and executions cannot be counted"
            ),
        ),
        more => Check::failed(name, format!("{many} at a time: {more} executions")),
    }
}

/// And then once more.
pub(super) fn after_race(said: &[Said], after: &Said, evidence: Evidence) -> Check {
    let name = "after the race";
    let mut winners = said.iter().filter(|one| one.is_good()).peekable();
    if winners.peek().is_none() {
        return Check::skipped(name, "nobody won");
    }
    match winners.any(|winner| winner.mark() == after.mark()) {
        true if evidence.shows(after) => {
            Check::passed(name, "a later retry gets the winner's answer")
        }
        true => Check::unproven(name, "executions cannot be counted"),
        false => Check::failed(
            name,
            format!(
                "a later retry gets {} and not the winner's answer",
                after.status
            ),
        ),
    }
}

/// Is it said when the key expires?
pub(super) fn expiry(rules: Rules, first: &Said, again: &Said, now: Time) -> Check {
    let name = "expiry";
    // Whoever got an answer at once has no reason to ask for it again, only to learn how long it could.
    if rules == Rules::Ietf && again.has(EXPIRES) && !first.has(EXPIRES) {
        return Check::failed(
            name,
            "only the repeated answer has Idempotency-Expires, and the first one has not",
        );
    }
    let value = [first, again]
        .into_iter()
        .find_map(|one| one.headers.get(EXPIRES));
    let Some(value) = value else {
        return Check::skipped(name, "no Idempotency-Expires");
    };
    let text = value.to_str().unwrap_or_default();
    let at = httpdate::parse_http_date(text).ok();
    let since = at.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let micros = since.and_then(|since| i64::try_from(since.as_micros()).ok());
    match micros.map(Time::from_micros) {
        Some(at) if at > now => Check::passed(name, format!("keys are kept until {text}")),
        Some(_) => Check::failed(name, format!("Idempotency-Expires is in the past: {text}")),
        None => Check::failed(name, "Idempotency-Expires is not a date as HTTP has it"),
    }
}

/// Another caller with the same key: its request is one of its own.
pub(super) fn scope(first: &Said, other: &Said, evidence: Evidence) -> Check {
    let name = "scope";
    let leaked = || {
        Check::failed(
            name,
            "another caller with the same key gets the first caller's answer",
        )
    };
    let own = || {
        Check::passed(
            name,
            "another caller with the same key gets an answer of its own",
        )
    };
    match other.status {
        _ if other.is_replay() => leaked(),
        _ if other.is_good() && other.mark() != first.mark() => own(),
        _ if other.is_good() && evidence.told_apart => leaked(),
        // A repeated answer would be marked.
        _ if other.is_good() && evidence.marks_replays => own(),
        _ if other.is_good() => Check::unproven(
            name,
            "another caller gets the same answer, and nothing in it tells whether it is its own",
        ),
        // Who is turned away at the door has not shown whose keys are whose.
        401 | 403 => Check::unproven(
            name,
            format!(
                "the other caller is refused with {}; give one who may do this with --other-header",
                other.status
            ),
        ),
        status => Check::failed(
            name,
            format!(
                "another caller with the same key gets {status}; an answer of its own is expected"
            ),
        ),
    }
}

/// A key that cannot be used, or is not there.
pub(super) fn malformed(name: &'static str, said: &Said) -> Check {
    match said.status {
        400 => Check::passed(name, "refused with 400"),
        status => Check::failed(name, format!("gets {status}; 400 is expected")),
    }
}

/// A read, without and with a key that something else was done under.
pub(super) fn read(bare: &Said, keyed: &Said) -> Check {
    let name = "key on GET";
    if keyed.is_replay() {
        return Check::failed(name, "a GET gets the stored answer of something else");
    }
    match bare.status == keyed.status {
        true => Check::passed(name, format!("ignored: {} with and without", bare.status)),
        false => Check::failed(
            name,
            format!("{} without a key, {} with one", bare.status, keyed.status),
        ),
    }
}

#[cfg(test)]
mod tests;
