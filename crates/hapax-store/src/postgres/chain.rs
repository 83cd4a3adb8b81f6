//! Chains: what is known of one entity of one effect's name, as far as order needs it, and who of it comes before whom.
//!
//! The row of a chain is locked before its effects are: whoever adds to it, starts one of its effects or ends one has it alone.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::EffectId;
use hapax_ledger::key::{KeyHash, KeyKind};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::SHARDS;
use super::effect_id::{is_ordered, queue_shard};
use super::pool::{Param, Statement, Taken};
use super::wire::{Uuid, received, sendable};
use crate::error::{StoreError, StoreErrorKind};

/// Where an effect stands in its chain.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) chain: KeyHash,
    /// Its number in the order of acceptance.
    pub(super) turn: i64,
    /// The type that had ended the entity when it was accepted.
    pub(super) ended_by: Option<String>,
}

/// What is known of one entity.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    pub(super) name: String,
    pub(super) entity: String,
    pub(super) next_turn: i64,
    pub(super) effects: i32,
    /// The highest turn that was started, and whose it was.
    pub(super) started: Option<(i64, EffectId)>,
    /// The turn that was started last: of all that are held, it alone can be under way.
    pub(super) running: Option<i64>,
    /// The highest version that was started.
    pub(super) version: Option<String>,
    /// The type that ended the entity.
    pub(super) ended_by: Option<String>,
    /// The earliest turn that is live; only known where effects are added.
    pub(super) head: Option<i64>,
}

/// Those of its chain that may be in an effect's way.
#[derive(Default)]
pub(super) struct Ahead {
    /// The live ones that stand before it, in the order of acceptance.
    pub(super) before: Vec<(EffectId, EffectState)>,
    /// A later one that somebody holds.
    pub(super) under_way: Option<EffectId>,
}

/// The chain of an effect's name and an entity.
pub(super) fn chain_of(name: &str, entity: &str) -> KeyHash {
    KeyHash::of(KeyKind::Chain, name, entity)
}

/// The shard in which a chain's row is.
pub(super) fn chain_shard(chain: KeyHash) -> i16 {
    chain.shard(SHARDS) as i16
}

/// The columns of [`to_chain`], in its order.
macro_rules! chain_columns {
    ($after:expr) => {
        concat!(
            "SELECT c.chain, c.name, c.entity, c.next_turn, c.effects, c.started_turn, c.started_effect, c.version,
                 c.ended_by, c.running_turn ",
            $after
        )
    };
}
pub(super) use chain_columns;

pub(super) fn to_chain(row: &Row) -> (KeyHash, Chain) {
    let text = |column| row.get::<_, Option<String>>(column).map(received);
    let effect = row.get::<_, Option<Uuid>>(6);
    let started = row.get::<_, Option<i64>>(5).zip(effect);
    let chain = Chain {
        name: received(row.get(1)),
        entity: received(row.get(2)),
        next_turn: row.get(3),
        effects: row.get(4),
        started: started.map(|(turn, id)| (turn, EffectId::from_bytes(id.0))),
        version: text(7),
        ended_by: text(8),
        running: row.get(9),
        head: None,
    };
    (KeyHash::from_bytes(row.get::<_, Uuid>(0).0), chain)
}

/// The shards and ids, as columns, of those effects that have an order.
fn ordered_columns(ids: &BTreeSet<EffectId>) -> (Vec<i16>, Vec<Uuid>) {
    let ordered = ids.iter().filter(|id| is_ordered(**id));
    ordered
        .map(|id| (queue_shard(*id), Uuid(id.bytes())))
        .unzip()
}

/// Locks the chains of these effects, in their order, and reads them.
pub(super) async fn lock_of(
    taken: &Taken,
    ids: &BTreeSet<EffectId>,
) -> Result<BTreeMap<KeyHash, Chain>, StoreError> {
    let (shards, ids) = ordered_columns(ids);
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = taken
        .query(
            chain_columns!(
                "FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS k (shard, effect)
                 JOIN hapax.queue q ON q.shard = k.shard AND q.effect = k.effect
                 JOIN hapax.chain c ON c.shard = q.chain_shard AND c.chain = q.chain
                 ORDER BY c.shard, c.chain FOR UPDATE OF c"
            ),
            &[(&shards, Type::INT2_ARRAY), (&ids, Type::UUID_ARRAY)],
        )
        .await?;
    Ok(rows.iter().map(to_chain).collect())
}

