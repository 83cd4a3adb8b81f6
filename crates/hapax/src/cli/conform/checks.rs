//! Which requests are sent, in which order.

use http::Method;
use tokio::task::JoinSet;

use super::check::{Check, Rules};
use super::evidence::Evidence;
use super::judge;
use super::target::{Caller, Question, Said, Target, fresh_key};
use crate::cli::exit::Failure;
use crate::clock;

/// More letters than any key may have.
const TOO_LONG: usize = 256;

/// What is expected beyond what the answers show.
pub(super) struct Wanted {
    pub(super) rules: Rules,
    /// Has a request to have a key?
    pub(super) required: bool,
    /// How many requests race.
    pub(super) race: usize,
}

/// All checks, in the order of the table.
pub(super) async fn all(target: &Target, wanted: &Wanted) -> Result<Vec<Check>, Failure> {
    let rules = wanted.rules;
    let keys = [fresh_key(), fresh_key(), fresh_key()];
    let first = target.ask(&target.question(&keys[0])).await?;
    // At the same time: a clock in the answers does not tell executions apart.
    let (second, third) = (target.question(&keys[1]), target.question(&keys[2]));
    let (second, third) = tokio::try_join!(target.ask(&second), target.ask(&third))?;
    let key = &*keys[0];
    let distinct = judge::distinct(&[(key, &first), (&keys[1], &second), (&keys[2], &third)]);
    let again = target.ask(&target.question(key)).await?;
    let evidence = Evidence {
        told_apart: distinct.is_passed(),
        marks_replays: again.is_replay() && !first.is_replay(),
    };
    let mut checks = vec![distinct, judge::replay(&first, &again, evidence)];
    checks.push(quoted(target, rules, key, &first, evidence).await?);
    checks.push(mismatch(target, rules, key).await?);
    checks.extend(race(target, wanted.race, evidence).await?);
    checks.push(judge::expiry(rules, &first, &again, clock::now()));
    checks.push(scope(target, key, &first, evidence).await?);
    checks.extend(syntax(target, rules).await?);
    checks.push(missing(target, wanted.required).await?);
    checks.push(read(target, key).await?);
    Ok(checks)
}

/// The bare and the quoted form of a structured field are one key.
async fn quoted(
    target: &Target,
    rules: Rules,
    key: &str,
    first: &Said,
    evidence: Evidence,
) -> Result<Check, Failure> {
    if rules == Rules::Stripe {
        return Ok(Check::skipped(
            "quoted key",
            "only the IETF draft has quotes",
        ));
    }
    let said = target.ask(&target.question(&format!("\"{key}\""))).await?;
    Ok(judge::quoted(rules, first, &said, evidence))
}

/// Refused is the other body because of the key, and not for itself.
async fn mismatch(target: &Target, rules: Rules, key: &str) -> Result<Check, Failure> {
    let said = target.ask(&target.other_question(key)).await?;
    let own = target.ask(&target.other_question(&fresh_key())).await?;
    Ok(judge::mismatch(rules, &said, &own))
}

async fn race(target: &Target, many: usize, evidence: Evidence) -> Result<[Check; 2], Failure> {
    let key = fresh_key();
    let mut racing = JoinSet::new();
    for _ in 0..many {
        let (target, question) = (target.clone(), target.question(&key));
        racing.spawn(async move { target.ask(&question).await });
    }
    let mut said = Vec::with_capacity(many);
    while let Some(one) = racing.join_next().await {
        // A task of ours does not panic.
        if let Ok(one) = one {
            said.push(one?);
        }
    }
    let after = target.ask(&target.question(&key)).await?;
    Ok([
        judge::race(&said, evidence),
        judge::after_race(&said, &after, evidence),
    ])
}

async fn scope(
    target: &Target,
    key: &str,
    first: &Said,
    evidence: Evidence,
) -> Result<Check, Failure> {
    if !target.has_other() {
        let why = "no other caller: give one with --other-header";
        return Ok(Check::skipped("scope", why));
    }
    let question = Question {
        caller: Caller::Other,
        ..target.question(key)
    };
    let other = target.ask(&question).await?;
    Ok(judge::scope(first, &other, evidence))
}

async fn syntax(target: &Target, rules: Rules) -> Result<[Check; 3], Failure> {
    let long = target.ask(&target.question(&"k".repeat(TOO_LONG))).await?;
    let twice = Question {
        keys: vec![fresh_key(), fresh_key()],
        ..target.question("")
    };
    let twice = target.ask(&twice).await?;
    let open = match rules {
        Rules::Stripe => Check::skipped("open quote", "only the IETF draft has quotes"),
        Rules::Ietf | Rules::Any => {
            let said = target.ask(&target.question("\"open")).await?;
            judge::malformed("open quote", &said)
        }
    };
    Ok([
        judge::malformed("key too long", &long),
        judge::malformed("two keys", &twice),
        open,
    ])
}

async fn missing(target: &Target, required: bool) -> Result<Check, Failure> {
    if !required {
        return Ok(Check::skipped("missing key", "not said to be --required"));
    }
    let question = Question {
        keys: Vec::new(),
        ..target.question("")
    };
    Ok(judge::malformed(
        "missing key",
        &target.ask(&question).await?,
    ))
}

/// A key on a read is none of anybody's business.
async fn read(target: &Target, key: &str) -> Result<Check, Failure> {
    let bare = Question {
        method: Method::GET,
        body: bytes::Bytes::new(),
        keys: Vec::new(),
        ..target.question("")
    };
    let keyed = Question {
        keys: vec![key.to_owned()],
        ..bare.clone()
    };
    let (bare, keyed) = (target.ask(&bare).await?, target.ask(&keyed).await?);
    Ok(judge::read(&bare, &keyed))
}
