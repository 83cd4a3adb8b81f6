//! Guarded keys over a map: `claim KEY body=B`, `settle KEY fence=N STATUS`, `extend`, `lose`, `resolve KEY fence=N OUTCOME`.

use std::collections::HashMap;

use hapax_ledger::fingerprint::{Fingerprint, RequestParts};
use hapax_ledger::guard::{
    Body, Ending, GuardClaim, GuardDecision, GuardPolicy, GuardRecord, GuardRejected, GuardState,
    GuardStep, OnUnknown, decide, settlement, step,
};
use hapax_ledger::lease::Fence;
use hapax_ledger::script::{Line, ScriptError};
use hapax_ledger::time::Span;

use crate::{claims_in_epoch, fence_in_epoch};

#[derive(Default)]
struct Guard {
    kept: HashMap<String, (GuardRecord, u16)>,
}

impl Guard {
    fn perform(&mut self, line: &Line) -> Result<String, ScriptError> {
        let key = line.word(0)?.to_owned();
        match line.verb.as_str() {
            "claim" => self.claim(line, key),
            "settle" => self.settle(line, key),
            "extend" => {
                let until = line.at + line.arg("lease", Span::from_secs(30))?;
                self.step(
                    line,
                    key,
                    GuardStep::Extend {
                        fence: fence(line)?,
                        now: line.at,
                        until,
                    },
                )
            }
            "lose" => self.step(line, key, GuardStep::Lose { now: line.at }),
            "resolve" => match line.word(1)? {
                "executed" => {
                    let (fence, now) = (fence(line)?, line.at);
                    let ttl = GuardPolicy::default().ttl;
                    self.step(line, key, GuardStep::ResolveExecuted { fence, now, ttl })
                }
                _ => {
                    let (fence, now) = (fence(line)?, line.at);
                    self.step(line, key, GuardStep::ResolveNotExecuted { fence, now })
                }
            },
            other => Err(line.error(format!("a guard cannot `{other}`"))),
        }
    }

    fn claim(&mut self, line: &Line, key: String) -> Result<String, ScriptError> {
        let body = line.named("body").unwrap_or("A").as_bytes();
        let request = RequestParts {
            method: "POST",
            path: "/",
            query: None,
            content_type: None,
            body,
        };
        let on_unknown = line
            .named("on_unknown")
            .map_or(Some(OnUnknown::Hold), OnUnknown::from_word);
        let claim = GuardClaim {
            fingerprint: Fingerprint::of(&request),
            now: line.at,
            epoch: 1,
            lease: Span::from_secs(30),
            on_unknown: on_unknown.ok_or_else(|| line.error("no such rule"))?,
            ttl: GuardPolicy::default().ttl,
            grace: Span::from_hours(24),
        };
        let known = self.kept.get(&key);
        let status = known.map_or(0, |(_, status)| *status);
        Ok(match decide(known.map(|(record, _)| record), &claim) {
            GuardDecision::Run(record) => {
                self.kept.insert(key, (record, 0));
                format!("fresh fence={}", claims_in_epoch(1, record.fence))
            }
            GuardDecision::Replay => format!("replay {status}"),
            GuardDecision::NotKept => "not_kept".to_owned(),
            GuardDecision::InProgress { until } => {
                format!("in_progress retry_after={}", until.since(line.at))
            }
            GuardDecision::OutcomeUnknown(record) => {
                self.kept.insert(key, (record, status));
                "unknown".to_owned()
            }
            GuardDecision::Expired => "expired".to_owned(),
            GuardDecision::Mismatch => "mismatch".to_owned(),
        })
    }

    fn settle(&mut self, line: &Line, key: String) -> Result<String, ScriptError> {
        let (ending, status) = match line.word(1)? {
            "not_reached" => (Ending::NotReached, 0),
            "no_answer" => (Ending::NoAnswer, 0),
            code => {
                let status = code.parse().map_err(|_| line.error("no status"))?;
                let body = if line.named("body") == Some("large") {
                    Body::NotKept
                } else {
                    Body::Kept
                };
                (Ending::Answered { status, body }, status)
            }
        };
        let policy = GuardPolicy {
            store_5xx: line.arg("store_5xx", false)?,
            ..GuardPolicy::default()
        };
        let settlement = settlement(ending, &policy);
        let finish = GuardStep::Finish {
            fence: fence(line)?,
            now: line.at,
            settlement,
            ttl: policy.ttl,
        };
        let answer = self.step(line, key.clone(), finish);
        if let Some((record, kept)) = self
            .kept
            .get_mut(&key)
            .filter(|(record, _)| record.state == GuardState::Completed)
        {
            *kept = if record.expires_at == line.at + policy.ttl {
                status
            } else {
                *kept
            };
        }
        answer
    }

    fn step(&mut self, line: &Line, key: String, taken: GuardStep) -> Result<String, ScriptError> {
        let (record, status) = *self
            .kept
            .get(&key)
            .ok_or_else(|| line.error("no such key"))?;
        Ok(match step(&record, &taken) {
            Ok(next) => {
                self.kept.insert(key, (next, status));
                next.state.to_string()
            }
            Err(GuardRejected::StaleFence) => "stale".to_owned(),
            Err(GuardRejected::LeaseOver) => "lease_over".to_owned(),
            Err(GuardRejected::InProgress) => "in_progress".to_owned(),
            Err(GuardRejected::NotApplicable) => "not_applicable".to_owned(),
        })
    }
}

fn fence(line: &Line) -> Result<Fence, ScriptError> {
    Ok(fence_in_epoch(1, line.arg("fence", 0)?))
}

#[test]
fn guarded_keys() {
    let mut guard = Guard::default();
    crate::tell("guard.txt", include_str!("scripts/guard.txt"), |line| {
        guard.perform(line)
    });
}
