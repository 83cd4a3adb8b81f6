//! Effects over a map: `plan KEY repeat=R`, then what workers, rescuers and operators do to it.

use std::collections::HashMap;

use hapax_ledger::effect::{EffectRecord, Repeat, SkipReason};
use hapax_ledger::outcome::{Lost, NotSent, Outcome, Report};
use hapax_ledger::retry::Schedule;
use hapax_ledger::script::{Line, ScriptError};
use hapax_ledger::time::{Span, Time};
use hapax_ledger::transition::{Did, EffectStep, Rejected, Resolution, Resolver, step};

use crate::{claims_in_epoch, fence_in_epoch};

struct Effects {
    kept: HashMap<String, EffectRecord>,
    schedule: Schedule,
}

impl Effects {
    fn perform(&mut self, line: &Line) -> Result<String, ScriptError> {
        let key = line.word(0)?.to_owned();
        if line.verb == "plan" {
            let repeat = line
                .named("repeat")
                .map_or(Some(Repeat::Keyed), Repeat::from_word);
            let repeat = repeat.ok_or_else(|| line.error("no such class"))?;
            self.kept
                .insert(key, EffectRecord::planned(repeat, line.at));
            return Ok("pending".to_owned());
        }
        let record = *self
            .kept
            .get(&key)
            .ok_or_else(|| line.error("not planned"))?;
        let taken = self.step_of(line, &record)?;
        Ok(match step(&record, &taken) {
            Ok(change) => {
                self.kept.insert(key, change.next);
                did(change.did, line.arg("epoch", 1)?)
            }
            Err(rejected) => refused(rejected),
        })
    }

    fn step_of(&self, line: &Line, record: &EffectRecord) -> Result<EffectStep, ScriptError> {
        let now = line.at;
        let fence = fence_in_epoch(1, line.arg("fence", 0)?);
        let attempts_max = self.schedule.attempts_max();
        Ok(match line.verb.as_str() {
            "claim" => EffectStep::Claim {
                now,
                epoch: line.arg("epoch", 1)?,
                lease: Span::from_secs(30),
            },
            "start" => EffectStep::Start { fence, now },
            "extend" => EffectStep::Extend {
                fence,
                now,
                until: now + Span::from_secs(30),
            },
            "release" => EffectStep::Release { fence, due: now },
            "settle" => {
                let outcome = outcome(line)?;
                let next = record.next_after(outcome, &self.schedule, 0.0);
                EffectStep::Settle {
                    fence,
                    now,
                    outcome,
                    next,
                }
            }
            "rescue" => EffectStep::Expire { now, attempts_max },
            "restart" => EffectStep::Void { now, attempts_max },
            "restore" => EffectStep::Restore { now },
            "resolve" => {
                let (resolution, by) = resolution(line)?;
                EffectStep::Resolve {
                    resolution,
                    by,
                    now,
                }
            }
            "force" => EffectStep::Force { now },
            "skip" => EffectStep::Skip {
                reason: skip_reason(line)?,
            },
            "skip-claimed" => EffectStep::SkipClaimed {
                fence,
                reason: skip_reason(line)?,
            },
            "revive" => EffectStep::Revive { now },
            other => return Err(line.error(format!("an effect cannot `{other}`"))),
        })
    }
}

fn outcome(line: &Line) -> Result<Outcome, ScriptError> {
    let word = line.word(1)?;
    if let Ok(status) = word.parse() {
        let seconds = line
            .named("retry_after")
            .map(|_| line.arg("retry_after", Span::ZERO))
            .transpose()?;
        return Ok(Outcome::Answered {
            status,
            retry_after: seconds,
        });
    }
    let lost = Lost::from_word(word).map(|why| Outcome::Lost { why });
    let not_sent = || NotSent::from_word(word).map(|why| Outcome::NotSent { why });
    let reported = || Report::from_word(word).map(Outcome::Reported);
    lost.or_else(not_sent)
        .or_else(reported)
        .ok_or_else(|| line.error("no such outcome"))
}

fn resolution(line: &Line) -> Result<(Resolution, Resolver), ScriptError> {
    let resolution = match line.word(1)? {
        "applied" => Resolution::Applied,
        "not_applied" => Resolution::NotApplied,
        _ => Resolution::Skip,
    };
    let by = if line.named("by") == Some("probe") {
        let asked = line.arg("asked", since_start(line.at))?;
        Resolver::Probe {
            timeout: Span::from_secs(10),
            asked: Time::from_micros(0) + asked,
        }
    } else {
        Resolver::Person
    };
    Ok((resolution, by))
}

fn skip_reason(line: &Line) -> Result<SkipReason, ScriptError> {
    SkipReason::from_word(line.word(1)?).ok_or_else(|| line.error("no such reason"))
}

fn since_start(time: Time) -> Span {
    time.since(Time::from_micros(0))
}

fn did(did: Did, epoch: u32) -> String {
    match did {
        Did::Claimed(lease) => {
            let fence = claims_in_epoch(epoch, lease.fence);
            format!("claimed fence={fence} until={}", since_start(lease.until))
        }
        Did::Started { attempt } => format!("started attempt={attempt}"),
        Did::Extended { until } => format!("extended until={}", since_start(until)),
        Did::Done => "done".to_owned(),
        Did::Waits { until } => format!("pending at={}", since_start(until)),
        Did::Uncertain => "uncertain".to_owned(),
        Did::Dead => "dead".to_owned(),
        Did::Skipped(reason) => format!("skipped {reason}"),
        Did::Forced { generation } => format!("pending generation={generation}"),
        Did::Tightened => "claimed".to_owned(),
    }
}

fn refused(rejected: Rejected) -> String {
    match rejected {
        Rejected::StaleFence => "stale".to_owned(),
        Rejected::LeaseOver => "lease_over".to_owned(),
        Rejected::AlreadyDone => "already_done".to_owned(),
        Rejected::NotDue { at } => format!("not_due at={}", since_start(at)),
        Rejected::InFlight { until } => format!("in_flight until={}", since_start(until)),
        Rejected::NeedsRescue => "needs_rescue".to_owned(),
        Rejected::Uncertain => "is_uncertain".to_owned(),
        Rejected::Dead => "is_dead".to_owned(),
        Rejected::Skipped => "is_skipped".to_owned(),
        Rejected::AlreadyStarted => "already_started".to_owned(),
        Rejected::NotStarted => "not_started".to_owned(),
        Rejected::TooEarly { until } => format!("too_early until={}", since_start(until)),
        Rejected::NotApplicable => "not_applicable".to_owned(),
    }
}

#[test]
fn effects() {
    let waits = [0, 60, 300].map(Span::from_secs).to_vec();
    let schedule = Schedule::new(waits).expect("three attempts");
    let mut effects = Effects {
        kept: HashMap::new(),
        schedule,
    };
    crate::tell("effect.txt", include_str!("scripts/effect.txt"), |line| {
        effects.perform(line)
    });
}
