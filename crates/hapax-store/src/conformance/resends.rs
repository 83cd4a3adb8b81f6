//! Deliveries asked for again: to some endpoints alone, and to endpoints that were not there.

use hapax_ledger::effect::SkipReason;
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EventId, RawId};
use hapax_ledger::time::Time;
use hapax_ledger::verdict::Kept;

use super::fan_out::fan_out;
use super::operator::{actions, carried, command, give, log, refused};
use super::publisher::{endpoint_id, later, message, ordered, stored, to};
use super::sample::{Dial, KEEP, Subject, at, detail, reap_all};
use super::worker::{GIVEN_UP, SETTLED, START, claim, claim_one, done, names, serial};
use crate::nouns::{Command, Commanded, Decision, Move, NewEffect, WhyNot};

fn only(event: EventId, decision: Decision, endpoint: u64) -> Command {
    Command {
        only: Some(vec![endpoint_id(endpoint).to_string()]),
        ..command(event, decision)
    }
}

/// Sends to these and no others what is due.
async fn sent(store: &Subject) -> Vec<String> {
    let mut lanes = Vec::new();
    for effect in claim(store).await {
        done(store, &effect, START).await;
        done(store, &effect, SETTLED).await;
        lanes.push(effect.lane.to_string());
    }
    lanes.sort_unstable();
    lanes
}

/// E1: a retry or replay that names an endpoint leaves the others alone.
pub async fn a_command_may_be_limited_to_some_effects(store: Subject, _: Dial) {
    let event = stored(&store, message(1, "m", at(0), &[1, 2, 3], 0))
        .await
        .event;
    for effect in claim(&store).await {
        done(&store, &effect, START).await;
        let third = *effect.lane == *endpoint_id(3).to_string();
        done(&store, &effect, if third { SETTLED } else { GIVEN_UP }).await;
    }
    let first = endpoint_id(1).to_string();
    assert!(matches!(
        give(&store, only(event, Decision::Retry, 1)).await,
        Commanded::Done(_)
    ));
    let record = log(&store).await.remove(0);
    assert!(record.detail.contains(&first), "{}", record.detail);
    for other in [2, 3] {
        let other = endpoint_id(other).to_string();
        assert!(!record.detail.contains(&other), "{}", record.detail);
    }
    assert_eq!(sent(&store).await, [first]);
    assert_eq!(detail(&store, event).await.event.status, EventStatus::Dead);
    let third = endpoint_id(3).to_string();
    let force = vec![third.clone()];
    let forced = only(event, Decision::Replay { force }, 3);
    assert!(matches!(give(&store, forced).await, Commanded::Done(_)));
    assert_eq!(sent(&store).await, [third]);
    let nobody = refused(&store, only(event, Decision::Retry, 9)).await;
    assert_eq!(nobody, WhyNot::NoEffect);
}

/// A delivery that was skipped because its endpoint was disabled comes back if it is named.
pub async fn a_skipped_delivery_comes_back_if_it_is_named(store: Subject, _: Dial) {
    let event = stored(&store, message(1, "m", at(0), &[1], 0)).await.event;
    let effect = claim_one(&store).await;
    done(&store, &effect, Move::Skip(SkipReason::EndpointDisabled)).await;
    assert_eq!(
        detail(&store, event).await.event.status,
        EventStatus::Completed
    );
    carried(&store, event, Decision::Retry).await;
    assert_eq!(sent(&store).await, Vec::<String>::new());
    assert!(matches!(
        give(&store, only(event, Decision::Retry, 1)).await,
        Commanded::Done(_)
    ));
    assert_eq!(sent(&store).await.len(), 1);
}

/// A delivery to an endpoint that was not there is planned once, audited, and goes out; what was there stays as it is.
pub async fn a_missing_delivery_is_planned(store: Subject, _: Dial) {
    let event = stored(&store, ordered(message(1, "m", at(0), &[1], 0), "o"))
        .await
        .event;
    assert_eq!(sent(&store).await.len(), 1);
    let effects = vec![to(1, "m"), ordered_to(2)];
    let done = carried(
        &store,
        event,
        Decision::Deliver {
            effects: effects.clone(),
        },
    )
    .await;
    let lane = endpoint_id(2).to_string();
    assert_eq!(names(done.opened), std::slice::from_ref(&lane));
    assert_eq!(
        detail(&store, event).await.event.status,
        EventStatus::Pending
    );
    carried(&store, event, Decision::Deliver { effects }).await;
    assert_eq!(detail(&store, event).await.effects.len(), 2);
    assert_eq!(sent(&store).await, [lane]);
    let now = detail(&store, event).await;
    assert_eq!(
        (now.event.status, now.runs.len()),
        (EventStatus::Completed, 2)
    );
    assert_eq!(actions(&store).await, ["event.deliver", "event.deliver"]);
}

