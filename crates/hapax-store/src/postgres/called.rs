//! The statements of [`super::plan`]: taking the keys of effects, and locking those that are held with all they depend on.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::KeyHash;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::SHARDS;
use super::advance::lock_effects;
use super::chain::{self, chain_of, chain_shard};
use super::decide::Decisions;
use super::effect::to_held;
use super::effect_columns::{EffectColumns, QueueColumns, SeatColumns};
use super::effect_id::{key_shard, queue_shard};
use super::moment::Moment;
use super::plan::{Key, Plan, Wanted};
use super::pool::{Param, Statement, Taken};
use super::wire::{Uuid, received, sendable};
use crate::error::StoreError;

/// The statement that takes the keys of effects, from the parameters of [`EffectColumns`]. One text, so that the way of new
/// events and the way of known ones cannot drift apart.
macro_rules! take_effects {
    ($before:literal, $only:literal, $after:literal) => {
        concat!(
            $before,
            "INSERT INTO hapax.effect (shard, id, event_shard, event, queue_shard, place, key_hash, attempts_max, name, key,
                 lane, after, order_rule, entity, version)
             SELECT k.shard, k.id, k.event_shard, k.event, k.queue_shard, k.place, k.key_hash, k.attempts_max, k.name, k.key,
                 k.lane, k.after, k.order_rule, k.entity, k.version
             FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int2[]), unnest($4::uuid[]), unnest($5::int2[]),
                 unnest($6::int4[]), unnest($7::uuid[]), unnest($8::int4[]), unnest($9::text[]), unnest($10::text[]), unnest($11::text[]),
                 unnest($12::bytea[]), unnest($13::int2[]), unnest($14::text[]), unnest($15::text[]),
                 generate_subscripts($1::int2[], 1))
                 AS k (shard, id, event_shard, event, queue_shard, place, key_hash, attempts_max, name, key, lane, after, order_rule,
                     entity, version, number) ",
            $only,
            " ORDER BY k.number
             ON CONFLICT (shard, key_hash) DO UPDATE SET event = excluded.event WHERE false
             RETURNING id",
            $after
        )
    };
}
pub(super) use take_effects;

/// Takes the keys that are free and locks those that are held; says which effects are new. As it is done for events.
pub(super) async fn take_keys(
    taken: &Taken,
    wanted: &Wanted<'_>,
) -> Result<HashSet<EffectId>, StoreError> {
    if wanted.is_empty() {
        return Ok(HashSet::new());
    }
    let columns = EffectColumns::of(wanted.values());
    let fresh = taken
        .query(take_effects!("", "", ""), &columns.params())
        .await?;
    let id = |row: &Row| EffectId::from_bytes(row.get::<_, Uuid>(0).0);
    Ok(fresh.iter().map(id).collect())
}

/// Plans what new events of a group call for and repeats bring back; `fresh` are the effects whose keys were free.
pub(super) async fn plan(
    taken: &Taken,
    decisions: &mut Decisions<'_>,
    wanted: &Wanted<'_>,
    fresh: &HashSet<EffectId>,
    moment: Moment,
) -> Result<Plan, StoreError> {
    let mut plan = Plan::new(wanted, fresh, moment);
    lock_rest(taken, wanted, &decisions.retried(), None, &mut plan).await?;
    plan.carry_out(&mut decisions.events, &decisions.deeds)?;
    Ok(plan)
}

/// What never changes about an effect that is there, as far as it tells what else to lock.
struct Frozen {
    id: EffectId,
    name: String,
    entity: Option<String>,
}

/// Locks all that the plan depends on and reads it: the chains of new effects, and the effects that are there, with theirs. Those
/// are the holders of wanted keys, and what events that are there, and of which something may come back, had called for: all of it, or what
/// has one of these names.
pub(super) async fn lock_rest(
    taken: &Taken,
    wanted: &Wanted<'_>,
    events: &BTreeSet<EventId>,
    names: Option<&[String]>,
    plan: &mut Plan,
) -> Result<(), StoreError> {
    let taken_by_us = |key: &Key| plan.keys.contains_key(key);
    let held: Vec<Key> = wanted
        .keys()
        .filter(|key| !taken_by_us(key))
        .copied()
        .collect();
    let mut frozen = Vec::new();
    let orders = plan.new.values().any(|held| held.effect.order.is_some());
    if orders || !held.is_empty() || !events.is_empty() {
        taken.plan_anew().await?;
    }
    if !held.is_empty() {
        frozen.extend(read_holders(taken, &held, plan).await?);
    }
    if !events.is_empty() {
        frozen.extend(read_called(taken, events, names, plan).await?);
    }
    let new = plan.new.values().map(|held| &held.effect);
    let new = new.filter_map(|effect| Some((&*effect.name, &*effect.order.as_ref()?.entity)));
    let known = frozen.iter();
    let known = known.filter_map(|frozen| Some((&*frozen.name, frozen.entity.as_deref()?)));
    let chains = new.chain(known).map(|(name, entity)| {
        let hash = chain_of(name, entity);
        ((chain_shard(hash), hash), (name, entity))
    });
    let chains: BTreeMap<(i16, KeyHash), (&str, &str)> = chains.collect();
    let chains = chain::take(taken, &chains).await?;
    plan.hand.chains = chains;
    let ids: BTreeSet<EffectId> = frozen.iter().map(|frozen| frozen.id).collect();
    if !ids.is_empty() {
        let held = lock_effects(taken, &ids).await?;
        let held = held.iter().map(to_held);
        plan.hand.held = held.map(|held| (held.effect.id, held)).collect();
    }
    Ok(())
}

