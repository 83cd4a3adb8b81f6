//! The sentences of a timeline: what a support person reads. Keys stand in all of them.

use hapax_ledger::outcome::Outcome;
use hapax_ledger::run::RunKind;
use hapax_ledger::time::Span;
use hapax_store::nouns::{Attempt, AuditRecord, ConflictDecision, Delivery, Effect, Event, Run};

/// Characters of a body's hash that are enough to tell two apart.
const HASH_CHARS: usize = 12;
/// Characters of what a receiver said that fit into a sentence.
const SAID_CHARS: usize = 120;

pub(super) fn received(event: &Event, delivery: &Delivery) -> String {
    let what = event.event_type.as_deref().unwrap_or("an event");
    let mut text = format!(
        "Received from {} and verified ({}): {what} under key {} ({}).",
        event.source, delivery.proof.scheme, event.key, event.key_origin
    );
    if delivery.outcome == hapax_ledger::event::DeliveryOutcome::FailedValidation {
        text.push_str(" It could not be planned and was kept for a person.");
    }
    text
}

pub(super) fn duplicate(event: &Event) -> String {
    format!("Received again and linked by its key {}.", event.key)
}

pub(super) fn conflict(event: &Event, delivery: &Delivery) -> String {
    let hash: String = delivery.body_hash.to_string();
    let hash: String = hash.chars().take(HASH_CHARS).collect();
    let decided = match delivery.decided {
        None => "nobody has decided about it".to_owned(),
        Some(ConflictDecision::Acknowledged) => "acknowledged".to_owned(),
        Some(ConflictDecision::Promoted(event)) => format!("promoted to {event}"),
    };
    format!(
        "Received again under key {} with another body ({hash}…), delivery {}: {decided}.",
        event.key, delivery.number
    )
}

pub(super) fn planned(event: &Event, effect: &Effect) -> String {
    let Effect { name, key, .. } = effect;
    let class = effect.record.repeat;
    match effect.event == event.id {
        true => format!("Calls for {name} under key {key} ({class})."),
        false => format!(
            "Calls for {name} under key {key} ({class}), which {} had called for before: one effect for both.",
            effect.event
        ),
    }
}

/// `attempt 2`, or `attempt 2 of generation 3`.
fn numbered(attempt: &Attempt) -> String {
    match attempt.generation {
        0 | 1 => format!("attempt {}", attempt.number),
        forced => format!("attempt {} of generation {forced}", attempt.number),
    }
}

pub(super) fn attempt(effect: &Effect, attempt: &Attempt) -> String {
    let took = length(attempt.ended_at.since(attempt.started_at));
    let said = said(attempt).map_or_else(String::new, |said| format!(": {said}"));
    format!(
        "{} ({}): {} {} after {took}, by {}{said}",
        effect.name,
        effect.key,
        numbered(attempt),
        attempt.outcome,
        attempt.node
    )
}

pub(super) fn late(effect: &Effect, attempt: &Attempt, outcome: Outcome) -> String {
    format!(
        "{} ({}): {} said late that it {outcome}; kept as evidence, and changes nothing.",
        effect.name,
        effect.key,
        numbered(attempt)
    )
}

pub(super) fn run(run: &Run) -> String {
    let asked = match run.kind {
        RunKind::Initial => "The event came in",
        RunKind::Retry => "Retry",
        RunKind::Replay => "Replay",
        RunKind::Reconcile => "Reconcile with the source of truth",
    };
    format!("{asked}, by {}: {}", run.actor, run.reason)
}

pub(super) fn decision(record: &AuditRecord, about: Option<&Effect>) -> String {
    let about = about.map_or_else(
        || record.subject.clone(),
        |effect| format!("{} ({})", effect.name, effect.key),
    );
    let done = match record.action.as_str() {
        "effect.resolve" => format!("{about} resolved by hand"),
        "event.release" => "Released from review".to_owned(),
        "event.dismiss" => "Dismissed: nothing more is sent".to_owned(),
        "event.erase" => {
            "Erased: payload, other bodies, snapshots and answers are deleted".to_owned()
        }
        "conflict.acknowledge" => "Conflict acknowledged: it means nothing".to_owned(),
        "conflict.promote" => "Conflict promoted to an event of its own".to_owned(),
        other => format!("{other} of {about}"),
    };
    format!("{done}, by {}: {}", record.actor, record.reason)
}

pub(super) fn status(event: &Event, effects: &[Effect]) -> String {
    let mut text = format!("Now {}", event.status);
    if let Some(review) = &event.review {
        text = format!(
            "{text}, waiting for a person ({}: {})",
            review.code, review.message
        );
    }
    let line = |effect: &Effect| {
        let skip = effect.record.skip;
        let why = skip.map_or_else(String::new, |why| format!(" ({why})"));
        format!(
            "{} ({}) {}{why}",
            effect.name, effect.key, effect.record.state
        )
    };
    let lines: Vec<String> = effects.iter().map(line).collect();
    match lines.is_empty() {
        true => format!("{text}."),
        false => format!("{text}: {}.", lines.join(", ")),
    }
}

/// What went wrong in words, or the first line of what the receiver said.
fn said(attempt: &Attempt) -> Option<String> {
    let said = &attempt.said;
    let text = match (&said.error, &said.excerpt) {
        (Some(error), _) => error.clone(),
        (None, Some(excerpt)) => String::from_utf8_lossy(excerpt).into_owned(),
        (None, None) => return None,
    };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(SAID_CHARS).collect())
}

/// `38 ms`, `2.4 s`.
fn length(span: Span) -> String {
    match span.micros().max(0) / 1_000 {
        millis @ ..1_000 => format!("{millis} ms"),
        millis => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
    }
}
