//! Jobs that find something out about applications, some of them at a time: what was sent for each, what each is subscribed to.
//!
//! They cost by the number of applications and of their endpoints, and by the hours they look back over; never by the number of messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use hapax_ledger::id::{AppId, EventId};
use hapax_ledger::time::Time;
use hapax_store::nouns::{App, Replay, ReplayProgress, ReplayState};
use hapax_store::{Store, StoreError};
use serde_json::{Value, json};

use super::task::{Kind, Task};
use crate::outbox::Registry;
use crate::outbox::catalog::Way;

/// Applications of one step: few enough that a cancel is seen soon, and that what is found is not written too often.
const APPS_PER_STEP: usize = 256;

/// What a step has found.
pub(super) struct Found {
    /// All that was found so far.
    pub(super) all: Vec<Value>,
    /// How far it has come.
    pub(super) to: ReplayProgress,
    /// Was that all?
    pub(super) state: ReplayState,
}

/// Looks at some more applications.
pub(super) async fn step(
    store: &dyn Store,
    registry: &Registry,
    replay: &Replay,
    task: &Task,
) -> Result<Found, StoreError> {
    let known = store.found(replay.id).await?;
    let known = known.and_then(|text| serde_json::from_str(&text).ok());
    let mut all: Vec<Value> = known.unwrap_or_default();
    let mut to = replay.progress;
    let apps = next_apps(registry, task, to.after.map(|last| AppId(last.0)));
    for app in &apps {
        all.push(match task.task {
            Kind::Types => subscribed(registry, app),
            _ => {
                let (since, until) = (replay.filter.since, replay.filter.until);
                let (since, until) = (since.unwrap_or(Time::MIN), until.unwrap_or(Time::MAX));
                used(app, store.usage(app.id, since, until).await?)
            }
        });
        // Applications are gone through by their ids, as messages are elsewhere.
        to.after = Some(EventId(app.id.0));
        to.total += 1;
        to.done += 1;
    }
    let state = match apps.len() < APPS_PER_STEP {
        true => ReplayState::Completed,
        false => ReplayState::Running,
    };
    Ok(Found { all, to, state })
}

/// The next of those that are asked for, by their ids.
fn next_apps(registry: &Registry, task: &Task, after: Option<AppId>) -> Vec<Arc<App>> {
    let catalog = registry.catalog();
    if task.apps.is_empty() {
        return catalog.apps(after, Way::Up, APPS_PER_STEP);
    }
    let ids: BTreeSet<AppId> = task.apps.iter().filter_map(|id| id.parse().ok()).collect();
    let next = ids.into_iter().filter(|id| Some(*id) > after);
    let there = next.filter_map(|id| catalog.app_by_id(id).cloned());
    there.take(APPS_PER_STEP).collect()
}

fn used(app: &App, attempts: u64) -> Value {
    json!({
        "appId": app.id.to_string(),
        "appUid": app.uid.as_deref(),
        "messageDestinations": attempts,
    })
}

fn subscribed(registry: &Registry, app: &App) -> Value {
    let endpoints = {
        let catalog = registry.catalog();
        catalog.endpoints(app.id, None, Way::Up, usize::MAX)
    };
    let named = endpoints.iter().flat_map(|endpoint| &endpoint.event_types);
    let named: BTreeSet<&String> = named.collect();
    json!({
        "appId": app.id.to_string(),
        "explicitlySubscribedEventTypes": named,
        "hasCatchAllEndpoint": endpoints.iter().any(|endpoint| endpoint.event_types.is_empty()),
    })
}
