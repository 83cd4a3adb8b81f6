//! Effects that the user's own code carries out: claimed and started in one, settled under the fence.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::{EffectState, Repeat};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EffectId, EventId, RawId};
use hapax_ledger::key::{KeyHash, KeyKind, wire_key};
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::{Lost, Outcome, Report};
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_ledger::transition::{Rejected, Resolution};

use super::operator::carried;
use super::sample::{Dial, KEEP, Subject, all, at, detail, reap_all};
use super::worker::{
    LEASE, SETTLED, accept_effects, claim, done, names, planned, rescue, start_one,
};
use crate::nouns::{
    Decision, EffectDetail, Move, Moved, OWN_LANE, OWN_SOURCE, OwnClaim, OwnClaimed, PayloadAnswer,
    Said, Settlement,
};

fn wanted(name: &str, key: &str, repeat: Repeat) -> OwnClaim {
    OwnClaim {
        event: None,
        name: name.into(),
        key: key.into(),
        key_hash: KeyHash::of(KeyKind::Effect, name, key),
        repeat,
        actor: "shop".into(),
        lease: LEASE,
        at: at(0),
        keep: KEEP,
    }
}

async fn ask(store: &Subject, claim: &OwnClaim) -> OwnClaimed {
    let said = store.claim_own(claim.clone()).await;
    said.expect("the store claims")
}

/// Claims what has to be free.
async fn claimed(store: &Subject, claim: &OwnClaim) -> (EffectId, Fence) {
    match ask(store, claim).await {
        OwnClaimed::Claimed { effect, fence } => (effect, fence),
        other => panic!("not claimed: {other:?}"),
    }
}

fn reported(report: Report, result: Option<&'static str>) -> Move {
    Move::Settle(Settlement {
        outcome: Outcome::Reported(report),
        next: Next::At(Span::ZERO),
        said: Said {
            excerpt: result.map(Bytes::from),
            ..Said::default()
        },
    })
}

async fn settle(store: &Subject, held: (EffectId, Fence), what: Move) -> Moved {
    let advanced = store.advance(held.0, held.1, what).await;
    advanced.expect("the store moves").moved
}

async fn settled(store: &Subject, held: (EffectId, Fence), what: Move) {
    let moved = settle(store, held, what).await;
    assert!(matches!(moved, Moved::Done(_)), "{moved:?}");
}

async fn read(store: &Subject, id: EffectId) -> EffectDetail {
    let detail = store.effect(id).await.expect("the store reads");
    detail.expect("the effect is there")
}

/// D1: whoever claims may act at once, so the start is as durable as the claim, for every class.
pub async fn a_claim_of_ones_own_is_started(store: Subject, _dial: Dial) {
    for (key, repeat) in [
        ("1", Repeat::Converges),
        ("2", Repeat::Keyed),
        ("3", Repeat::Once),
    ] {
        let claim = wanted("ship", key, repeat);
        let (id, fence) = claimed(&store, &claim).await;
        let effect = read(&store, id).await.effect;
        let record = effect.record;
        assert_eq!((record.state, record.started), (EffectState::Claimed, true));
        assert_eq!((record.attempts, record.generation), (1, 1));
        assert_eq!((record.fence, record.lease_until), (fence, at(0) + LEASE));
        assert_eq!((record.repeat, effect.key.as_str()), (repeat, key));
        assert_eq!(*effect.lane, *format!("{OWN_LANE}ship"));
        let event = detail(&store, effect.event).await.event;
        assert_eq!(
            (&*event.source, event.status),
            (OWN_SOURCE, EventStatus::InProgress)
        );
        assert_eq!(event.key, wire_key("ship", key, 1));
        assert_eq!((event.received_at, event.delivery_count), (at(0), 1));
        let bytes = store.payload(event.id).await.expect("the store reads");
        let PayloadAnswer::Kept(payload) = bytes else {
            panic!("a verdict must not say that its bytes are gone");
        };
        assert!(payload.body.is_empty());
        let until = at(0) + LEASE;
        assert_eq!(
            ask(&store, &claim).await,
            OwnClaimed::InFlight { effect: id, until }
        );
    }
    assert_eq!(store.stats().await.expect("the store counts").events, 3);
    assert_eq!(claim(&store).await, [], "nobody else carries it out");
}

