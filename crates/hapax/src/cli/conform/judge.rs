//! What the answers say. Pure: answers in, a line of the table out.

use std::collections::BTreeSet;

use bytes::Bytes;
use hapax_ledger::time::Time;
use http::header::LOCATION;

use super::target::Said;

const REPLAYED: &str = "idempotent-replayed";
const EXPIRES: &str = "idempotency-expires";

/// What to expect where APIs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    /// The IETF draft.
    Ietf,
    /// Stripe's API.
    Stripe,
    /// Whatever is sensible.
    Any,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    Skipped,
}

impl Outcome {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "pass",
            Outcome::Failed => "FAIL",
            Outcome::Skipped => "skipped",
        }
    }
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) why: String,
}

impl Check {
    pub(super) fn passed(name: &'static str, why: impl Into<String>) -> Check {
        Check::new(name, Outcome::Passed, why)
    }

    pub(super) fn failed(name: &'static str, why: impl Into<String>) -> Check {
        Check::new(name, Outcome::Failed, why)
    }

    pub(super) fn skipped(name: &'static str, why: impl Into<String>) -> Check {
        Check::new(name, Outcome::Skipped, why)
    }

    fn new(name: &'static str, outcome: Outcome, why: impl Into<String>) -> Check {
        let why = why.into();
        Check { name, outcome, why }
    }

    pub(super) fn is_passed(&self) -> bool {
        self.outcome == Outcome::Passed
    }
}

impl Said {
    fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What tells one execution from another: the body, and where the result is.
    fn mark(&self) -> (u16, Bytes, Option<Bytes>) {
        let location = self.headers.get(LOCATION);
        let location = location.map(|value| Bytes::copy_from_slice(value.as_bytes()));
        (self.status, self.body.clone(), location)
    }

    fn has(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }
}

/// Two requests with keys of their own: do their answers differ?
pub(super) fn distinct(first: &Said, second: &Said) -> Check {
    let name = "executions differ";
    if !first.is_good() || !second.is_good() {
        let why = format!(
            "the request is not carried out ({}, {}): look at --method, --body and --header",
            first.status, second.status
        );
        return Check::failed(name, why);
    }
    match first.mark() == second.mark() {
        true => Check::skipped(
            name,
            "two executions gave the same answer, so executions cannot be counted; let the answer contain a new id",
        ),
        false => Check::passed(name, "each execution gives an answer of its own"),
    }
}

/// The same request again.
pub(super) fn replay(first: &Said, again: &Said) -> Check {
    let name = "replay";
    if again.mark() == first.mark() {
        let marked = match again.has(REPLAYED) {
            true => "marked as a replay",
            false => "without Idempotent-Replayed",
        };
        return Check::passed(name, format!("the same {} again, {marked}", first.status));
    }
    let why = match again.status == first.status {
        true => "the answer differs from the first one: it was carried out twice, or is not stored byte for byte".to_owned(),
        false => format!("{} at first, {} again", first.status, again.status),
    };
    Check::failed(name, why)
}

/// The same key in quotes.
pub(super) fn quoted(rules: Rules, first: &Said, said: &Said) -> Check {
    let name = "quoted key";
    match (said.mark() == first.mark(), rules) {
        (true, _) => Check::passed(name, "the bare and the quoted form are one key"),
        (false, Rules::Ietf) => Check::failed(
            name,
            format!(
                "{} instead of the stored answer: the quotes became part of the key",
                said.status
            ),
        ),
        (false, _) => Check::skipped(name, "the quoted form is another key here"),
    }
}