fn ordered_to(endpoint: u64) -> NewEffect {
    NewEffect {
        order: Some(serial("o")),
        ..to(endpoint, "m")
    }
}

/// What an endpoint has of a message is found alone: its own delivery, and nobody else's, whenever it was made; also one that an earlier
/// message of the same key called for first.
pub async fn a_message_is_looked_up_for_one_endpoint(store: Subject, _: Dial) {
    let addressed = async |event, endpoint| {
        let addressed = store.addressed(event, endpoint_id(endpoint)).await;
        addressed.expect("the store reads")
    };
    let mut new = message(1, "m", at(0), &[1, 2], 0);
    new.later = later(3..5);
    let event = stored(&store, new).await.event;
    // In the same millisecond, to the same endpoints.
    let other = stored(&store, message(1, "other", at(0), &[1, 2], 0)).await;
    fan_out(&store).await;
    let effects = vec![to(5, "m")];
    carried(&store, event, Decision::Deliver { effects }).await;
    for (id, of) in [(event, vec![1, 2, 3, 4, 5]), (other.event, vec![1, 2])] {
        let effects = detail(&store, id).await.effects;
        for endpoint in 1..7 {
            let found = addressed(id, endpoint).await.expect("it is there");
            assert_eq!(found.payload, Kept::Whole);
            let lane = endpoint_id(endpoint).to_string();
            let expected = effects.iter().find(|effect| *effect.lane == *lane);
            assert_eq!(found.delivery.as_ref(), expected);
            assert_eq!(found.delivery.is_some(), of.contains(&endpoint));
        }
    }
    let nobody = EventId(RawId::new(at(7), 0, 7));
    assert_eq!(addressed(nobody, 1).await, None);
    sent(&store).await;
    let again = stored(&store, message(1, "m", expired(), &[1], 0)).await;
    let found = addressed(again.event, 1).await;
    let found = found.and_then(|found| found.delivery);
    assert_eq!(found.map(|effect| effect.event), Some(event), "shared");
    let gone: Time = at(0) + KEEP.payload;
    assert!(reap_all(&store, gone).await.payloads >= 2);
    let found = addressed(event, 1).await.expect("its ledger is kept");
    assert_eq!(found.payload, Kept::Reaped);
    assert!(found.delivery.is_some());
}

/// When the identity of what was published at the beginning is over.
fn expired() -> Time {
    at(0) + KEEP.identity
}

/// D6, B5: a message that takes the key of an expired one shares the deliveries that are still there, those that it is planned with, those
/// that follow and those that are asked for later; once they are reaped, they are made anew.
pub async fn deliveries_of_an_expired_message_are_not_made_again(store: Subject, _: Dial) {
    let first = message(1, "m", at(0), &[1, 2, 3], 0);
    let first = stored(&store, first).await.event;
    assert_eq!(sent(&store).await.len(), 3);
    let mut second = message(1, "m", expired(), &[1], 0);
    second.later = later(2..3);
    let second = stored(&store, second).await.event;
    assert_ne!(second, first);
    fan_out(&store).await;
    let effects = vec![to(3, "m")];
    carried(&store, second, Decision::Deliver { effects }).await;
    let shared = detail(&store, second).await.effects;
    let of: Vec<EventId> = shared.iter().map(|effect| effect.event).collect();
    assert_eq!(of, [first; 3]);
    assert_eq!(sent(&store).await, Vec::<String>::new());
    let later = expired() + KEEP.identity;
    assert_eq!(reap_all(&store, later).await.identities, 2);
    let third = stored(&store, message(1, "m", later, &[1, 2, 3], 0)).await;
    assert_eq!(detail(&store, third.event).await.effects.len(), 3);
    assert_eq!(sent(&store).await.len(), 3);
}

/// Without bytes there is nothing to deliver.
pub async fn a_reaped_message_is_not_delivered(store: Subject, _: Dial) {
    let event = stored(&store, message(1, "m", at(0), &[1], 0)).await.event;
    sent(&store).await;
    let gone: Time = at(0) + KEEP.payload;
    assert_eq!(reap_all(&store, gone).await.payloads, 1);
    let effects = vec![to(2, "m")];
    let why = refused(&store, command(event, Decision::Deliver { effects })).await;
    assert_eq!(why, WhyNot::PayloadReaped);
}
