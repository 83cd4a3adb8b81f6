//! Order: one attempt at a time for an entity, nothing stale, nothing past its end, and a person where it takes one.

use hapax_ledger::effect::{EffectState, Repeat, SkipReason};
use hapax_ledger::event::{DeliveryOutcome, EventStatus};
use hapax_ledger::order::{Gate, LifeStep, PlannedOrder, ReviewWhy};
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_ledger::transition::{Rejected, Resolution, Resolver};

use super::operator::carried;
use super::sample::{Dial, KEEP, Subject, accept_one, arrival, at, detail, reap_all, review};
use super::worker::{
    BROKEN, GIVEN_UP, LEASE, SETTLED, START, accept_effects, advance, calling_for, claim, claim_as,
    claim_one, done, effect_detail, ended, names, planned, rescued, resolve, serial, start_one,
};
use crate::nouns::{Decision, Effect, Move, Moved, NewEffect, NewEvent, OnFailed, Receipt, Review};

/// One more effect `e` for an entity, in a lane of its key's name.
fn ordered(key: &str, order: PlannedOrder) -> NewEffect {
    NewEffect {
        lane: key.into(),
        order: Some(order),
        ..planned("e", key, Repeat::Keyed)
    }
}

fn versioned(entity: &str, version: &str) -> PlannedOrder {
    PlannedOrder {
        version: Some(version.into()),
        ..serial(entity)
    }
}

/// An event of this type that calls for one effect of the entity.
fn typed(key: &str, event_type: &str, life_step: LifeStep) -> NewEvent {
    let order = PlannedOrder {
        life_step,
        ..serial("sub_1")
    };
    NewEvent {
        event_type: Some(event_type.into()),
        ..calling_for(key, vec![ordered(key, order)])
    }
}

async fn accept(store: &Subject, key: &str, order: PlannedOrder) -> Receipt {
    accept_effects(store, key, vec![ordered(key, order)]).await
}

async fn gate(store: &Subject, receipt: &Receipt) -> Gate {
    detail(store, receipt.event).await.effects[0].gate
}

async fn finish_one(store: &Subject) -> Effect {
    let effect = start_one(store).await;
    done(store, &effect, SETTLED).await;
    effect
}

/// F1: in the order of acceptance, one at a time; a retry does not let the next one past.
pub async fn one_at_a_time_in_the_order_of_acceptance(store: Subject, dial: Dial) {
    let events = ["1", "2", "3"].map(|key| calling_for(key, vec![ordered(key, serial("in_1"))]));
    let accepted = store.accept(arrival("a", at(0), events.into())).await;
    let receipts = accepted.expect("the store accepts");
    assert_eq!(gate(&store, &receipts[0]).await, Gate::Open);
    assert_eq!(gate(&store, &receipts[2]).await, Gate::Waiting);
    let effect = start_one(&store).await;
    assert_eq!(effect.key, "1");
    assert_eq!(effect.order, Some(serial("in_1")));
    assert_eq!(claim(&store).await, []);
    let retry = ended(BROKEN, Next::At(Span::from_secs(9)));
    assert_eq!(done(&store, &effect, retry).await, [""; 0]);
    assert_eq!(claim(&store).await, [], "the next waits through the pause");
    dial.set(at(9));
    let effect = start_one(&store).await;
    assert_eq!(effect.key, "1");
    assert_eq!(done(&store, &effect, SETTLED).await, ["2"]);
    let effect = start_one(&store).await;
    assert_eq!((effect.key.as_str(), claim(&store).await.len()), ("2", 0));
    assert_eq!(done(&store, &effect, GIVEN_UP).await, ["3"], "dead is over");
    assert_eq!(claim_one(&store).await.key, "3");
}

/// F3: neither other entities nor other effects of the same entity wait.
pub async fn unrelated_entities_never_wait_for_each_other(store: Subject, _dial: Dial) {
    let other_name = NewEffect {
        order: Some(serial("in_1")),
        ..planned("other", "1", Repeat::Keyed)
    };
    let once = |key: &str, entity: &str| NewEffect {
        repeat: Repeat::Once,
        ..ordered(key, serial(entity))
    };
    let effects = vec![once("1", "in_1"), ordered("2", serial("in_2")), other_name];
    accept_effects(&store, "k", effects).await;
    accept(&store, "3", serial("in_1")).await;
    let claims = claim(&store).await;
    assert_eq!(claims.len(), 3);
    for effect in &claims {
        done(&store, effect, START).await;
        let next = Next::Exhausted;
        done(&store, effect, ended(BROKEN, next)).await;
    }
    // The first of in_1 is uncertain and blocks its own entity only.
    assert_eq!(claim(&store).await, []);
    accept(&store, "4", serial("in_2")).await;
    assert_eq!(claim_one(&store).await.key, "4");
}

