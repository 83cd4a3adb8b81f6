//! Holds the world's own log against the ledger. The two were written by different hands; where they differ, the demo has failed.

use std::collections::{BTreeMap, BTreeSet};

use super::deed::{Deed, Heard, Manner};
use super::ledger::Ledger;

#[cfg(test)]
mod tests;

/// What the world's log says, summed up.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) sent: u64,
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
    pub(super) refused: u64,
    /// Requests that were not answered, or with "not now".
    pub(super) unanswered: u64,
    pub(super) published: u64,
    pub(super) taken: u64,
    pub(super) orders: u64,
    pub(super) charged: u64,
    /// Things that happened again though they may happen once only.
    pub(super) repeats: u64,
    /// What differs, in words.
    pub(super) differences: Vec<String>,
}

/// The verdict.
pub(super) fn judge(deeds: &[Deed], ledger: &Ledger) -> Account {
    let mut account = Account::default();
    account.deliveries(deeds, ledger);
    account.effects(deeds, ledger);
    account.order(deeds);
    account.messages(deeds, ledger);
    account.charges(deeds, ledger);
    account
}

impl Account {
    fn differs(&mut self, text: String) {
        self.differences.push(text);
    }

    /// What was acknowledged is there, once; what was forged or late is not.
    fn deliveries(&mut self, deeds: &[Deed], ledger: &Ledger) {
        for deed in deeds {
            let Deed::Sent {
                object,
                manner,
                heard,
                event,
            } = deed
            else {
                continue;
            };
            self.sent += 1;
            match heard {
                Heard::Accepted => self.accepted += 1,
                Heard::Duplicate => self.duplicates += 1,
                Heard::Refused => self.refused += 1,
                Heard::Nothing => self.unanswered += 1,
            }
            let taken = matches!(heard, Heard::Accepted | Heard::Duplicate);
            if *manner != Manner::Honest && taken {
                self.differs(format!(
                    "{object} was not sent by the provider, and was taken"
                ));
            }
            if *manner == Manner::Honest && *heard == Heard::Refused {
                self.differs(format!(
                    "{object} was sent by the provider, and was refused"
                ));
            }
            let known = event
                .as_ref()
                .is_some_and(|id| ledger.events.contains_key(id));
            if taken && !known {
                self.differs(format!(
                    "{object} was acknowledged, and is not in the ledger"
                ));
            }
        }
        if self.accepted == 0 {
            self.differs("nothing was accepted at all".to_owned());
        }
        let mut keys = BTreeSet::new();
        for (id, (key, _)) in &ledger.events {
            if !keys.insert(key) {
                self.differs(format!("{id} is a second event under the key {key}"));
            }
            if key.contains("in_forged_") || key.contains("in_late_") {
                self.differs(format!(
                    "{id} is in the ledger, and was never sent by the provider"
                ));
            }
        }
    }

    /// Each thing happened as often as its class allows.
    fn effects(&mut self, deeds: &[Deed], ledger: &Ledger) {
        let mut by_key: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut by_fact: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for deed in deeds {
            if let Deed::Asked {
                effect,
                key,
                fact,
                did: true,
                ..
            } = deed
            {
                *by_key.entry((effect.clone(), key.clone())).or_default() += 1;
                *by_fact.entry((effect, fact)).or_default() += 1;
            }
        }
        for ((effect, key), times) in &by_key {
            if !ledger.effects.contains_key(&(effect.clone(), key.clone())) {
                let text = format!(
                    "{effect} ({key}) happened {times} times, and the ledger does not know it"
                );
                self.differs(text);
            }
        }
        let converges: BTreeSet<&str> = ledger
            .effects
            .iter()
            .filter(|(_, (class, _))| class == "converges")
            .map(|((name, _), _)| name.as_str())
            .collect();
        for ((effect, fact), times) in by_fact {
            if times > 1 && !converges.contains(effect) {
                self.repeats += times - 1;
                self.differs(format!("{effect} happened {times} times for {fact}"));
            }
        }
        for ((name, key), (_, state)) in &ledger.effects {
            let times = by_key.get(&(name.clone(), key.clone())).copied();
            let text = match (state.as_str(), times) {
                ("done", None) => format!("{name} ({key}) is done, and never happened"),
                ("skipped", Some(_)) => format!("{name} ({key}) is skipped, and happened"),
                _ => continue,
            };
            self.differs(text);
        }
    }

    /// No workspace went back to an older plan.
    fn order(&mut self, deeds: &[Deed]) {
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        for deed in deeds {
            let Deed::Asked {
                effect,
                fact,
                version: Some(version),
                did: true,
                ..
            } = deed
            else {
                continue;
            };
            if effect != "ensure-workspace" {
                continue;
            }
            let before = newest.entry(fact).or_default();
            if version < before {
                let text = format!("the workspace of {fact} went back from {before} to {version}");
                self.differences.push(text);
            }
            *before = (*before).max(*version);
        }
    }

    /// Each message arrived, and none that nobody published.
    fn messages(&mut self, deeds: &[Deed], ledger: &Ledger) {
        let mut taken: BTreeMap<&str, u64> = BTreeMap::new();
        for deed in deeds {
            match deed {
                Deed::Received { genuine: false, .. } => {
                    self.differs("a message came whose signature does not fit".to_owned());
                }
                Deed::Received {
                    message,
                    took: true,
                    ..
                } => *taken.entry(message).or_default() += 1,
                _ => {}
            }
        }
        self.taken = taken.values().sum();
        for deed in deeds {
            let Deed::Published { message } = deed else {
                continue;
            };
            self.published += 1;
            let status = ledger.messages.get(message).map(String::as_str);
            match (status, taken.get(message.as_str())) {
                (Some("success"), Some(1)) => {}
                (status, taken) => {
                    let status = status.unwrap_or("not in the ledger");
                    let times = taken.copied().unwrap_or(0);
                    self.differs(format!(
                        "{message} is {status}, and was taken {times} times"
                    ));
                }
            }
        }
        for (message, times) in taken {
            if !ledger.messages.contains_key(message) {
                self.differs(format!(
                    "{message} was taken {times} times, and is not in the ledger"
                ));
            }
        }
    }

    /// One execution per key, and one answer.
    fn charges(&mut self, deeds: &[Deed], ledger: &Ledger) {
        let mut charged: BTreeMap<&str, u64> = BTreeMap::new();
        let mut answers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut orders = BTreeSet::new();
        for deed in deeds {
            match deed {
                Deed::Charged { order } => {
                    orders.insert(order.as_str());
                    *charged.entry(order).or_default() += 1;
                }
                Deed::Answered {
                    order,
                    status,
                    body,
                } => {
                    orders.insert(order);
                    if *status == 201 {
                        answers.entry(order).or_default().insert(body);
                    }
                }
                _ => {}
            }
        }
        self.orders = orders.len() as u64;
        self.charged = charged.len() as u64;
        for order in orders {
            let times = charged.get(order).copied().unwrap_or(0);
            let said = answers.get(order).map_or(0, BTreeSet::len);
            if times > 1 {
                self.repeats += times - 1;
                self.differs(format!("{order} was charged {times} times under one key"));
            }
            if said > 1 {
                self.differs(format!("{order} was answered in {said} ways"));
            }
            let state = ledger.keys.get(order).map(String::as_str);
            if said > 0 && (times, state) != (1, Some("completed")) {
                let state = state.unwrap_or("not in the ledger");
                self.differs(format!(
                    "{order} was answered; it is {state}, and was charged {times} times"
                ));
            }
        }
    }
}
