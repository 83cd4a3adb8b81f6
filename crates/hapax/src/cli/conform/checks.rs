//! Which requests are sent, in which order.

use http::Method;
use tokio::task::JoinSet;

use super::judge::{self, Check, Rules};
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
    let key = fresh_key();
    let first = target.ask(&target.question(&key)).await?;
    let second = target.ask(&target.question(&fresh_key())).await?;
    let distinct = judge::distinct(&first, &second);
    let countable = distinct.is_passed();
    let mut checks = vec![distinct];
    let again = target.ask(&target.question(&key)).await?;
    checks.push(judge::replay(&first, &again));
    checks.push(quoted(target, rules, &key, &first).await?);
    let other = target.ask(&target.other_question(&key)).await?;
    checks.push(judge::mismatch(rules, &other));
    checks.extend(race(target, wanted.race, countable).await?);
    checks.push(judge::expiry(rules, &first, &again, clock::now()));
    checks.push(scope(target, &key, &first).await?);
    checks.extend(syntax(target, rules).await?);
    checks.push(missing(target, wanted.required).await?);
    checks.push(read(target, &key).await?);
    Ok(checks)
}

/// The bare and the quoted form of a structured field are one key.
async fn quoted(target: &Target, rules: Rules, key: &str, first: &Said) -> Result<Check, Failure> {
    if rules == Rules::Stripe {
        return Ok(Check::skipped(
            "quoted key",
            "only the IETF draft has quotes",
        ));
    }
    let said = target.ask(&target.question(&format!("\"{key}\""))).await?;
    Ok(judge::quoted(rules, first, &said))
}

async fn race(target: &Target, many: usize, countable: bool) -> Result<[Check; 2], Failure> {
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
        judge::race(&said, countable),
        judge::after_race(&said, &after, countable),
    ])
}

async fn scope(target: &Target, key: &str, first: &Said) -> Result<Check, Failure> {
    if !target.has_other() {
        let why = "no other caller: give one with --other-header";
        return Ok(Check::skipped("scope", why));
    }
    let question = Question {
        caller: Caller::Other,
        ..target.question(key)
    };
    Ok(judge::scope(first, &target.ask(&question).await?))
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
