//! What is sent again, what is asked for instead of being sent, and what is counted.

use serde_json::{Value, json};
use svix::api::{
    BackgroundTaskListOptions, MessageAttemptListAttemptedMessagesOptions,
    MessagePollerConsumerPollOptions, MessagePollerPollOptions, Svix,
};
use svix::models::{
    AppUsageStatsIn, BackgroundTaskType, BulkReplayIn, EndpointIn, EventExampleIn, MessageStatus,
    OperationalWebhookEndpointIn, PollingEndpointConsumerSeekIn, RecoverIn, ReplayIn,
};

use crate::sink::Sink;
use crate::{clock, finished, said, until};

/// How many messages a task has sent.
fn sent(data: &Value) -> usize {
    let sent = data["messagesSent"].as_u64().expect("a number");
    usize::try_from(sent).expect("a small number")
}

/// An endpoint that comes late gets what it missed, all of it again, and an example.
pub async fn replays(svix: &Svix, app: &str, endpoint: &str, event_type: &str, sink: &Sink) {
    let api = svix.endpoint();
    let since = clock::now() - chrono::TimeDelta::minutes(1);
    let task = api.recover(app.into(), endpoint.into(), RecoverIn::new(since), None);
    let done = finished(svix, &task.await.expect("a task").id).await;
    assert_eq!(
        (done.task, sent(&done.data)),
        (BackgroundTaskType::EndpointRecover, 0)
    );
    let mut late = EndpointIn::new(sink.url("/c"));
    late.uid = Some("ep-c".into());
    api.create(app.into(), late, None).await.expect("made");
    let missing = api.replay_missing(app.into(), "ep-c".into(), ReplayIn::new(since), None);
    let done = finished(svix, &missing.await.expect("a task").id).await;
    let missed = sent(&done.data);
    assert!(missed >= 1);
    sink.wait("/c", missed).await;
    until("all of it is done", async || {
        let options = MessageAttemptListAttemptedMessagesOptions {
            status: Some(MessageStatus::Success),
            ..MessageAttemptListAttemptedMessagesOptions::default()
        };
        let attempts = svix.message_attempt();
        let page = attempts.list_attempted_messages(app.into(), "ep-c".into(), Some(options));
        (page.await.expect("a list").data.len() == missed).then_some(())
    })
    .await;
    let bulk = api.bulk_replay(app.into(), "ep-c".into(), BulkReplayIn::new(since), None);
    let bulk = finished(svix, &bulk.await.expect("a task").id).await;
    assert_eq!(sent(&bulk.data), missed);
    sink.wait("/c", 2 * missed).await;
    let options = BackgroundTaskListOptions {
        limit: Some(50),
        ..BackgroundTaskListOptions::default()
    };
    let tasks = svix.background_task().list(Some(options)).await;
    let tasks = tasks.expect("a list").data;
    assert!(tasks.iter().any(|one| one.id == bulk.id));
    let mut example = EventExampleIn::new(event_type.into());
    example.example_index = Some(1);
    let example = api.send_example(app.into(), "ep-c".into(), example, None);
    example.await.expect("sent");
    let seen = sink.wait("/c", 2 * missed + 1).await;
    let body: Value = serde_json::from_slice(&seen[2 * missed].body).expect("JSON");
    assert_eq!(body, json!({"n": 2}));
    polled(svix, app).await;
    api.delete(app.into(), "ep-c".into()).await.expect("gone");
    said("recover, replay_missing, bulk_replay, background tasks, send_example, poller");
}

async fn polled(svix: &Svix, app: &str) {
    let messages = svix.message();
    let poller = messages.poller();
    let poll = async |limit: u64, iterator: Option<String>| {
        let options = MessagePollerPollOptions {
            limit: Some(limit),
            iterator,
            ..MessagePollerPollOptions::default()
        };
        let page = poller.poll(app.into(), "ep-c".into(), Some(options));
        page.await.expect("a page")
    };
    let first = poll(1, None).await;
    assert_eq!((first.data.len(), first.done), (1, false));
    let rest = poll(50, Some(first.iterator)).await;
    assert!(!rest.data.is_empty());
    assert!(rest.data.iter().all(|one| one.id != first.data[0].id));
}

/// A consumer whose place the server keeps.
pub async fn consumers(svix: &Svix, app: &str, endpoint: &str) {
    let messages = svix.message();
    let poller = messages.poller();
    let poll = async |iterator: Option<String>| {
        let options = MessagePollerConsumerPollOptions {
            iterator,
            ..MessagePollerConsumerPollOptions::default()
        };
        let page =
            poller.consumer_poll(app.into(), endpoint.into(), "worker".into(), Some(options));
        page.await.expect("a page")
    };
    let page = poll(None).await;
    assert!(!page.data.is_empty());
    assert_eq!(poll(None).await.data.len(), page.data.len());
    assert!(poll(Some(page.iterator)).await.data.is_empty());
    let back = PollingEndpointConsumerSeekIn::new(clock::now() - chrono::TimeDelta::days(1));
    let sought = poller.consumer_seek(app.into(), endpoint.into(), "worker".into(), back, None);
    sought.await.expect("sought");
    assert_eq!(poll(None).await.data.len(), page.data.len());
    said("consumers of a poller: a place that is kept, seek");
}

pub async fn statistics(svix: &Svix, app: &str) {
    let since = clock::now() - chrono::TimeDelta::days(1);
    let until = clock::now() + chrono::TimeDelta::days(1);
    let mut usage = AppUsageStatsIn::new(since, until);
    usage.app_ids = Some([app.to_owned()].into());
    let task = svix.statistics().aggregate_app_stats(usage, None).await;
    let task = task.expect("a task");
    assert!(task.unresolved_app_ids.is_empty());
    let found = finished(svix, &task.id).await.data;
    assert_eq!(found["appStats"][0]["appUid"], app);
    assert!(found["appStats"][0]["messageDestinations"].as_u64() > Some(3));
    let types = svix.statistics().aggregate_event_types().await;
    let found = finished(svix, &types.expect("a task").id).await.data;
    assert!(found["event_types"].is_array());
    let operators = OperationalWebhookEndpointIn::new("http://127.0.0.1:9999/".into());
    let webhooks = svix.operational_webhook();
    let api = webhooks.endpoint();
    let made = api.create(operators, None).await.expect("made");
    api.delete(made.id).await.expect("gone");
    said("statistics, operational webhooks");
}
