//! Deliveries with another body: numbered, kept, and decided on by a person.

use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::time::{Span, Time};

use super::operator::{actions, ada, carried, command, facts, fitting, log, refused};
use super::sample::{
    Dial, KEEP, Subject, accept, accept_one, arrival, at, detail, event, reap_all,
};
use super::worker::{SETTLED, calling_for, done, names, planned, start_one};
use crate::nouns::{
    AuditFilter, ConflictDecision, DELIVERIES_KEPT_MAX, Decision, NewEvent, PayloadAnswer, WhyNot,
};

async fn body(store: &Subject, event: EventId, delivery: u32) -> Option<Bytes> {
    let body = store.conflict_body(event, delivery).await;
    body.expect("the store reads")
}

async fn decided(store: &Subject, event: EventId) -> Vec<(u32, Option<ConflictDecision>)> {
    let deliveries = detail(store, event).await.deliveries.into_iter();
    let conflicts = deliveries.filter(|delivery| delivery.conflict);
    conflicts
        .map(|delivery| (delivery.number, delivery.decided))
        .collect()
}

fn promotion(delivery: u32, new: NewEvent) -> Decision {
    Decision::Promote {
        delivery,
        arrival: Box::new(arrival("a", at(5), vec![new])),
    }
}

/// Deliveries are numbered from zero, and the bytes of those with another body can be read.
pub async fn deliveries_have_numbers_and_conflicts_have_bytes(store: Subject, _dial: Dial) {
    let first = accept(&store, at(0), "k", "A").await.event;
    for (second, text) in (1..).zip(["A", "B\0", "A", "C"]) {
        accept(&store, at(second), "k", text).await;
    }
    let deliveries = detail(&store, first).await.deliveries;
    let numbers: Vec<u32> = deliveries.iter().map(|delivery| delivery.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert_eq!(decided(&store, first).await, [(2, None), (4, None)]);
    assert_eq!(
        body(&store, first, 2).await,
        Some(Bytes::from_static(b"B\0"))
    );
    assert_eq!(body(&store, first, 4).await, Some(Bytes::from_static(b"C")));
    for not_a_conflict in [0, 1, 3, 5] {
        assert_eq!(body(&store, first, not_a_conflict).await, None);
    }
    assert_eq!(facts(&store, first).await.conflicts_open, 2);
}

/// B3: a conflict asks for a person until somebody has looked at each.
pub async fn a_conflict_is_acknowledged_once(store: Subject, _dial: Dial) {
    let first = accept(&store, at(0), "k", "A").await.event;
    accept(&store, at(1), "k", "B").await;
    accept(&store, at(2), "k", "C").await;
    let retry = refused(&store, command(first, Decision::Retry)).await;
    assert_eq!(retry, WhyNot::NeedsDecision);
    let acknowledge = |delivery| Decision::Acknowledge { delivery };
    let done = carried(&store, first, acknowledge(1)).await;
    assert_eq!((done.run, done.promoted), (None, None));
    assert_eq!(facts(&store, first).await.conflicts_open, 1);
    let again = refused(&store, command(first, acknowledge(1))).await;
    assert_eq!(again, WhyNot::NoConflict);
    carried(&store, first, acknowledge(2)).await;
    let both = Some(ConflictDecision::Acknowledged);
    assert_eq!(decided(&store, first).await, [(1, both), (2, both)]);
    assert_eq!(facts(&store, first).await.conflicts_open, 0);
    carried(&store, first, Decision::Retry).await;
    let said = [
        "conflict.acknowledge",
        "conflict.acknowledge",
        "event.retry",
    ];
    assert_eq!(actions(&store).await, said);
    // One more conflict asks again.
    accept(&store, at(3), "k", "D").await;
    assert_eq!(facts(&store, first).await.conflicts_open, 1);
}

/// A conflict becomes an event of its own, with its effects, in the same transaction.
pub async fn a_conflict_is_promoted_to_an_event_of_its_own(store: Subject, _dial: Dial) {
    let first = accept(&store, at(0), "k", "A").await.event;
    accept(&store, at(1), "k", "B").await;
    let new = NewEvent {
        effects: vec![planned("e", "1", Repeat::Keyed)],
        ..event("a", "k/promoted", "B")
    };
    let none = refused(&store, command(first, promotion(0, new.clone()))).await;
    assert_eq!(none, WhyNot::NoConflict);
    let promoted = carried(&store, first, promotion(1, new.clone())).await;
    let id = promoted.promoted.expect("it became an event");
    assert_eq!(names(promoted.opened), ["lane"]);
    assert!(
        promoted.answer.contains(&id.to_string()),
        "{}",
        promoted.answer
    );
    let became = Some(ConflictDecision::Promoted(id));
    assert_eq!(decided(&store, first).await, [(1, became)]);
    let read = detail(&store, id).await;
    assert_eq!(
        (read.event.key.as_str(), read.event.status),
        ("k/promoted", EventStatus::Pending)
    );
    assert_eq!((read.event.received_at, read.effects.len()), (at(5), 1));
    let PayloadAnswer::Kept(payload) = store.payload(id).await.expect("the store reads") else {
        panic!("its bytes are kept");
    };
    assert_eq!(&payload.body[..], b"B");
    let held = store.sighted("a", "k/promoted", at(6)).await;
    assert_eq!(held.expect("the store reads"), Some(id));
    done(&store, &start_one(&store).await, SETTLED).await;
    let again = refused(&store, command(first, promotion(1, new))).await;
    assert_eq!(again, WhyNot::NoConflict);
    assert_eq!(actions(&store).await, ["conflict.promote"]);
    let about = |event| AuditFilter {
        event: Some(event),
        ..AuditFilter::default()
    };
    assert_eq!(fitting(&store, about(first)).await.len(), 1);
    assert_eq!(fitting(&store, about(id)).await, []);
}

/// The last row that is kept stands for all later deliveries, and keeps its number.
pub async fn a_delivery_keeps_its_number_beyond_the_limit(store: Subject, _dial: Dial) {
    let first = accept(&store, at(0), "k", "A").await.event;
    let many = DELIVERIES_KEPT_MAX as usize - 1;
    let same = |_| event("a", "k", "A");
    let batch = arrival("a", at(1), (0..many).map(same).collect());
    store.accept(batch).await.expect("the store accepts");
    for second in [2, 3, 4] {
        accept(&store, at(second), "k", "B").await;
    }
    let last = DELIVERIES_KEPT_MAX;
    assert_eq!(decided(&store, first).await, [(last, None)]);
    assert_eq!(
        body(&store, first, last).await,
        Some(Bytes::from_static(b"B"))
    );
    // What has no row cannot be looked at, and so nobody has to.
    assert_eq!(facts(&store, first).await.conflicts_open, 1);
    carried(&store, first, Decision::Acknowledge { delivery: last }).await;
    assert_eq!(facts(&store, first).await.conflicts_open, 0);
}

/// Bytes of conflicts go with those of their event; runs and decisions go with the event; the audit log stays.
pub async fn what_was_decided_goes_with_its_event_and_the_log_stays(store: Subject, _dial: Dial) {
    let effects = vec![planned("e", "1", Repeat::Keyed)];
    let receipt = accept_one(&store, "a", at(0), calling_for("k", effects.clone())).await;
    let first = receipt.event;
    let other = NewEvent {
        effects: effects.clone(),
        ..event("a", "k", "B")
    };
    accept_one(&store, "a", at(1), other).await;
    carried(&store, first, Decision::Acknowledge { delivery: 1 }).await;
    carried(&store, first, Decision::Retry).await;
    done(&store, &start_one(&store).await, SETTLED).await;
    reap_all(&store, at(0) + KEEP.payload).await;
    assert_eq!(body(&store, first, 1).await, None);
    let acknowledged = Some(ConflictDecision::Acknowledged);
    assert_eq!(decided(&store, first).await, [(1, acknowledged)]);
    assert_eq!(detail(&store, first).await.runs.len(), 1);
    let before = log(&store).await;
    let force = vec!["e".to_owned()];
    let gone = carried(&store, first, Decision::Replay { force }).await;
    assert_eq!(
        names(gone.opened),
        [""; 0],
        "without its bytes nothing is sent"
    );
    reap_all(&store, later()).await;
    assert_eq!(store.event(first).await.expect("the store reads"), None);
    assert_eq!(store.facts(first).await.expect("the store reads"), None);
    assert_eq!(log(&store).await[..2], before[..]);
    assert_eq!(log(&store).await[0].reason, ada().reason);
    // The key is free, and what comes under it begins anew.
    let again = accept_one(&store, "a", later(), calling_for("k", effects)).await;
    let read = detail(&store, again.event).await;
    assert_eq!((read.runs.len(), read.deliveries.len()), (0, 1));
}

fn later() -> Time {
    at(0) + KEEP.identity + Span::from_days(1)
}