/// D2: done is done, and whoever asks again is told what came of it.
pub async fn what_is_done_is_told_again(store: Subject, _dial: Dial) {
    let claim = wanted("ship", "1", Repeat::Once);
    let held = claimed(&store, &claim).await;
    settled(&store, held, reported(Report::Done, Some("{\"parcel\":7}"))).await;
    let effect = held.0;
    let result = Some(Bytes::from("{\"parcel\":7}"));
    for _ in 0..2 {
        let told = OwnClaimed::Done {
            effect,
            result: result.clone(),
        };
        assert_eq!(ask(&store, &claim).await, told);
    }
    let read = read(&store, effect).await;
    assert_eq!(&*read.attempts[0].node, "shop");
    let event = detail(&store, read.effect.event).await.event;
    assert_eq!(
        (event.status, event.delivery_count),
        (EventStatus::Completed, 1)
    );
    let silent = wanted("ship", "2", Repeat::Keyed);
    let held = claimed(&store, &silent).await;
    settled(&store, held, reported(Report::Done, None)).await;
    let told = ask(&store, &silent).await;
    assert_eq!(
        told,
        OwnClaimed::Done {
            effect: held.0,
            result: None
        }
    );
}

/// C1, C2: what certainly failed is claimed again under a higher fence, whatever its time says; the old fence is stale.
pub async fn what_failed_is_claimed_again(store: Subject, _dial: Dial) {
    let claim = wanted("ship", "1", Repeat::Once);
    let first = claimed(&store, &claim).await;
    let later = Move::Settle(Settlement::new(
        Outcome::Reported(Report::Failed),
        Next::At(Span::from_hours(5)),
    ));
    settled(&store, first, later).await;
    let record = read(&store, first.0).await.effect.record;
    assert_eq!(record.state, EffectState::Pending);
    let second = claimed(&store, &claim).await;
    assert_eq!(second.0, first.0);
    assert!(second.1 > first.1);
    let stale = Moved::Refused(Rejected::StaleFence);
    let done = || reported(Report::Done, Some("late"));
    assert_eq!(settle(&store, first, done()).await, stale);
    assert_eq!(settle(&store, first, Move::Extend(LEASE)).await, stale);
    let kept = read(&store, first.0).await;
    assert_eq!(kept.effect.record.state, EffectState::Claimed);
    assert!(kept.attempts[0].late.is_some(), "kept as evidence");
    settled(&store, second, reported(Report::Failed, None)).await;
    let third = claimed(&store, &claim).await;
    assert_eq!(read(&store, third.0).await.effect.record.attempts, 3);
}

/// A lease is extended by whoever holds it.
pub async fn a_claim_of_ones_own_is_extended(store: Subject, dial: Dial) {
    let claim = wanted("ship", "1", Repeat::Once);
    let held = claimed(&store, &claim).await;
    dial.set(at(20));
    settled(&store, held, Move::Extend(LEASE)).await;
    dial.set(at(40));
    let until = at(50);
    let in_flight = OwnClaimed::InFlight {
        effect: held.0,
        until,
    };
    assert_eq!(ask(&store, &claim).await, in_flight);
    settled(&store, held, reported(Report::Done, None)).await;
}

/// D3: whoever is never heard of again leaves what its class says, whether or not the rescue has come by.
pub async fn a_lost_claim_is_read_by_its_class(store: Subject, dial: Dial) {
    let (once, keyed) = (
        wanted("ship", "1", Repeat::Once),
        wanted("ship", "2", Repeat::Keyed),
    );
    let (lost, free) = (claimed(&store, &once).await, claimed(&store, &keyed).await);
    dial.set(at(30));
    let effect = lost.0;
    assert_eq!(ask(&store, &once).await, OwnClaimed::Uncertain { effect });
    let read_once = read(&store, effect).await;
    assert_eq!(read_once.effect.record.state, EffectState::Uncertain);
    let why = Lost::LostLease;
    assert_eq!(read_once.attempts[0].outcome, Outcome::Lost { why });
    let status = detail(&store, read_once.effect.event).await.event.status;
    assert_eq!(status, EventStatus::NeedsReview);
    let again = claimed(&store, &keyed).await;
    assert!(again.1 > free.1 && again.0 == free.0);
    assert_eq!(read(&store, free.0).await.effect.record.attempts, 2);
    assert_eq!(rescue(&store).await, 0, "nothing is left for the rescue");
    let resolution = Resolution::NotApplied;
    carried(
        &store,
        read_once.effect.event,
        Decision::Resolve { effect, resolution },
    )
    .await;
    claimed(&store, &once).await;
}

