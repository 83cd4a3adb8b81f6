//! Identities over a map: `receive KEY body=B`.

use std::collections::HashMap;

use hapax_ledger::event::EventStatus;
use hapax_ledger::fingerprint::compare_hash;
use hapax_ledger::id::{EventId, RawId};
use hapax_ledger::identity::{
    DuplicateRoute, Identity, OnDuplicateOfFailed, Sighting, Windows, check_windows, decide,
    route_duplicate,
};
use hapax_ledger::script::{Line, ScriptError};
use hapax_ledger::time::Span;

struct Inbox {
    windows: Windows,
    known: HashMap<String, Identity>,
    events: u64,
}

impl Inbox {
    fn perform(&mut self, line: &Line) -> Result<String, ScriptError> {
        match line.verb.as_str() {
            "receive" => self.receive(line),
            "duplicate-of" => route(line),
            other => Err(line.error(format!("an inbox cannot `{other}`"))),
        }
    }

    fn receive(&mut self, line: &Line) -> Result<String, ScriptError> {
        let key = line.word(0)?;
        let body = line.named("body").unwrap_or("A");
        let volatile = ["v".parse().expect("a field")];
        let hash = compare_hash(body.as_bytes(), &volatile);
        let known = self.known.get(key).copied();
        Ok(match (decide(known.as_ref(), hash, line.at), known) {
            (Sighting::Duplicate { conflict }, Some(identity)) => {
                self.known
                    .insert(key.to_owned(), identity.seen_again(line.at, self.windows));
                let flag = if conflict { "conflict" } else { "" };
                format!("duplicate event={} {flag}", identity.event.0.row())
            }
            (Sighting::New | Sighting::Expired | Sighting::Duplicate { .. }, _) => {
                self.events += 1;
                let event = EventId(RawId::new(line.at, 0, self.events));
                self.known.insert(
                    key.to_owned(),
                    Identity::first(event, hash, line.at, self.windows),
                );
                format!("new event={}", self.events)
            }
        })
    }
}

fn route(line: &Line) -> Result<String, ScriptError> {
    let status =
        EventStatus::from_word(line.word(0)?).ok_or_else(|| line.error("no such status"))?;
    let rule =
        OnDuplicateOfFailed::from_word(line.word(1)?).ok_or_else(|| line.error("no such rule"))?;
    Ok(match route_duplicate(status, rule) {
        DuplicateRoute::Link => "link".to_owned(),
        DuplicateRoute::Retry => "retry".to_owned(),
    })
}

#[test]
fn identities() {
    let windows = check_windows(Span::from_days(7), Span::from_days(3)).expect("long enough");
    let mut inbox = Inbox {
        windows,
        known: HashMap::new(),
        events: 0,
    };
    crate::tell(
        "identity.txt",
        include_str!("scripts/identity.txt"),
        |line| inbox.perform(line),
    );
}