/// F1, D3: uncertain is not over; resolved it is, or it goes first once more.
pub async fn an_uncertain_one_blocks_its_entity_until_it_is_resolved(store: Subject, dial: Dial) {
    let first = NewEffect {
        repeat: Repeat::Once,
        ..ordered("1", serial("in_1"))
    };
    accept_effects(&store, "k1", vec![first]).await;
    accept(&store, "2", serial("in_1")).await;
    let effect = start_one(&store).await;
    dial.set(at(30));
    let freed = rescued(&store).await;
    assert_eq!((freed.effects.len(), names(freed.opened)), (1, vec![]));
    assert_eq!(claim(&store).await, []);
    let not_applied = resolve(&store, effect.id, Resolution::NotApplied, Resolver::Person).await;
    assert_eq!(names(not_applied.opened), [""; 0]);
    let effect = start_one(&store).await;
    assert_eq!(effect.key, "1");
    done(&store, &effect, GIVEN_UP).await;
    let skipped = resolve(&store, effect.id, Resolution::Skip, Resolver::Person).await;
    assert_eq!(names(skipped.opened), ["2"]);
    assert_eq!(claim_one(&store).await.key, "2");
}

/// F2: older than the highest started is stale, skipped and visible; equal is not; numbers count as numbers.
pub async fn an_older_version_is_stale_and_an_equal_one_is_not(store: Subject, _dial: Dial) {
    for (key, version) in [
        ("a", "9"),
        ("b", "10"),
        ("c", "9"),
        ("d", "10.0"),
        ("e", "11"),
    ] {
        accept(&store, key, versioned("in_1", version)).await;
    }
    finish_one(&store).await;
    finish_one(&store).await;
    let stale = claim_one(&store).await;
    assert_eq!(stale.key, "c");
    let advanced = store.advance(stale.id, stale.record.fence, START).await;
    let advanced = advanced.expect("the store moves");
    let Moved::Stale(change) = advanced.moved else {
        panic!("{advanced:?}")
    };
    assert_eq!(names(advanced.opened), ["d"]);
    let read = effect_detail(&store, &stale).await;
    assert_eq!(read.effect.record, change.next);
    assert_eq!(
        (read.effect.record.state, read.effect.record.skip),
        (EffectState::Skipped, Some(SkipReason::Stale))
    );
    assert_eq!(read.attempts, []);
    let event = detail(&store, read.events[0]).await.event;
    assert_eq!(event.status, EventStatus::Stale);
    assert_eq!(finish_one(&store).await.key, "d");
    assert_eq!(finish_one(&store).await.key, "e");
}

/// F2: an effect is not stale against itself, and its own retry is not out of order.
pub async fn a_retry_is_measured_by_the_others_only(store: Subject, _dial: Dial) {
    accept(&store, "a", versioned("in_1", "5")).await;
    for _ in 0..3 {
        let effect = start_one(&store).await;
        done(&store, &effect, ended(BROKEN, Next::At(Span::ZERO))).await;
    }
    assert_eq!(finish_one(&store).await.record.attempts, 3);
}

/// After a type that ends its entity others need a person, unless one reopened it; what came before the end does not.
pub async fn after_the_end_a_person_decides(store: Subject, _dial: Dial) {
    let types = [
        ("before", LifeStep::Ordinary),
        ("sub.deleted", LifeStep::Ends),
        ("sub.updated", LifeStep::Ordinary),
        ("sub.resumed", LifeStep::Reopens),
        ("sub.paid", LifeStep::Ordinary),
    ];
    let mut receipts = Vec::new();
    for (event_type, life_step) in types {
        let new = typed(event_type, event_type, life_step);
        receipts.push(accept_one(&store, "a", at(0), new).await);
    }
    assert_eq!(finish_one(&store).await.key, "before");
    assert_eq!(finish_one(&store).await.key, "sub.deleted");
    let late = claim_one(&store).await;
    let by = "sub.deleted".to_owned();
    let why = ReviewWhy::Ended { by };
    assert_eq!(
        advance(&store, &late, START).await,
        Moved::Review(why.clone())
    );
    let kept = detail(&store, receipts[2].event).await;
    assert_eq!(kept.event.status, EventStatus::NeedsReview);
    assert_eq!(kept.event.review, Some(Review::of_order(&why)));
    assert_eq!(kept.deliveries[0].outcome, DeliveryOutcome::Accepted);
    assert_eq!(
        (kept.effects[0].gate, kept.effects[0].record.state),
        (Gate::Review, EffectState::Pending)
    );
    assert_eq!(claim(&store).await, [], "what waits for a person blocks");
    assert_eq!(gate(&store, &receipts[3]).await, Gate::Waiting);
}

