//! Deliveries of a large set: some with their message, the rest after it, each exactly once (G1).

use std::collections::BTreeMap;

use hapax_ledger::effect::Repeat;
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::time::Span;
use hapax_ledger::transition::{Resolution, Resolver};
use hapax_ledger::verdict::{Action, VerdictKind};

use super::operator::{carried, facts};
use super::publisher::{endpoint_id, later, message, ordered, stored, to};
use super::sample::{Dial, KEEP, Subject, all, at, detail, reap_all};
use super::worker::{
    LEASE, SETTLED, START, claim, done as moved, names, rescue, resolve, start_one,
};
use crate::nouns::{
    Classes, Decision, Effect, FAN_OUT_STEP, FannedOut, Move, OwnClaim, OwnClaimed,
};

async fn step(store: &Subject) -> FannedOut {
    store.fan_out().await.expect("the store goes on")
}

/// Goes on until there is no more to do.
pub async fn fan_out(store: &Subject) {
    while step(store).await.more {}
}

/// How often a message is delivered, by lane.
async fn lanes(store: &Subject, event: EventId) -> BTreeMap<String, u32> {
    let mut lanes = BTreeMap::new();
    for effect in detail(store, event).await.effects {
        *lanes.entry(effect.lane.to_string()).or_default() += 1;
    }
    lanes
}

/// Sends all that is due, until nothing is.
pub async fn send_all(store: &Subject) {
    loop {
        let due = claim(store).await;
        if due.is_empty() {
            return;
        }
        for effect in due {
            moved(store, &effect, START).await;
            moved(store, &effect, SETTLED).await;
        }
    }
}

/// The steps are small, each makes what it says and no more, and together they make one delivery for each endpoint.
pub async fn a_large_set_is_made_in_steps(store: Subject, _: Dial) {
    let many = FAN_OUT_STEP as u64 + 10;
    let mut new = message(1, "m", at(0), &[1, 2], 0);
    new.later = later(3..3 + many);
    let event = stored(&store, new).await.event;
    assert_eq!(facts(&store, event).await.to_come, many);
    assert_eq!(lanes(&store, event).await.len(), 2);
    let first = step(&store).await;
    assert_eq!((first.lanes.len(), first.more), (FAN_OUT_STEP, true));
    assert_eq!(facts(&store, event).await.to_come, 10);
    let last = step(&store).await;
    let expected: Vec<String> = (3 + FAN_OUT_STEP as u64..3 + many)
        .map(|number| endpoint_id(number).to_string())
        .collect();
    assert_eq!((names(last.lanes), last.more), (expected, false));
    assert_eq!(facts(&store, event).await.to_come, 0);
    let made = lanes(&store, event).await;
    assert_eq!(made.len() as u64, many + 2);
    assert!(made.values().all(|times| *times == 1));
    assert_eq!(step(&store).await, FannedOut::default());
}

/// What follows is like the first: key, class, time and schedule.
pub async fn what_follows_is_like_the_first(store: Subject, _: Dial) {
    let mut new = message(1, "m", at(0), &[1], 0);
    new.arrival.events[0].effects[0].wait = Span::from_secs(50);
    new.later = later(2..4);
    let event = stored(&store, new).await.event;
    let made = step(&store).await;
    assert!(!made.more);
    let effects = detail(&store, event).await.effects;
    assert_eq!(effects.len(), 3);
    for (number, effect) in (1..).zip(&effects) {
        let like = to(number, "m");
        assert_eq!(
            (&effect.name, &effect.lane, &effect.key),
            (&like.name, &like.lane, &like.key)
        );
        assert_eq!(effect.record.repeat, like.repeat);
        assert_eq!(
            (effect.record.next_attempt_at, effect.event),
            (at(50), event)
        );
    }
}

