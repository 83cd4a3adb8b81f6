//! Compares the world with the ledger: what really arrived, and what is recorded of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde_json::Value;

use super::scene::ended;
use crate::support::clock::tick;
use crate::support::server::Server;
use crate::support::world::Seen;

/// After many faults, more than one lease and more than one schedule may have to pass.
const ENDS_WITHIN: Duration = Duration::from_secs(90);

/// Waits until nothing is under way and nothing more will be, as far as time can tell (liveness). `requests` counts what the
/// world has seen: if that stands still while nothing is claimed, nothing went round in between two looks.
#[track_caller]
pub(super) fn wait_until_all_has_ended(server: &Server, requests: impl Fn() -> usize) {
    let mut connection = server.connect();
    let mut in_state = |state: &str| -> Vec<Value> {
        let page = connection.get(&format!("/api/v1/effect?limit=250&state={state}"));
        page["data"].as_array().expect("a list").clone()
    };
    let start = tick();
    loop {
        let before = requests();
        let mut open = in_state("claimed");
        let pending = in_state("pending");
        open.extend(pending.into_iter().filter(|one| one["gate"] == "open"));
        open.extend(in_state("claimed"));
        if open.is_empty() && requests() == before {
            return;
        }
        let left = open.len();
        assert!(
            tick() - start < ENDS_WITHIN,
            "{left} go on: {:#?}",
            open.first()
        );
    }
}

/// Every effect with its attempts, by the key that the world sees.
#[track_caller]
pub(crate) fn ledger(server: &Server) -> HashMap<String, Value> {
    let mut connection = server.connect();
    let mut effects = HashMap::new();
    let mut path = "/api/v1/effect?limit=250".to_owned();
    loop {
        let page = connection.get(&path);
        for effect in page["data"].as_array().expect("a list") {
            let id = effect["id"].as_str().expect("an id");
            let detail = connection.get(&format!("/api/v1/effect/{id}"));
            let text = |field: &str| detail[field].as_str().expect("a text").to_owned();
            let key = format!("{}:{}", text("name"), text("key"));
            let before = effects.insert(key, detail);
            assert!(before.is_none(), "D6: one key, two effects: {before:#?}");
        }
        if page["done"] == true {
            return effects;
        }
        let iterator = page["iterator"].as_str().expect("an iterator");
        path = format!("/api/v1/effect?limit=250&iterator={iterator}");
    }
}

/// Judges a world that refuses with 429 only. Says how many effects ended in each state.
#[track_caller]
pub(super) fn judge(seen: &[Seen], ledger: &HashMap<String, Value>) -> BTreeMap<String, usize> {
    let mut requests: HashMap<&str, Vec<u64>> = HashMap::new();
    let mut key_of: HashMap<(&str, &str), &str> = HashMap::new();
    for one in seen {
        let header = |name: &str| one.headers[name].as_str();
        let attempt = header("hapax-attempt").parse().expect("a number");
        requests.entry(one.key()).or_default().push(attempt);
        let who = (header("hapax-event-id"), header("hapax-effect"));
        let key = key_of.entry(who).or_insert(one.key());
        assert_eq!(*key, one.key(), "D5: one effect, two keys");
    }
    for (key, attempts) in &requests {
        let effect = ledger.get(*key);
        let effect = effect.unwrap_or_else(|| panic!("D1: {key} is in no ledger"));
        judge_requests(attempts, effect);
    }
    let mut states = BTreeMap::new();
    for (key, effect) in ledger {
        let state = effect["state"].as_str().expect("a state");
        *states.entry(state.to_owned()).or_default() += 1;
        if state == "done" {
            assert!(
                requests.contains_key(&**key),
                "done, and never sent: {effect:#}"
            );
        }
    }
    states
}

/// The requests of one effect, by the number of their attempt.
#[track_caller]
fn judge_requests(requests: &[u64], effect: &Value) {
    let attempts = ended(effect);
    let recorded: BTreeSet<u64> = attempts
        .iter()
        .map(|attempt| attempt["number"].as_u64().expect("a number"))
        .collect();
    let under_way = (effect["state"] == "claimed").then(|| effect["attemptCount"].as_u64());
    for request in requests {
        let known = recorded.contains(request) || under_way == Some(Some(*request));
        assert!(known, "D1: attempt {request} is not recorded: {effect:#}");
    }
    let distinct: BTreeSet<&u64> = requests.iter().collect();
    assert_eq!(
        distinct.len(),
        requests.len(),
        "C3: {requests:?} {effect:#}"
    );
    if effect["repeat"] == "once" {
        let refused = |attempt: &&Value| attempt["status"] == 429;
        let refusals = attempts.iter().filter(refused).count();
        assert!(requests.len() <= 1 + refusals, "D4: {effect:#}");
    }
    let applied = attempts.iter().position(|attempt| {
        let status = attempt["status"].as_u64();
        status.is_some_and(|status| (200..300).contains(&status))
    });
    if effect["state"] == "done" {
        assert_eq!(applied, Some(attempts.len() - 1), "D2: {effect:#}");
    } else {
        assert_eq!(applied, None, "applied, and not done: {effect:#}");
    }
}
