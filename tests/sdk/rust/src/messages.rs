//! Messages, their deliveries and the attempts at them; keys that are rotated.

use serde_json::json;
use svix::api::{
    MessageAttemptListByEndpointOptions, MessageCreateOptions, MessageGetOptions,
    MessageListOptions, Svix,
};
use svix::models::{
    ApplicationIn, EndpointPatch, EndpointSecretRotateIn, MessageIn, MessageOut, MessagePrecheckIn,
    MessageStatus, StatusCodeClass,
};
use svix::webhooks::Webhook;

use crate::sink::Sink;
use crate::{problem, refused, said, until, verified};

fn with_content(with_content: bool) -> Option<MessageGetOptions> {
    Some(MessageGetOptions {
        with_content: Some(with_content),
    })
}

/// One message under an id of its publisher's, and its delivery.
pub async fn messages(
    svix: &Svix,
    app: &str,
    endpoint: &str,
    event_type: &str,
    sink: &Sink,
) -> String {
    let api = svix.message();
    let endpoints = svix.endpoint();
    let secret = endpoints.get_secret(app.into(), endpoint.into()).await;
    let secret = secret.expect("a key").key;
    let mut message = MessageIn::new(event_type.into(), json!({"n": 1}));
    message.event_id = Some(format!("evt-{app}"));
    message.channels = Some(["c1".to_owned()].into());
    message.tags = Some(["t1".to_owned()].into());
    let with = MessageCreateOptions {
        with_content: Some(true),
        idempotency_key: None,
    };
    let made = api.create(app.into(), message.clone(), Some(with)).await;
    let made = made.expect("published");
    assert_eq!(made.payload, json!({"n": 1}));
    let again = api.create(app.into(), message.clone(), None).await;
    assert_eq!(again.expect("known").id, made.id);
    message.payload = json!({"n": 2});
    let other = problem(api.create(app.into(), message, None).await);
    assert_eq!(other, (409, "H0326".to_owned()));
    let wrong = MessageIn::new(event_type.into(), json!({}));
    assert_eq!(refused(api.create(app.into(), wrong, None).await), 422);
    let seen = sink.wait("/a", 1).await;
    verified(&seen[0], &secret);
    assert_eq!(seen[0].headers["webhook-id"], made.id.as_str());
    assert_eq!(seen[0].headers["x-tenant"], "t1");
    let by_event_id = format!("evt-{app}");
    let got = api.get(app.into(), by_event_id, with_content(true)).await;
    assert_eq!(got.expect("there").payload, json!({"n": 1}));
    let got = api.get(app.into(), made.id.clone(), with_content(false));
    assert_eq!(got.await.expect("there").payload, json!({}));
    let ids = async |options: MessageListOptions| {
        let page = api.list(app.into(), Some(options)).await.expect("a list");
        let ids: Vec<String> = page.data.into_iter().map(|one| one.id).collect();
        ids
    };
    let wanted = MessageListOptions {
        event_types: Some([event_type.to_owned()].into()),
        channel: Some("c1".into()),
        tag: Some("t1".into()),
        ..MessageListOptions::default()
    };
    assert_eq!(ids(wanted).await, [made.id.as_str()]);
    let earlier = MessageListOptions {
        before: Some(made.timestamp),
        ..MessageListOptions::default()
    };
    assert!(ids(earlier).await.is_empty());
    said("messages: create, eventId, schema, delivery, get, list, filters");
    made.id
}

/// A message under a key, who wants it, and what is left of it when its content is gone.
pub async fn keys(svix: &Svix, app: &str, endpoint: &str, event_type: &str, sink: &Sink) {
    let (api, endpoints) = (svix.message(), svix.endpoint());
    let subscribe = async |types: serde_json::Value| {
        let patch: EndpointPatch =
            serde_json::from_value(json!({ "eventTypes": types })).expect("a patch");
        let patched = endpoints.patch(app.into(), endpoint.into(), patch).await;
        patched.expect("changed");
    };
    let active = async |kind: &str| {
        let asked = MessagePrecheckIn::new(kind.into());
        let told = api.precheck(app.into(), asked, None).await;
        told.expect("an answer").active
    };
    subscribe(json!([event_type])).await;
    assert!(active(event_type).await && !active("nobody.wants").await);
    subscribe(json!(null)).await;
    assert!(active("nobody.wants").await);
    let before = sink.at("/a").len();
    let create = async |number: u32| {
        let options = MessageCreateOptions {
            with_content: None,
            idempotency_key: Some(format!("key-{app}")),
        };
        let message = MessageIn::new(event_type.into(), json!({ "n": number }));
        api.create(app.into(), message, Some(options)).await
    };
    let made = create(7).await.expect("published").id;
    assert_eq!(create(7).await.expect("known").id, made);
    assert_eq!(problem(create(8).await), (409, "H0308".to_owned()));
    sink.wait("/a", before + 1).await;
    let expunged = api.expunge_content(app.into(), made.clone()).await;
    expunged.expect("gone");
    let left = api.get(app.into(), made, with_content(true)).await;
    assert_eq!(left.expect("there").payload, json!({"expired": true}));
    let mut inline = MessageIn::new(event_type.into(), json!({"n": 5}));
    inline.application = Some(ApplicationIn::new("inline".into()));
    let other = format!("{app}-inline");
    api.create(other.clone(), inline, None).await.expect("made");
    let known = svix.application().get(other).await.expect("there");
    assert_eq!(known.name, "inline");
    said("messages: Idempotency-Key, precheck, expunge, an application that comes along");
}

