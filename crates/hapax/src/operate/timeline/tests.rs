//! Timelines as lines, from what is kept.

use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::effect::{EffectRecord, Repeat};
use hapax_ledger::event::{EventStatus, KeyOrigin};
use hapax_ledger::id::{EffectId, EventId, RawId, RunId};
use hapax_ledger::key::BodyHash;
use hapax_ledger::lease::Fence;
use hapax_ledger::order::Gate;
use hapax_ledger::outcome::Outcome;
use hapax_ledger::run::RunKind;
use hapax_store::nouns::{Event, Proof, Review, Said};

use super::*;

const START: i64 = 1_700_000_000;

fn at(second: i64) -> Time {
    Time::from_secs(START + second)
}

fn event() -> EventDetail {
    EventDetail {
        event: Event {
            id: EventId(RawId::new(at(0), 0, 1)),
            source: "billing".into(),
            event_type: Some("invoice.paid".to_owned()),
            key: "evt_1".to_owned(),
            key_origin: KeyOrigin::Provider,
            provider_event_id: None,
            object_id: None,
            entity: None,
            version: None,
            status: EventStatus::Completed,
            received_at: at(0),
            review: None,
            delivery_count: 1,
            duplicate_count: 0,
            conflict_count: 0,
            body_hash: BodyHash::of(b"a"),
            identity_expires_at: Time::MAX,
        },
        deliveries: vec![delivered(0, DeliveryOutcome::Accepted)],
        effects: Vec::new(),
        runs: Vec::new(),
    }
}

fn delivered(number: u32, outcome: DeliveryOutcome) -> Delivery {
    Delivery {
        at: at(i64::from(number)),
        outcome,
        proof: Proof {
            scheme: "hmac".into(),
            secret_index: Some(0),
            signed_at: None,
            remote: None,
        },
        body_hash: BodyHash::of(b"a"),
        conflict: false,
        number,
        decided: None,
    }
}

fn effect(state: EffectState) -> Effect {
    let mut record = EffectRecord::planned(Repeat::Once, at(0));
    record.state = state;
    Effect {
        id: EffectId(RawId::new(at(0), 0, 1 << 16)),
        event: EventId(RawId::new(at(0), 0, 1)),
        name: "mail".into(),
        key: "in_1".to_owned(),
        lane: "mail".into(),
        record,
        gate: Gate::Open,
        order: None,
        released: false,
        last: None,
    }
}

fn attempted(number: u32, started: i64, outcome: Outcome) -> Attempt {
    Attempt {
        generation: 1,
        number,
        fence: Fence::NONE,
        node: "n1".into(),
        started_at: at(started),
        ended_at: at(started) + hapax_ledger::time::Span::from_millis(40),
        outcome,
        late: None,
        said: Said::default(),
    }
}

fn with_attempts(effect: Effect, attempts: Vec<Attempt>) -> EffectDetail {
    EffectDetail {
        events: vec![effect.event],
        effect,
        attempts,
        snapshot: None,
    }
}

fn audited(second: i64, action: &str, subject: &str) -> AuditRecord {
    AuditRecord {
        seq: 3,
        at: at(second),
        actor: Arc::from("ada"),
        action: action.to_owned(),
        subject: subject.to_owned(),
        reason: "looked at the mailbox".to_owned(),
        detail: "{}".to_owned(),
        previous: [0; 32],
        hash: [0; 32],
    }
}

/// `SECOND KIND [ACTOR] TEXT`.
fn lines(entries: &[Entry]) -> Vec<String> {
    let line = |entry: &Entry| {
        let second = entry.at.since(at(0)).micros() / 1_000_000;
        let actor = entry.actor.as_deref().unwrap_or("-");
        format!("{second} {} {actor} {}", entry.kind.word(), entry.text)
    };
    entries.iter().map(line).collect()
}

const ANSWERED: Outcome = Outcome::Answered {
    status: 500,
    retry_after: None,
};