/// One that cannot tell says so; a person decides.
pub async fn an_uncertain_report_needs_a_person_for_once(store: Subject, _dial: Dial) {
    let claim = wanted("ship", "1", Repeat::Once);
    let held = claimed(&store, &claim).await;
    settled(&store, held, reported(Report::Uncertain, None)).await;
    let effect = held.0;
    assert_eq!(ask(&store, &claim).await, OwnClaimed::Uncertain { effect });
    let event = read(&store, effect).await.effect.event;
    let resolution = Resolution::Skip;
    carried(&store, event, Decision::Resolve { effect, resolution }).await;
    assert_eq!(ask(&store, &claim).await, OwnClaimed::Closed { effect });
    let force = vec!["ship".to_owned()];
    carried(&store, event, Decision::Replay { force }).await;
    claimed(&store, &claim).await;
    let keyed = wanted("ship", "2", Repeat::Keyed);
    let held = claimed(&store, &keyed).await;
    settled(&store, held, reported(Report::Uncertain, None)).await;
    claimed(&store, &keyed).await;
}

/// Of two classes the stricter counts, and under it what may have been applied is not tried again.
pub async fn the_stricter_class_of_two_claims_counts(store: Subject, _dial: Dial) {
    let claim = wanted("ship", "1", Repeat::Keyed);
    let held = claimed(&store, &claim).await;
    settled(&store, held, reported(Report::Failed, None)).await;
    let stricter = wanted("ship", "1", Repeat::Once);
    let held = claimed(&store, &stricter).await;
    assert_eq!(
        read(&store, held.0).await.effect.record.repeat,
        Repeat::Once
    );
    settled(&store, held, reported(Report::Failed, None)).await;
    let held = claimed(&store, &claim).await;
    assert_eq!(
        read(&store, held.0).await.effect.record.repeat,
        Repeat::Once
    );
    let unsure = wanted("ship", "2", Repeat::Keyed);
    let held = claimed(&store, &unsure).await;
    settled(&store, held, reported(Report::Uncertain, None)).await;
    let stricter = wanted("ship", "2", Repeat::Once);
    let effect = held.0;
    assert_eq!(
        ask(&store, &stricter).await,
        OwnClaimed::Uncertain { effect }
    );
    let record = read(&store, effect).await.effect.record;
    assert_eq!(record.state, EffectState::Uncertain);
}

