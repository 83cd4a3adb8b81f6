//! The verdict: what would happen if somebody pressed the button now? Computed from the ledger, never guessed.
//!
//! It is read by a support person at three in the morning. So each line says what would happen and why, in a sentence,
//! and `safe` is said only when nothing can take effect twice.

use crate::effect::{EffectRecord, EffectState, Repeat, SkipReason};
use crate::event::words;
use crate::key::PartsHash;
use crate::order::OrderVerdict;
use crate::time::Time;

mod line;

use line::Judged;

words!(
    /// The verdict on an event.
    VerdictKind {
        /// Every effect is done, or skipped for a reason.
        NothingToDo = 0, "nothing_to_do";
        /// Only missing effects would run, and no send could be a second effect.
        Safe = 1, "safe";
        /// A person has to decide something first.
        NeedsDecision = 2, "needs_decision";
    }
);

words!(
    /// What would happen to one effect.
    Would {
        /// Nothing: it is done, or not to be carried out.
        Skip = 0, "skip";
        /// It would be sent.
        Send = 1, "send";
        /// Nothing, although it is not done.
        Blocked = 2, "blocked";
    }
);

words!(
    /// Is something still there, or has it reached the end of its retention?
    Kept {
        /// It is there.
        Whole = 0, "whole";
        /// It was reaped.
        Reaped = 1, "reaped";
    }
);

/// What an operator is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Same run chain; only what is not done.
    Retry,
    /// A new run; done effects are skipped, except these.
    Replay {
        /// Names of effects to send once more, as a new generation.
        force: &'a [String],
    },
    /// Send converging effects again, with a fresh snapshot; others stay untouched.
    Reconcile,
}

/// All that the verdict on an event is computed from.
#[derive(Clone, Debug)]
pub struct EventLedger<'a> {
    /// By the store's clock.
    pub now: Time,
    /// Its payload.
    pub payload: Kept,
    /// Its effects and attempts.
    pub ledger: Kept,
    /// Why the event as a whole waits for a person, if it does.
    pub held: Option<&'a str>,
    /// Deliveries with another body under the same key that nobody has acknowledged.
    pub conflicts_open: u32,
    /// Effects that it calls for and that are still being made: a large set follows its event in steps.
    pub to_come: u64,
    /// Its effects, those it shares with other events included.
    pub effects: Vec<EffectLine<'a>>,
}

/// One effect of the event.
#[derive(Clone, Debug)]
pub struct EffectLine<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its key.
    pub key: &'a str,
    /// Where it stands, under the stricter of the frozen and the current class: [`EffectRecord::under`].
    pub record: EffectRecord,
    /// Names of the effects of this event that come first.
    pub after: &'a [String],
    /// What its order guard would say; [`OrderVerdict::Go`] without one.
    pub order: OrderVerdict,
}

/// The verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Of the ledger it was computed from.
    pub revision: u64,
    /// The answer.
    pub verdict: VerdictKind,
    /// Why, in sentences.
    pub reasons: Vec<String>,
    /// Per effect.
    pub effects: Vec<EffectVerdict>,
}

/// What would happen to one effect, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectVerdict {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: String,
    /// Where it stands.
    pub state: EffectState,
    /// Its class.
    pub repeat: Repeat,
    /// What would happen.
    pub would: Would,
    /// Why, in a sentence.
    pub why: String,
}

/// The verdict on an event as it stands: what a retry would do.
pub fn verdict(ledger: &EventLedger<'_>) -> Verdict {
    verdict_on(ledger, Action::Retry)
}

