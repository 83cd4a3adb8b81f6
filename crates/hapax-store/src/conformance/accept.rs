//! New, duplicate, conflict, review, batches and races.

use bytes::Bytes;
use hapax_ledger::event::{DeliveryOutcome, EventStatus, KeyOrigin};
use hapax_ledger::identity;
use hapax_ledger::key::BodyHash;

use super::sample::{KEEP, Subject, accept, accept_one, all, arrival, at, detail, event, review};
use crate::nouns::{
    Delivery, Event, EventDetail, Payload, PayloadAnswer, Proof, Receipt, Receipted,
};

/// A1: what was acknowledged is there, every field of it.
pub async fn a_new_event_is_stored_whole_and_read_back(store: Subject) {
    let mut new = event("a", "k", "{\"n\":1}");
    new.key_origin = KeyOrigin::Composed;
    new.provider_event_id = Some("evt_1".into());
    new.object_id = Some("in_1".into());
    new.entity = Some("cus_1".into());
    new.version = Some("7".into());
    let mut arrival = arrival("a", at(0), vec![new.clone()]);
    arrival.proof = Proof {
        scheme: "stripe".into(),
        secret_index: Some(1),
        signed_at: Some(at(-2)),
        remote: Some("192.0.2.1".into()),
    };
    let proof = arrival.proof.clone();
    let receipts = store.accept(arrival).await.expect("the store accepts");
    let id = receipts[0].event;
    let receipt = Receipt {
        event: id,
        sighting: Receipted::New,
        needs_review: false,
        claims: Vec::new(),
        revived: Vec::new(),
    };
    assert_eq!(receipts, [receipt]);
    let stored = Event {
        id,
        source: "a".into(),
        event_type: new.event_type,
        key: new.key,
        key_origin: KeyOrigin::Composed,
        provider_event_id: new.provider_event_id,
        object_id: new.object_id,
        entity: new.entity,
        version: new.version,
        status: EventStatus::Completed,
        received_at: at(0),
        review: None,
        delivery_count: 1,
        duplicate_count: 0,
        conflict_count: 0,
        body_hash: new.body_hash,
        identity_expires_at: identity::expiry(at(0), at(0), KEEP.identity, KEEP.retry_window),
    };
    let outcome = DeliveryOutcome::Accepted;
    let first = Delivery {
        at: at(0),
        outcome,
        proof,
        body_hash: new.body_hash,
        conflict: false,
        number: 0,
        decided: None,
    };
    let expected = EventDetail {
        runs: Vec::new(),
        event: stored,
        deliveries: vec![first],
        effects: Vec::new(),
    };
    assert_eq!(detail(&store, id).await, expected);
    let bytes = Payload {
        body: new.body,
        content_type: new.content_type,
    };
    assert_eq!(
        store.payload(id).await.expect("the store reads"),
        PayloadAnswer::Kept(bytes)
    );
}

/// A4, B1: every ack for a key carries the same event.
pub async fn the_same_key_again_is_a_duplicate_with_the_same_id(store: Subject) {
    let first = accept(&store, at(0), "k", "A").await;
    for n in 1..4u32 {
        let again = accept(&store, at(n.into()), "k", "A").await;
        assert_eq!(
            again,
            Receipt {
                sighting: Receipted::Duplicate,
                ..first.clone()
            }
        );
        let detail = detail(&store, first.event).await;
        assert_eq!(
            (detail.event.delivery_count, detail.event.duplicate_count),
            (n + 1, n)
        );
        assert_eq!(detail.deliveries.len(), n as usize + 1);
        let last = &detail.deliveries[n as usize];
        assert_eq!(
            (last.at, last.outcome, last.conflict),
            (at(n.into()), DeliveryOutcome::Duplicate, false)
        );
    }
    assert_eq!(
        store
            .sighted("a", "k", at(5))
            .await
            .expect("the store reads"),
        Some(first.event)
    );
}

/// B3: another body is never silently a duplicate, and the first body stays.
pub async fn another_body_under_a_key_is_a_conflict_and_visible(store: Subject) {
    let first = accept(&store, at(0), "k", "A").await;
    let other = accept(&store, at(1), "k", "B").await;
    assert_eq!(
        other,
        Receipt {
            sighting: Receipted::Conflict,
            ..first.clone()
        }
    );
    let detail = detail(&store, first.event).await;
    assert_eq!(
        (detail.event.conflict_count, detail.event.duplicate_count),
        (1, 1)
    );
    assert_eq!(detail.event.body_hash, BodyHash::of(b"A"));
    assert_eq!(detail.deliveries[1].body_hash, BodyHash::of(b"B"));
    assert!(detail.deliveries[1].conflict);
    match store.payload(first.event).await.expect("the store reads") {
        PayloadAnswer::Kept(payload) => assert_eq!(&payload.body[..], b"A"),
        other => panic!("{other:?}"),
    }
}

