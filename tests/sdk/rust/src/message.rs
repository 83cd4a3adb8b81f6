//! Messages.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use svix::api::{MessageCreateOptions, MessageGetOptions, MessageListOptions};
use svix::models::{ApplicationIn, BackgroundTaskType, MessageIn, MessageOut, MessagePrecheckIn};

use crate::ask::{finished, refused, said, verified};
use crate::clock;
use crate::endpoint::{UID, at, make};
use crate::scene::Scene;

fn word(word: &str) -> Option<BTreeSet<String>> {
    Some(BTreeSet::from([word.to_owned()]))
}

/// What a message is shown with. Without being asked, the SDK asks for no content.
async fn payload(scene: &Scene, message: &str) -> serde_json::Value {
    let options = MessageGetOptions {
        with_content: Some(true),
    };
    let (app, message) = (scene.app.clone(), message.to_owned());
    let got = scene.svix.message().get(app, message, Some(options)).await;
    got.expect("there").payload
}

pub async fn check(scene: &Scene, endpoint: &str) -> String {
    let (app, event_id) = (&scene.app, format!("evt-{}", scene.lot));
    let (api, endpoints) = (scene.svix.message(), scene.svix.endpoint());
    let secret = endpoints.get_secret(app.clone(), endpoint.to_owned());
    let secret = secret.await.expect("a key").key;
    let mut first = scene.message(1);
    first.event_id = Some(event_id.clone());
    first.channels = word("c1");
    first.tags = word("t1");
    let message = create(scene, first.clone(), None).await;
    let message = message.expect("published");
    assert_eq!(message.payload, json!({"n": 1}));
    let again = scene.publish(first.clone()).await;
    assert_eq!((&again.id, again.payload), (&message.id, json!({})));
    first.payload = json!({"n": 2});
    assert_eq!(refused(409, create(scene, first, None).await), "H0326");
    let second = under_a_key(scene).await;
    let mut wrong = scene.message(0);
    wrong.payload = json!({"n": "no number"});
    let wrong = create(scene, wrong, None).await;
    assert_eq!(refused(422, wrong), "body.payload");
    let arrived = scene.sink.wait("/a", 2).await;
    for seen in &arrived {
        verified(seen, &secret);
        assert_eq!(seen.headers["x-tenant"], "t2");
        assert_eq!(seen.headers["hapax-event-type"], scene.event_type.as_str());
    }
    let ids = arrived
        .iter()
        .map(|seen| seen.headers["webhook-id"].to_str());
    let ids: BTreeSet<&str> = ids.map(|id| id.expect("a text")).collect();
    assert_eq!(ids, BTreeSet::from([&*message.id, &*second.id]));
    assert_eq!(payload(scene, &message.id).await, json!({"n": 1}));
    let bare = api.get(app.clone(), event_id, None).await;
    let bare = bare.expect("there by its event_id");
    assert_eq!((&bare.id, bare.payload), (&message.id, json!({})));
    lists(scene, &message, &second).await;
    precheck(scene).await;
    inline(scene).await;
    raw(scene).await;
    let expunged = api.expunge_content(app.clone(), message.id.clone());
    expunged.await.expect("gone");
    assert_eq!(payload(scene, &message.id).await, json!({"expired": true}));
    said(
        "messages: create, eventId, Idempotency-Key, schema, delivery, get, list, filters, precheck, raw, expunge",
    );
    second.id
}

async fn create(
    scene: &Scene,
    message: MessageIn,
    idempotency_key: Option<&str>,
) -> Result<MessageOut, svix::error::Error> {
    let options = MessageCreateOptions {
        with_content: Some(true),
        idempotency_key: idempotency_key.map(str::to_owned),
    };
    let app = scene.app.clone();
    scene
        .svix
        .message()
        .create(app, message, Some(options))
        .await
}

async fn under_a_key(scene: &Scene) -> MessageOut {
    let key = format!("key-{}", scene.lot);
    let mut message = scene.message(3);
    message.tags = word("t2");
    let made = create(scene, message.clone(), Some(&key)).await;
    let made = made.expect("published");
    let again = create(scene, message.clone(), Some(&key)).await;
    assert_eq!(again.expect("known").id, made.id);
    message.payload = json!({"n": 4});
    let other = create(scene, message, Some(&key)).await;
    assert_eq!(refused(409, other), "H0308");
    made
}

