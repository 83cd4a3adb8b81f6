//! Planning effects with the events that call for them: each is new, or linked where its key exists already (D6).
//!
//! Part of the careful path's transaction. Keys of effects are taken after keys of events, and in one order, as everywhere. An
//! effect that exists is locked until the commit: it can neither move nor be reaped before it is linked, so the event starts
//! out where its effects really stand.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use hapax_ledger::claim::born_started;
use hapax_ledger::effect::EffectRecord;
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EffectId, EventId, RawId};
use hapax_ledger::key::KeyHash;
use hapax_ledger::status::Hold;
use tokio_postgres::types::Type;

use super::columns::EventRow;
use super::effect::{KEY_HASH, effect_columns, to_held};
use super::effect_columns::{EffectColumns, EffectRow, QueueColumns, key_columns};
use super::held::Held;
use super::moment::{LeaseClock, Moment, moment};
use super::pool::Taken;
use super::wire::Uuid;
use super::{Entropy, SHARDS};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{Claimed, Effect, NewEffect, Receipt, Receipted};

/// The key of an effect with its shard, in locking order.
type Key = (u16, KeyHash);

/// An effect that events of the group call for.
struct Called {
    held: Held,
    /// Where it stands in the plan of its own event, if that is one of the group.
    born_at: Option<usize>,
}

/// What the effects of a group come to.
#[derive(Default)]
pub(super) struct Plan {
    called: BTreeMap<Key, Called>,
    links: BTreeSet<(EventId, EffectId)>,
    statuses: BTreeMap<EventId, EventStatus>,
    claims: BTreeMap<EventId, Vec<Option<Claimed>>>,
}

fn key_of(new: &NewEffect) -> Key {
    (new.key_hash.shard(SHARDS), new.key_hash)
}

