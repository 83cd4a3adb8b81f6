//! The board: which alerts stand, since when, and which were cleared lately. It keeps them from flapping: one that is raised stays
//! until its rule has not held for a while.

use std::collections::{BTreeMap, VecDeque};

use hapax_ledger::time::Time;

use super::kind::{Kind, Severity};
use super::notice::ALERT_LANE;
use super::rules::{Finding, Judgement};

/// So many looks in a row without its finding clear an alert: a minute, as looks are usually spaced.
pub const QUIET_LOOKS: u32 = 6;
/// Cleared alerts that are remembered.
pub const CLEARED_MAX: usize = 100;
/// Alerts that stand at a time; more are not raised. With so many, another one helps nobody.
pub const ACTIVE_MAX: usize = 1_000;
/// Those of them that are of one kind, so that a thousand endpoints that are disabled do not hide a full disk.
pub const KIND_MAX: usize = 200;

/// An alert, standing or cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// At what to look.
    pub kind: Kind,
    /// Where: a source, a lane, or a part of the ledger.
    pub subject: String,
    /// How urgently.
    pub severity: Severity,
    /// A sentence with figures, as of the latest look at which its rule held.
    pub text: String,
    /// When it was raised.
    pub since: Time,
    /// When it was cleared, if it was.
    pub cleared_at: Option<Time>,
}

impl Alert {
    /// Is it about the lane that alerts are sent in? Then it is not sent: it would only add to what does not get through.
    pub fn is_about_alerts(&self) -> bool {
        self.subject == ALERT_LANE
    }
}

/// What became different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An alert was raised.
    Raised(Alert),
    /// An alert was cleared.
    Cleared(Alert),
}

impl Change {
    /// The alert that it is about.
    pub fn alert(&self) -> &Alert {
        match self {
            Change::Raised(alert) | Change::Cleared(alert) => alert,
        }
    }
}

/// All alerts of this node.
#[derive(Debug, Default)]
pub struct Board {
    active: BTreeMap<(Kind, String), Standing>,
    cleared: VecDeque<Alert>,
}

#[derive(Debug)]
struct Standing {
    alert: Alert,
    quiet: u32,
}

impl Board {
    /// Takes in what the rules say now. Alerts of kinds that were not judged stay as they are.
    pub fn look(&mut self, said: &Judgement, now: Time) -> Vec<Change> {
        for standing in self.active.values_mut() {
            if said.judged.contains(&standing.alert.kind) {
                standing.quiet += 1;
            }
        }
        let mut changes: Vec<Change> = said
            .findings
            .iter()
            .filter_map(|finding| self.hold(finding, now))
            .map(Change::Raised)
            .collect();
        changes.extend(self.clear(now).into_iter().map(Change::Cleared));
        changes
    }

    /// A rule holds. Gives the alert if it is new.
    fn hold(&mut self, finding: &Finding, now: Time) -> Option<Alert> {
        let key = (finding.kind, finding.subject.clone());
        if let Some(standing) = self.active.get_mut(&key) {
            standing.quiet = 0;
            standing.alert.severity = finding.severity;
            standing.alert.text.clone_from(&finding.text);
            return None;
        }
        if self.active.len() == ACTIVE_MAX || self.standing(finding.kind) == KIND_MAX {
            return None;
        }
        let alert = Alert {
            kind: finding.kind,
            subject: finding.subject.clone(),
            severity: finding.severity,
            text: finding.text.clone(),
            since: now,
            cleared_at: None,
        };
        let standing = Standing {
            alert: alert.clone(),
            quiet: 0,
        };
        self.active.insert(key, standing);
        Some(alert)
    }

    /// How many alerts of a kind stand.
    pub fn standing(&self, kind: Kind) -> usize {
        let from = (kind, String::new());
        let alerts = self.active.range(from..);
        alerts.take_while(|((of, _), _)| *of == kind).count()
    }

    fn clear(&mut self, now: Time) -> Vec<Alert> {
        let over = self
            .active
            .extract_if(.., |_, standing| standing.quiet >= QUIET_LOOKS);
        let over: Vec<Alert> = over
            .map(|(_, standing)| Alert {
                cleared_at: Some(now),
                ..standing.alert
            })
            .collect();
        for alert in &over {
            if self.cleared.len() == CLEARED_MAX {
                self.cleared.pop_back();
            }
            self.cleared.push_front(alert.clone());
        }
        over
    }

    /// Another node tells alerts of these kinds from now on: ours go without a word.
    pub fn hand_over(&mut self, kinds: &[Kind]) {
        self.active.retain(|(kind, _), _| !kinds.contains(kind));
    }

    /// The alerts that stand.
    pub fn active(&self) -> impl Iterator<Item = &Alert> {
        self.active.values().map(|standing| &standing.alert)
    }

    /// Those that were cleared lately, the latest first.
    pub fn cleared(&self) -> impl Iterator<Item = &Alert> {
        self.cleared.iter()
    }
}

#[cfg(test)]
mod tests;