fn to_frozen(row: &Row) -> Frozen {
    Frozen {
        id: EffectId::from_bytes(row.get::<_, Uuid>(0).0),
        name: received(row.get(1)),
        entity: row.get::<_, Option<String>>(2).map(received),
    }
}

/// Reads who holds these keys. They are locked, so none of them can go.
async fn read_holders(
    taken: &Taken,
    keys: &[Key],
    plan: &mut Plan,
) -> Result<Vec<Frozen>, StoreError> {
    let shards: Vec<i16> = keys.iter().map(|key| key.0 as i16).collect();
    let hashes: Vec<Uuid> = keys.iter().map(|key| Uuid(key.1.bytes())).collect();
    let rows = taken
        .query(
            "SELECT e.id, e.name, e.entity, e.key_hash FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS k (shard, key_hash)
             JOIN hapax.effect e ON e.shard = k.shard AND e.key_hash = k.key_hash",
            &[(&shards, Type::INT2_ARRAY), (&hashes, Type::UUID_ARRAY)],
        )
        .await?;
    let frozen = rows.iter().map(|row| {
        let frozen = to_frozen(row);
        let hash = KeyHash::from_bytes(row.get::<_, Uuid>(3).0);
        plan.keys.insert((hash.shard(SHARDS), hash), frozen.id);
        frozen
    });
    Ok(frozen.collect())
}

/// Reads what these events call for, as far as it has one of these names. None of it can go while its event is there: whoever does not hold
/// the event's key has to look, once it is locked, whether it still is.
async fn read_called(
    taken: &Taken,
    events: &BTreeSet<EventId>,
    names: Option<&[String]>,
    plan: &mut Plan,
) -> Result<Vec<Frozen>, StoreError> {
    let names: Option<Vec<Cow<'_, str>>> =
        names.map(|names| names.iter().map(|name| sendable(name)).collect());
    let shards: Vec<i16> = events.iter().map(|id| id.0.shard() as i16).collect();
    let ids: Vec<Uuid> = events.iter().map(|id| Uuid(id.bytes())).collect();
    let rows = taken
        .query(
            "SELECT e.id, e.name, e.entity, k.event FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS k (shard, event)
             CROSS JOIN LATERAL (
                 SELECT id FROM hapax.effect WHERE event = k.event
                 UNION ALL
                 SELECT effect FROM hapax.effect_link WHERE shard = k.shard AND event = k.event
             ) c (id)
             JOIN hapax.effect e ON e.id = c.id
             WHERE $3::text[] IS NULL OR e.name = ANY ($3)",
            &[
                (&shards, Type::INT2_ARRAY),
                (&ids, Type::UUID_ARRAY),
                (&names, Type::TEXT_ARRAY),
            ],
        )
        .await?;
    let frozen = rows.iter().map(|row| {
        let frozen = to_frozen(row);
        let event = EventId::from_bytes(row.get::<_, Uuid>(3).0);
        plan.called.entry(event).or_default().push(frozen.id);
        frozen
    });
    Ok(frozen.collect())
}

/// The rest of the new effects, and the links to known ones.
pub(super) struct CalledRows<'a> {
    queue: QueueColumns<'a>,
    seats: SeatColumns<'a>,
    alone: Vec<bool>,
    event_shard: Vec<i16>,
    event: Vec<Uuid>,
    /// Effects that are not alone any more.
    company_shard: Vec<i16>,
    company: Vec<Uuid>,
    links: LinkColumns,
}

#[derive(Default)]
struct LinkColumns {
    shard: Vec<i16>,
    event: Vec<Uuid>,
    effect_shard: Vec<i16>,
    queue_shard: Vec<i16>,
    effect: Vec<Uuid>,
    place: Vec<i32>,
}