/// B3: declared volatile fields aside.
pub async fn fields_that_may_vary_make_no_conflict(store: Subject) {
    let with = |body: &str| {
        let mut new = event("a", "k", body);
        new.compare_hash = BodyHash::of(b"what does not vary");
        new
    };
    let first = accept_one(&store, "a", at(0), with("A, try 1")).await;
    let again = accept_one(&store, "a", at(1), with("A, try 2")).await;
    assert_eq!(
        again,
        Receipt {
            sighting: Receipted::Duplicate,
            ..first.clone()
        }
    );
    let detail = detail(&store, first.event).await;
    assert_eq!(detail.event.conflict_count, 0);
    assert_eq!(detail.deliveries[1].body_hash, BodyHash::of(b"A, try 2"));
}

/// B3: a conflicting body does not become what later ones are measured by.
pub async fn later_bodies_are_compared_with_the_first(store: Subject) {
    accept(&store, at(0), "k", "A").await;
    let table = [
        ("B", Receipted::Conflict),
        ("B", Receipted::Conflict),
        ("A", Receipted::Duplicate),
    ];
    for (body, expected) in table {
        assert_eq!(
            accept(&store, at(1), "k", body).await.sighting,
            expected,
            "{body}"
        );
    }
}

/// B1: the scope is part of the key.
pub async fn sources_do_not_share_keys(store: Subject) {
    let a = accept_one(&store, "a", at(0), event("a", "k", "A")).await;
    let b = accept_one(&store, "b", at(0), event("b", "k", "A")).await;
    assert_eq!((a.sighting, b.sighting), (Receipted::New, Receipted::New));
    assert_ne!(a.event, b.event);
    assert_eq!(
        store
            .sighted("b", "k", at(0))
            .await
            .expect("the store reads"),
        Some(b.event)
    );
}

/// Promise 1: authentic but unusable is kept and shown, not lost.
pub async fn what_cannot_be_planned_is_kept_for_review(store: Subject) {
    let mut new = event("a", "k", "A");
    new.review = Some(review());
    let first = accept_one(&store, "a", at(0), new.clone()).await;
    assert!(first.needs_review);
    let kept = detail(&store, first.event).await;
    assert_eq!(kept.event.status, EventStatus::NeedsReview);
    assert_eq!(kept.event.review, Some(review()));
    assert_eq!(
        kept.deliveries[0].outcome,
        DeliveryOutcome::FailedValidation
    );
    // The event's own state counts, whatever the repetition says of itself.
    let again = accept(&store, at(1), "k", "A").await;
    assert_eq!(
        again,
        Receipt {
            sighting: Receipted::Duplicate,
            ..first
        }
    );
}

/// B2: a batch is one transaction, and its receipts are in its order.
pub async fn a_batch_is_answered_in_its_order(store: Subject) {
    let known = accept(&store, at(0), "k2", "A").await;
    let keys = ["k4", "k2", "k1", "k3"];
    let events = keys.map(|key| event("a", key, "A")).into();
    let receipts = store
        .accept(arrival("a", at(1), events))
        .await
        .expect("the store accepts");
    let sightings: Vec<Receipted> = receipts.iter().map(|receipt| receipt.sighting).collect();
    assert_eq!(
        sightings,
        [
            Receipted::New,
            Receipted::Duplicate,
            Receipted::New,
            Receipted::New
        ]
    );
    assert_eq!(receipts[1].event, known.event);
    for (key, receipt) in keys.iter().zip(&receipts) {
        assert_eq!(detail(&store, receipt.event).await.event.key, *key);
    }
}

/// B1: also within one transaction.
pub async fn a_key_twice_in_one_arrival_is_one_event(store: Subject) {
    let events = vec![
        event("a", "k", "A"),
        event("a", "k", "A"),
        event("a", "k", "B"),
    ];
    let receipts = store
        .accept(arrival("a", at(0), events))
        .await
        .expect("the store accepts");
    let sightings: Vec<Receipted> = receipts.iter().map(|receipt| receipt.sighting).collect();
    assert_eq!(
        sightings,
        [Receipted::New, Receipted::Duplicate, Receipted::Conflict]
    );
    assert!(
        receipts
            .iter()
            .all(|receipt| receipt.event == receipts[0].event)
    );
    assert_eq!(
        detail(&store, receipts[0].event).await.event.delivery_count,
        3
    );
}

