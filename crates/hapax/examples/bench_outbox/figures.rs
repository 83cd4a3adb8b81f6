//! How long statistics take beside so many attempts.

use hapax::clock;
use hapax::config::StoreTarget;
use hapax::outbox::extra::EndpointExtra;
use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Span;
use hapax_store::conformance::history::{ATTEMPTS_EACH, History};

use crate::Order;
use crate::round::{Tally, rounds};
use crate::setup::{Outbox, target};

/// Endpoints of the application, each with as many of the attempts.
const ENDPOINTS: usize = 10;
/// As the API has it unless told otherwise.
const BACK: Span = Span::from_days(28);

/// Fills the store, and asks for the figures of an endpoint and of an application by turns: what the API reads for them.
pub(crate) async fn run(order: &Order) -> anyhow::Result<()> {
    let (app, endpoints) = fill(order).await?;
    let outbox = Outbox::open(&order.store).await?;
    let store = outbox.store();
    let (of_endpoint, of_app) = (Tally::default(), Tally::default());
    let tallies = [&of_endpoint, &of_app];
    let asking = async {
        loop {
            for endpoint in &endpoints {
                let (now, began) = (clock::now(), clock::tick());
                store.tallies(*endpoint, now - BACK, now).await?;
                store.waiting(*endpoint).await?;
                of_endpoint.done_within(clock::since(began));
                let began = clock::tick();
                store.usage(app, now - BACK, now).await?;
                of_app.done_within(clock::since(began));
            }
        }
    };
    tokio::select! {
        asked = asking => return asked,
        counted = rounds(order, &tallies) => counted?,
    }
    drop(store);
    outbox.close().await
}

/// An application with endpoints, and the attempts that were made.
async fn fill(order: &Order) -> anyhow::Result<(AppId, Vec<EndpointId>)> {
    let outbox = Outbox::open(&order.store).await?;
    let app = outbox.app().await?;
    let mut endpoints = Vec::new();
    for _ in 0..ENDPOINTS {
        let extra = EndpointExtra::default();
        endpoints.push(outbox.endpoint(app, order.sink, extra).await?);
    }
    outbox.close().await?;
    let history = History {
        endpoints: endpoints.clone(),
        deliveries: order.fill / ATTEMPTS_EACH,
        until: clock::now(),
    };
    match target(&order.store)? {
        StoreTarget::Sqlite(path) => history.fill_sqlite(&path)?,
        StoreTarget::Postgres(url) => history.fill_postgres(&url).await?,
    }
    Ok((app, endpoints))
}