/// When a message is due goes by the store's clock for all of its deliveries, whatever that of its publisher's node shows.
pub async fn a_clock_that_is_off_delays_no_delivery(store: Subject, dial: Dial) {
    for (key, now, hours) in [("ahead", 10, 2), ("behind", 20, -2)] {
        dial.set(at(now));
        let theirs = at(now) + Span::from_hours(hours);
        let mut new = message(1, key, theirs, &[1], 0);
        new.arrival.events[0].effects[0].wait = Span::from_secs(5);
        new.later = later(2..4);
        let event = stored(&store, new).await.event;
        // The rest is made a little later, and is due when the first is.
        dial.set(at(now + 2));
        fan_out(&store).await;
        let effects = detail(&store, event).await.effects;
        let due = effects.iter().map(|effect| effect.record.next_attempt_at);
        assert_eq!(due.collect::<Vec<_>>(), [at(now + 5); 3], "{key}");
    }
}

/// D7: a message whose deliveries are not all made is not completed, and a verdict does not call it so.
pub async fn a_message_is_not_completed_before_all_is_made(store: Subject, _: Dial) {
    let mut new = message(1, "m", at(0), &[1], 0);
    new.later = later(2..4);
    let event = stored(&store, new).await.event;
    send_all(&store).await;
    assert_eq!(
        detail(&store, event).await.event.status,
        EventStatus::Pending
    );
    let known = facts(&store, event).await;
    let verdict = known.verdict(Action::Retry, &Classes::new());
    assert_eq!((verdict.verdict, known.to_come), (VerdictKind::Safe, 2));
    carried(&store, event, Decision::Retry).await;
    fan_out(&store).await;
    assert_eq!(
        detail(&store, event).await.event.status,
        EventStatus::Pending
    );
    send_all(&store).await;
    assert_eq!(
        detail(&store, event).await.event.status,
        EventStatus::Completed
    );
    let verdict = facts(&store, event)
        .await
        .verdict(Action::Retry, &Classes::new());
    assert_eq!(verdict.verdict, VerdictKind::NothingToDo);
}

/// G1: whoever goes on, and however many at once, each delivery is made once.
pub async fn racing_steps_make_each_delivery_once(store: Subject, _: Dial) {
    let many = FAN_OUT_STEP as u64 + 40;
    let mut events = Vec::new();
    for number in 0..3 {
        let mut new = message(1, &format!("m{number}"), at(number), &[1], 0);
        new.later = later(2..2 + many);
        events.push(stored(&store, new).await.event);
    }
    let racing = (0..8).map(|_| {
        let store = store.clone();
        async move { fan_out(&store).await }
    });
    all(racing).await;
    fan_out(&store).await;
    for event in events {
        let made = lanes(&store, event).await;
        assert_eq!(made.len() as u64, many + 1);
        assert!(made.values().all(|times| *times == 1));
    }
}

/// A fan-out and settlements of the same message at the same time: none is lost.
pub async fn deliveries_go_out_while_others_are_made(store: Subject, _: Dial) {
    let mut new = message(1, "m", at(0), &[1, 2, 3, 4], 0);
    new.later = later(5..25);
    let event = stored(&store, new).await.event;
    let due = claim(&store).await;
    let racing = due.into_iter().map(|effect| {
        let store = store.clone();
        async move {
            moved(&store, &effect, START).await;
            moved(&store, &effect, SETTLED).await;
            fan_out(&store).await;
        }
    });
    all(racing).await;
    fan_out(&store).await;
    send_all(&store).await;
    let now = detail(&store, event).await;
    assert_eq!(
        (now.event.status, now.effects.len()),
        (EventStatus::Completed, 24)
    );
}

