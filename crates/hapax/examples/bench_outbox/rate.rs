//! How many messages a second go from published to done.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use hapax::clock;
use hapax::outbox::extra::EndpointExtra;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Order;
use crate::round::{Tally, rounds};
use crate::setup::{Outbox, payload};

/// Deliveries under way at a time: as many as the bare sender has.
const CONCURRENCY: u32 = 64;
/// How often what is done is counted: the finest that tokio's timer has.
const COUNTED_EVERY: Duration = Duration::from_millis(1);
/// How long the first message may take: it waits for the dispatcher's first look, no longer.
const FIRST_WAIT: Duration = Duration::from_secs(30);

/// Messages a second from published to done, durable both times. The latencies are those of the publishing.
pub(crate) async fn run(order: &Order) -> anyhow::Result<()> {
    let outbox = Outbox::open(&order.store).await?;
    let app = outbox.app().await?;
    let extra = EndpointExtra {
        concurrency: Some(CONCURRENCY),
        ..EndpointExtra::default()
    };
    let lane = outbox.endpoint(app, order.sink, extra).await?.to_string();
    let body = payload(order.body_bytes);
    outbox.publish(app, body.clone()).await?;
    let began = clock::tick();
    while outbox.metrics.effects.done(&lane) == 0 {
        let waited = clock::since(began);
        ensure!(waited < FIRST_WAIT, "the first message was not delivered");
        tokio::time::sleep(COUNTED_EVERY).await;
    }
    let (outbox, tally) = (Arc::new(outbox), Arc::new(Tally::default()));
    let room = Arc::new(Semaphore::new(order.outstanding));
    let mut publishing = JoinSet::new();
    for _ in 0..order.outstanding {
        let (outbox, tally) = (outbox.clone(), tally.clone());
        let (room, body) = (room.clone(), body.clone());
        publishing.spawn(async move {
            // The semaphore is closed at the end.
            while let Ok(place) = room.acquire().await {
                let began = clock::tick();
                match outbox.publish(app, body.clone()).await {
                    Ok(_) => place.forget(),
                    Err(error) => tally.broken(error.to_string()),
                }
                tally.took(clock::since(began));
            }
        });
    }
    let counting = tokio::spawn(count(outbox.clone(), lane, tally.clone(), room.clone()));
    let counted = rounds(order, &[&tally]).await;
    room.close();
    publishing.join_all().await;
    counting.abort();
    // Its end cannot fail otherwise than by the abort.
    let _ = counting.await;
    if let Some(outbox) = Arc::into_inner(outbox) {
        outbox.close().await?;
    }
    counted
}

/// Counts what is done, and makes room for as many.
async fn count(outbox: Arc<Outbox>, lane: String, tally: Arc<Tally>, room: Arc<Semaphore>) {
    let mut known = outbox.metrics.effects.done(&lane);
    loop {
        tokio::time::sleep(COUNTED_EVERY).await;
        let done = outbox.metrics.effects.done(&lane);
        tally.done(done - known);
        room.add_permits(usize::try_from(done - known).unwrap_or(usize::MAX));
        known = done;
    }
}
