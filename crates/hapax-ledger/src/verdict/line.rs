//! One line of the verdict: what would happen to one effect, and why.

use super::{Action, EffectLine, EventLedger, Kept, Would};
use crate::effect::{EffectState, Repeat, SkipReason};
use crate::order::{AfterVerdict, OrderVerdict, ReviewWhy, after};

/// What would happen, the sentence, and whether a person has to decide first.
pub(super) struct Judged {
    pub(super) would: Would,
    pub(super) why: String,
    pub(super) needs_decision: bool,
}

fn skip(why: impl Into<String>) -> Judged {
    Judged {
        would: Would::Skip,
        why: why.into(),
        needs_decision: false,
    }
}

fn send(why: impl Into<String>) -> Judged {
    Judged {
        would: Would::Send,
        why: why.into(),
        needs_decision: false,
    }
}

fn blocked(why: impl Into<String>) -> Judged {
    Judged {
        would: Would::Blocked,
        why: why.into(),
        needs_decision: false,
    }
}

fn decide_first(why: impl Into<String>) -> Judged {
    Judged {
        would: Would::Blocked,
        why: why.into(),
        needs_decision: true,
    }
}

/// It would be sent because a person said so, and the verdict keeps saying what was decided.
fn send_after_all(why: impl Into<String>) -> Judged {
    Judged {
        would: Would::Send,
        why: why.into(),
        needs_decision: true,
    }
}

const UNCERTAIN: &str = "Nobody can tell whether it was applied, and a second send would be a second effect. \
     Find out, then resolve it as applied, not applied or skip.";
const STALE: &str = "Something newer of the same object was already sent, and this would take it back. Force it if that is wanted.";
const NO_PAYLOAD: &str = "The payload is no longer kept, so it cannot be sent.";

/// Judges one effect under an action.
pub(super) fn judge(
    ledger: &EventLedger<'_>,
    effect: &EffectLine<'_>,
    action: Action<'_>,
) -> Judged {
    let record = &effect.record;
    let state = match record.state {
        // A lease that ran out is read as the rescue will read it, whether or not the rescue has come by.
        EffectState::Claimed if record.lease().expired(ledger.now) => {
            match (record.started, record.repeat) {
                (true, Repeat::Once) => EffectState::Uncertain,
                _ => EffectState::Pending,
            }
        }
        other => other,
    };
    let is_forced = match action {
        Action::Replay { force } => force.iter().any(|name| name == effect.name),
        Action::Retry | Action::Reconcile => false,
    };
    match (state, action) {
        (EffectState::Claimed, _) => in_flight(ledger, effect),
        (_, Action::Reconcile) if record.repeat == Repeat::Converges => {
            send("Converges: it would be sent again with the current state, as a new generation.")
        }
        (_, Action::Reconcile) => {
            skip("Untouched: only converging effects are sent by a reconcile.")
        }
        (EffectState::Pending, _) => missing(ledger, effect, is_forced),
        _ if is_forced => forced(ledger, effect),
        (EffectState::Done, _) => skip("Already done."),
        (EffectState::Uncertain, _) => decide_first(UNCERTAIN),
        (EffectState::Skipped, _) => match record.skip {
            Some(SkipReason::Stale) => decide_first(STALE),
            reason => skip(skipped(reason)),
        },
        (EffectState::Dead, _) => missing(ledger, effect, is_forced),
    }
}

fn skipped(reason: Option<SkipReason>) -> &'static str {
    match reason {
        Some(SkipReason::EndpointDisabled) => "Skipped: its endpoint was disabled.",
        Some(SkipReason::EndpointDeleted) => "Skipped: its endpoint was deleted.",
        Some(SkipReason::Dismissed) => "Skipped: the event's review was dismissed.",
        Some(SkipReason::Erased) => "Skipped: the event's payload was erased before it was sent.",
        Some(SkipReason::Operator | SkipReason::Stale) | None => "Skipped: an operator decided so.",
    }
}