/// The same key with another body.
pub(super) fn mismatch(rules: Rules, said: &Said) -> Check {
    let name = "mismatch";
    let wanted: &[u16] = match rules {
        Rules::Ietf => &[422],
        Rules::Stripe => &[400],
        Rules::Any => &[400, 409, 422],
    };
    let status = said.status;
    match wanted.contains(&status) {
        true => Check::passed(
            name,
            format!("another body under the same key is refused with {status}"),
        ),
        false => {
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
pub(super) fn race(said: &[Said], countable: bool) -> Check {
    let name = "race";
    let good: Vec<&Said> = said.iter().filter(|one| one.is_good()).collect();
    let strange: BTreeSet<u16> = said
        .iter()
        .filter(|one| !one.is_good() && one.status != 409)
        .map(|one| one.status)
        .collect();
    let executions: BTreeSet<_> = good.iter().map(|one| one.mark()).collect();
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
        _ if !countable => Check::skipped(name, "executions cannot be counted"),
        1 => Check::passed(
            name,
            format!(
                "{many} at a time: one execution, {} got its answer, {waiting} got 409",
                good.len()
            ),
        ),
        more => Check::failed(name, format!("{many} at a time: {more} executions")),
    }
}

/// And then once more.
pub(super) fn after_race(said: &[Said], after: &Said, countable: bool) -> Check {
    let name = "after the race";
    let winner = said.iter().find(|one| one.is_good());
    match winner {
        None => Check::skipped(name, "nobody won"),
        Some(_) if !countable => Check::skipped(name, "executions cannot be counted"),
        Some(winner) if winner.mark() == after.mark() => {
            Check::passed(name, "a later retry gets the winner's answer")
        }
        Some(_) => Check::failed(
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

/// Another caller with the same key.
pub(super) fn scope(first: &Said, other: &Said) -> Check {
    let name = "scope";
    if other.mark() == first.mark() || other.has(REPLAYED) {
        return Check::failed(
            name,
            "another caller with the same key gets the first caller's answer",
        );
    }
    match other.is_good() {
        true => Check::passed(
            name,
            "another caller with the same key gets an answer of its own",
        ),
        false => Check::passed(
            name,
            format!("another caller with the same key gets {}", other.status),
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
    if keyed.has(REPLAYED) {
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
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    fn said(status: u16, body: &'static str) -> Said {
        Said {
            status,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    fn with(mut said: Said, name: &'static str, value: &'static str) -> Said {
        let name = HeaderName::from_static(name);
        said.headers.insert(name, HeaderValue::from_static(value));
        said
    }

    #[test]
    fn executions_are_told_apart_by_body_or_place() {
        let (a, b) = (said(201, "1"), said(201, "2"));
        assert_eq!(distinct(&a, &b).outcome, Outcome::Passed);
        assert_eq!(distinct(&a, &a).outcome, Outcome::Skipped);
        let placed = with(a.clone(), "location", "/charges/2");
        assert_eq!(distinct(&a, &placed).outcome, Outcome::Passed);
        assert_eq!(distinct(&a, &said(401, "")).outcome, Outcome::Failed);
    }

    #[test]
    fn a_race_has_one_execution() {
        let (won, waits) = (said(201, "1"), said(409, "wait"));
        let table = [
            (vec![won.clone(), waits.clone()], true, Outcome::Passed),
            (vec![won.clone(), won.clone()], true, Outcome::Passed),
            (vec![won.clone(), said(201, "2")], true, Outcome::Failed),
            (vec![won.clone(), said(500, "")], true, Outcome::Failed),
            (vec![waits.clone(), waits.clone()], true, Outcome::Failed),
            (vec![won.clone(), won.clone()], false, Outcome::Skipped),
        ];
        for (answers, countable, want) in table {
            assert_eq!(race(&answers, countable).outcome, want, "{answers:?}");
        }
        let race = [waits, won.clone()];
        assert!(after_race(&race, &won, true).is_passed());
        assert_eq!(
            after_race(&race, &said(201, "2"), true).outcome,
            Outcome::Failed
        );
    }

    #[test]
    fn rules_differ_in_what_they_expect() {
        for (rules, good) in [(Rules::Ietf, 422), (Rules::Stripe, 400), (Rules::Any, 409)] {
            assert!(mismatch(rules, &said(good, "")).is_passed());
            assert_eq!(mismatch(rules, &said(201, "")).outcome, Outcome::Failed);
        }
        let (first, other) = (said(201, "1"), said(201, "2"));
        assert_eq!(quoted(Rules::Ietf, &first, &other).outcome, Outcome::Failed);
        assert_eq!(quoted(Rules::Any, &first, &other).outcome, Outcome::Skipped);
    }

    #[test]
    fn an_expiry_is_a_date_to_come() {
        let now = Time::from_secs(1_700_000_000);
        let table = [
            ("Fri, 01 Jan 2100 00:00:00 GMT", Outcome::Passed),
            ("Thu, 01 Jan 1970 00:00:01 GMT", Outcome::Failed),
            ("tomorrow", Outcome::Failed),
        ];
        for (value, want) in table {
            let said = with(said(201, ""), EXPIRES, value);
            let judged = expiry(Rules::Ietf, &said, &said, now);
            assert_eq!(judged.outcome, want, "{value}");
        }
        let bare = said(201, "");
        let dated = with(bare.clone(), EXPIRES, table[0].0);
        for (rules, again, want) in [
            (Rules::Ietf, &bare, Outcome::Skipped),
            (Rules::Ietf, &dated, Outcome::Failed),
            (Rules::Any, &dated, Outcome::Passed),
        ] {
            assert_eq!(expiry(rules, &bare, again, now).outcome, want);
        }
    }

    #[test]
    fn a_replay_is_the_same_and_for_the_same_caller() {
        let first = said(201, "1");
        let marked = with(first.clone(), REPLAYED, "true");
        assert!(replay(&first, &marked).is_passed());
        assert_eq!(replay(&first, &said(201, "2")).outcome, Outcome::Failed);
        assert_eq!(scope(&first, &marked).outcome, Outcome::Failed);
        assert!(scope(&first, &said(201, "2")).is_passed());
        assert!(scope(&first, &said(401, "")).is_passed());
        assert_eq!(
            read(&said(200, ""), &with(said(200, ""), REPLAYED, "true")).outcome,
            Outcome::Failed
        );
        assert!(read(&said(405, ""), &said(405, "")).is_passed());
    }
}
