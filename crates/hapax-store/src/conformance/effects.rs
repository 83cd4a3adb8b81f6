//! Effects: planned with their event, claimed by one worker at a time, moved by whoever shows the fence.

use hapax_ledger::effect::{EffectState, Repeat, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::{Lost, Outcome};
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_ledger::transition::Rejected;

use super::sample::{Dial, KEEP, Subject, accept_one, at, detail, reap_all};
use super::worker::{
    BROKEN, GIVEN_UP, LEASE, OK, SETTLED, START, accept_effects, advance, calling_for, claim_as,
    claim_one, done, effect_detail, ended, planned, rescue,
};
use crate::nouns::{Born, Effect, Move, Moved, NewEffect, Reaped, Receipt};

async fn accept(store: &Subject, key: &str, effects: Vec<NewEffect>) -> Receipt {
    accept_effects(store, key, effects).await
}

async fn claim(store: &Subject, limit: u32) -> Vec<Effect> {
    claim_as(store, "node", limit, LEASE).await
}

async fn state(store: &Subject, effect: &Effect) -> EffectState {
    effect_detail(store, effect).await.effect.record.state
}

async fn status(store: &Subject, receipt: &Receipt) -> EventStatus {
    detail(store, receipt.event).await.event.status
}

/// B2, D7: planned with their event, in its order, and the event waits for them.
pub async fn effects_are_planned_with_their_event(store: Subject, _dial: Dial) {
    let effects = vec![
        planned("b", "1", Repeat::Once),
        planned("a", "1", Repeat::Keyed),
    ];
    let receipt = accept(&store, "k", effects).await;
    assert_eq!(receipt.claims, [None, None]);
    let detail = detail(&store, receipt.event).await;
    let names: Vec<&str> = detail.effects.iter().map(|effect| &*effect.name).collect();
    assert_eq!(
        (names.as_slice(), detail.event.status),
        (&["b", "a"][..], EventStatus::Pending)
    );
    assert!(
        detail
            .effects
            .iter()
            .all(|effect| effect.event == receipt.event && effect.key == "1")
    );
}

/// C1, C3: one live claim per effect; the fence rises with each.
pub async fn a_claim_is_held_by_one_until_its_lease_ends(store: Subject, dial: Dial) {
    let receipt = accept(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let first = claim_one(&store).await;
    assert!(first.record.fence > Fence::NONE && first.record.lease_until == at(30));
    assert_eq!(claim(&store, 10).await, []);
    assert_eq!(status(&store, &receipt).await, EventStatus::InProgress);
    dial.set(at(29));
    assert_eq!(rescue(&store).await, 0);
    dial.set(at(30));
    assert_eq!(rescue(&store).await, 1);
    let second = claim_one(&store).await;
    assert!(second.record.fence > first.record.fence);
}

/// D1, D2: started, settled, done for good.
pub async fn a_settled_effect_is_done_for_good(store: Subject, dial: Dial) {
    let receipt = accept(&store, "k", vec![planned("e", "1", Repeat::Once)]).await;
    let effect = claim_one(&store).await;
    assert_eq!(
        advance(&store, &effect, SETTLED).await,
        Moved::Refused(Rejected::NotStarted)
    );
    dial.set(at(1));
    done(&store, &effect, START).await;
    assert_eq!(
        advance(&store, &effect, START).await,
        Moved::Refused(Rejected::AlreadyStarted)
    );
    dial.set(at(2));
    done(&store, &effect, SETTLED).await;
    assert_eq!(status(&store, &receipt).await, EventStatus::Completed);
    assert_eq!(
        advance(&store, &effect, SETTLED).await,
        Moved::Refused(Rejected::AlreadyDone)
    );
    dial.set(at(90_000));
    assert_eq!(
        (rescue(&store).await, claim(&store, 10).await),
        (0, Vec::new())
    );
    let read = effect_detail(&store, &effect).await;
    let [attempt] = read.attempts.try_into().expect("one attempt");
    assert_eq!(
        (attempt.number, attempt.fence, attempt.outcome),
        (1, effect.record.fence, OK)
    );
    assert_eq!(
        (attempt.started_at, attempt.ended_at, &*attempt.node),
        (at(1), at(2), "node")
    );
}

/// C2: who was fenced off changes nothing, and what it says is kept.
pub async fn a_late_settlement_changes_nothing_and_is_kept(store: Subject, dial: Dial) {
    accept(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let paused = claim_one(&store).await;
    done(&store, &paused, START).await;
    dial.set(at(31));
    assert_eq!(rescue(&store).await, 1);
    let other = claim_one(&store).await;
    for late in [
        SETTLED,
        Move::Extend(LEASE),
        START,
        Move::Release(Span::ZERO),
    ] {
        assert_eq!(
            advance(&store, &paused, late.clone()).await,
            Moved::Refused(Rejected::StaleFence),
            "{late:?}"
        );
    }
    assert_eq!(state(&store, &other).await, EffectState::Claimed);
    let read = effect_detail(&store, &other).await;
    let [attempt] = read.attempts.try_into().expect("one attempt has ended");
    assert_eq!(
        attempt.outcome,
        Outcome::Lost {
            why: Lost::LostLease
        }
    );
    assert_eq!(attempt.late, Some((at(31), OK)));
}

/// D3, D4: an attempt whose worker was lost is uncertain if it must not be repeated, and due at once if it may.
pub async fn a_lost_worker_leaves_what_the_class_says(store: Subject, dial: Dial) {
    let effects = vec![
        planned("keyed", "1", Repeat::Keyed),
        planned("once", "1", Repeat::Once),
        planned("unstarted", "1", Repeat::Once),
    ];
    let receipt = accept(&store, "k", effects).await;
    let all = claim(&store, 10).await;
    for effect in all.iter().filter(|effect| &*effect.name != "unstarted") {
        done(&store, effect, START).await;
    }
    dial.set(at(30));
    assert_eq!(rescue(&store).await, 3);
    for effect in &all {
        let expected = if &*effect.name == "once" {
            EffectState::Uncertain
        } else {
            EffectState::Pending
        };
        assert_eq!(state(&store, effect).await, expected, "{}", effect.name);
    }
    assert_eq!(status(&store, &receipt).await, EventStatus::NeedsReview);
    assert_eq!(
        claim(&store, 10).await.len(),
        2,
        "an uncertain effect is not claimed"
    );
}

/// Retries: not before their time, and dead when the schedule is used up.
pub async fn a_retry_waits_for_its_time_and_an_end_is_an_end(store: Subject, dial: Dial) {
    let receipt = accept(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let effect = claim_one(&store).await;
    done(&store, &effect, START).await;
    done(
        &store,
        &effect,
        ended(BROKEN, Next::At(Span::from_secs(60))),
    )
    .await;
    assert_eq!(status(&store, &receipt).await, EventStatus::Pending);
    dial.set(at(59));
    assert_eq!(claim(&store, 10).await, []);
    dial.set(at(60));
    let effect = claim_one(&store).await;
    done(&store, &effect, START).await;
    done(&store, &effect, ended(BROKEN, Next::Exhausted)).await;
    assert_eq!(
        (state(&store, &effect).await, status(&store, &receipt).await),
        (EffectState::Dead, EventStatus::Dead)
    );
}

/// Claims come earliest first in each lane, and no more than asked for.
pub async fn the_earliest_come_first(store: Subject, dial: Dial) {
    let later = |key: &str, seconds| NewEffect {
        wait: Span::from_secs(seconds),
        ..planned("e", key, Repeat::Keyed)
    };
    accept(
        &store,
        "k",
        vec![later("c", 3), later("a", 1), later("b", 2), later("z", 99)],
    )
    .await;
    dial.set(at(10));
    let keys = |effects: Vec<Effect>| {
        effects
            .into_iter()
            .map(|effect| effect.key)
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(claim(&store, 2).await), ["a", "b"]);
    assert_eq!(keys(claim(&store, 2).await), ["c"]);
}

/// The fast path: claimed and started in the accept commit; a `once` effect never is.
pub async fn a_repeatable_effect_may_be_born_claimed(store: Subject, dial: Dial) {
    let born = |name: &str, repeat| NewEffect {
        born: Some(Born {
            node: "here".into(),
            lease: LEASE,
        }),
        ..planned(name, "1", repeat)
    };
    dial.set(at(5));
    let effects = vec![
        born("keyed", Repeat::Keyed),
        born("once", Repeat::Once),
        born("sets", Repeat::Converges),
    ];
    let receipt = accept(&store, "k", effects).await;
    let [Some(keyed), None, Some(_)] = &receipt.claims[..] else {
        panic!("{:?}", receipt.claims)
    };
    let record = keyed.effect.record;
    assert!(
        record.started && record.attempts == 1 && record.lease_until == at(35),
        "{record:?}"
    );
    assert_eq!(
        claim(&store, 10).await.len(),
        1,
        "the once effect waits for a claim of its own"
    );
    dial.set(at(6));
    done(&store, &keyed.effect, SETTLED).await;
    let read = effect_detail(&store, &keyed.effect).await;
    assert_eq!(
        (&*read.attempts[0].node, read.attempts[0].started_at),
        ("here", at(5))
    );
    let again = accept(&store, "k", vec![born("keyed", Repeat::Keyed)]).await;
    assert_eq!(again.claims, [], "a duplicate plans nothing");
}

/// D6, D7: two events that call for one effect share it, and both follow it.
pub async fn two_events_share_one_effect(store: Subject, _dial: Dial) {
    let first = accept(
        &store,
        "paid",
        vec![planned("email", "inv_1", Repeat::Once)],
    )
    .await;
    let second = accept(
        &store,
        "succeeded",
        vec![
            planned("email", "inv_1", Repeat::Once),
            planned("own", "x", Repeat::Keyed),
        ],
    )
    .await;
    let shared = detail(&store, first.event).await.effects;
    let theirs = detail(&store, second.event).await.effects;
    let names: Vec<&str> = theirs.iter().map(|effect| &*effect.name).collect();
    assert_eq!(names, ["own", "email"], "its own come first");
    assert_eq!(theirs[1], shared[0]);
    assert_eq!(shared[0].event, first.event);
    let claimed = claim(&store, 10).await;
    assert_eq!(claimed.len(), 2, "one email, one other");
    for effect in &claimed {
        done(&store, effect, START).await;
        done(&store, effect, SETTLED).await;
    }
    assert_eq!(status(&store, &first).await, EventStatus::Completed);
    assert_eq!(status(&store, &second).await, EventStatus::Completed);
}

/// D6: the same key under another name is another effect.
pub async fn names_do_not_share_keys(store: Subject, _dial: Dial) {
    accept(
        &store,
        "k",
        vec![
            planned("a", "1", Repeat::Keyed),
            planned("b", "1", Repeat::Keyed),
        ],
    )
    .await;
    assert_eq!(claim(&store, 10).await.len(), 2);
}

/// A claim can be given back, kept longer, or skipped; a started one cannot be given back.
pub async fn a_claim_can_be_extended_released_or_skipped(store: Subject, dial: Dial) {
    let receipt = accept(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let effect = claim_one(&store).await;
    dial.set(at(20));
    done(&store, &effect, Move::Extend(LEASE)).await;
    dial.set(at(49));
    assert_eq!(rescue(&store).await, 0);
    done(&store, &effect, Move::Release(Span::from_secs(10))).await;
    assert_eq!(claim(&store, 10).await, []);
    dial.set(at(59));
    let effect = claim_one(&store).await;
    done(&store, &effect, START).await;
    assert_eq!(
        advance(&store, &effect, Move::Release(Span::ZERO)).await,
        Moved::Refused(Rejected::AlreadyStarted)
    );
    done(&store, &effect, ended(BROKEN, Next::At(Span::ZERO))).await;
    let effect = claim_one(&store).await;
    done(&store, &effect, Move::Skip(SkipReason::Stale)).await;
    assert_eq!(
        (state(&store, &effect).await, status(&store, &receipt).await),
        (EffectState::Skipped, EventStatus::Stale)
    );
}

/// What was never there cannot be moved.
pub async fn an_unknown_effect_is_said_to_be_unknown(store: Subject, _dial: Dial) {
    accept(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let effect = claim_one(&store).await;
    let mut bytes = effect.id.bytes();
    bytes[0] ^= 1;
    let unknown = hapax_ledger::id::EffectId::from_bytes(bytes);
    let moved = store
        .advance(unknown, effect.record.fence, START)
        .await
        .expect("the store moves");
    assert_eq!(moved.moved, Moved::NoEffect);
    assert_eq!(store.effect(unknown).await.expect("the store reads"), None);
}

/// B5, I1: unsettled effects keep everything; a shared effect lives as long as any event that calls for it.
pub async fn an_effects_key_outlives_every_event_that_calls_for_it(store: Subject, _dial: Dial) {
    let first = accept(
        &store,
        "one",
        vec![planned("email", "inv_1", Repeat::Keyed)],
    )
    .await;
    let days_later = at(0) + Span::from_days(30);
    let second = accept_one(
        &store,
        "a",
        days_later,
        calling_for("two", vec![planned("email", "inv_1", Repeat::Keyed)]),
    )
    .await;
    let end_of_first = at(0) + KEEP.identity;
    reap_all(&store, end_of_first).await;
    assert_eq!(
        detail(&store, first.event).await.effects.len(),
        1,
        "a pending effect keeps its event"
    );
    let effect = claim_one(&store).await;
    done(&store, &effect, START).await;
    done(&store, &effect, SETTLED).await;
    reap_all(&store, end_of_first).await;
    assert_eq!(
        store.event(first.event).await.expect("the store reads"),
        None
    );
    let kept = detail(&store, second.event).await.effects;
    assert_eq!(
        (kept.len(), kept[0].id, kept[0].record.state),
        (1, effect.id, EffectState::Done)
    );
    let third = accept_one(
        &store,
        "a",
        end_of_first,
        calling_for("three", vec![planned("email", "inv_1", Repeat::Keyed)]),
    )
    .await;
    assert_eq!(
        detail(&store, third.event).await.event.status,
        EventStatus::Completed,
        "it is done already"
    );
    let end_of_all = end_of_first + KEEP.identity;
    reap_all(&store, end_of_all).await;
    assert_eq!(
        store.effect(effect.id).await.expect("the store reads"),
        None
    );
}

/// I1: one dead effect makes its event dead, and still nothing goes while another one is on its way.
pub async fn a_dead_effect_does_not_let_go_of_the_others(store: Subject, _dial: Dial) {
    let effects = vec![
        planned("dead", "1", Repeat::Keyed),
        planned("late", "1", Repeat::Keyed),
    ];
    let receipt = accept(&store, "k", effects).await;
    let [dead, late] = claim(&store, 10).await.try_into().expect("two are due");
    done(&store, &dead, START).await;
    done(&store, &dead, GIVEN_UP).await;
    assert_eq!(status(&store, &receipt).await, EventStatus::Dead);
    let much_later = at(0) + KEEP.identity + Span::from_days(1);
    assert_eq!(reap_all(&store, much_later).await, Reaped::default());
    assert_eq!(state(&store, &late).await, EffectState::Claimed);
    done(&store, &late, START).await;
    done(&store, &late, SETTLED).await;
    let reaped = reap_all(&store, much_later).await;
    assert_eq!((reaped.payloads, reaped.identities), (1, 1));
    let gone = store.effect(late.id).await.expect("the store reads");
    assert_eq!(gone, None);
}

/// C3: racing workers never hold the same effect.
pub async fn racing_claims_never_share_an_effect(store: Subject, _dial: Dial) {
    let effects = (0..40)
        .map(|number| planned("e", &number.to_string(), Repeat::Keyed))
        .collect();
    accept(&store, "k", effects).await;
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { claim(&store, 3).await })
        })
        .collect();
    let mut seen = Vec::new();
    for worker in workers {
        seen.extend(
            worker
                .await
                .expect("the worker ends")
                .into_iter()
                .map(|effect| effect.id),
        );
    }
    seen.extend(claim(&store, 100).await.into_iter().map(|effect| effect.id));
    let all = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((all, seen.len()), (40, 40));
}