impl CalledRows<'_> {
    pub(super) fn of(plan: &Plan) -> CalledRows<'_> {
        let mut links = LinkColumns::default();
        for ((event, effect), place) in &plan.links {
            links.shard.push(event.0.shard() as i16);
            links.event.push(Uuid(event.bytes()));
            links.effect_shard.push(key_shard(*effect));
            links.queue_shard.push(queue_shard(*effect));
            links.effect.push(Uuid(effect.bytes()));
            links.place.push(i32::from(*place));
        }
        let shared: HashSet<EffectId> = plan.links.keys().map(|(_, effect)| *effect).collect();
        let joined = &plan.joined;
        let alone = plan.new.values().map(|held| {
            let effect = &held.effect;
            let plan = plan.called.get(&effect.event);
            let only = plan.is_some_and(|plan| plan.len() == 1);
            only && !shared.contains(&effect.id) && !joined.contains(&effect.event)
        });
        let given_company = plan.hand.held.values().map(|held| &held.effect);
        let given_company = given_company.filter(|effect| joined.contains(&effect.event));
        let given_company = given_company.map(|effect| effect.id).chain(shared.clone());
        let (company_shard, company) = given_company
            .map(|id| (queue_shard(id), Uuid(id.bytes())))
            .unzip();
        let events = || plan.new.values().map(|held| held.effect.event);
        CalledRows {
            queue: QueueColumns::of(plan.new.values()),
            seats: SeatColumns::of(plan.new.values()),
            alone: alone.collect(),
            event_shard: events().map(|event| event.0.shard() as i16).collect(),
            event: events().map(|event| Uuid(event.bytes())).collect(),
            company_shard,
            company,
            links,
        }
    }

    pub(super) fn statements(&self) -> Vec<Statement<'_>> {
        let mut statements = Vec::new();
        if !self.queue.is_empty() {
            let params = self.queue.params().into_iter();
            let more: [Param<'_>; 3] = [
                (&self.alone, Type::BOOL_ARRAY),
                (&self.event_shard, Type::INT2_ARRAY),
                (&self.event, Type::UUID_ARRAY),
            ];
            let params = params.chain(self.seats.params()).chain(more);
            let params: Vec<Param<'_>> = params.collect();
            let sql = "INSERT INTO hapax.queue (shard, effect, fence, lease_until, next_at, generation, attempts, pass_from,
                     state, gate, repeat, started, ambiguous, skip, last_outcome, last_detail, last_retry_after,
                     started_at, node, lane, chain_shard, chain, turn, ended_by, alone, event_shard,
                     event)
                 SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
                     unnest($6::int4[]), unnest($7::int4[]), unnest($8::int4[]), unnest($9::int2[]), unnest($10::int2[]),
                     unnest($11::int2[]), unnest($12::bool[]), unnest($13::bool[]), unnest($14::int2[]), unnest($15::int2[]),
                     unnest($16::int2[]), unnest($17::int8[]), unnest($18::int8[]), unnest($19::text[]), unnest($20::text[]),
                     unnest($21::int2[]), unnest($22::uuid[]), unnest($23::int8[]), unnest($24::text[]), unnest($25::bool[]),
                     unnest($26::int2[]), unnest($27::uuid[])";
            statements.push((sql, params));
        }
        if !self.company.is_empty() {
            let params: Vec<Param<'_>> = vec![
                (&self.company_shard, Type::INT2_ARRAY),
                (&self.company, Type::UUID_ARRAY),
            ];
            // Locked by us, so nobody is in the middle of settling it.
            let sql = "UPDATE hapax.queue q SET alone = false FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS x (shard, effect)
                 WHERE q.shard = x.shard AND q.effect = x.effect AND q.alone";
            statements.push((sql, params));
        }
        if !self.links.event.is_empty() {
            let params: Vec<Param<'_>> = vec![
                (&self.links.shard, Type::INT2_ARRAY),
                (&self.links.event, Type::UUID_ARRAY),
                (&self.links.effect_shard, Type::INT2_ARRAY),
                (&self.links.queue_shard, Type::INT2_ARRAY),
                (&self.links.effect, Type::UUID_ARRAY),
                (&self.links.place, Type::INT4_ARRAY),
            ];
            let sql = "INSERT INTO hapax.effect_link (shard, event, effect_shard, queue_shard, effect, place)
                 SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int2[]), unnest($4::int2[]), unnest($5::uuid[]),
                     unnest($6::int4[])
                 ON CONFLICT (shard, event, effect) DO NOTHING";
            statements.push((sql, params));
        }
        statements
    }
}