/// Locks the chains of what is held beyond its lease in one shard, and reads them.
pub(super) async fn lock_expired(
    taken: &Taken,
    params: &[Param<'_>],
) -> Result<BTreeMap<KeyHash, Chain>, StoreError> {
    let rows = taken
        .begin(
            chain_columns!(concat!(
                "FROM (
                     SELECT DISTINCT chain_shard, chain FROM (
                         SELECT chain_shard, chain FROM hapax.queue
                         WHERE shard = $1 AND state = 1 AND lease_until <= ",
                super::moment::now!("$2"),
                "    ORDER BY lease_until LIMIT $3
                     ) q WHERE chain IS NOT NULL
                 ) k
                 JOIN hapax.chain c ON c.shard = k.chain_shard AND c.chain = k.chain
                 ORDER BY c.shard, c.chain FOR UPDATE OF c"
            )),
            params,
        )
        .await?;
    Ok(rows.iter().map(to_chain).collect())
}

/// A later one of the chain of `q` that somebody holds: whichever was started last.
macro_rules! under_way {
    () => {
        "SELECT r.effect, r.state, r.turn, true FROM hapax.chain c
             JOIN hapax.queue r ON r.chain = c.chain AND r.turn = c.running_turn AND r.state IN (0, 1, 3)
             WHERE c.shard = q.chain_shard AND c.chain = q.chain AND r.turn > q.turn AND r.state = 1"
    };
}
pub(super) use under_way;

/// Of each of these effects, those that may be in its way; of those before it the nearest `nearest`.
pub(super) async fn ahead(
    taken: &Taken,
    ids: &BTreeSet<EffectId>,
    nearest: usize,
) -> Result<BTreeMap<EffectId, Ahead>, StoreError> {
    let (shards, ids) = ordered_columns(ids);
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = taken
        .query(
            concat!(
                "SELECT k.effect, p.effect, p.state, p.later
                 FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS k (shard, effect)
                 JOIN hapax.queue q ON q.shard = k.shard AND q.effect = k.effect
                 CROSS JOIN LATERAL (
                     (SELECT effect, state, turn, false FROM hapax.queue
                      WHERE chain = q.chain AND turn < q.turn AND state IN (0, 1, 3)
                      ORDER BY turn DESC LIMIT $3)
                     UNION ALL ",
                under_way!(),
                ") p (effect, state, turn, later)
                 ORDER BY p.turn"
            ),
            &[
                (&shards, Type::INT2_ARRAY),
                (&ids, Type::UUID_ARRAY),
                (&(nearest as i64), Type::INT8),
            ],
        )
        .await?;
    Ok(to_ahead(&rows))
}

/// Effects, and those that may be in the way of each, in the order of acceptance.
pub(super) fn to_ahead(rows: &[Row]) -> BTreeMap<EffectId, Ahead> {
    let mut ahead: BTreeMap<EffectId, Ahead> = BTreeMap::new();
    for row in rows {
        let id = |column| EffectId::from_bytes(row.get::<_, Uuid>(column).0);
        let state = EffectState::from_code(row.get::<_, i16>(2) as u8);
        let state = state.unwrap_or(EffectState::Uncertain);
        let its = ahead.entry(id(0)).or_default();
        match row.get(3) {
            true => its.under_way = Some(id(1)),
            false => its.before.push((id(1), state)),
        }
    }
    ahead
}

/// Locks these chains, in their order, making those that are not there; and says where each begins. As keys are taken: `WHERE
/// false` locks a row without changing it, and one that is being reaped is waited for and then made anew.
pub(super) async fn take(
    taken: &Taken,
    wanted: &BTreeMap<(i16, KeyHash), (&str, &str)>,
) -> Result<BTreeMap<KeyHash, Chain>, StoreError> {
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let shards: Vec<i16> = wanted.keys().map(|key| key.0).collect();
    let chains: Vec<Uuid> = wanted.keys().map(|key| Uuid(key.1.bytes())).collect();
    let names: Vec<_> = wanted.values().map(|text| sendable(text.0)).collect();
    let entities: Vec<_> = wanted.values().map(|text| sendable(text.1)).collect();
    let params: [Param<'_>; 4] = [
        (&shards, Type::INT2_ARRAY),
        (&chains, Type::UUID_ARRAY),
        (&names, Type::TEXT_ARRAY),
        (&entities, Type::TEXT_ARRAY),
    ];
    let locked = taken.query(
        "INSERT INTO hapax.chain (shard, chain, name, entity, next_turn, effects)
         SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::text[]), unnest($4::text[]), 0, 0
         ON CONFLICT (shard, chain) DO UPDATE SET effects = 0 WHERE false",
        &params,
    );
    // One behind the other without waiting: the second begins when the first holds all locks, and so sees the rows as they stay.
    let read = taken.query(
        "SELECT c.chain, c.name, c.entity, c.next_turn, c.effects, c.started_turn, c.started_effect, c.version,
             c.ended_by, c.running_turn, h.turn
         FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS k (shard, chain)
         JOIN hapax.chain c ON c.shard = k.shard AND c.chain = k.chain
         LEFT JOIN LATERAL (
             SELECT turn FROM hapax.queue
             WHERE chain = c.chain AND state IN (0, 1, 3) ORDER BY turn LIMIT 1
         ) h ON true",
        &params[..2],
    );
    let (_, rows) = tokio::try_join!(biased; locked, read)?;
    let mut found = BTreeMap::new();
    for row in &rows {
        let (hash, mut chain) = to_chain(row);
        chain.head = row.get(10);
        let named = wanted.get(&(chain_shard(hash), hash));
        if named != Some(&(&*chain.name, &*chain.entity)) {
            return Err(StoreError::new(
                StoreErrorKind::Corrupt,
                "two chains share one 128-bit hash",
            ));
        }
        found.insert(hash, chain);
    }
    Ok(found)
}