#[test]
fn an_event_that_calls_for_nothing() {
    assert_eq!(
        lines(&timeline(&event(), &[], &[])),
        [
            "0 received - Received from billing and verified (hmac): invoice.paid under key evt_1 (provider).",
            "0 status - Now completed.",
        ]
    );
}

#[test]
fn everything_in_its_order() {
    let mut detail = event();
    let uncertain = effect(EffectState::Done);
    let mut conflict = delivered(3, DeliveryOutcome::Duplicate);
    conflict.conflict = true;
    conflict.decided = Some(ConflictDecision::Acknowledged);
    detail.deliveries = vec![
        delivered(0, DeliveryOutcome::Accepted),
        delivered(2, DeliveryOutcome::Duplicate),
        conflict,
    ];
    detail.effects = vec![uncertain.clone()];
    detail.runs = vec![Run {
        id: RunId(RawId::new(at(9), 0, 1)),
        kind: RunKind::Retry,
        actor: "bob".into(),
        reason: "the target is back".to_owned(),
        at: at(9),
        parent: RunId::initial(detail.event.id),
        snapshot: None,
    }];
    let mut first = attempted(1, 1, ANSWERED);
    first.said.excerpt = Some("\nbusy\nmore".into());
    first.late = Some((
        at(5),
        Outcome::Answered {
            status: 200,
            retry_after: None,
        },
    ));
    let id = uncertain.id.to_string();
    let effects = [with_attempts(uncertain, vec![first])];
    let audit = [
        audited(9, "event.retry", "evt"),
        audited(7, "effect.resolve", &id),
        audited(4, "conflict.acknowledge", "evt"),
    ];
    assert_eq!(
        lines(&timeline(&detail, &effects, &audit)),
        [
            "0 received - Received from billing and verified (hmac): invoice.paid under key evt_1 (provider).",
            "0 effect - Calls for mail under key in_1 (once).",
            "1 attempt - mail (in_1): attempt 1 answered 500 after 40 ms, by n1: busy",
            "2 duplicate - Received again and linked by its key evt_1.",
            "3 conflict - Received again under key evt_1 with another body (ca978112ca1b…), delivery 3: acknowledged.",
            "4 decision ada Conflict acknowledged: it means nothing, by ada: looked at the mailbox",
            "5 late - mail (in_1): attempt 1 said late that it answered 200; kept as evidence, and changes nothing.",
            "7 decision ada mail (in_1) resolved by hand, by ada: looked at the mailbox",
            "9 run bob Retry, by bob: the target is back",
            "9 status - Now completed: mail (in_1) done.",
        ]
    );
}

#[test]
fn a_shared_effect_and_a_forced_generation_say_so() {
    let mut detail = event();
    let mut shared = effect(EffectState::Dead);
    shared.event = EventId(RawId::new(at(0), 0, 7));
    detail.effects = vec![shared.clone()];
    detail.event.status = EventStatus::NeedsReview;
    detail.event.review = Some(Review {
        code: "H0222".to_owned(),
        message: "a person decides".to_owned(),
    });
    let mut forced = attempted(1, 6, ANSWERED);
    forced.generation = 2;
    let other = shared.event.to_string();
    let effects = [with_attempts(shared, vec![forced])];
    let entries = timeline(&detail, &effects, &[]);
    let told = lines(&entries);
    assert_eq!(
        told[1],
        format!(
            "0 effect - Calls for mail under key in_1 (once), which {other} had called for before: one effect for both."
        )
    );
    assert_eq!(
        told[2],
        "6 attempt - mail (in_1): attempt 1 of generation 2 answered 500 after 40 ms, by n1"
    );
    assert_eq!(
        told[3],
        "6 status - Now needs_review, waiting for a person (H0222: a person decides): mail (in_1) dead."
    );
    assert_eq!(entries[3].detail["code"], "H0222");
}
