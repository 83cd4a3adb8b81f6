//! What deliveries carry, and who can verify them.

use std::collections::BTreeSet;
use std::sync::Mutex;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hapax::outbox::extra::{AppExtra, EndpointExtra, NamesWord, SchemeWord};
use hapax::outbox::sealed::Opened;
use hapax::{clock, entropy};
use hapax_ledger::effect::EffectState;
use hapax_ledger::id::MessageId;
use hapax_ledger::time::Span;
use hapax_store::nouns::About;
use hapax_verify::{Request, Secret, Verifier, provider};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::scene::{SECRET, Scene, Wish, tries};
use crate::support::world::{Act, Seen, World};

/// Does a delivery, as it arrived, verify with this secret?
pub(crate) fn verifies(preset: &str, secret: &str, seen: &Seen) -> bool {
    let scheme = provider::find(preset).expect("a preset").scheme();
    let verifier = Verifier::new(scheme, vec![Secret::from(secret)]).expect("a secret");
    let headers: Vec<(&str, &[u8])> = seen
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    let request = Request {
        method: "POST",
        url: None,
        headers: &headers,
        body: &seen.body,
        now: clock::now().micros(),
    };
    verifier.verify(&request).is_ok()
}

/// G4: the same id on all attempts, a signature over exactly the bytes sent, under both families of names.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_says_what_it_is_and_verifies() {
    let world = World::new(|seen| match seen.before {
        0 => Act::Answer(500),
        _ => Act::Answer(200),
    });
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let wish = Wish {
        headers: [("X-Tenant".to_owned(), "seven".to_owned())].into(),
        ..tries(3)
    };
    scene.endpoint(app, &world.url("/hook?x=1"), wish).await;
    let payload = "{\"n\": 1.10,\n \"n\":2}";
    let about = About {
        api_version: Some("2026-11".to_owned()),
        sequence_key: Some("inv_1".to_owned()),
        ..About::default()
    };
    let event = scene.publish(app, payload, about).await;
    scene.until_state(event, EffectState::Done).await;
    let seen = world.seen();
    assert_eq!(seen.len(), 2);
    for one in &seen {
        assert_eq!(one.target, "/hook?x=1");
        assert_eq!(one.body, payload.as_bytes());
        let header = |name: &str| one.headers.get(name).map(String::as_str);
        let id = MessageId(event.0).to_string();
        assert_eq!(header("webhook-id"), Some(id.as_str()));
        assert_eq!(header("svix-id"), Some(id.as_str()));
        assert_eq!(header("hapax-event-type"), Some("invoice.paid"));
        assert_eq!(header("hapax-api-version"), Some("2026-11"));
        assert_eq!(header("hapax-sequence"), Some("1"));
        assert_eq!(header("x-tenant"), Some("seven"));
        assert_eq!(header("content-type"), Some("application/json"));
        assert!(verifies("standard-webhooks", SECRET, one));
        assert!(verifies("svix", SECRET, one));
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_holds_the_payload_byte_for_byte() {
    let world = World::well();
    let scene = Scene::new().await;
    let extra = AppExtra {
        envelope: true,
        ..AppExtra::default()
    };
    let app = scene.app(&extra).await;
    scene.endpoint(app, &world.url("/"), Wish::default()).await;
    let event = scene.publish(app, "{\"n\": 1.10}", About::default()).await;
    scene.until_state(event, EffectState::Done).await;
    let seen = &world.seen()[0];
    let text = String::from_utf8_lossy(&seen.body).into_owned();
    assert!(text.ends_with(",\"data\":{\"n\": 1.10}}"), "{text}");
    let envelope: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(envelope["id"], json!(MessageId(event.0).to_string()));
    assert_eq!(envelope["type"], "invoice.paid");
    assert_eq!(envelope["api_version"], Value::Null);
    assert!(envelope["created_at"].is_string());
    assert!(verifies("standard-webhooks", SECRET, seen));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_chooses_its_scheme_and_its_names() {
    let world = World::well();
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let wish = Wish {
        extra: EndpointExtra {
            signature_scheme: Some(SchemeWord::Stripe),
            signature_header: Some("Stripe-Signature".to_owned()),
            signature_names: Some(NamesWord::Svix),
            ..EndpointExtra::default()
        },
        ..Wish::default()
    };
    scene.endpoint(app, &world.url("/"), wish).await;
    let event = scene.publish(app, "{}", About::default()).await;
    scene.until_state(event, EffectState::Done).await;
    let seen = &world.seen()[0];
    assert!(verifies("stripe", SECRET, seen));
    assert!(seen.headers.contains_key("svix-id"));
    assert!(!seen.headers.contains_key("webhook-id"));
    assert!(!seen.headers.contains_key("svix-signature"));
    scene.end().await;
}

/// While a secret is changed, every delivery verifies with one that its consumer has: with the old one until the end of the overlap,
/// with the new one from the change on.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_leaves_no_gap() {
    const NEW: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let world = World::well();
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let id = scene.endpoint(app, &world.url("/"), Wish::default()).await;
    let mut last = None;
    for number in 0..30 {
        if number == 10 {
            scene
                .change(id, |endpoint| {
                    rotate(&scene, endpoint, NEW, Span::from_hours(1))
                })
                .await;
        }
        if number == 20 {
            // The owner is done: nothing old signs any more.
            scene
                .change(id, |endpoint| rotate(&scene, endpoint, NEW, Span::ZERO))
                .await;
        }
        let event = scene
            .publish(app, &format!("{{\"n\":{number}}}"), About::default())
            .await;
        scene.until_state(event, EffectState::Done).await;
        last = Some(event);
    }
    assert!(last.is_some());
    let seen = block_in_place(|| world.wait_for("all of them", |seen| seen.len() == 30));
    for (number, one) in seen.iter().enumerate() {
        let body = format!("{{\"n\":{number}}}");
        assert_eq!(one.body, body.as_bytes());
        let old = verifies("standard-webhooks", SECRET, one);
        let new = verifies("standard-webhooks", NEW, one);
        assert_eq!((old, new), (number < 20, number >= 10), "{number}");
    }
    scene.end().await;
}

/// Secrets are changed again and again while messages are created, sent and sent again: each request verifies with the secret that its
/// consumer had when its message was created, and with the one before, whose time is not over; and one that is repeated after a change
/// verifies with what came of it as well.
#[tokio::test(flavor = "multi_thread")]
async fn rotations_leave_no_gap_for_what_is_on_its_way() {
    const ROTATIONS: u8 = 5;
    let known = Mutex::new(BTreeSet::new());
    let world = World::new(move |seen| {
        let id = seen.headers["webhook-id"].clone();
        let is_first = known.lock().expect("whole").insert(id);
        match (is_first, said(seen).1, seen.nth % 3) {
            (true, true, _) => Act::HeldThen(500),
            (true, false, 0) => Act::Answer(500),
            _ => Act::Answer(200),
        }
    });
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let id = scene.endpoint(app, &world.url("/"), tries(3)).await;
    let fresh = (1..=ROTATIONS).map(|n| format!("whsec_{}", STANDARD.encode([n; 24])));
    let keys: Vec<String> = std::iter::once(SECRET.to_owned()).chain(fresh).collect();
    let publish = |after: usize, held: bool| {
        let body = json!({"after": after, "held": held}).to_string();
        let scene = &scene;
        async move { scene.publish(app, &body, About::default()).await }
    };
    let mut events = Vec::new();
    for (after, key) in keys[1..].iter().enumerate() {
        events.push(publish(after, true).await);
        let is_held = |seen: &&Seen| said(seen) == (after, true);
        let holds = |seen: &[Seen]| seen.iter().any(|one| is_held(&one));
        let some = async {
            let mut some = Vec::new();
            for _ in 0..20 {
                some.push(publish(after, false).await);
            }
            some
        };
        let change = async {
            block_in_place(|| world.wait_for("the one that is held", holds));
            let hour = Span::from_hours(1);
            let rotated = scene.change(id, |endpoint| rotate(&scene, endpoint, key, hour));
            rotated.await;
        };
        let (some, ()) = tokio::join!(some, change);
        events.extend(some);
        world.release(1);
    }
    for event in events {
        scene.until_state(event, EffectState::Done).await;
    }
    let mut known = BTreeSet::new();
    for one in world.seen() {
        let (after, held) = said(&one);
        let is_first = known.insert(one.headers["webhook-id"].clone());
        let verifies = |key: usize| verifies("standard-webhooks", &keys[key], &one);
        assert!(
            verifies(after) && verifies(after.saturating_sub(1)),
            "{one:?}"
        );
        if held {
            assert_eq!(verifies(after + 1), !is_first, "{one:?}");
        }
    }
    scene.end().await;
}

/// After how many changes a message was created, and whether its first request is held.
fn said(seen: &Seen) -> (usize, bool) {
    let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
    let after = body["after"].as_u64().expect("a number");
    (after as usize, body["held"] == true)
}

fn rotate(scene: &Scene, endpoint: &mut hapax_store::nouns::Endpoint, key: &str, overlap: Span) {
    let vault = &scene.registry.vault().expect("a key");
    let opened = Opened::open(vault, endpoint.id, &endpoint.sealed);
    let mut opened = opened.expect("it opens");
    let now = clock::now();
    match overlap {
        Span::ZERO => opened = Opened::new(key.to_owned(), opened.headers, now),
        overlap => opened.rotate(key.to_owned(), overlap, now),
    }
    endpoint.sealed = opened.seal(vault, endpoint.id, entropy::bytes());
}