/// What was reopened goes on: the end that counts is the one before the event, as it was accepted.
pub async fn a_reopened_entity_goes_on(store: Subject, _dial: Dial) {
    for (key, life_step) in [
        ("end", LifeStep::Ends),
        ("open", LifeStep::Reopens),
        ("paid", LifeStep::Ordinary),
        ("end again", LifeStep::Ends),
    ] {
        accept_one(&store, "a", at(0), typed(key, key, life_step)).await;
    }
    for key in ["end", "open", "paid", "end again"] {
        assert_eq!(finish_one(&store).await.key, key);
    }
}

/// An order that is not serial waits for nobody, and still knows the end of its entity.
pub async fn a_free_order_waits_for_nobody(store: Subject, _dial: Dial) {
    let free = |key: &str, life_step| {
        let mut new = typed(key, key, life_step);
        for effect in &mut new.effects {
            effect.order = effect.order.take().map(|order| PlannedOrder {
                serial: false,
                ..order
            });
        }
        new
    };
    accept_one(&store, "a", at(0), free("one", LifeStep::Ordinary)).await;
    accept_one(&store, "a", at(0), free("end", LifeStep::Ends)).await;
    accept_one(&store, "a", at(0), free("late", LifeStep::Ordinary)).await;
    let claims = claim(&store).await;
    assert_eq!(claims.len(), 3);
    for effect in claims.iter().rev() {
        let moved = advance(&store, effect, START).await;
        match effect.key.as_str() {
            "late" => assert!(matches!(moved, Moved::Review(_)), "{moved:?}"),
            _ => assert!(matches!(moved, Moved::Done(_)), "{moved:?}"),
        }
    }
}

/// E: going back after a later one ran needs a person, however the earlier one came back.
pub async fn going_back_behind_a_later_one_needs_a_person(store: Subject, dial: Dial) {
    let new = NewEvent {
        on_failed: OnFailed::Retry,
        ..calling_for("1", vec![ordered("1", serial("in_1"))])
    };
    let first = accept_one(&store, "a", at(0), new.clone()).await;
    let second = accept(&store, "2", serial("in_1")).await;
    let effect = start_one(&store).await;
    done(&store, &effect, GIVEN_UP).await;
    let later = start_one(&store).await;
    assert_eq!(later.key, "2");
    dial.set(at(1));
    let again = accept_one(&store, "a", at(1), new).await;
    assert_eq!(names(again.revived), ["1"]);
    let back = claim_one(&store).await;
    let why = ReviewWhy::LaterRan { effect: later.id };
    assert_eq!(advance(&store, &back, START).await, Moved::Review(why));
    let event = detail(&store, first.event).await.event;
    let code = event.review.map(|review| review.code);
    assert_eq!(
        (code.as_deref(), event.status),
        (Some("H0221"), EventStatus::NeedsReview)
    );
    // The later one is under way and settles; but it is not tried again before the earlier one is dealt with.
    let retry = ended(BROKEN, Next::At(Span::ZERO));
    assert_eq!(done(&store, &later, retry).await, [""; 0]);
    assert_eq!(gate(&store, &second).await, Gate::Waiting);
    assert_eq!(claim(&store).await, []);
}

/// F1: whom a person lets go after all does not go beside a later one that is under way.
pub async fn one_let_go_waits_for_a_later_one_under_way(store: Subject, dial: Dial) {
    let mut receipts = Vec::new();
    for key in ["1", "2", "3"] {
        receipts.push(accept(&store, key, serial("in_1")).await);
    }
    for _ in 0..2 {
        let effect = start_one(&store).await;
        done(&store, &effect, GIVEN_UP).await;
    }
    let third = start_one(&store).await;
    // Not only the latest of them may be in the way: whichever goes.
    for again in [1, 0] {
        let force = || vec!["e".to_owned()];
        carried(
            &store,
            receipts[again].event,
            Decision::Replay { force: force() },
        )
        .await;
        assert_eq!(gate(&store, &receipts[again]).await, Gate::Waiting);
        assert_eq!(claim(&store).await, []);
    }
    let pause = ended(BROKEN, Next::At(Span::from_secs(9)));
    assert_eq!(done(&store, &third, pause).await, ["1"]);
    assert_eq!(gate(&store, &receipts[2]).await, Gate::Waiting);
    let first = start_one(&store).await;
    assert_eq!(first.key, "1");
    assert_eq!(done(&store, &first, SETTLED).await, ["2"]);
    let second = start_one(&store).await;
    carried(
        &store,
        receipts[0].event,
        Decision::Replay {
            force: vec!["e".to_owned()],
        },
    )
    .await;
    assert_eq!(claim(&store).await, [], "the second is under way");
    dial.set(at(30));
    assert_eq!(names(rescued(&store).await.opened), ["1"]);
    assert_eq!(
        advance(&store, &second, START).await,
        Moved::Refused(Rejected::StaleFence)
    );
    for key in ["1", "2", "3"] {
        assert_eq!(finish_one(&store).await.key, key);
    }
}

