//! What the ledger is asked at a look. All of it is bounded: pages, not whole queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::event::EventStatus;
use hapax_store::nouns::{EffectFilter, EventFilter, PAGE_MAX, Page, PageFrom};
use hapax_store::{Store, StoreError};

use super::facts::{Bounced, DeadLetters};
use super::history::Measured;
use super::notice::ALERT_LANE;
use crate::inbox::receive::Sources;
use crate::inbox::repeats::Repeated;
use crate::metrics::Metrics;

/// Repeated events of all sources that the ledger is asked about at one look.
const REPEATED_ASKED_MAX: usize = 16;
/// Pages of alerts that were given up which are counted.
const ALERT_PAGES_MAX: usize = 4;

/// What the inbox counted, source by source.
pub(super) fn traffic(sources: &Sources, metrics: &Metrics) -> Vec<Measured> {
    let measured = sources.all().into_iter().map(|source| {
        let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
        for refused in source.refused.latest() {
            *causes.entry(refused.refusal.code()).or_default() += 1;
        }
        let mut causes: Vec<(String, u64)> = causes
            .into_iter()
            .map(|(code, count)| (code.to_owned(), count))
            .collect();
        causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Measured {
            source: source.name().clone(),
            totals: metrics.counts(source.name()).unwrap_or_default(),
            again: source.repeats.take(),
            causes,
        }
    });
    measured.collect()
}

/// What the ledger says of events that came again.
pub(super) async fn repeated(
    store: &dyn Store,
    events: Vec<(Arc<str>, Repeated)>,
) -> Result<Vec<Bounced>, StoreError> {
    let mut found = Vec::new();
    for (source, repeated) in events.into_iter().take(REPEATED_ASKED_MAX) {
        if let Some(detail) = store.event(repeated.event).await? {
            found.push(Bounced {
                source,
                event: repeated.event,
                deliveries: detail.event.delivery_count,
                status: detail.event.status,
            });
        }
    }
    Ok(found)
}

/// Effects that were given up.
pub(super) async fn dead(store: &dyn Store) -> Result<DeadLetters, StoreError> {
    let all = store.effect_counts().await?.dead;
    if all == 0 {
        return Ok(DeadLetters::default());
    }
    let alerts = dead_alerts(store).await?.min(all);
    Ok(DeadLetters {
        effects: all - alerts,
        lanes: newest_lanes(store).await?,
        alerts,
    })
}

async fn dead_alerts(store: &dyn Store) -> Result<u64, StoreError> {
    let filter = EffectFilter {
        state: Some(EffectState::Dead),
        lane: Some(ALERT_LANE.to_owned()),
        ..EffectFilter::default()
    };
    let (mut from, mut count) = (PageFrom::Newest, 0);
    for _ in 0..ALERT_PAGES_MAX {
        let page = Page {
            limit: PAGE_MAX,
            from,
        };
        let listed = store.effects(filter.clone(), page).await?;
        count += listed.rows.len() as u64;
        match listed.next {
            Some(next) => from = PageFrom::OlderThan(next),
            None => break,
        }
    }
    Ok(count)
}

/// The lanes of the newest dead letters, those with the most first.
async fn newest_lanes(store: &dyn Store) -> Result<Vec<(String, u64)>, StoreError> {
    let filter = EffectFilter {
        state: Some(EffectState::Dead),
        ..EffectFilter::default()
    };
    let page = Page {
        limit: PAGE_MAX,
        from: PageFrom::Newest,
    };
    let mut lanes: BTreeMap<String, u64> = BTreeMap::new();
    for effect in store.effects(filter, page).await?.rows {
        if *effect.lane != *ALERT_LANE {
            *lanes.entry(effect.lane.to_string()).or_default() += 1;
        }
    }
    let mut lanes: Vec<(String, u64)> = lanes.into_iter().collect();
    lanes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Ok(lanes)
}

/// How many events wait for a person, as far as one page shows.
pub(super) async fn waiting(store: &dyn Store) -> Result<u64, StoreError> {
    let filter = EventFilter {
        status: Some(EventStatus::NeedsReview),
        ..EventFilter::default()
    };
    let page = Page {
        limit: PAGE_MAX,
        from: PageFrom::Newest,
    };
    Ok(store.events(filter, page).await?.rows.len() as u64)
}