/// What has become of locked chains.
#[derive(Default)]
pub(super) struct ChainColumns<'a> {
    shard: Vec<i16>,
    chain: Vec<Uuid>,
    next_turn: Vec<i64>,
    effects: Vec<i32>,
    started_turn: Vec<Option<i64>>,
    started_effect: Vec<Option<Uuid>>,
    running_turn: Vec<Option<i64>>,
    version: Vec<Option<Cow<'a, str>>>,
    ended_by: Vec<Option<Cow<'a, str>>>,
}

impl<'a> ChainColumns<'a> {
    pub(super) fn of(changed: &[(KeyHash, &'a Chain)]) -> ChainColumns<'a> {
        let mut columns = ChainColumns::default();
        for (hash, chain) in changed {
            columns.shard.push(chain_shard(*hash));
            columns.chain.push(Uuid(hash.bytes()));
            columns.next_turn.push(chain.next_turn);
            columns.effects.push(chain.effects);
            let started = chain.started;
            columns.started_turn.push(started.map(|(turn, _)| turn));
            let effect = started.map(|(_, id)| Uuid(id.bytes()));
            columns.started_effect.push(effect);
            columns.running_turn.push(chain.running);
            columns.version.push(chain.version.as_deref().map(sendable));
            let ended_by = chain.ended_by.as_deref();
            columns.ended_by.push(ended_by.map(sendable));
        }
        columns
    }

    /// `None` if there are none.
    pub(super) fn statement(&self) -> Option<Statement<'_>> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.chain, Type::UUID_ARRAY),
            (&self.next_turn, Type::INT8_ARRAY),
            (&self.effects, Type::INT4_ARRAY),
            (&self.started_turn, Type::INT8_ARRAY),
            (&self.started_effect, Type::UUID_ARRAY),
            (&self.version, Type::TEXT_ARRAY),
            (&self.ended_by, Type::TEXT_ARRAY),
            (&self.running_turn, Type::INT8_ARRAY),
        ];
        let sql = "UPDATE hapax.chain c SET next_turn = x.next_turn, effects = x.effects, started_turn = x.started_turn,
                 started_effect = x.started_effect, version = x.version, ended_by = x.ended_by, running_turn = x.running_turn
             FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int8[]), unnest($4::int4[]), unnest($5::int8[]),
                 unnest($6::uuid[]), unnest($7::text[]), unnest($8::text[]), unnest($9::int8[]))
                 AS x (shard, chain, next_turn, effects, started_turn, started_effect, version, ended_by, running_turn)
             WHERE c.shard = x.shard AND c.chain = x.chain";
        (!self.chain.is_empty()).then_some((sql, params))
    }
}