/// A4, B1: however many come at the same moment.
pub async fn two_hundred_at_once_make_one_event(store: Subject) {
    let racing = (0..200).map(|_| {
        let store = store.clone();
        async move { accept(&store, at(0), "k", "A").await }
    });
    let receipts = all(racing).await;
    let new = receipts
        .iter()
        .filter(|receipt| receipt.sighting == Receipted::New)
        .count();
    assert_eq!(new, 1);
    assert!(
        receipts
            .iter()
            .all(|receipt| receipt.event == receipts[0].event)
    );
    assert_eq!(
        detail(&store, receipts[0].event).await.event.delivery_count,
        200
    );
    assert_eq!(store.stats().await.expect("the store counts").events, 1);
}

/// B1, B2: batches that share keys in opposite orders neither deadlock nor store one twice.
pub async fn batches_that_cross_make_one_event_per_key(store: Subject) {
    let racing = (0..60).map(|n| {
        let store = store.clone();
        async move {
            let mut keys: Vec<String> = (0..6).map(|key| format!("k{}", (n + key) % 12)).collect();
            if n % 2 == 0 {
                keys.reverse();
            }
            // Every third comes alone, so that both ways of accepting cross.
            if n % 3 == 0 {
                keys.truncate(1);
            }
            let events = keys.iter().map(|key| event("a", key, "A")).collect();
            store
                .accept(arrival("a", at(0), events))
                .await
                .expect("the store accepts")
        }
    });
    let receipts: Vec<Receipt> = all(racing).await.into_iter().flatten().collect();
    let new = receipts
        .iter()
        .filter(|receipt| receipt.sighting == Receipted::New)
        .count();
    let ids: std::collections::HashSet<_> = receipts.iter().map(|receipt| receipt.event).collect();
    assert_eq!((new, ids.len()), (12, 12));
    let mut deliveries = 0;
    for id in ids {
        deliveries += detail(&store, id).await.event.delivery_count;
    }
    assert_eq!(deliveries as usize, receipts.len());
    assert_eq!(store.stats().await.expect("the store counts").keys_twice, 0);
}

/// An empty batch is a batch.
pub async fn an_arrival_without_events_stores_nothing(store: Subject) {
    let receipts = store
        .accept(arrival("a", at(0), Vec::new()))
        .await
        .expect("the store accepts");
    assert_eq!(receipts, []);
    assert_eq!(store.stats().await.expect("the store counts").events, 0);
}

/// A2, A6: no text and no bytes are refused or changed, and none spoils the group it is in.
pub async fn any_text_and_any_bytes_come_back_as_they_went(store: Subject) {
    let long = "x".repeat(20_000);
    let texts = [
        "",
        "\0",
        "a\0b\u{1a}",
        "\u{1a}0",
        "\\x00",
        "ü \u{10ffff}",
        "' OR 1=1 --",
        &long,
    ];
    let bodies: [Vec<u8>; 3] = [Vec::new(), (0..=255).collect(), vec![0; 3_000_000]];
    let racing = texts.iter().zip(bodies.iter().cycle()).map(|(text, body)| {
        let (store, body) = (store.clone(), Bytes::from(body.clone()));
        let mut new = event("a", text, "");
        new.body_hash = BodyHash::of(&body);
        new.compare_hash = new.body_hash;
        new.body = body;
        new.event_type = Some((*text).into());
        new.entity = Some((*text).into());
        new.content_type = Some((*text).into());
        async move { (accept_one(&store, "a", at(0), new.clone()).await, new) }
    });
    for (receipt, new) in all(racing).await {
        assert_eq!(receipt.sighting, Receipted::New);
        let stored = detail(&store, receipt.event).await.event;
        assert_eq!(
            (stored.key.as_str(), stored.entity),
            (new.key.as_str(), new.entity.clone())
        );
        assert_eq!(stored.event_type, new.event_type);
        let bytes = Payload {
            body: new.body.clone(),
            content_type: new.content_type.clone(),
        };
        assert_eq!(
            store.payload(receipt.event).await.expect("the store reads"),
            PayloadAnswer::Kept(bytes)
        );
        let again = accept_one(&store, "a", at(1), new).await;
        assert_eq!(
            (again.event, again.sighting),
            (receipt.event, Receipted::Duplicate)
        );
    }
}
