//! Attempts.

use svix::api::{MessageAttemptListByEndpointOptions, MessageAttemptListByMsgOptions};
use svix::models::{MessageStatus, StatusCodeClass};

use crate::ask::{said, until};
use crate::scene::Scene;

pub async fn check(scene: &Scene, endpoint: &str, message: &str) {
    let api = scene.svix.message_attempt();
    let (app, endpoint, message) = (&scene.app, endpoint.to_owned(), message.to_owned());
    let tried = until("an attempt", async || {
        let page = api.list_by_msg(app.clone(), message.clone(), None).await;
        page.expect("a page").data.into_iter().next()
    })
    .await;
    let stands = (tried.status, tried.response_status_code, &*tried.response);
    assert_eq!(stands, (MessageStatus::Success, 200, "ok"));
    assert_eq!((&tried.endpoint_id, &tried.msg_id), (&endpoint, &message));
    let one = api.get(app.clone(), message.clone(), tried.id.clone(), None);
    assert_eq!(one.await.expect("there").id, tried.id);
    filters(scene, &endpoint, &message).await;
    let attempted = api.list_attempted_messages(app.clone(), endpoint.clone(), None);
    let attempted = attempted.await.expect("a page");
    assert!(attempted.data.iter().any(|one| one.id == message));
    let to = api.list_attempted_destinations(app.clone(), message.clone(), None);
    let to = to.await.expect("a page").data;
    assert_eq!(
        (&to[0].id, to[0].status),
        (&endpoint, MessageStatus::Success)
    );
    let before = scene.sink.at("/a").len();
    let resent = api.resend(app.clone(), message.clone(), endpoint.clone(), None);
    resent.await.expect("sent again");
    let seen = scene.sink.wait("/a", before + 1).await;
    assert_eq!(seen[before].headers["svix-id"], message.as_str());
    pages(scene, &message).await;
    stats(scene, &endpoint).await;
    said("attempts: by message, by endpoint, filters, pages, one, destinations, resend, stats");
}

async fn filters(scene: &Scene, endpoint: &str, message: &str) {
    let api = scene.svix.message_attempt();
    let list = async |options: MessageAttemptListByEndpointOptions| {
        let (app, endpoint) = (scene.app.clone(), endpoint.to_owned());
        let page = api.list_by_endpoint(app, endpoint, Some(options)).await;
        page.expect("a page").data
    };
    let all = MessageAttemptListByEndpointOptions::default;
    let well = list(MessageAttemptListByEndpointOptions {
        status: Some(MessageStatus::Success),
        status_code_class: Some(StatusCodeClass::Code2xx),
        with_msg: Some(true),
        ..all()
    });
    let whole = |one: &svix::models::MessageAttemptOut| one.msg.as_ref().map(|msg| msg.id.clone());
    assert!(
        well.await
            .iter()
            .any(|one| whole(one).as_deref() == Some(message))
    );
    assert!(list(all()).await.iter().all(|one| one.msg.is_none()));
    let failed = MessageAttemptListByEndpointOptions {
        status: Some(MessageStatus::Fail),
        ..all()
    };
    assert!(list(failed).await.is_empty());
    let refused = MessageAttemptListByEndpointOptions {
        status_code_class: Some(StatusCodeClass::Code4xx),
        ..all()
    };
    assert!(list(refused).await.is_empty());
}

/// Two attempts, read one by one, the newest first.
async fn pages(scene: &Scene, message: &str) {
    let api = scene.svix.message_attempt();
    let page = async |limit: u64, iterator: Option<String>| {
        let options = MessageAttemptListByMsgOptions {
            limit: Some(limit),
            iterator,
            ..MessageAttemptListByMsgOptions::default()
        };
        let (app, message) = (scene.app.clone(), message.to_owned());
        let page = api.list_by_msg(app, message, Some(options)).await;
        page.expect("a page")
    };
    let both = until("two attempts", async || {
        let found = page(10, None).await.data;
        (found.len() == 2).then_some(found)
    })
    .await;
    let first = page(1, None).await;
    assert!(!first.done);
    assert_eq!(first.data[0].id, both[0].id);
    let second = page(1, first.iterator).await;
    assert_eq!(second.data[0].id, both[1].id);
}

async fn stats(scene: &Scene, endpoint: &str) {
    let api = scene.svix.endpoint();
    let names = || (scene.app.clone(), endpoint.to_owned());
    let stats = until("figures", async || {
        let (app, endpoint) = names();
        let stats = api.get_stats(app, endpoint, None).await.expect("figures");
        (stats.success >= 3).then_some(stats)
    })
    .await;
    assert_eq!(stats.fail, 0);
    let (app, endpoint) = names();
    let tried = api.get_attempt_stats(app, endpoint, None).await;
    let tried = tried.expect("figures");
    assert!(tried.success >= 3 && tried.fail == 0, "{tried:?}");
}
