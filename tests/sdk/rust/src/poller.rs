//! Messages for those who ask.

use chrono::TimeDelta;
use svix::api::{MessagePollerConsumerPollOptions, MessagePollerPollOptions};
use svix::error::Error;
use svix::models::{PollingEndpointConsumerSeekIn, PollingEndpointOut};

use crate::ask::{refused, said, until};
use crate::clock;
use crate::endpoint::{at, make};
use crate::scene::Scene;

const UID: &str = "ep-polled";

pub async fn check(scene: &Scene, endpoint: &str) {
    pages(scene, endpoint).await;
    consumer(scene).await;
    said("poller: pages, nothing before its time; consumers: a place that is kept, 409, seek");
}

/// All that there is, two by two: nothing twice.
async fn pages(scene: &Scene, endpoint: &str) {
    let poll = async |limit: u64, iterator: Option<String>| {
        let options = MessagePollerPollOptions {
            limit: Some(limit),
            iterator,
            ..MessagePollerPollOptions::default()
        };
        let (app, endpoint) = (scene.app.clone(), endpoint.to_owned());
        let message = scene.svix.message();
        let page = message.poller().poll(app, endpoint, Some(options)).await;
        page.expect("a page")
    };
    let (mut found, mut page) = (Vec::new(), poll(2, None).await);
    assert!(page.data.len() == 2 && !page.done);
    loop {
        found.extend(page.data.iter().map(|one| one.id.clone()));
        if page.done {
            break;
        }
        page = poll(2, Some(page.iterator)).await;
    }
    let (all, count) = (poll(250, None).await, found.len());
    let all: Vec<String> = all.data.into_iter().map(|one| one.id).collect();
    assert_eq!(found, all);
    found.sort();
    found.dedup();
    assert_eq!(found.len(), count);
}

async fn poll(scene: &Scene, iterator: Option<String>) -> Result<PollingEndpointOut, Error> {
    let options = MessagePollerConsumerPollOptions {
        iterator,
        ..MessagePollerConsumerPollOptions::default()
    };
    let (app, worker) = (scene.app.clone(), "worker".to_owned());
    let message = scene.svix.message();
    let poller = message.poller();
    poller
        .consumer_poll(app, UID.to_owned(), worker, Some(options))
        .await
}

/// A message that is due later is not polled early; a consumer's place is kept by the server.
async fn consumer(scene: &Scene) {
    let mut endpoint = at(scene, "/polled", UID);
    endpoint.disabled = Some(true);
    make(scene, endpoint).await;
    let mut page = poll(scene, None).await.expect("a page");
    while !page.done {
        page = poll(scene, Some(page.iterator)).await.expect("a page");
    }
    let place = Some(page.iterator);
    let soon = clock::now() + TimeDelta::seconds(2);
    let mut late = scene.message(9);
    late.deliver_at = Some(soon);
    let late = scene.publish(late).await.id;
    let has = |page: &PollingEndpointOut| page.data.iter().any(|one| one.id == late);
    assert!(!has(&poll(scene, place.clone()).await.expect("a page")));
    let came = until("its time", async || {
        Some(poll(scene, None).await.expect("a page")).filter(|page| has(page))
    })
    .await;
    assert!(clock::now() >= soon);
    assert!(has(&poll(scene, None)
        .await
        .expect("it is shown until it is taken")));
    let next = poll(scene, Some(came.iterator)).await.expect("a page");
    assert!(!has(&next));
    assert!(!has(&poll(scene, None).await.expect("a page")));
    assert_eq!(refused(409, poll(scene, place).await), "H0333");
    let back = PollingEndpointConsumerSeekIn::new(soon);
    let (app, worker) = (scene.app.clone(), "worker".to_owned());
    let message = scene.svix.message();
    let poller = message.poller();
    let sought = poller.consumer_seek(app, UID.to_owned(), worker, back, None);
    assert!(!sought.await.expect("sought").iterator.is_empty());
    assert!(has(&poll(scene, None).await.expect("a page")));
}