/// The verdict on an action.
pub fn verdict_on(ledger: &EventLedger<'_>, action: Action<'_>) -> Verdict {
    let judged: Vec<Judged> = ledger
        .effects
        .iter()
        .map(|effect| line::judge(ledger, effect, action))
        .collect();
    let mut reasons = event_reasons(ledger, action);
    for (effect, judged) in ledger.effects.iter().zip(&judged) {
        if judged.needs_decision {
            reasons.push(format!("{} ({}): {}", effect.name, effect.key, judged.why));
        }
    }
    let any = |would| judged.iter().filter(|line| line.would == would).count();
    let (sent, blocked) = (any(Would::Send), any(Would::Blocked));
    let kind = match (reasons.is_empty(), sent + blocked, ledger.to_come) {
        (false, ..) => VerdictKind::NeedsDecision,
        (true, 0, 0) => VerdictKind::NothingToDo,
        (true, ..) => VerdictKind::Safe,
    };
    if reasons.is_empty() {
        reasons.push(summary(ledger.effects.len(), sent, blocked));
    }
    if ledger.to_come > 0 {
        reasons.push(format!(
            "{} more are still being made; they go out by themselves.",
            ledger.to_come
        ));
    }
    let effects = ledger
        .effects
        .iter()
        .zip(judged)
        .map(|(effect, judged)| EffectVerdict {
            name: effect.name.to_owned(),
            key: effect.key.to_owned(),
            state: effect.record.state,
            repeat: effect.record.repeat,
            would: judged.would,
            why: judged.why,
        });
    Verdict {
        revision: revision(ledger),
        verdict: kind,
        reasons,
        effects: effects.collect(),
    }
}

/// Names the state of the ledger that a verdict is about: another number whenever anything that the verdict depends on is another,
/// but for time and leases. An action may name it, and is refused if the ledger has moved (E4). It fits into a JSON number.
pub fn revision(ledger: &EventLedger<'_>) -> u64 {
    let mut hash = PartsHash::new("revision")
        .part(&[ledger.payload.code(), ledger.ledger.code()])
        .part(ledger.held.unwrap_or_default().as_bytes())
        .part(&ledger.conflicts_open.to_be_bytes());
    for effect in &ledger.effects {
        let record = &effect.record;
        let marks = [
            record.repeat.code(),
            record.state.code(),
            u8::from(record.started),
            u8::from(record.ambiguous),
            record.skip.map_or(u8::MAX, SkipReason::code),
        ];
        hash = hash
            .part(effect.name.as_bytes())
            .part(effect.key.as_bytes())
            .part(&marks)
            .part(&record.generation.to_be_bytes())
            .part(&record.attempts.to_be_bytes())
            .part(&record.fence.as_u64().to_be_bytes());
    }
    if ledger.to_come > 0 {
        hash = hash.part(&ledger.to_come.to_be_bytes());
    }
    let [a, b, c, d, e, f, g, h, ..] = hash.finish();
    u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 11
}

/// What asks for a person before any effect is looked at.
fn event_reasons(ledger: &EventLedger<'_>, action: Action<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(why) = ledger.held {
        reasons.push(format!("The event waits for review: {why}."));
    }
    match ledger.conflicts_open {
        0 => {}
        1 => reasons.push("A delivery with the same key had another body; look at it and acknowledge or promote it.".to_owned()),
        n => reasons.push(format!("{n} deliveries with the same key had another body; look at them and acknowledge or promote them.")),
    }
    if ledger.ledger == Kept::Reaped {
        reasons.push(
            "The record of what was sent is no longer kept, so nobody can tell what is missing."
                .to_owned(),
        );
    }
    if let Action::Replay { force } = action {
        let known = |name: &&String| {
            ledger
                .effects
                .iter()
                .any(|effect| effect.name == name.as_str())
        };
        for name in force.iter().filter(|name| !known(name)) {
            reasons.push(format!(
                "The event has no effect called {name}, so it cannot be forced."
            ));
        }
    }
    reasons
}

fn summary(effects: usize, sent: usize, blocked: usize) -> String {
    match (effects, sent, blocked) {
        (0, _, _) => "The event calls for no effect.".to_owned(),
        (_, 0, 0) => "Every effect is done, or skipped for a reason.".to_owned(),
        (_, sent, 0) => {
            format!("{sent} of {effects} would be sent; nothing can take effect twice.")
        }
        (_, sent, blocked) => {
            format!(
                "{sent} of {effects} would be sent and {blocked} would wait; nothing can take effect twice."
            )
        }
    }
}

#[cfg(test)]
mod tests;
