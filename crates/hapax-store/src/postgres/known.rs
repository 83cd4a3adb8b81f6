//! The careful path: keys that somebody holds, and arrivals that bring several events.
//!
//! One transaction for a group: take or lock all its keys, read who holds them, decide in memory, write, commit. Every node takes
//! and locks in one order, so that they wait for each other but never in a circle. The holders are read by a statement of their
//! own once the locks are held: what a waiting statement had read before would be old.

use std::collections::{BTreeMap, HashSet};

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::key::BodyHash;
use hapax_ledger::time::{Span, Time};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Entropy;
use super::accept::{key_order, new_id};
use super::called;
use super::decide::{Decisions, Holder, Key, Place, Slot};
use super::moment::{LeaseClock, moment};
use super::plan;
use super::pool::{Pool, Taken};
use super::stored::store;
use super::wire::{Hash, Uuid, received, sendable};
use crate::error::StoreError;
use crate::nouns::{Arrival, Receipt};

/// What is known of the keys of a group.
pub(super) type Slots<'a> = BTreeMap<Key<'a>, Slot>;

/// Stores a group of arrivals, all or nothing; receipts are in their order.
pub(super) async fn accept(
    pool: &Pool,
    arrivals: &[&Arrival],
    entropy: &Entropy,
    clock: &LeaseClock,
) -> Result<Vec<Vec<Receipt>>, StoreError> {
    let taken = pool.take().await?;
    let take = take_keys(&taken, arrivals, entropy);
    let ((), mut slots) = tokio::try_join!(biased; taken.open(), take)?;
    read_holders(&taken, &mut slots).await?;
    let mut decisions = Decisions::default();
    let mut receipts = arrivals
        .iter()
        .map(|arrival| decisions.arrive(arrival, &mut slots, entropy))
        .collect::<Result<Vec<Vec<Receipt>>, _>>()?;
    let wanted = plan::wanted(decisions.calling(), entropy);
    let mut plan = None;
    if decisions.concerns_effects() {
        let (fresh, moment) = tokio::try_join!(
            biased;
            called::take_keys(&taken, &wanted),
            moment(&taken, clock)
        )?;
        let plan =
            plan.insert(called::plan(&taken, &mut decisions, &wanted, &fresh, moment).await?);
        for (number, receipt) in receipts.iter_mut().flatten().enumerate() {
            plan.complete(number, receipt);
        }
    }
    store(taken, decisions, plan.as_ref(), &slots).await?;
    Ok(receipts)
}

/// The parts of the keys of `slots` as columns, in locking order.
pub(super) fn key_columns<'a>(
    keys: impl Iterator<Item = &'a Key<'a>>,
) -> (Vec<i16>, Vec<String>, Vec<Uuid>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for (shard, source, hash) in keys {
        columns.0.push(*shard as i16);
        columns.1.push(sendable(source).into_owned());
        columns.2.push(Uuid(hash.bytes()));
    }
    columns
}

/// Makes every key ours: takes it if it is free, under an id that its event will have, and locks it
/// if it is held. `WHERE false` locks a held row without changing it; one that is being reaped is waited for and then taken.
pub(super) async fn take_keys<'a>(
    taken: &Taken,
    arrivals: &[&'a Arrival],
    entropy: &Entropy,
) -> Result<Slots<'a>, StoreError> {
    let mut ids: BTreeMap<Key<'a>, EventId> = BTreeMap::new();
    for arrival in arrivals.iter().copied() {
        for event in &arrival.events {
            ids.entry(key_order(arrival, event))
                .or_insert_with(|| new_id(arrival.at, event.key_hash, entropy));
        }
    }
    let (shards, sources, hashes) = key_columns(ids.keys());
    let events: Vec<Uuid> = ids.values().map(|id| Uuid(id.bytes())).collect();
    let fresh = taken
        .query(
            "INSERT INTO hapax.identity (shard, source, key_hash, event)
             SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::uuid[]), unnest($4::uuid[])
             ON CONFLICT (shard, source, key_hash) DO UPDATE SET event = excluded.event WHERE false
             RETURNING event",
            &[
                (&shards, Type::INT2_ARRAY),
                (&sources, Type::TEXT_ARRAY),
                (&hashes, Type::UUID_ARRAY),
                (&events, Type::UUID_ARRAY),
            ],
        )
        .await?;
    let fresh: HashSet<Uuid> = fresh.iter().map(|row| row.get(0)).collect();
    let slot = |id: EventId| {
        let reserved = fresh.contains(&Uuid(id.bytes())).then_some(id);
        Slot {
            reserved,
            stored: reserved,
            holder: None,
        }
    };
    Ok(ids.into_iter().map(|(key, id)| (key, slot(id))).collect())
}

/// Reads who holds the locked keys.
pub(super) async fn read_holders(taken: &Taken, slots: &mut Slots<'_>) -> Result<(), StoreError> {
    let held: Vec<Key<'_>> = slots
        .iter()
        .filter(|(_, slot)| slot.stored.is_none())
        .map(|(key, _)| *key)
        .collect();
    if held.is_empty() {
        return Ok(());
    }
    let (shards, sources, hashes) = key_columns(held.iter());
    let rows = taken
        .query(
            "SELECT k.place, i.event, e.key, coalesce(e.compare_hash, e.body_hash), e.at, e.status, e.retry_window,
                 e.expires_at, coalesce(d.n, 0), coalesce(d.conflicts, 0), e.payload_until
             FROM (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::uuid[]), generate_subscripts($1::int2[], 1))
                 AS k (shard, source, key_hash, place)
             JOIN hapax.identity i
               ON i.shard = k.shard AND i.source = k.source COLLATE \"C\" AND i.key_hash = k.key_hash
             LEFT JOIN hapax.event e ON e.shard = i.shard AND e.id = i.event
             LEFT JOIN LATERAL (
                 SELECT n, conflicts FROM hapax.delivery
                 WHERE shard = e.shard AND event = e.id ORDER BY n DESC LIMIT 1
             ) d ON true",
            &[(&shards, Type::INT2_ARRAY), (&sources, Type::TEXT_ARRAY), (&hashes, Type::UUID_ARRAY)],
        )
        .await?;
    for row in rows {
        let key = held.get(row.get::<_, i32>(0) as usize - 1);
        if let Some(slot) = key.and_then(|key| slots.get_mut(key)) {
            let event = EventId::from_bytes(row.get::<_, Uuid>(1).0);
            slot.stored = Some(event);
            slot.holder = to_holder(&row, event);
        }
    }
    Ok(())
}

/// `None` if the event is not there: identity and event go in one transaction, so somebody deleted it by hand.
fn to_holder(row: &Row, event: EventId) -> Option<Holder> {
    let Some(key) = row.get::<_, Option<String>>(2) else {
        tracing::error!(%event, "an identity names an event that is not there; its key is free");
        return None;
    };
    Some(Holder {
        event,
        key: received(key),
        compare_hash: BodyHash::from_bytes(row.get::<_, Hash>(3).0),
        at: Time::from_micros(row.get(4)),
        status: EventStatus::from_code(row.get::<_, i16>(5) as u8)
            .unwrap_or(EventStatus::NeedsReview),
        retry_window: Span::from_micros(row.get(6)),
        expires_at: Time::from_micros(row.get(7)),
        last: row.get::<_, i32>(8) as u32,
        conflicts: row.get::<_, i32>(9) as u32,
        payload_until: Time::from_micros(row.get(10)),
        event_row: Place::Stored,
        last_row: Place::Stored,
    })
}