/// An effect of an event that is there counts for it, as any other of its effects does.
pub async fn a_claim_of_ones_own_joins_an_event(store: Subject, _dial: Dial) {
    let receipt = accept_effects(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let sent = start_one(&store).await;
    let joins = |name: &str| OwnClaim {
        event: Some(receipt.event),
        ..wanted(name, "1", Repeat::Once)
    };
    let held = claimed(&store, &joins("ship")).await;
    let other = claimed(&store, &joins("bill")).await;
    done(&store, &sent, SETTLED).await;
    let now = detail(&store, receipt.event).await;
    let shown: Vec<&str> = now.effects.iter().map(|effect| &*effect.name).collect();
    assert_eq!(shown, ["e", "ship", "bill"]);
    assert!(
        now.effects
            .iter()
            .all(|effect| effect.event == receipt.event)
    );
    assert_eq!(now.event.status, EventStatus::InProgress);
    settled(&store, held, reported(Report::Done, None)).await;
    settled(&store, other, reported(Report::Done, None)).await;
    let status = detail(&store, receipt.event).await.event.status;
    assert_eq!(status, EventStatus::Completed);
    let events = store.stats().await.expect("the store counts").events;
    assert_eq!(events, 1, "no event of its own");
    let nowhere = OwnClaim {
        event: Some(EventId(RawId::new(at(0), 0, 77))),
        ..joins("ship")
    };
    assert_eq!(ask(&store, &nowhere).await, OwnClaimed::NoEvent);
}

/// D6: a second event that calls for the same effect shares it, and counts it.
pub async fn two_events_share_an_effect_of_ones_own(store: Subject, _dial: Dial) {
    let first = accept_effects(&store, "k1", vec![]).await;
    let second = accept_effects(&store, "k2", vec![]).await;
    let joins = |event| OwnClaim {
        event: Some(event),
        ..wanted("ship", "1", Repeat::Once)
    };
    let held = claimed(&store, &joins(first.event)).await;
    let (effect, until) = (held.0, at(0) + LEASE);
    let in_flight = OwnClaimed::InFlight { effect, until };
    assert_eq!(ask(&store, &joins(second.event)).await, in_flight);
    let status = async |event| detail(&store, event).await.event.status;
    assert_eq!(status(second.event).await, EventStatus::InProgress);
    settled(&store, held, reported(Report::Done, None)).await;
    for event in [first.event, second.event] {
        assert_eq!(status(event).await, EventStatus::Completed);
    }
    assert_eq!(
        read(&store, effect).await.events,
        [first.event, second.event]
    );
}

/// A claim frees what it asks for, and nothing else that the event calls for, however long ago its lease ended.
pub async fn a_claim_of_ones_own_frees_nothing_else(store: Subject, dial: Dial) {
    let event = accept_effects(&store, "k", vec![]).await.event;
    let joins = |key| OwnClaim {
        event: Some(event),
        ..wanted("ship", key, Repeat::Keyed)
    };
    let (first, _) = claimed(&store, &joins("1")).await;
    dial.set(at(1) + LEASE);
    claimed(&store, &joins("2")).await;
    let first = read(&store, first).await;
    assert_eq!(first.effect.record.state, EffectState::Claimed);
    assert!(first.attempts.is_empty(), "{:?}", first.attempts);
}

/// What Hapax sends nobody else carries out, and what somebody else carries out Hapax does not plan again.
pub async fn what_hapax_sends_is_not_yours(store: Subject, _dial: Dial) {
    let receipt = accept_effects(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let effect = detail(&store, receipt.event).await.effects[0].id;
    let claim = wanted("e", "1", Repeat::Keyed);
    assert_eq!(ask(&store, &claim).await, OwnClaimed::NotYours { effect });
    assert_eq!(store.stats().await.expect("the store counts").events, 1);
    let (own, _) = claimed(&store, &wanted("ship", "1", Repeat::Keyed)).await;
    let later = accept_effects(&store, "k2", vec![planned("ship", "1", Repeat::Keyed)]).await;
    let shared = detail(&store, later.event).await.effects;
    assert_eq!((shared.len(), shared[0].id), (1, own));
}

/// C3, D6: of many at once one gets it, and there is one effect and one event.
pub async fn racing_claims_of_ones_own_make_one_effect(store: Subject, _dial: Dial) {
    let racing = (0..12).map(|n| {
        let store: Subject = Arc::clone(&store);
        async move { ask(&store, &wanted("ship", &(n % 2).to_string(), Repeat::Once)).await }
    });
    let answers = all(racing).await;
    let won = answers
        .iter()
        .filter(|one| matches!(one, OwnClaimed::Claimed { .. }));
    assert_eq!(won.count(), 2);
    let waiting = |one: &&OwnClaimed| matches!(one, OwnClaimed::InFlight { .. });
    assert_eq!(answers.iter().filter(waiting).count(), 10);
    assert_eq!(store.stats().await.expect("the store counts").events, 2);
}

/// I1: it is kept as long as any event; then its key is free, and its fence is higher all the same or its id another.
pub async fn an_effect_of_ones_own_is_reaped_with_its_event(store: Subject, _dial: Dial) {
    let claim = wanted("ship", "1", Repeat::Once);
    let held = claimed(&store, &claim).await;
    let gone = at(0) + KEEP.identity;
    assert_eq!(
        reap_all(&store, gone).await.identities,
        0,
        "it is on its way"
    );
    settled(&store, held, reported(Report::Done, None)).await;
    assert_eq!(reap_all(&store, gone).await.identities, 1);
    let later = OwnClaim { at: gone, ..claim };
    let again = claimed(&store, &later).await;
    assert_ne!(again.0, held.0);
    let opened = store
        .advance(again.0, again.1, reported(Report::Done, None))
        .await;
    assert_eq!(names(opened.expect("the store moves").opened), [""; 0]);
}
