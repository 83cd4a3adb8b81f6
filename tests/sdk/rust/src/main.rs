//! Drives a Hapax server with the Svix SDK for Rust. Panics at the first thing that is not as the SDK expects it.
//!
//! `HAPAX_URL` and `HAPAX_TOKEN` say where the server is and who asks. Its endpoints may be on 127.0.0.1.

mod clock;
mod sink;

use serde_json::json;
use sink::{Seen, Sink, TOO_LONG};
use svix::api::{
    MessageCreateOptions, MessageGetOptions, MessageListOptions, MessagePollerConsumerPollOptions,
    Svix, SvixOptions,
};
use svix::error::Error;
use svix::models::{
    AppPortalAccessIn, AppUsageStatsIn, ApplicationIn, ApplicationPatch, EndpointHeadersIn,
    EndpointIn, EndpointSecretRotateIn, EventTypeIn, MessageIn, MessageStatus,
    OperationalWebhookEndpointIn, PollingEndpointConsumerSeekIn, RecoverIn,
};
use svix::webhooks::Webhook;

fn said(what: &str) {
    println!("rust: {what}");
}

fn client(token: String) -> Svix {
    let options = SvixOptions {
        server_url: Some(std::env::var("HAPAX_URL").expect("HAPAX_URL")),
        ..SvixOptions::default()
    };
    Svix::new(token, Some(options))
}

/// The status that a request is refused with.
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> u16 {
    match answer.expect_err("it is refused") {
        Error::Http(problem) => problem.status.as_u16(),
        Error::Validation(problem) => problem.status.as_u16(),
        other => panic!("{other:?}"),
    }
}

/// Verifies with the SDK and with the crate of the standard.
fn verified(seen: &Seen, secret: &str) {
    let ours = Webhook::new(secret).expect("a secret");
    ours.verify(&seen.body, &seen.headers).expect("it verifies");
    let standard = standardwebhooks::Webhook::new(secret).expect("a secret");
    standard
        .verify(&seen.body, &seen.headers)
        .expect("it verifies");
}

async fn apps(svix: &Svix, app: &str) {
    let mut made = ApplicationIn::new("one".to_owned());
    made.uid = Some(app.to_owned());
    let created = svix
        .application()
        .create(made.clone(), None)
        .await
        .expect("made");
    assert_eq!(created.uid.as_deref(), Some(app));
    let again = svix
        .application()
        .get_or_create(made.clone(), None)
        .await
        .expect("there");
    assert_eq!(again.id, created.id);
    assert_eq!(refused(svix.application().create(made, None).await), 409);
    let patch = ApplicationPatch {
        name: Some("two".to_owned()),
        ..ApplicationPatch::default()
    };
    let patched = svix
        .application()
        .patch(app.to_owned(), patch)
        .await
        .expect("changed");
    assert_eq!(
        (patched.name.as_str(), patched.uid.as_deref()),
        ("two", Some(app))
    );
    let listed = svix.application().list(None).await.expect("a list");
    assert!(listed.data.iter().any(|one| one.id == created.id) || !listed.done);
    said("applications: create, get_or_create, patch, list, 409");
}

async fn endpoints(svix: &Svix, app: &str, sink: &Sink) -> String {
    let mut endpoint = EndpointIn::new(sink.url("/a"));
    endpoint.uid = Some("ep-a".to_owned());
    let made = svix
        .endpoint()
        .create(app.to_owned(), endpoint, None)
        .await
        .expect("made");
    assert_eq!(made.disabled, Some(false));
    let closed = EndpointIn::new("http://[::1]/".to_owned());
    assert_eq!(
        refused(svix.endpoint().create(app.to_owned(), closed, None).await),
        422
    );
    let headers = [("x-tenant".to_owned(), "t1".to_owned())].into();
    let headers = EndpointHeadersIn::new(headers);
    svix.endpoint()
        .set_headers(app.to_owned(), made.id.clone(), headers)
        .await
        .expect("set");
    let known = svix
        .endpoint()
        .get_headers(app.to_owned(), "ep-a".to_owned())
        .await;
    assert_eq!(known.expect("there").headers["x-tenant"], "t1");
    said("endpoints: create, gate, headers");
    made.id
}

