//! One customer after the other, until there is no more time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::super::client::Client;
use super::company::Company;
use super::deed::{Deed, Log};
use super::ledger;
use super::provider::{Provider, Purchase};
use super::services::UNLUCKY;
use super::tell::{Who, bold, tell};
use crate::clock;
use crate::http::said;

/// From one customer to the next, while there is a story to tell and afterwards.
const PACE: Duration = Duration::from_millis(500);
const PACE_LATER: Duration = Duration::from_secs(3);
/// Customers after which everything has been seen.
const STORY: u64 = 60;
/// Customers that buy even if there is less time: in these everything happens that has a place in the story.
const ROUNDS_MIN: u64 = 6;

/// Who acts in a round.
pub(super) struct Cast {
    pub(super) provider: Arc<Provider>,
    pub(super) company: Arc<Company>,
    pub(super) api: Arc<Client>,
    pub(super) log: Log,
    /// How the program is called, for commands to copy.
    pub(super) hapax: String,
    /// Was it told what is half done?
    pub(super) told: AtomicBool,
}

impl Cast {
    /// Plays until the time is over or `stop` says so.
    pub(super) async fn play(&self, length: Option<Duration>, mut stop: watch::Receiver<bool>) {
        let began = clock::tick();
        let first = self.next_number();
        let mut acts = JoinSet::new();
        for number in first.. {
            let played = number - first;
            if *stop.borrow() || is_over(length, began, played) || self.log.is_broken() {
                break;
            }
            self.log.note(Deed::Round { number });
            self.round(Purchase { number }, &mut acts);
            self.half_done().await;
            let pace = if played < STORY { PACE } else { PACE_LATER };
            tokio::select! {
                () = tokio::time::sleep(pace) => {}
                () = said(&mut stop) => break,
            }
            while acts.try_join_next().is_some() {}
        }
        // What was begun is heard out, unless somebody wants it to end.
        tokio::select! {
            () = async { while acts.join_next().await.is_some() {} } => {}
            () = said(&mut stop) => acts.shutdown().await,
        }
    }

    /// A killed demo goes on after the last customer that it knows of.
    fn next_number(&self) -> u64 {
        let deeds = self.log.deeds().into_iter();
        let rounds = deeds.filter_map(|deed| match deed {
            Deed::Round { number } => Some(number),
            _ => None,
        });
        rounds.max().map_or(1, |last| last + 1)
    }

    /// What happens when somebody buys something.
    fn round(&self, purchase: Purchase, acts: &mut JoinSet<()>) {
        let (provider, company) = (self.provider.clone(), self.company.clone());
        acts.spawn(async move {
            provider.invoice(purchase).await;
            match purchase.number % 4 {
                1 => provider.forged(purchase).await,
                2 => provider.late(purchase).await,
                _ => {}
            }
            if purchase.number % 3 == 2 {
                provider.reordered(purchase).await;
            }
        });
        acts.spawn(async move {
            company.publish(purchase).await;
            company.charge(purchase).await;
        });
    }

    /// Tells of the event that is half done, once it is, and once.
    pub(super) async fn half_done(&self) {
        if self.told.load(Ordering::Relaxed) {
            return;
        }
        let path = "/api/v1/event?source=billing&status=dead";
        let dead = ledger::all(&self.api, path).await.unwrap_or_default();
        let Some(id) = dead.first().and_then(|event| event["id"].as_str()) else {
            return;
        };
        self.told.store(true, Ordering::Relaxed);
        let hapax = &self.hapax;
        let retry = format!("{hapax} events retry {id} --reason \"the tasks are back\" --yes");
        tell(
            Who::Hapax,
            &format!("gave up the onboarding of {UNLUCKY} after 4 attempts: {id} is half done"),
        );
        tell(
            Who::Hapax,
            &format!("to do the rest, and only the rest: {}", bold(&retry)),
        );
    }
}

fn is_over(length: Option<Duration>, began: Instant, played: u64) -> bool {
    length.is_some_and(|length| played >= ROUNDS_MIN && clock::since(began) >= length)
}
