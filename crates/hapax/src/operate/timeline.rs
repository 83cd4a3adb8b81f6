//! What happened to an event, told from what is kept about it: deliveries, attempts, runs, decisions. There is no second copy that
//! could say something else.

use hapax_ledger::event::DeliveryOutcome;
use hapax_ledger::time::Time;
use hapax_store::nouns::{
    Attempt, AuditRecord, ConflictDecision, Delivery, Effect, EffectDetail, EventDetail, Run,
};
use serde_json::{Value, json};

use super::difference::{self, difference};
use super::timeline_text as text;

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// What kind of thing.
    pub kind: Kind,
    /// Who decided it, if somebody did.
    pub actor: Option<String>,
    /// A sentence, with keys and reasons.
    pub text: String,
    /// The same for programs.
    pub detail: Value,
}

/// What an entry is about. Of the same moment, the earlier one here comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The delivery that brought the event.
    Received,
    /// The event calls for an effect.
    Effect,
    /// A delivery that brought it again.
    Duplicate,
    /// A delivery that brought another body under its key.
    Conflict,
    /// Somebody asked for a pass over it.
    Run,
    /// Somebody decided something else.
    Decision,
    /// An attempt that has ended.
    Attempt,
    /// What a worker said after its claim was lost.
    Late,
    /// Where it stands: the last entry.
    Status,
}

impl Kind {
    /// The word users see.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Received => "received",
            Kind::Effect => "effect",
            Kind::Duplicate => "duplicate",
            Kind::Conflict => "conflict",
            Kind::Run => "run",
            Kind::Decision => "decision",
            Kind::Attempt => "attempt",
            Kind::Late => "late",
            Kind::Status => "status",
        }
    }
}

/// The timeline of an event, oldest first. `effects` are its effects with their attempts, `audit` the decisions about it.
pub fn timeline(
    event: &EventDetail,
    effects: &[EffectDetail],
    audit: &[AuditRecord],
) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    entries.extend(event.deliveries.iter().map(|one| delivery(event, one)));
    entries.extend(event.effects.iter().map(|one| planned(event, one)));
    for effect in effects {
        let attempts = effect.attempts.iter();
        entries.extend(attempts.flat_map(|one| attempt(&effect.effect, one)));
    }
    entries.extend(event.runs.iter().map(run));
    // A run has its own entry: its audit record says the same.
    let decisions = audit.iter().filter(|record| !makes_a_run(&record.action));
    entries.extend(decisions.map(|record| decision(record, effects)));
    entries.sort_by_key(|entry| (entry.at, entry.kind));
    let last = entries
        .last()
        .map_or(event.event.received_at, |entry| entry.at);
    entries.push(status(event, last));
    entries
}

/// Says of each reconciliation how the source of truth differed from the event. `id` is where the object's id stands in its body.
pub fn add_differences(entries: &mut [Entry], runs: &[Run], body: &[u8], id: Option<&str>) {
    for run in runs {
        let snapshot = run.snapshot.as_ref();
        let found = snapshot.and_then(|snapshot| difference(body, id, snapshot));
        let run = Value::from(run.id.to_string());
        let mut told = entries.iter_mut();
        let entry = told.find(|entry| entry.detail.get("runId") == Some(&run));
        if let (Some(entry), Some(found)) = (entry, found) {
            entry.text = format!("{}. {}", entry.text, difference::sentence(&found));
            entry.detail["difference"] = difference::detail(&found);
        }
    }
}

fn makes_a_run(action: &str) -> bool {
    matches!(action, "event.retry" | "event.replay" | "event.reconcile")
}

fn delivery(detail: &EventDetail, delivery: &Delivery) -> Entry {
    let event = &detail.event;
    let (kind, text) = match (delivery.outcome, delivery.conflict) {
        (_, true) => (Kind::Conflict, text::conflict(event, delivery)),
        (DeliveryOutcome::Duplicate, false) => (Kind::Duplicate, text::duplicate(event)),
        (DeliveryOutcome::Accepted | DeliveryOutcome::FailedValidation, false) => {
            (Kind::Received, text::received(event, delivery))
        }
    };
    let promoted = match delivery.decided {
        Some(ConflictDecision::Promoted(event)) => Some(event.to_string()),
        Some(ConflictDecision::Acknowledged) | None => None,
    };
    Entry {
        at: delivery.at,
        kind,
        actor: None,
        text,
        detail: json!({
            "number": delivery.number,
            "outcome": delivery.outcome.word(),
            "key": event.key,
            "keyOrigin": event.key_origin.word(),
            "scheme": &*delivery.proof.scheme,
            "bodyHash": delivery.body_hash.to_string(),
            "promotedTo": promoted,
        }),
    }
}

fn planned(detail: &EventDetail, effect: &Effect) -> Entry {
    Entry {
        at: detail.event.received_at,
        kind: Kind::Effect,
        actor: None,
        text: text::planned(&detail.event, effect),
        detail: json!({
            "effectId": effect.id.to_string(),
            "name": &*effect.name,
            "key": effect.key,
            "repeat": effect.record.repeat.word(),
        }),
    }
}

/// An attempt, and what its worker said late.
fn attempt(effect: &Effect, attempt: &Attempt) -> impl Iterator<Item = Entry> {
    let detail = |outcome: String| {
        json!({
            "effectId": effect.id.to_string(),
            "name": &*effect.name,
            "key": effect.key,
            "generation": attempt.generation,
            "number": attempt.number,
            "node": &*attempt.node,
            "outcome": outcome,
            "startedAt": crate::clock::text(attempt.started_at),
            "endedAt": crate::clock::text(attempt.ended_at),
        })
    };
    let ended = Entry {
        at: attempt.ended_at,
        kind: Kind::Attempt,
        actor: None,
        text: text::attempt(effect, attempt),
        detail: detail(attempt.outcome.to_string()),
    };
    let late = attempt.late.map(|(at, outcome)| Entry {
        at,
        kind: Kind::Late,
        actor: None,
        text: text::late(effect, attempt, outcome),
        detail: detail(outcome.to_string()),
    });
    std::iter::once(ended).chain(late)
}

fn run(run: &Run) -> Entry {
    Entry {
        at: run.at,
        kind: Kind::Run,
        actor: Some(run.actor.to_string()),
        text: text::run(run),
        detail: json!({
            "runId": run.id.to_string(),
            "kind": run.kind.word(),
            "reason": run.reason,
            "parentId": run.parent.to_string(),
        }),
    }
}

fn decision(record: &AuditRecord, effects: &[EffectDetail]) -> Entry {
    let mut all = effects.iter().map(|detail| &detail.effect);
    let about = all.find(|effect| effect.id.to_string() == record.subject);
    Entry {
        at: record.at,
        kind: Kind::Decision,
        actor: Some(record.actor.to_string()),
        text: text::decision(record, about),
        detail: json!({
            "audit": record.seq,
            "action": record.action,
            "subject": record.subject,
            "reason": record.reason,
        }),
    }
}

fn status(detail: &EventDetail, at: Time) -> Entry {
    let event = &detail.event;
    let review = event.review.as_ref();
    Entry {
        at,
        kind: Kind::Status,
        actor: None,
        text: text::status(event, &detail.effects),
        detail: json!({
            "status": event.status.word(),
            "code": review.map(|review| &review.code),
        }),
    }
}

#[cfg(test)]
mod tests;