async fn messages(svix: &Svix, app: &str, endpoint: &str, event_type: &str, sink: &Sink) -> String {
    let secret = svix
        .endpoint()
        .get_secret(app.to_owned(), endpoint.to_owned())
        .await
        .expect("a key")
        .key;
    let mut message = MessageIn::new(event_type.to_owned(), json!({"n": 1}));
    message.event_id = Some(format!("evt-{app}"));
    let with = || {
        Some(MessageCreateOptions {
            with_content: Some(true),
            idempotency_key: None,
        })
    };
    let made = svix
        .message()
        .create(app.to_owned(), message.clone(), with())
        .await
        .expect("published");
    assert_eq!(made.payload, json!({"n": 1}));
    let again = svix
        .message()
        .create(app.to_owned(), message.clone(), None)
        .await
        .expect("known");
    assert_eq!(again.id, made.id);
    message.payload = json!({"n": 2});
    assert_eq!(
        refused(svix.message().create(app.to_owned(), message, None).await),
        409
    );
    let seen = sink.wait("/a", 1).await;
    verified(&seen[0], &secret);
    assert_eq!(seen[0].headers["webhook-id"], made.id.as_str());
    assert_eq!(seen[0].headers["x-tenant"], "t1");
    let options = MessageGetOptions {
        with_content: Some(true),
    };
    let got = svix
        .message()
        .get(app.to_owned(), made.id.clone(), Some(options))
        .await;
    assert_eq!(got.expect("there").payload, json!({"n": 1}));
    let options = MessageListOptions {
        event_types: Some([event_type.to_owned()].into()),
        ..MessageListOptions::default()
    };
    let listed = svix
        .message()
        .list(app.to_owned(), Some(options))
        .await
        .expect("a list");
    assert_eq!(listed.data.len(), 1);
    said("messages: create, eventId, delivery, get, list");
    made.id
}

async fn attempts(svix: &Svix, app: &str, endpoint: &str, message: &str, sink: &Sink) {
    let api = svix.message_attempt();
    let (app, endpoint, message) = (app.to_owned(), endpoint.to_owned(), message.to_owned());
    let start = clock::tick();
    let tried = loop {
        let listed = api
            .list_by_msg(app.clone(), message.clone(), None)
            .await
            .expect("a list");
        if let Some(tried) = listed.data.into_iter().next() {
            break tried;
        }
        // Each question is a whole request, which is what paces the loop.
        assert!(start.elapsed() < TOO_LONG, "an attempt");
    };
    assert_eq!(
        (tried.status, tried.response_status_code),
        (MessageStatus::Success, 200)
    );
    let one = api
        .get(app.clone(), message.clone(), tried.id.clone(), None)
        .await
        .expect("there");
    assert_eq!(one.id, tried.id);
    let of_endpoint = api
        .list_by_endpoint(app.clone(), endpoint.clone(), None)
        .await
        .expect("a list");
    assert_eq!(of_endpoint.data.len(), 1);
    let attempted = api
        .list_attempted_messages(app.clone(), endpoint.clone(), None)
        .await
        .expect("a list");
    assert_eq!(attempted.data[0].id, message);
    let to = api
        .list_attempted_destinations(app.clone(), message.clone(), None)
        .await
        .expect("a list");
    assert_eq!(to.data[0].id, endpoint);
    api.resend(app.clone(), message.clone(), endpoint.clone(), None)
        .await
        .expect("sent again");
    sink.wait("/a", 2).await;
    let stats = svix
        .endpoint()
        .get_stats(app, endpoint, None)
        .await
        .expect("figures");
    assert_eq!(stats.fail, 0);
    said("attempts: by message, by endpoint, one, destinations, resend, stats");
}

async fn rotation(svix: &Svix, app: &str, endpoint: &str, event_type: &str, sink: &Sink) {
    let api = svix.endpoint();
    let secret = api.get_secret(app.to_owned(), endpoint.to_owned()).await;
    let old = secret.expect("a key").key;
    let rotate = EndpointSecretRotateIn::new();
    let rotated = api.rotate_secret(app.to_owned(), endpoint.to_owned(), rotate, None);
    let new = rotated.await.expect("a new key").key;
    assert_ne!(new, old);
    let message = MessageIn::new(event_type.to_owned(), json!({"n": 3}));
    let made = svix.message().create(app.to_owned(), message, None).await;
    made.expect("published");
    let seen = sink.wait("/a", 3).await;
    verified(&seen[2], &old);
    verified(&seen[2], &new);
    said("rotation: old and new verify during the overlap");
}

