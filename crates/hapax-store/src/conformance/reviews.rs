//! Reviews: what waits for a person is released or dismissed.

use hapax_ledger::effect::{EffectState, Repeat, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::order::{Gate, LifeStep, OrderVerdict, PlannedOrder};

use super::operator::{actions, carried, command, facts, refused};
use super::sample::{Dial, Subject, accept_one, at, detail, review};
use super::worker::{
    LEASE, SETTLED, START, accept_effects, advance, calling_for, claim, claim_one, done, names,
    planned, serial, start_one,
};
use crate::nouns::{Born, Decision, Move, Moved, NewEffect, NewEvent, Receipt, WhyNot};

/// An event that could not be planned.
async fn held(store: &Subject, key: &str) -> Receipt {
    let event = NewEvent {
        review: Some(review()),
        ..calling_for(key, vec![])
    };
    accept_one(store, "a", at(0), event).await
}

fn release(effects: Vec<NewEffect>) -> Decision {
    Decision::Release { effects }
}

fn ordered(key: &str, order: PlannedOrder) -> NewEffect {
    NewEffect {
        order: Some(order),
        ..planned("e", key, Repeat::Keyed)
    }
}

/// Claims the one effect that is due and has its order hold it for a person.
async fn held_by_order(store: &Subject) {
    let effect = claim_one(store).await;
    let moved = advance(store, &effect, START).await;
    assert!(matches!(moved, Moved::Review(_)), "{moved:?}");
}

/// What could not be planned is planned when it is released, and shares what is there (D6).
pub async fn a_released_event_is_planned(store: Subject, _dial: Dial) {
    let other = accept_effects(&store, "k0", vec![planned("mail", "1", Repeat::Keyed)]).await;
    let receipt = held(&store, "k").await;
    let read = facts(&store, receipt.event).await;
    assert_eq!(read.held, Some(review().message));
    let retry = refused(&store, command(receipt.event, Decision::Retry)).await;
    assert_eq!(retry, WhyNot::NeedsDecision);
    let after = NewEffect {
        lane: "slow".into(),
        after: vec![0],
        ..planned("pay", "2", Repeat::Once)
    };
    // Nobody waits to send what a command plans, so it is not born claimed.
    let born = NewEffect {
        lane: "fast".into(),
        born: Some(Born {
            node: "node".into(),
            lease: LEASE,
        }),
        ..planned("tell", "3", Repeat::Keyed)
    };
    let effects = vec![planned("mail", "1", Repeat::Keyed), after, born];
    let released = carried(&store, receipt.event, release(effects)).await;
    assert_eq!((released.run, released.promoted), (None, None));
    assert_eq!(names(released.opened), ["fast", "lane"]);
    let now = detail(&store, receipt.event).await;
    assert_eq!(
        (now.event.review, now.event.status),
        (None, EventStatus::Pending)
    );
    let seen: Vec<_> = now
        .effects
        .iter()
        .map(|one| (&*one.name, one.gate))
        .collect();
    let waiting = ("pay", Gate::Waiting);
    assert_eq!(seen, [waiting, ("tell", Gate::Open), ("mail", Gate::Open)]);
    assert_eq!(
        now.effects[2].event, other.event,
        "shared with the other event"
    );
    assert_eq!(actions(&store).await, ["event.release"]);
    let again = refused(&store, command(receipt.event, release(vec![]))).await;
    assert_eq!(again, WhyNot::NotHeld);
    let due = claim(&store).await;
    assert_eq!(due.len(), 2);
    for effect in &due {
        done(&store, effect, START).await;
        done(&store, effect, SETTLED).await;
    }
    done(&store, &start_one(&store).await, SETTLED).await;
    for event in [receipt.event, other.event] {
        let status = detail(&store, event).await.event.status;
        assert_eq!(status, EventStatus::Completed);
    }
}

/// One that calls for nothing is completed when it is released.
pub async fn a_released_event_without_effects_is_completed(store: Subject, _dial: Dial) {
    let receipt = held(&store, "k").await;
    carried(&store, receipt.event, release(vec![])).await;
    let status = detail(&store, receipt.event).await.event.status;
    assert_eq!(status, EventStatus::Completed);
}

/// A key that was planned at a release is held as any other.
pub async fn what_was_planned_at_a_release_holds_its_key(store: Subject, _dial: Dial) {
    let receipt = held(&store, "k").await;
    let effects = || vec![planned("mail", "1", Repeat::Keyed)];
    carried(&store, receipt.event, release(effects())).await;
    let other = accept_effects(&store, "k2", effects()).await;
    let shared = detail(&store, other.event).await.effects;
    assert_eq!((shared.len(), shared[0].event), (1, receipt.event));
    done(&store, &start_one(&store).await, SETTLED).await;
    assert_eq!(claim(&store).await, []);
}

/// What a terminal type's order holds goes ahead once it is released, and what was given is not planned beside it.
pub async fn what_came_after_the_end_goes_ahead_when_released(store: Subject, _dial: Dial) {
    let ends = PlannedOrder {
        life_step: LifeStep::Ends,
        ..serial("sub_1")
    };
    accept_effects(&store, "k1", vec![ordered("1", ends)]).await;
    done(&store, &start_one(&store).await, SETTLED).await;
    let receipt = accept_effects(&store, "k2", vec![ordered("2", serial("sub_1"))]).await;
    held_by_order(&store).await;
    let read = facts(&store, receipt.event).await;
    assert!(read.held.is_some());
    assert!(matches!(read.effects[0].order, OrderVerdict::Review { .. }));
    let ignored = vec![planned("ignored", "1", Repeat::Keyed)];
    let released = carried(&store, receipt.event, release(ignored)).await;
    assert_eq!(names(released.opened), ["lane"]);
    let read = facts(&store, receipt.event).await;
    assert_eq!((read.held, read.effects.len()), (None, 1));
    assert_eq!(read.effects[0].order, OrderVerdict::Go);
    let effect = start_one(&store).await;
    assert!(effect.released, "its worker asks nobody again");
    done(&store, &effect, SETTLED).await;
    let status = detail(&store, receipt.event).await.event.status;
    assert_eq!(status, EventStatus::Completed);
}

/// Out of order after all: a person let it.
pub async fn what_a_later_one_overtook_goes_ahead_when_released(store: Subject, _dial: Dial) {
    let receipt = accept_effects(&store, "k1", vec![ordered("1", serial("in_1"))]).await;
    let first = start_one(&store).await;
    done(&store, &first, super::worker::GIVEN_UP).await;
    accept_effects(&store, "k2", vec![ordered("2", serial("in_1"))]).await;
    done(&store, &start_one(&store).await, SETTLED).await;
    let why = refused(&store, command(receipt.event, Decision::Retry)).await;
    assert_eq!(why, WhyNot::NeedsDecision);
    let force = vec!["e".to_owned()];
    carried(&store, receipt.event, Decision::Replay { force }).await;
    let again = start_one(&store).await;
    assert_eq!((again.key.as_str(), again.record.generation), ("1", 2));
    done(&store, &again, SETTLED).await;
}

/// F2 but for a person: what was skipped as stale is sent when it is forced.
pub async fn what_is_stale_is_sent_when_it_is_forced(store: Subject, _dial: Dial) {
    let versioned = |version: &str| PlannedOrder {
        version: Some(version.into()),
        ..serial("in_1")
    };
    accept_effects(&store, "k1", vec![ordered("1", versioned("9"))]).await;
    done(&store, &start_one(&store).await, SETTLED).await;
    let receipt = accept_effects(&store, "k2", vec![ordered("2", versioned("8"))]).await;
    let late = claim_one(&store).await;
    let moved = advance(&store, &late, START).await;
    assert!(matches!(moved, Moved::Stale(_)), "{moved:?}");
    let force = vec!["e".to_owned()];
    carried(&store, receipt.event, Decision::Replay { force }).await;
    let read = facts(&store, receipt.event).await;
    assert_eq!(read.effects[0].order, OrderVerdict::Go);
    done(&store, &start_one(&store).await, SETTLED).await;
    let status = detail(&store, receipt.event).await.event.status;
    assert_eq!(status, EventStatus::Completed);
}

/// A worker that asked for a person gets its effect back when it is released.
pub async fn what_a_worker_held_is_claimable_when_released(store: Subject, _dial: Dial) {
    let receipt = accept_effects(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let effect = claim_one(&store).await;
    done(&store, &effect, Move::Review(review())).await;
    assert_eq!(claim(&store).await, []);
    carried(&store, receipt.event, release(vec![])).await;
    done(&store, &start_one(&store).await, SETTLED).await;
}

/// A dismissed event comes to nothing: what waits is skipped with its reason, and what was done stays done.
pub async fn a_dismissed_event_comes_to_nothing(store: Subject, _dial: Dial) {
    let empty = held(&store, "k0").await;
    carried(&store, empty.event, Decision::Dismiss).await;
    let now = detail(&store, empty.event).await;
    assert_eq!(
        (now.event.review, now.event.status),
        (None, EventStatus::Completed)
    );
    let second = NewEffect {
        after: vec![0],
        lane: "second".into(),
        ..planned("second", "1", Repeat::Keyed)
    };
    let effects = vec![planned("first", "1", Repeat::Converges), second];
    let receipt = accept_effects(&store, "k", effects).await;
    let effect = claim_one(&store).await;
    done(&store, &effect, Move::Review(review())).await;
    let dismissed = carried(&store, receipt.event, Decision::Dismiss).await;
    assert_eq!(names(dismissed.opened), [""; 0]);
    let now = detail(&store, receipt.event).await;
    assert_eq!(
        (now.event.review, now.event.status),
        (None, EventStatus::Completed)
    );
    for effect in &now.effects {
        assert_eq!(effect.record.state, EffectState::Skipped);
        assert_eq!(effect.record.skip, Some(SkipReason::Dismissed));
    }
    assert_eq!(actions(&store).await, ["event.dismiss", "event.dismiss"]);
    assert_eq!(claim(&store).await, []);
    // It waits for nobody any more, so what is forced can be claimed.
    let force = vec!["first".to_owned()];
    let forced = carried(&store, receipt.event, Decision::Replay { force }).await;
    assert_eq!(names(forced.opened), ["lane"]);
    assert_eq!(claim(&store).await.len(), 1);
}
