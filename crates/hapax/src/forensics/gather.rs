//! Reads the latest events of a source, and more about those that came again or share something.

use std::collections::HashMap;

use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use hapax_store::nouns::{
    Event, EventDetail, EventFilter, PAGE_MAX, Page, PageFrom, PayloadAnswer,
};
use hapax_store::{Store, StoreError};

use super::differ::differing;
use super::{Gathered, Shared, Sighted};

/// Events that are looked at, the latest first.
const EVENTS_MAX: usize = 10_000;
/// Looks that may find less than they could: those of a source that is rare among many others, of which each goes through as much
/// as a page may.
const POOR_LOOKS_MAX: usize = 8;
/// Of these, so many are looked at closely: those that came again, or failed.
const CLOSELY_MAX: usize = 500;
/// Of those, the first so many conflicting bodies are compared.
const BODIES_MAX: usize = 50;

/// What is known of a source's latest events.
pub async fn gather(
    store: &dyn Store,
    source: &str,
    since: Option<Time>,
) -> Result<Gathered, StoreError> {
    let filter = EventFilter {
        source: Some(source.to_owned()),
        since,
        ..EventFilter::default()
    };
    let mut gathered = Gathered::default();
    let mut closely = 0;
    let mut bodies = BODIES_MAX;
    let mut firsts: HashMap<EventId, (Option<String>, Time)> = HashMap::new();
    let mut from = PageFrom::Newest;
    let mut poor_looks = 0;
    while gathered.events.len() < EVENTS_MAX && poor_looks < POOR_LOOKS_MAX {
        let page = Page {
            limit: PAGE_MAX,
            from,
        };
        let listed = store.events(filter.clone(), page).await?;
        poor_looks += usize::from(listed.rows.len() < PAGE_MAX as usize);
        for event in listed.rows {
            let mut sighted = to_sighted(&event);
            // The first ones are looked at closely whatever they look like: that they share effects cannot be seen in a list.
            if closely < CLOSELY_MAX && (event.duplicate_count > 0 || closely < CLOSELY_MAX / 2) {
                closely += 1;
                look(store, &event, &mut sighted, &mut bodies, &mut firsts).await?;
            }
            gathered.events.push(sighted);
        }
        match listed.next {
            Some(next) => from = PageFrom::OlderThan(next),
            None => return Ok(gathered),
        }
    }
    gathered.more = true;
    Ok(gathered)
}

fn to_sighted(event: &Event) -> Sighted {
    Sighted {
        id: event.id,
        key: event.key.clone(),
        origin: event.key_origin,
        body_hash: event.body_hash,
        status: event.status,
        received_at: event.received_at,
        last_at: None,
        duplicates: event.duplicate_count,
        conflicts: event.conflict_count,
        differing: Vec::new(),
        object_id: event.object_id.clone(),
        shared: Vec::new(),
    }
}

async fn look(
    store: &dyn Store,
    event: &Event,
    sighted: &mut Sighted,
    bodies: &mut usize,
    firsts: &mut HashMap<EventId, (Option<String>, Time)>,
) -> Result<(), StoreError> {
    let Some(detail) = store.event(event.id).await? else {
        return Ok(());
    };
    let last = detail.deliveries.last().map(|delivery| delivery.at);
    sighted.last_at = last.filter(|_| event.duplicate_count > 0);
    if event.conflict_count > 0 && *bodies > 0 {
        *bodies -= 1;
        sighted.differing = compare(store, &detail).await?;
    }
    for effect in detail
        .effects
        .iter()
        .filter(|effect| effect.event != event.id)
    {
        let known = firsts.get(&effect.event).cloned();
        let (object_id, received_at) = match known {
            Some(known) => known,
            None => {
                let first = store.event(effect.event).await?;
                let Some(first) = first.map(|first| first.event) else {
                    continue;
                };
                firsts.insert(first.id, (first.object_id.clone(), first.received_at));
                (first.object_id, first.received_at)
            }
        };
        sighted.shared.push(Shared {
            name: effect.name.to_string(),
            key: effect.key.clone(),
            first: effect.event,
            object_id,
            received_at,
        });
    }
    Ok(())
}

/// Which fields of the first conflicting body differ from the event's own.
async fn compare(store: &dyn Store, detail: &EventDetail) -> Result<Vec<String>, StoreError> {
    let conflict = detail.deliveries.iter().find(|delivery| delivery.conflict);
    let Some(conflict) = conflict else {
        return Ok(Vec::new());
    };
    let own = store.payload(detail.event.id).await?;
    let other = store
        .conflict_body(detail.event.id, conflict.number)
        .await?;
    match (own, other) {
        (PayloadAnswer::Kept(own), Some(other)) => {
            Ok(differing(&own.body, &other).unwrap_or_default())
        }
        _ => Ok(Vec::new()),
    }
}