/// Takes the keys of all effects that new events call for, and says where these events stand.
pub(super) async fn plan(
    taken: &Taken,
    events: &mut [EventRow<'_>],
    entropy: &Entropy,
    clock: &LeaseClock,
) -> Result<Plan, StoreError> {
    let mut wanted: BTreeMap<Key, EffectRow<'_>> = BTreeMap::new();
    for row in events.iter() {
        for (place, new) in row.event.effects.iter().enumerate() {
            wanted.entry(key_of(new)).or_insert_with(|| EffectRow {
                id: EffectId(RawId::new(row.arrival.at, key_of(new).0, entropy())),
                event: row.id,
                place,
                new,
            });
        }
    }
    let mut plan = Plan::default();
    if wanted.is_empty() {
        return Ok(plan);
    }
    let (fresh, moment) =
        tokio::try_join!(biased; take_keys(taken, &wanted), moment(taken, clock))?;
    let mut known: Vec<Key> = Vec::new();
    for (key, row) in &wanted {
        match fresh.contains(&Uuid(row.id.bytes())) {
            true => {
                plan.called.insert(*key, new_effect(row, moment));
            }
            false => known.push(*key),
        }
    }
    read_known(taken, &known, &mut plan.called).await?;
    for row in events {
        plan.call(row)?;
    }
    Ok(plan)
}

/// Takes the keys that are free and locks those that are held; says which effects are new. As it is done for events.
async fn take_keys(
    taken: &Taken,
    wanted: &BTreeMap<Key, EffectRow<'_>>,
) -> Result<HashSet<Uuid>, StoreError> {
    let columns = EffectColumns::of(wanted.values());
    let fresh = taken
        .query(
            "INSERT INTO hapax.effect (shard, id, event_shard, event, place, key_hash, attempts_max, name, key, lane)
             SELECT * FROM unnest($1::int2[], $2::uuid[], $3::int2[], $4::uuid[], $5::int4[], $6::uuid[], $7::int4[],
                 $8::text[], $9::text[], $10::text[])
             ON CONFLICT (shard, key_hash) DO UPDATE SET event = excluded.event WHERE false
             RETURNING id",
            &columns.params(),
        )
        .await?;
    Ok(fresh.iter().map(|row| row.get(0)).collect())
}

/// An effect as it is born: claimed and started where that may be (the lease is by the database's clock), or waiting.
fn new_effect(row: &EffectRow<'_>, moment: Moment) -> Called {
    let new = row.new;
    let planned = EffectRecord::planned(new.repeat, new.not_before);
    let born = new.born.as_ref().and_then(|born| {
        let record = born_started(&planned, moment.now, moment.epoch, born.lease)?;
        Some((record, born.node.clone()))
    });
    let (record, node) = born.map_or((planned, None), |(record, node)| (record, Some(node)));
    let effect = Effect {
        id: row.id,
        event: row.event,
        name: new.name.clone(),
        key: new.key.clone(),
        lane: new.lane.clone(),
        record,
    };
    let held = Held {
        effect,
        attempts_max: new.attempts_max,
        started_at: node.as_ref().map(|_| moment.now),
        node,
    };
    Called {
        held,
        born_at: Some(row.place),
    }
}

/// Reads the effects that hold these keys, and locks them against moves until the commit.
async fn read_known(
    taken: &Taken,
    keys: &[Key],
    called: &mut BTreeMap<Key, Called>,
) -> Result<(), StoreError> {
    if keys.is_empty() {
        return Ok(());
    }
    let (shards, hashes) = key_columns(keys);
    let rows = taken
        .query(
            effect_columns!(
                "",
                "FROM unnest($1::int2[], $2::uuid[]) AS k (shard, key_hash)
                 JOIN hapax.effect e ON e.shard = k.shard AND e.key_hash = k.key_hash
                 JOIN hapax.queue q ON q.shard = e.shard AND q.effect = e.id
                 ORDER BY q.effect FOR SHARE OF q"
            ),
            &[(&shards, Type::INT2_ARRAY), (&hashes, Type::UUID_ARRAY)],
        )
        .await?;
    for row in &rows {
        let hash = KeyHash::from_bytes(row.get::<_, Uuid>(KEY_HASH).0);
        let found = Called {
            held: to_held(row),
            born_at: None,
        };
        called.insert((hash.shard(SHARDS), hash), found);
    }
    Ok(())
}

impl Plan {
    /// One event calls for its effects.
    fn call(&mut self, row: &mut EventRow<'_>) -> Result<(), StoreError> {
        if row.event.effects.is_empty() {
            return Ok(());
        }
        let mut claims = Vec::with_capacity(row.event.effects.len());
        let mut states = Vec::with_capacity(row.event.effects.len());
        for (place, new) in row.event.effects.iter().enumerate() {
            let corrupt = |what| StoreError::new(StoreErrorKind::Corrupt, what);
            let called = self
                .called
                .get(&key_of(new))
                .ok_or_else(|| corrupt("an effect's key is held by an effect that is not there"))?;
            let effect = &called.held.effect;
            if effect.name != new.name || effect.key != new.key {
                return Err(corrupt("two keys share one 128-bit hash"));
            }
            states.push((effect.record.state, effect.record.skip));
            if effect.event != row.id {
                self.links.insert((row.id, effect.id));
            }
            let ours = effect.event == row.id && called.born_at == Some(place);
            let claimed = ours && effect.record.started;
            claims.push(claimed.then(|| Claimed {
                effect: effect.clone(),
            }));
        }
        if row.event.review.is_none() {
            row.status = EventStatus::of_effects(states, Hold::Free);
        }
        self.statuses.insert(row.id, row.status);
        self.claims.insert(row.id, claims);
        Ok(())
    }

    /// Completes what was said of the group's events before their effects were known.
    pub(super) fn complete(&mut self, receipt: &mut Receipt) {
        match receipt.sighting {
            Receipted::New => {
                receipt.claims = self.claims.remove(&receipt.event).unwrap_or_default();
            }
            Receipted::Duplicate | Receipted::Conflict => {
                if let Some(status) = self.statuses.get(&receipt.event) {
                    receipt.needs_review = *status == EventStatus::NeedsReview;
                }
            }
        }
    }

    /// Writes the rest of the new effects, and the links to known ones.
    pub(super) async fn write(&self, taken: &Taken) -> Result<(), StoreError> {
        let new = self
            .called
            .values()
            .filter(|called| called.born_at.is_some());
        let columns = QueueColumns::of(new.map(|called| &called.held));
        if !columns.is_empty() {
            insert_queue(taken, &columns).await?;
        }
        if !self.links.is_empty() {
            insert_links(taken, &self.links).await?;
        }
        Ok(())
    }
}

async fn insert_queue(taken: &Taken, columns: &QueueColumns<'_>) -> Result<(), StoreError> {
    taken
        .query(
            "INSERT INTO hapax.queue (shard, effect, fence, lease_until, next_at, generation, attempts, pass_from, state,
                 repeat, started, ambiguous, skip, started_at, node)
             SELECT * FROM unnest($1::int2[], $2::uuid[], $3::int8[], $4::int8[], $5::int8[], $6::int4[], $7::int4[],
                 $8::int4[], $9::int2[], $10::int2[], $11::bool[], $12::bool[], $13::int2[], $14::int8[], $15::text[])",
            &columns.params(),
        )
        .await?;
    Ok(())
}

async fn insert_links(
    taken: &Taken,
    links: &BTreeSet<(EventId, EffectId)>,
) -> Result<(), StoreError> {
    let shards: Vec<i16> = links.iter().map(|link| link.0.0.shard() as i16).collect();
    let events: Vec<Uuid> = links.iter().map(|link| Uuid(link.0.bytes())).collect();
    let effect_shards: Vec<i16> = links.iter().map(|link| link.1.0.shard() as i16).collect();
    let effects: Vec<Uuid> = links.iter().map(|link| Uuid(link.1.bytes())).collect();
    taken
        .query(
            "INSERT INTO hapax.effect_link (shard, event, effect_shard, effect)
             SELECT * FROM unnest($1::int2[], $2::uuid[], $3::int2[], $4::uuid[])",
            &[
                (&shards, Type::INT2_ARRAY),
                (&events, Type::UUID_ARRAY),
                (&effect_shards, Type::INT2_ARRAY),
                (&effects, Type::UUID_ARRAY),
            ],
        )
        .await?;
    Ok(())
}