/// D7: what the user's own code adds to a message counts for its status like any delivery.
pub async fn an_effect_of_ones_own_counts_for_a_message(store: Subject, dial: Dial) {
    let event = stored(&store, message(1, "m", at(0), &[1, 2], 0))
        .await
        .event;
    let wanted = OwnClaim {
        event: Some(event),
        name: "ship".into(),
        key: "1".into(),
        key_hash: KeyHash::of(KeyKind::Effect, "ship", "1"),
        repeat: Repeat::Once,
        actor: "ada".into(),
        lease: LEASE,
        at: at(0),
        keep: KEEP,
    };
    let claimed = store.claim_own(wanted).await.expect("the store claims");
    let OwnClaimed::Claimed { effect, .. } = claimed else {
        panic!("it is free: {claimed:?}");
    };
    let first = start_one_of(&store).await;
    moved(&store, &first, SETTLED).await;
    dial.set(at(0) + LEASE);
    rescue(&store).await;
    let status = async || detail(&store, event).await.event.status;
    assert_eq!(status().await, EventStatus::NeedsReview);
    resolve(&store, effect, Resolution::Applied, Resolver::Person).await;
    assert_eq!(status().await, EventStatus::Pending);
    send_all(&store).await;
    assert_eq!(status().await, EventStatus::Completed);
}

/// Starts one of those that are due, and gives the others back.
async fn start_one_of(store: &Subject) -> Effect {
    let mut due = claim(store).await;
    let first = due.remove(0);
    moved(store, &first, START).await;
    for other in due {
        moved(store, &other, Move::Release(Span::ZERO)).await;
    }
    first
}

/// F1: a message does not overtake an earlier one of its order whose deliveries are still being made.
pub async fn what_follows_keeps_its_order(store: Subject, _: Dial) {
    let mut first = ordered(message(1, "m1", at(0), &[1], 0), "o");
    first.later = later(2..4);
    let first = stored(&store, first).await.event;
    let receipt = stored(&store, ordered(message(1, "m2", at(1), &[3], 0), "o")).await;
    let second = receipt.event;
    assert_eq!(receipt.claims, [None]);
    let status = detail(&store, second).await.event.status;
    assert_eq!(
        (status, facts(&store, second).await.to_come),
        (EventStatus::Pending, 1)
    );
    let free = stored(&store, ordered(message(1, "m3", at(2), &[3], 0), "other"))
        .await
        .event;
    fan_out(&store).await;
    let mut went = Vec::new();
    loop {
        let due = claim(&store).await;
        if due.is_empty() {
            break;
        }
        for effect in due {
            moved(&store, &effect, START).await;
            moved(&store, &effect, SETTLED).await;
            if *effect.lane == *endpoint_id(3).to_string() && effect.event != free {
                went.push(effect.event);
            }
        }
    }
    assert_eq!(went, [first, second]);
    for event in [first, second, free] {
        let status = detail(&store, event).await.event.status;
        assert_eq!(status, EventStatus::Completed);
    }
}

/// I1: what is still to be made keeps its message.
pub async fn what_is_still_to_be_made_is_never_reaped(store: Subject, dial: Dial) {
    let mut new = message(1, "m", at(0), &[1], 0);
    new.later = later(2..4);
    let event = stored(&store, new).await.event;
    let given_up = start_one(&store).await;
    moved(&store, &given_up, super::worker::GIVEN_UP).await;
    assert_eq!(detail(&store, event).await.event.status, EventStatus::Dead);
    let much_later = at(0) + KEEP.identity + Span::from_days(900);
    dial.set(much_later);
    assert_eq!(reap_all(&store, much_later).await.payloads, 0);
    fan_out(&store).await;
    assert_eq!(reap_all(&store, much_later).await.payloads, 0, "on its way");
    send_all(&store).await;
    let reaped = reap_all(&store, much_later).await;
    assert_eq!((reaped.payloads, reaped.identities), (1, 1));
}

/// A delivery that a command made before the fan-out came to it is not made again.
pub async fn what_is_there_is_not_made_again(store: Subject, _: Dial) {
    let mut new = message(1, "m", at(0), &[1], 0);
    new.later = later(2..4);
    let event = stored(&store, new).await.event;
    let effects = vec![to(2, "m")];
    carried(&store, event, Decision::Deliver { effects }).await;
    assert_eq!(lanes(&store, event).await.len(), 2);
    fan_out(&store).await;
    let made = lanes(&store, event).await;
    assert_eq!((made.len(), made.values().max()), (3, Some(&1)));
}