async fn asks(svix: &Svix, app: &str, endpoint: &str) {
    let message = svix.message();
    let poller = message.poller();
    let names = || (app.to_owned(), endpoint.to_owned(), "worker".to_owned());
    let poll = async |iterator: Option<String>| {
        let (app, endpoint, worker) = names();
        let options = MessagePollerConsumerPollOptions {
            iterator,
            ..Default::default()
        };
        let page = poller.consumer_poll(app, endpoint, worker, Some(options));
        page.await.expect("a page")
    };
    let page = poll(None).await;
    assert!(!page.data.is_empty());
    assert_eq!(poll(None).await.data.len(), page.data.len());
    assert!(poll(Some(page.iterator)).await.data.is_empty());
    let since = clock::now() - chrono::TimeDelta::days(1);
    let (app_id, endpoint, worker) = names();
    let back = PollingEndpointConsumerSeekIn::new(since);
    let sought = poller.consumer_seek(app_id, endpoint, worker, back, None);
    sought.await.expect("sought");
    assert_eq!(poll(None).await.data.len(), page.data.len());
    let mut usage = AppUsageStatsIn::new(since, clock::now());
    usage.app_ids = Some([app.to_owned()].into());
    let task = svix.statistics().aggregate_app_stats(usage, None).await;
    assert!(task.expect("a task").unresolved_app_ids.is_empty());
    let types = svix.statistics().aggregate_event_types().await;
    types.expect("a task");
    let operators = OperationalWebhookEndpointIn::new("http://127.0.0.1:9999/".to_owned());
    let webhooks = svix.operational_webhook();
    let api = webhooks.endpoint();
    let made = api.create(operators, None).await.expect("made");
    api.delete(made.id).await.expect("gone");
    said("consumers of a poller, statistics, operational webhooks");
}

async fn rest(svix: &Svix, app: &str, endpoint: &str) {
    let since = clock::now() - chrono::TimeDelta::minutes(1);
    let recover = RecoverIn::new(since);
    let api = svix.endpoint();
    let task = api.recover(app.to_owned(), endpoint.to_owned(), recover, None);
    let task = task.await.expect("a task");
    assert_eq!(
        svix.background_task()
            .get(task.id.clone())
            .await
            .expect("there")
            .id,
        task.id
    );
    let access = svix.authentication();
    let access = access
        .app_portal_access(app.to_owned(), AppPortalAccessIn::new(), None)
        .await;
    let consumer = client(access.expect("a token").token);
    assert_eq!(
        consumer
            .endpoint()
            .list(app.to_owned(), None)
            .await
            .expect("a list")
            .data
            .len(),
        1
    );
    assert_eq!(refused(consumer.application().list(None).await), 403);
    svix.health().get().await.expect("well");
    svix.application()
        .delete(app.to_owned())
        .await
        .expect("gone");
    assert_eq!(refused(svix.application().get(app.to_owned()).await), 404);
    said("recover, background task, portal, health, delete");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let svix = client(std::env::var("HAPAX_TOKEN").expect("HAPAX_TOKEN"));
    let lot = clock::now().timestamp_micros();
    let app = format!("rust-{lot}");
    let event_type = format!("thing.done.{lot}");
    let sink = Sink::start().await;
    apps(&svix, &app).await;
    let made = EventTypeIn::new(event_type.clone(), "a thing was done".to_owned());
    svix.event_type().create(made, None).await.expect("made");
    let endpoint = endpoints(&svix, &app, &sink).await;
    let message = messages(&svix, &app, &endpoint, &event_type, &sink).await;
    attempts(&svix, &app, &endpoint, &message, &sink).await;
    rotation(&svix, &app, &endpoint, &event_type, &sink).await;
    asks(&svix, &app, &endpoint).await;
    rest(&svix, &app, &endpoint).await;
    said("all well");
}