/// Filters, and pages of one.
async fn lists(scene: &Scene, first: &MessageOut, second: &MessageOut) {
    let api = scene.svix.message();
    let ids = async |options: MessageListOptions| {
        let page = api.list(scene.app.clone(), Some(options)).await;
        let page = page.expect("a page");
        (
            page.data.into_iter().map(|one| one.id).collect::<Vec<_>>(),
            page.iterator,
            page.done,
        )
    };
    let all = MessageListOptions::default;
    assert_eq!(ids(all()).await.0, [second.id.clone(), first.id.clone()]);
    let (newest, iterator, done) = ids(MessageListOptions {
        limit: Some(1),
        ..all()
    })
    .await;
    assert_eq!((newest, done), (vec![second.id.clone()], false));
    let (older, _, _) = ids(MessageListOptions {
        limit: Some(1),
        iterator,
        ..all()
    })
    .await;
    assert_eq!(older, [first.id.clone()]);
    let of_channel = MessageListOptions {
        channel: Some("c1".to_owned()),
        ..all()
    };
    assert_eq!(ids(of_channel).await.0, [first.id.clone()]);
    let of_tag = MessageListOptions {
        tag: Some("t2".to_owned()),
        ..all()
    };
    assert_eq!(ids(of_tag).await.0, [second.id.clone()]);
    let of_type = |name: &str| MessageListOptions {
        event_types: word(name),
        ..all()
    };
    assert_eq!(ids(of_type(&scene.event_type)).await.0.len(), 2);
    assert!(ids(of_type("nothing")).await.0.is_empty());
    let before = |time: DateTime<Utc>| MessageListOptions {
        before: Some(time),
        ..all()
    };
    let after = |time: DateTime<Utc>| MessageListOptions {
        after: Some(time),
        ..all()
    };
    assert!(ids(before(first.timestamp)).await.0.is_empty());
    let minute = TimeDelta::minutes(1);
    assert_eq!(ids(before(clock::now() + minute)).await.0.len(), 2);
    assert!(ids(after(clock::now() + minute)).await.0.is_empty());
    assert_eq!(ids(after(clock::now() - minute)).await.0.len(), 2);
}

async fn precheck(scene: &Scene) {
    let (app, messages) = (&scene.app, scene.svix.message());
    let active = async |channel: Option<&str>| {
        let mut asked = MessagePrecheckIn::new(scene.event_type.clone());
        asked.channels = channel.and_then(word);
        let told = messages.precheck(app.clone(), asked, None).await;
        told.expect("an answer").active
    };
    assert!(active(None).await);
    let mut patch = svix::models::EndpointPatch::new();
    patch.channels = js_option::JsOption::Some(BTreeSet::from(["c1".to_owned()]));
    let api = scene.svix.endpoint();
    let patched = api.patch(app.clone(), UID.to_owned(), patch.clone());
    patched.await.expect("changed");
    assert!(active(Some("c1")).await && !active(Some("c2")).await);
    patch.channels = js_option::JsOption::Null;
    let patched = api.patch(app.clone(), UID.to_owned(), patch).await;
    assert_eq!(patched.expect("changed").channels, None);
}

/// A message may bring its application.
async fn inline(scene: &Scene) {
    let app = format!("rust-inline-{}", scene.lot);
    let mut message = scene.message(5);
    message.application = Some(ApplicationIn::new("inline".to_owned()));
    let made = scene
        .svix
        .message()
        .create(app.clone(), message, None)
        .await;
    made.expect("published");
    let api = scene.svix.application();
    assert_eq!(api.get(app).await.expect("there").name, "inline");
}

/// Payloads that are sent byte for byte, under a type of their own.
async fn raw(scene: &Scene) {
    let (api, app) = (scene.svix.endpoint(), &scene.app);
    let raw_type = format!("raw.{}", scene.lot);
    let mut endpoint = at(scene, "/raw", "ep-raw");
    endpoint.event_types = word(&raw_type);
    let id = make(scene, endpoint).await;
    let secret = api.get_secret(app.clone(), id.clone()).await;
    let secret = secret.expect("a key").key;
    let before = scene.sink.at("/a").len();
    let (object, xml) = ("{\"done\" :  \"\\u0079es\"}\n", "<done/>\n");
    let message = |text: &str| MessageIn::new_raw_payload(raw_type.clone(), text.to_owned());
    scene.publish(message(object)).await;
    scene.sink.wait("/raw", 1).await;
    let last = message(xml).with_content_type("text/xml".to_owned());
    let last = scene.publish(last).await;
    let seen = scene.sink.wait("/raw", 2).await;
    let kinds = ["application/json", "text/xml"];
    for ((seen, text), kind) in seen.iter().zip([object, xml]).zip(kinds) {
        assert_eq!(seen.body, text.as_bytes());
        assert_eq!(seen.headers["content-type"], kind);
        verified(seen, &secret);
    }
    assert_eq!(payload(scene, &last.id).await, json!({"rawPayload": xml}));
    // The first endpoint takes all types. Once it has these, what it has seen changes no more.
    scene.sink.wait("/a", before + 2).await;
    api.delete(app.clone(), id).await.expect("gone");
}

/// Ends the payloads of all messages.
pub async fn expunge_all(scene: &Scene) {
    let made = scene.publish(scene.message(99)).await;
    let api = scene.svix.message();
    let task = api.expunge_all_contents(scene.app.clone(), None).await;
    let task = task.expect("a task");
    assert_eq!(task.task, BackgroundTaskType::ApplicationPurgeContent);
    let purged = finished(&scene.svix, &task.id).await.data["messagesPurged"].as_u64();
    assert!(purged.expect("a number") >= 1);
    assert_eq!(payload(scene, &made.id).await, json!({"expired": true}));
    said("messages: expunge_all_contents");
}
