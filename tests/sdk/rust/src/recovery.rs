//! Sending again what failed, what was missed, and anything.

use chrono::TimeDelta;
use svix::api::{BackgroundTaskListOptions, MessageAttemptListAttemptedMessagesOptions};
use svix::models::{
    BackgroundTaskType, BulkReplayIn, EventExampleIn, MessageStatus, RecoverIn, ReplayIn,
};

use crate::ask::{finished, said, until};
use crate::clock;
use crate::endpoint::{at, make};
use crate::scene::Scene;

/// Messages to an endpoint that stand so.
async fn standing(scene: &Scene, endpoint: &str, status: MessageStatus) -> Vec<String> {
    let options = MessageAttemptListAttemptedMessagesOptions {
        status: Some(status),
        limit: Some(250),
        ..MessageAttemptListAttemptedMessagesOptions::default()
    };
    let (app, endpoint) = (scene.app.clone(), endpoint.to_owned());
    let api = scene.svix.message_attempt();
    let page = api.list_attempted_messages(app, endpoint, Some(options));
    let data = page.await.expect("a page").data;
    data.into_iter().map(|one| one.id).collect()
}

/// How many messages a task has sent.
async fn sent(scene: &Scene, task: &str) -> usize {
    let told = finished(&scene.svix, task).await;
    let sent = told.data["messagesSent"].as_u64().expect("a number");
    usize::try_from(sent).expect("a small number")
}

pub async fn check(scene: &Scene) {
    let (api, app) = (scene.svix.endpoint(), &scene.app);
    let since = clock::now() - TimeDelta::minutes(1);
    make(scene, at(scene, "/b", "ep-b")).await;
    scene.sink.answer("/b", 500);
    let message = scene.publish(scene.message(8)).await;
    let dead = until("a dead letter", async || {
        let dead = standing(scene, "ep-b", MessageStatus::Fail).await;
        (!dead.is_empty()).then_some(dead)
    })
    .await;
    assert_eq!(dead, [message.id]);
    scene.sink.answer("/b", 200);
    let task = api.recover(app.clone(), "ep-b".to_owned(), RecoverIn::new(since), None);
    let task = task.await.expect("a task");
    assert_eq!(task.task, BackgroundTaskType::EndpointRecover);
    assert_eq!(sent(scene, &task.id).await, 1);
    scene.sink.wait("/b", 2).await;
    again(scene, since).await;
    for uid in ["ep-b", "ep-c"] {
        api.delete(app.clone(), uid.to_owned()).await.expect("gone");
    }
    said("recover, replay_missing, bulk_replay, background tasks, send_example");
}

/// An endpoint that came late gets what it missed, then all of it once more, then an example.
async fn again(scene: &Scene, since: chrono::DateTime<chrono::Utc>) {
    let (api, app, late) = (scene.svix.endpoint(), &scene.app, "ep-c".to_owned());
    make(scene, at(scene, "/c", &late)).await;
    let task = api.replay_missing(app.clone(), late.clone(), ReplayIn::new(since), None);
    let missed = sent(scene, &task.await.expect("a task").id).await;
    assert!(missed >= 1);
    scene.sink.wait("/c", missed).await;
    // Sent, but perhaps not settled yet: what is done can be sent again.
    until("all of it is done", async || {
        let done = standing(scene, &late, MessageStatus::Success).await;
        (done.len() == missed).then_some(())
    })
    .await;
    let task = api.bulk_replay(app.clone(), late.clone(), BulkReplayIn::new(since), None);
    let task = task.await.expect("a task");
    assert_eq!(sent(scene, &task.id).await, missed);
    scene.sink.wait("/c", 2 * missed).await;
    let options = BackgroundTaskListOptions {
        task: Some(BackgroundTaskType::EndpointBulkReplay),
        ..BackgroundTaskListOptions::default()
    };
    let tasks = scene.svix.background_task().list(Some(options)).await;
    let tasks = tasks.expect("a page").data;
    assert!(tasks.iter().any(|one| one.id == task.id));
    let mut example = EventExampleIn::new(scene.event_type.clone());
    example.example_index = Some(1);
    let example = api.send_example(app.clone(), late, example, None);
    example.await.expect("sent");
    let seen = scene.sink.wait("/c", 2 * missed + 1).await;
    assert_eq!(seen[2 * missed].body, br#"{"n":2}"#);
}
