//! Messages for those who ask.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use svix::api::{MessagePollerConsumerPollOptions, MessagePollerPollOptions};
use svix::error::Error;
use svix::models::{MessageIn, PollingEndpointConsumerSeekIn, PollingEndpointOut};

use crate::ask::{refused, said, until};
use crate::clock;
use crate::endpoint::{at, make};
use crate::scene::Scene;

const UID: &str = "ep-polled";

/// Messages that are due later are not polled early; a consumer's place is kept by the server.
pub async fn check(scene: &Scene) {
    let kind = format!("polled.{}", scene.lot);
    let mut endpoint = at(scene, "/polled", UID);
    endpoint.event_types = Some(BTreeSet::from([kind.clone()]));
    endpoint.disabled = Some(true);
    make(scene, endpoint).await;
    let soon = clock::now() + TimeDelta::seconds(2);
    let mut due = BTreeSet::new();
    for _ in 0..3 {
        let mut message = MessageIn::new(kind.clone(), json!({}));
        message.deliver_at = Some(soon);
        due.insert(scene.publish(message).await.id);
    }
    assert!(ids(&poll(scene, 10, None).await).is_empty());
    let came = until("their time", async || {
        Some(ids(&poll(scene, 10, None).await)).filter(|came| came.len() == due.len())
    })
    .await;
    assert!(clock::now() >= soon);
    assert_eq!(came.iter().cloned().collect::<BTreeSet<_>>(), due);
    pages(scene, &came).await;
    consumer(scene, &came, soon).await;
    said("poller: pages, nothing before its time; consumers: a place that is kept, 409, seek");
}

fn ids(page: &PollingEndpointOut) -> Vec<String> {
    page.data.iter().map(|one| one.id.clone()).collect()
}

async fn poll(scene: &Scene, limit: u64, iterator: Option<String>) -> PollingEndpointOut {
    let options = MessagePollerPollOptions {
        limit: Some(limit),
        iterator,
        ..MessagePollerPollOptions::default()
    };
    let (app, message) = (scene.app.clone(), scene.svix.message());
    let page = message
        .poller()
        .poll(app, UID.to_owned(), Some(options))
        .await;
    page.expect("a page")
}

/// The same, one by one.
async fn pages(scene: &Scene, came: &[String]) {
    let (mut found, mut page) = (Vec::new(), poll(scene, 1, None).await);
    loop {
        assert!(page.data.len() <= 1);
        found.extend(ids(&page));
        if page.done {
            break;
        }
        page = poll(scene, 1, Some(page.iterator)).await;
    }
    assert_eq!(found, came);
}

async fn consume(
    scene: &Scene,
    limit: u64,
    iterator: Option<&str>,
) -> Result<PollingEndpointOut, Error> {
    let options = MessagePollerConsumerPollOptions {
        limit: Some(limit),
        iterator: iterator.map(str::to_owned),
    };
    let (app, worker) = (scene.app.clone(), "worker".to_owned());
    let message = scene.svix.message();
    let poller = message.poller();
    let page = poller.consumer_poll(app, UID.to_owned(), worker, Some(options));
    page.await
}

async fn consumer(scene: &Scene, came: &[String], soon: DateTime<Utc>) {
    let first = consume(scene, 1, None).await.expect("a page");
    assert_eq!(ids(&first), came[..1]);
    let same = consume(scene, 1, None).await.expect("a page");
    assert_eq!(ids(&same), came[..1], "it is shown until it is taken");
    let second = consume(scene, 1, Some(&first.iterator)).await;
    let second = second.expect("a page");
    assert_eq!(ids(&second), came[1..2]);
    let last = consume(scene, 10, Some(&second.iterator)).await;
    assert_eq!(ids(&last.expect("a page")), came[2..]);
    let behind = consume(scene, 10, Some(&first.iterator)).await;
    assert_eq!(refused(409, behind), "H0333");
    let (app, worker) = (scene.app.clone(), "worker".to_owned());
    let message = scene.svix.message();
    let poller = message.poller();
    let back = PollingEndpointConsumerSeekIn::new(soon);
    let sought = poller.consumer_seek(app, UID.to_owned(), worker, back, None);
    assert!(!sought.await.expect("sought").iterator.is_empty());
    let again = consume(scene, 10, None).await.expect("a page");
    assert_eq!(ids(&again), came);
}