/// F1: a revived one goes back to its place, and what was claimable behind it waits again.
pub async fn a_revived_one_goes_back_to_its_place(store: Subject, _dial: Dial) {
    let new = |key: &str| NewEvent {
        on_failed: OnFailed::Retry,
        ..calling_for(key, vec![ordered(key, serial("in_1"))])
    };
    for key in ["1", "2", "3"] {
        accept_one(&store, "a", at(0), new(key)).await;
    }
    for _ in 0..2 {
        let effect = start_one(&store).await;
        done(&store, &effect, GIVEN_UP).await;
    }
    let third = claim_one(&store).await;
    assert_eq!(third.key, "3");
    // The second comes back while the third is claimed but not started.
    accept_one(&store, "a", at(1), new("2")).await;
    let second = claim_one(&store).await;
    assert_eq!(second.key, "2");
    assert_eq!(
        advance(&store, &third, START).await,
        Moved::Waits(second.id)
    );
    let read = effect_detail(&store, &third).await.effect;
    assert_eq!(
        (read.gate, read.record.state, read.record.attempts),
        (Gate::Waiting, EffectState::Pending, 0)
    );
    assert_eq!(
        advance(&store, &third, START).await,
        Moved::Refused(Rejected::StaleFence)
    );
    done(&store, &second, Move::Release(Span::ZERO)).await;
    // Now the first comes back while the second is free to be claimed: it would run out of order.
    let second = claim_one(&store).await;
    assert_eq!(second.key, "2");
    done(&store, &second, Move::Release(Span::ZERO)).await;
    accept_one(&store, "a", at(1), new("1")).await;
    let keys: Vec<String> = claim(&store).await.into_iter().map(|e| e.key).collect();
    assert_eq!(keys, ["1"]);
}

/// The review condition asks for a person before the first byte.
pub async fn a_review_condition_asks_before_the_start(store: Subject, _dial: Dial) {
    let asked = PlannedOrder {
        review: true,
        ..serial("in_1")
    };
    let receipt = accept(&store, "1", asked).await;
    let effect = claim_one(&store).await;
    assert_eq!(
        advance(&store, &effect, START).await,
        Moved::Review(ReviewWhy::Asked)
    );
    let event = detail(&store, receipt.event).await.event;
    let code = event.review.map(|review| review.code);
    assert_eq!(code.as_deref(), Some("H0222"));
    assert_eq!(claim(&store).await, []);
}

/// A worker may ask for a person, too, with its own words; with an old fence it may not. What was said first stays.
pub async fn a_worker_can_ask_for_a_person(store: Subject, dial: Dial) {
    let effects = vec![
        planned("e", "1", Repeat::Keyed),
        planned("f", "1", Repeat::Keyed),
    ];
    let receipt = accept_effects(&store, "k", effects).await;
    let claims = claim(&store).await;
    dial.set(at(30));
    assert_eq!(rescued(&store).await.effects.len(), 2);
    let again = claim_as(&store, "other", 9, LEASE).await;
    assert_eq!(
        advance(&store, &claims[0], Move::Review(review())).await,
        Moved::Refused(Rejected::StaleFence)
    );
    assert_eq!(
        done(&store, &again[0], Move::Review(review())).await,
        [""; 0]
    );
    let second = Review {
        code: "H0999".into(),
        message: "something else".into(),
    };
    done(&store, &again[1], Move::Review(second)).await;
    let kept = detail(&store, receipt.event).await;
    assert_eq!(kept.event.review, Some(review()));
    assert_eq!(kept.event.status, EventStatus::NeedsReview);
    assert!(
        kept.effects
            .iter()
            .all(|effect| effect.gate == Gate::Review)
    );
    assert_eq!(claim(&store).await, []);
}

/// I1: with the last effect of an entity all that was known of its order is gone.
pub async fn a_reaped_entity_begins_anew(store: Subject, _dial: Dial) {
    accept(&store, "1", versioned("in_1", "9")).await;
    finish_one(&store).await;
    let end = PlannedOrder {
        life_step: LifeStep::Ends,
        ..versioned("in_1", "9")
    };
    accept(&store, "2", end).await;
    finish_one(&store).await;
    reap_all(&store, at(0) + KEEP.identity).await;
    accept(&store, "3", versioned("in_1", "1")).await;
    assert_eq!(finish_one(&store).await.key, "3");
}
