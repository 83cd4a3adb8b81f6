//! How long a message takes to endpoints that are well: alone, or while a tenth as many go to three others, which are well, too, or bad.

use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use hapax::clock;
use hapax::outbox::extra::EndpointExtra;
use hapax_ledger::id::{AppId, MessageId};
use tokio::task::JoinSet;

use crate::arrivals::{self, To};
use crate::bad::{self, Manner};
use crate::round::{Tally, rounds};
use crate::setup::{Outbox, payload};
use crate::sink::Sink;
use crate::{Order, Row};

/// Endpoints that are well, each of an application of its own.
const WELL: usize = 100;

/// Publishes to the endpoints that are well by turns; what counts is the time from before a message is published until its receiver has it.
pub(crate) async fn run(order: &Order) -> anyhow::Result<()> {
    let sink = Arc::new(Sink::start()?);
    let outbox = Arc::new(Outbox::open(&order.store).await?);
    let mut well = Vec::with_capacity(WELL);
    for _ in 0..WELL {
        let app = outbox.app().await?;
        outbox
            .endpoint(app, sink.address, EndpointExtra::default())
            .await?;
        well.push(app);
    }
    let others = others(order.row, &outbox, &sink).await?;
    let tally = Arc::new(Tally::default());
    let pacing = Pacing {
        outbox: outbox.clone(),
        sink,
        tally: tally.clone(),
        body: payload(order.body_bytes),
        others,
    };
    let mut under_way = JoinSet::new();
    let tallies: [&Tally; 1] = [&tally];
    let counted = tokio::select! {
        counted = rounds(order, &tallies) => counted,
        never = pacing.run(&well, &mut under_way) => never,
    };
    under_way.shutdown().await;
    // What hangs is left to the end of the process: it would be waited for.
    counted
}

/// The application of the three others, if there are any.
async fn others(row: Row, outbox: &Outbox, sink: &Sink) -> anyhow::Result<Option<AppId>> {
    let addresses = match row {
        Row::BesideBad => Manner::ALL.map(bad::start),
        Row::BesideWell => Manner::ALL.map(|_| Ok(sink.address)),
        Row::Alone | Row::DeliveredRate | Row::Figures => return Ok(None),
    };
    let app = outbox.app().await?;
    for address in addresses {
        outbox
            .endpoint(app, address?, EndpointExtra::default())
            .await?;
    }
    Ok(Some(app))
}

struct Pacing {
    outbox: Arc<Outbox>,
    sink: Arc<Sink>,
    tally: Arc<Tally>,
    body: Bytes,
    others: Option<AppId>,
}

impl Pacing {
    async fn run(&self, well: &[AppId], under_way: &mut JoinSet<()>) -> anyhow::Result<()> {
        let mut arrivals = arrivals::start()?;
        let mut well = well.iter().cycle();
        while let Some(to) = arrivals.recv().await {
            match (to, self.others) {
                (To::Well, _) => {
                    let app = well.next().context("there are endpoints that are well")?;
                    under_way.spawn(self.one(*app));
                }
                (To::Others, Some(others)) => {
                    let (outbox, body) = (self.outbox.clone(), self.body.clone());
                    under_way.spawn(async move {
                        if let Err(error) = outbox.publish(others, body).await {
                            eprintln!("not published to the others: {error}");
                        }
                    });
                }
                (To::Others, None) => {}
            }
            while under_way.try_join_next().is_some() {}
        }
        anyhow::bail!("arrivals ended before the rounds did")
    }

    fn one(&self, app: AppId) -> impl Future<Output = ()> + Send + 'static {
        let (outbox, sink) = (self.outbox.clone(), self.sink.clone());
        let (tally, body) = (self.tally.clone(), self.body.clone());
        async move {
            let began = clock::tick();
            let event = match outbox.publish(app, body).await {
                Ok(event) => event,
                Err(error) => return tally.broken(error.to_string()),
            };
            // It may be there already.
            if let Ok(when) = sink.expect(MessageId(event.0).to_string()).await {
                tally.done_within(when.saturating_duration_since(began));
            }
        }
    }
}