pub async fn attempts(svix: &Svix, app: &str, endpoint: &str, message: &str, sink: &Sink) {
    let (api, endpoints) = (svix.message_attempt(), svix.endpoint());
    let tried = until("an attempt", async || {
        let listed = api.list_by_msg(app.into(), message.into(), None).await;
        listed.expect("a list").data.into_iter().next()
    });
    let tried = tried.await;
    assert_eq!(
        (tried.status, tried.response_status_code),
        (MessageStatus::Success, 200)
    );
    assert_eq!(
        (tried.response.as_str(), tried.msg_id.as_str()),
        ("ok", message)
    );
    let one = api.get(app.into(), message.into(), tried.id.clone(), None);
    assert_eq!(one.await.expect("there").id, tried.id);
    let of_endpoint = async |status: MessageStatus| {
        let options = MessageAttemptListByEndpointOptions {
            status: Some(status),
            with_msg: Some(true),
            ..MessageAttemptListByEndpointOptions::default()
        };
        let page = api.list_by_endpoint(app.into(), endpoint.into(), Some(options));
        page.await.expect("a list").data
    };
    let succeeded = of_endpoint(MessageStatus::Success).await;
    let of_this = |msg: &MessageOut| msg.id == message;
    assert!(
        succeeded
            .iter()
            .any(|one| one.msg.as_ref().is_some_and(of_this))
    );
    assert!(of_endpoint(MessageStatus::Fail).await.is_empty());
    let none = MessageAttemptListByEndpointOptions {
        status_code_class: Some(StatusCodeClass::Code4xx),
        ..MessageAttemptListByEndpointOptions::default()
    };
    let none = api.list_by_endpoint(app.into(), endpoint.into(), Some(none));
    assert!(none.await.expect("a list").data.is_empty());
    let attempted = api.list_attempted_messages(app.into(), endpoint.into(), None);
    let attempted = attempted.await.expect("a list").data;
    assert!(attempted.iter().any(|one| one.id == message));
    let to = api.list_attempted_destinations(app.into(), message.into(), None);
    let to = to.await.expect("a list").data;
    assert_eq!((to.len(), to[0].id.as_str()), (1, endpoint));
    let before = sink.at("/a").len();
    let resent = api.resend(app.into(), message.into(), endpoint.into(), None);
    resent.await.expect("sent again");
    let seen = sink.wait("/a", before + 1).await;
    assert_eq!(seen[before].headers["webhook-id"], message);
    let stats = until("figures", async || {
        let stats = endpoints.get_stats(app.into(), endpoint.into(), None).await;
        Some(stats.expect("figures")).filter(|stats| stats.success >= 3)
    });
    assert_eq!(stats.await.fail, 0);
    let tried = endpoints.get_attempt_stats(app.into(), endpoint.into(), None);
    assert!(tried.await.expect("figures").success >= 3);
    said("attempts: by message, by endpoint, one, messages, destinations, resend, stats");
}

pub async fn rotation(svix: &Svix, app: &str, endpoint: &str, event_type: &str, sink: &Sink) {
    let api = svix.endpoint();
    let old = api.get_secret(app.into(), endpoint.into()).await;
    let old = old.expect("a key").key;
    let rotate = async |grace: Option<u32>| {
        let mut rotate = EndpointSecretRotateIn::new();
        rotate.grace_period_seconds = grace;
        let rotated = api.rotate_secret(app.into(), endpoint.into(), rotate, None);
        rotated.await.expect("a new key").key
    };
    let publish = async |number: u32| {
        let before = sink.at("/a").len();
        let message = MessageIn::new(event_type.into(), json!({ "n": number }));
        let made = svix.message().create(app.into(), message, None).await;
        made.expect("published");
        sink.wait("/a", before + 1).await.remove(before)
    };
    let new = rotate(None).await;
    assert_ne!(new, old);
    let seen = publish(3).await;
    verified(&seen, &old);
    verified(&seen, &new);
    let last = rotate(Some(0)).await;
    let seen = publish(4).await;
    verified(&seen, &last);
    let without = Webhook::new(&new).expect("a secret");
    assert!(without.verify(&seen.body, &seen.headers).is_err());
    said("rotation: old and new verify during the overlap, and not beyond it");
}
