//! Erasing: bytes that go at once, and a ledger that is trimmed. What identifies an event stays in both cases.

use bytes::Bytes;
use hapax_ledger::effect::{EffectState, Repeat, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_ledger::verdict::{Action, Kept, VerdictKind};

use super::operator::{actions, carried, command, facts, give};
use super::sample::{Dial, KEEP, Subject, accept_one, at, detail, event, reap_counted as reap_all};
use super::worker::{
    BROKEN, GIVEN_UP, SETTLED, START, accept_effects, advance, claim_one, done, effect_detail,
    planned, start_one,
};
use crate::nouns::{
    Classes, Command, Commanded, Decision, Effect, Move, NewEffect, PayloadAnswer, Reaped,
    Receipted, Said, Settlement,
};

fn said(outcome: hapax_ledger::outcome::Outcome, next: Next) -> Move {
    Move::Settle(Settlement {
        outcome,
        next,
        said: Said {
            excerpt: Some(Bytes::from_static(b"dear Ada")),
            body_bytes: Some(8),
            error: Some("Ada was not found".into()),
        },
    })
}

/// An event of which one effect failed with words and a snapshot, another is done, and a third waits.
async fn told(store: &Subject) -> (hapax_ledger::id::EventId, Effect) {
    let waits = NewEffect {
        after: vec![0],
        ..planned("mail", "1", Repeat::Once)
    };
    let effects = vec![planned("crm", "1", Repeat::Converges), waits];
    let receipt = accept_effects(store, "k", effects).await;
    let effect = claim_one(store).await;
    let snapshot = Move::Start(Some(Bytes::from_static(b"{\"name\":\"Ada\"}")));
    done(store, &effect, snapshot).await;
    done(store, &effect, said(BROKEN, Next::At(Span::ZERO))).await;
    let effect = start_one(store).await;
    done(store, &effect, said(BROKEN, Next::Exhausted)).await;
    let other = event("a", "k", "another body");
    accept_one(store, "a", at(1), other).await;
    (receipt.event, effect)
}

/// J1: what an event brought goes at once, with all that was said about it; keys, states and counts stay.
pub async fn what_is_erased_is_gone_and_still_known(store: Subject, _dial: Dial) {
    let (id, effect) = told(&store).await;
    carried(&store, id, Decision::Acknowledge { delivery: 1 }).await;
    let snapshot = Bytes::from_static(b"{\"name\":\"Ada Lovelace\"}");
    carried(&store, id, Decision::Reconcile { snapshot }).await;
    done(
        &store,
        &start_one(&store).await,
        said(BROKEN, Next::Exhausted),
    )
    .await;
    let before = detail(&store, id).await;
    assert!(before.runs[0].snapshot.is_some());

    carried(&store, id, Decision::Erase).await;
    let payload = store.payload(id).await.expect("the store reads");
    assert_eq!(payload, PayloadAnswer::Reaped);
    let body = store.conflict_body(id, 1).await.expect("the store reads");
    assert_eq!(body, None);
    let after = detail(&store, id).await;
    assert_eq!(after.runs[0].snapshot, None);
    assert_eq!(after.event.key, before.event.key);
    assert_eq!(after.deliveries, before.deliveries);
    let attempts = effect_detail(&store, &effect).await.attempts;
    assert_eq!(attempts.len(), 3);
    for attempt in attempts {
        assert_eq!(
            (attempt.outcome, attempt.said.body_bytes),
            (BROKEN, Some(8))
        );
        assert_eq!((attempt.said.excerpt, attempt.said.error), (None, None));
    }
    let said = ["conflict.acknowledge", "event.reconcile", "event.erase"];
    assert_eq!(actions(&store).await, said);
    let again = accept_one(&store, "a", at(2), event("a", "k", "{}")).await;
    assert_eq!((again.event, again.sighting), (id, Receipted::Duplicate));
}

/// What cannot be sent any more is skipped for that reason, and nothing is ever called safe.
pub async fn what_waits_for_erased_bytes_is_skipped(store: Subject, _dial: Dial) {
    let (id, _) = told(&store).await;
    let done = carried(&store, id, Decision::Erase).await;
    assert_ne!(done.verdict.verdict, VerdictKind::Safe);
    let after = detail(&store, id).await;
    let states: Vec<_> = after.effects.iter().map(|one| one.record.state).collect();
    assert_eq!(states, [EffectState::Dead, EffectState::Skipped]);
    assert_eq!(after.effects[1].record.skip, Some(SkipReason::Erased));
    assert_eq!(after.event.status, EventStatus::Dead);
    for action in [Action::Retry, Action::Reconcile] {
        let verdict = facts(&store, id).await.verdict(action, &Classes::new());
        assert_ne!(verdict.verdict, VerdictKind::Safe);
    }
    let waiting = accept_effects(&store, "k2", vec![planned("crm", "2", Repeat::Keyed)]).await;
    carried(&store, waiting.event, Decision::Erase).await;
    let after = detail(&store, waiting.event).await;
    assert_eq!(after.event.status, EventStatus::Completed);
}

/// A body that comes later under the key of an erased event is not kept; one that is under way ends as it ends.
pub async fn an_erased_event_keeps_no_bytes_that_come_later(store: Subject, _dial: Dial) {
    let receipt = accept_effects(&store, "k", vec![planned("crm", "1", Repeat::Keyed)]).await;
    let effect = claim_one(&store).await;
    carried(&store, receipt.event, Decision::Erase).await;
    let conflict = accept_one(&store, "a", at(1), event("a", "k", "another body")).await;
    assert_eq!(conflict.sighting, Receipted::Conflict);
    let body = store.conflict_body(receipt.event, 1).await;
    assert_eq!(body.expect("the store reads"), None);
    advance(&store, &effect, START).await;
    done(&store, &effect, SETTLED).await;
    let after = detail(&store, receipt.event).await;
    assert_eq!(after.effects[0].record.state, EffectState::Done);
}

/// A dry run erases nothing, and the same again is no error.
pub async fn erasing_is_rehearsed_and_repeated(store: Subject, _dial: Dial) {
    let (id, _) = told(&store).await;
    let rehearsal = Command {
        dry_run: true,
        ..command(id, Decision::Erase)
    };
    assert!(matches!(give(&store, rehearsal).await, Commanded::Done(_)));
    let payload = store.payload(id).await.expect("the store reads");
    assert!(matches!(payload, PayloadAnswer::Kept(_)));
    carried(&store, id, Decision::Erase).await;
    carried(&store, id, Decision::Erase).await;
    store.scrub().await.expect("the store cleans up");
    assert_eq!(actions(&store).await, ["event.erase", "event.erase"]);
}

/// I1: bytes first, then what happened, then the identity; and without its ledger an event is never safe to repeat.
pub async fn the_ledger_goes_between_bytes_and_identity(store: Subject, _dial: Dial) {
    let mut new = super::worker::calling_for("k", vec![planned("crm", "1", Repeat::Keyed)]);
    new.keep.ledger = Span::from_days(30);
    let id = accept_one(&store, "a", at(0), new).await.event;
    done(
        &store,
        &start_one(&store).await,
        said(BROKEN, Next::At(Span::ZERO)),
    )
    .await;
    let effect = start_one(&store).await;
    done(&store, &effect, GIVEN_UP).await;
    for second in 1..4 {
        let again = event("a", "k", if second == 2 { "other" } else { "{}" });
        accept_one(&store, "a", at(second), again).await;
    }
    let force = vec!["crm".to_owned()];
    carried(&store, id, Decision::Replay { force }).await;
    done(&store, &start_one(&store).await, GIVEN_UP).await;
    let reaped = |payloads, ledgers, identities| Reaped {
        payloads,
        ledgers,
        identities,
        keys: 0,
        more: false,
    };
    let first = reap_all(&store, at(0) + KEEP.payload).await;
    assert_eq!(first, reaped(1, 0, 0));
    assert_eq!(facts(&store, id).await.ledger, Kept::Whole);
    let due = at(0) + Span::from_days(30);
    assert_eq!(
        reap_all(&store, due - Span::from_micros(1)).await,
        reaped(0, 0, 0)
    );
    assert_eq!(reap_all(&store, due).await, reaped(0, 1, 0));
    assert_eq!(reap_all(&store, due).await, reaped(0, 0, 0));

    let after = detail(&store, id).await;
    let numbers: Vec<u32> = after.deliveries.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [0, 3], "the first and the latest");
    assert_eq!(
        (after.event.delivery_count, after.event.conflict_count),
        (4, 1)
    );
    assert_eq!(after.runs, []);
    assert_eq!(after.effects[0].record.state, EffectState::Dead);
    assert_eq!(after.effects[0].last, Some(BROKEN));
    assert_eq!(effect_detail(&store, &effect).await.attempts, []);
    let facts = facts(&store, id).await;
    assert_eq!((facts.payload, facts.ledger), (Kept::Reaped, Kept::Reaped));
    let verdict = facts.verdict(Action::Retry, &Classes::new());
    assert_eq!(verdict.verdict, VerdictKind::NeedsDecision);
    let again = accept_one(&store, "a", due, event("a", "k", "{}")).await;
    assert_eq!((again.event, again.sighting), (id, Receipted::Duplicate));
    let numbers = detail(&store, id).await.deliveries;
    assert_eq!(numbers.last().map(|one| one.number), Some(4));
    assert_eq!(
        reap_all(&store, at(0) + KEEP.identity).await,
        reaped(0, 0, 1)
    );
}

/// What another event still tells of is not trimmed, and what has not ended keeps its ledger.
pub async fn a_shared_effect_keeps_its_attempts_while_one_event_tells_of_them(
    store: Subject,
    _dial: Dial,
) {
    let shared = || vec![planned("crm", "1", Repeat::Keyed)];
    let mut short = super::worker::calling_for("k1", shared());
    short.keep.ledger = Span::from_days(10);
    let first = accept_one(&store, "a", at(0), short).await.event;
    let second = accept_effects(&store, "k2", shared()).await.event;
    let due = at(0) + Span::from_days(10);
    assert_eq!(reap_all(&store, due).await.ledgers, 0, "it is on its way");
    let effect = start_one(&store).await;
    done(&store, &effect, SETTLED).await;
    assert_eq!(reap_all(&store, due).await.ledgers, 1);
    assert_eq!(facts(&store, first).await.ledger, Kept::Reaped);
    assert_eq!(facts(&store, second).await.ledger, Kept::Whole);
    assert_eq!(effect_detail(&store, &effect).await.attempts.len(), 1);
}
