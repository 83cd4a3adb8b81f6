//! Tells what happened to endpoints and deliveries: in the same way as alerts are told, and to the operators' endpoints.
//!
//! What is to be told is in the store, written with the change that it tells of. It becomes an event of its own here, under a key that the
//! same thing always has, and is forgotten after that: whoever dies in between tells it again, and that is a duplicate.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use hapax_ledger::time::Time;
use hapax_store::StoreError;
use hapax_store::nouns::{TIDINGS_PER_PAGE, Tiding};
use tokio::sync::watch;

use super::notice::{self, Told};
use crate::clock;
use crate::config::AlertsConfig;
use crate::outbox::message::Outcome;
use crate::outbox::operational::OPERATIONAL_APP;
use crate::outbox::{Operational, Publisher};

/// The pause after something could not be told, which grows up to the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest of them.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// What this node writes it is woken for. So often it looks for what others have left: those that were killed, or that came to nothing here.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// So many failures end a round: the store is away, and the rest would only find the same.
const FAILURES_MAX: u32 = 3;

/// Stores operational events, which the dispatcher delivers.
pub struct Announcer {
    publisher: Publisher,
    config: ArcSwap<AlertsConfig>,
}

/// How a round went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// All was told.
    Done,
    /// Something is left for the next.
    Left,
}

impl Announcer {
    /// Tells nothing before [`Announcer::run`].
    pub fn new(publisher: Publisher, config: AlertsConfig) -> Announcer {
        Announcer {
            publisher,
            config: ArcSwap::from_pointee(config),
        }
    }

    /// Puts another config in force.
    pub fn reload(&self, config: AlertsConfig) {
        self.config.store(Arc::new(config));
    }

    /// Tells what there is, from what a crash has left on, until told to stop. What is not told by then is in the store.
    pub async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let untold = self.publisher.registry.untold();
        let mut pause = PAUSE_MIN;
        loop {
            let round = tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => return,
                round = self.tell_all() => round,
            };
            let waited = match round {
                Ok(Round::Done) => {
                    pause = PAUSE_MIN;
                    tokio::select! {
                        _ = stopping.wait_for(|stop| *stop) => return,
                        () = untold.notified() => {}
                        () = tokio::time::sleep(LOOK_EVERY) => {}
                    }
                    continue;
                }
                Ok(Round::Left) => pause,
                Err(error) => {
                    tracing::warn!(%error, "operational events could not be stored; trying again");
                    pause
                }
            };
            pause = (pause * 2).min(PAUSE_MAX);
            tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(waited) => {}
            }
        }
    }

    /// Goes once through all that is untold. One that cannot be told does not keep the others waiting.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn tell_all(&self) -> Result<Round, StoreError> {
        let (mut after, mut round, mut failures) = (0, Round::Done, 0);
        loop {
            let page = self.publisher.store.untold(after).await?;
            let many = page.len();
            let mut told = Vec::new();
            let mut failed = None;
            for untold in page {
                after = untold.number;
                let Some(tiding) = &untold.tiding else {
                    continue;
                };
                match self.tell(tiding, clock::now()).await {
                    Ok(Round::Done) => told.push(untold.number),
                    Ok(Round::Left) => round = Round::Left,
                    Err(error) => {
                        round = Round::Left;
                        failures += 1;
                        if failures == FAILURES_MAX {
                            failed = Some(error);
                            break;
                        }
                        tracing::warn!(%error, endpoint = %tiding.endpoint, "an operational event could not be stored");
                    }
                }
            }
            if !told.is_empty() {
                self.publisher.store.told(told).await?;
            }
            if let Some(error) = failed {
                return Err(error);
            }
            if many < TIDINGS_PER_PAGE {
                return Ok(round);
            }
        }
    }

    /// Stores one, if anybody wants to hear it. The same thing is stored once, however often it is told.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn tell(&self, tiding: &Tiding, now: Time) -> Result<Round, StoreError> {
        let Some(operational) = self.operational(tiding).await? else {
            tracing::warn!(endpoint = %tiding.endpoint, news = ?tiding.news,
                "an operational event is not told: neither its endpoint nor its message is there any more");
            return Ok(Round::Done);
        };
        self.tell_where_alerts_go(&operational, now).await?;
        let registry = &self.publisher.registry;
        let is_wanted = registry.fresh().await?.has_endpoints(OPERATIONAL_APP);
        let Some(draft) = operational.draft(now).filter(|_| is_wanted) else {
            return Ok(Round::Done);
        };
        Ok(match self.publisher.publish(&draft).await? {
            Outcome::Stored(_) | Outcome::NoApp => Round::Done,
            // The catalogue changed under it again and again.
            Outcome::Busy => Round::Left,
        })
    }

    /// The tiding with what is known of its endpoint.
    async fn operational(&self, tiding: &Tiding) -> Result<Option<Operational>, StoreError> {
        let message = match tiding.news.attempted() {
            Some(attempted) => self.publisher.store.message(attempted.message).await?,
            None => None,
        };
        let catalog = self.publisher.registry.fresh().await?;
        Ok(Operational::of(tiding, message.as_ref(), &catalog))
    }

    async fn tell_where_alerts_go(
        &self,
        operational: &Operational,
        now: Time,
    ) -> Result<(), StoreError> {
        let config = self.config.load_full();
        let Some(effect) = config
            .effect
            .as_ref()
            .filter(|_| operational.is_for_alerts())
        else {
            return Ok(());
        };
        let told = Told {
            event_type: operational.event_type(),
            key: operational.key(),
            at: operational.at,
            data: operational.data(),
        };
        let mut arrival = notice::event(told, effect, now);
        let dispatcher = &self.publisher.dispatcher;
        let promises = dispatcher.promise(&mut arrival);
        let receipts = self.publisher.store.accept(arrival).await;
        let receipts = receipts.inspect_err(|error| dispatcher.doubt(error))?;
        promises.keep(&receipts);
        Ok(())
    }
}