fn in_flight(ledger: &EventLedger<'_>, effect: &EffectLine<'_>) -> Judged {
    let record = &effect.record;
    let seconds = record.lease_until.since(ledger.now).secs_ceil();
    match (record.repeat, record.started) {
        // Its worker may be gone, and nobody knows yet: never safe.
        (Repeat::Once, true) => decide_first(format!(
            "It is being sent, and a second send would be a second effect. Wait for its answer; without one in {seconds} s it becomes uncertain."
        )),
        _ => blocked(format!(
            "It is being sent right now; its worker has another {seconds} s."
        )),
    }
}

fn forced(ledger: &EventLedger<'_>, effect: &EffectLine<'_>) -> Judged {
    if ledger.payload == Kept::Reaped {
        return decide_first(NO_PAYLOAD);
    }
    let generation = effect.record.generation.saturating_add(1);
    match effect.record.repeat {
        Repeat::Converges => send(format!(
            "Forced: it would be sent once more as generation {generation}; repeating it is harmless."
        )),
        // The force is the decision; but it is never called safe.
        Repeat::Keyed | Repeat::Once => send_after_all(format!(
            "Forced: it would be sent once more as generation {generation}, under a new key, and may take effect again."
        )),
    }
}

/// Pending or dead: it would be sent, unless something is in the way.
fn missing(ledger: &EventLedger<'_>, effect: &EffectLine<'_>, is_forced: bool) -> Judged {
    if ledger.payload == Kept::Reaped {
        return decide_first(NO_PAYLOAD);
    }
    let review = match &effect.order {
        OrderVerdict::Stale => Some(STALE.to_owned()),
        OrderVerdict::Review { why } => Some(review(why)),
        OrderVerdict::Go | OrderVerdict::Wait { .. } => None,
    };
    match review {
        Some(why) if is_forced => {
            return send_after_all(format!("Forced: it would be sent. {why}"));
        }
        Some(why) => return decide_first(why),
        None => {}
    }
    let state_of = |name: &String| {
        ledger
            .effects
            .iter()
            .find(|other| other.name == name)
            .map(|other| other.record.state)
    };
    let first: Vec<(&String, EffectState)> = effect
        .after
        .iter()
        .filter_map(|name| state_of(name).map(|state| (name, state)))
        .collect();
    let in_the_way = |verdict: AfterVerdict| {
        let named = first.iter().filter(|(_, state)| after([*state]) == verdict);
        named
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (after(first.iter().map(|(_, state)| *state)), &effect.order) {
        (AfterVerdict::Blocked, _) => blocked(format!(
            "It comes after {}, which has to be done first.",
            in_the_way(AfterVerdict::Blocked)
        )),
        (AfterVerdict::Wait, _) => send(format!(
            "{} It goes out after {}.",
            why_send(effect),
            in_the_way(AfterVerdict::Wait)
        )),
        (AfterVerdict::Go, OrderVerdict::Wait { .. }) => send(format!(
            "{} It goes out after another one of the same object.",
            why_send(effect)
        )),
        (AfterVerdict::Go, _) => send(why_send(effect)),
    }
}

fn review(why: &ReviewWhy) -> String {
    match why {
        ReviewWhy::Ended { by } => format!(
            "The object had ended ({by}), and this came after. Somebody has to say whether it still counts."
        ),
        ReviewWhy::LaterRan { effect } => format!(
            "A later one of the same object was already sent ({effect}); this one would come out of order."
        ),
        ReviewWhy::Asked => "The source's review condition holds, so a person decides.".to_owned(),
    }
}

fn why_send(effect: &EffectLine<'_>) -> String {
    let record = &effect.record;
    let so_far = match (record.state, record.attempts) {
        (_, 0) => return "Not sent yet.".to_owned(),
        (EffectState::Dead, 1) => "Given up after 1 attempt.".to_owned(),
        (EffectState::Dead, n) => format!("Given up after {n} attempts."),
        (_, 1) => "Not done after 1 attempt.".to_owned(),
        (_, n) => format!("Not done after {n} attempts."),
    };
    let harmless = match record.repeat {
        Repeat::Converges => "It would be sent again; repeating it is harmless.",
        Repeat::Keyed => {
            "It would be sent again with the same key, by which the receiver knows it."
        }
        Repeat::Once => "It would be sent; each attempt so far was certainly not applied.",
    };
    format!("{so_far} {harmless}")
}
