//! New events that call for effects: identities and keys of effects in one statement, all rows and the commit behind another.
//!
//! Whoever gets its identity in is new, and its effects are taken with it. Whoever does not goes on to [`super::known`]. An effect
//! whose key is held is linked, which takes a few more statements, in the same transaction.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use hapax_ledger::id::{EffectId, EventId};
use tokio_postgres::types::Type;

use super::Entropy;
use super::accept::{key_order, new_id, new_receipt};
use super::called::{self, take_effects};
use super::decide::Decisions;
use super::effect_columns::EffectColumns;
use super::known::key_columns;
use super::moment::{LeaseClock, moment};
use super::plan::{self, Wanted, key_of};
use super::pool::{Param, Taken};
use super::stored::store;
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::{Arrival, NewEvent, Receipt};

/// Stores arrivals of one event each, as far as their keys are free. `None` stands for a key that somebody holds, and for what
/// an earlier one of the group wants too: which of the two is new is only known once the keys are taken.
pub(super) async fn accept_calling(
    taken: Taken,
    arrivals: &[(&Arrival, &NewEvent)],
    entropy: &Entropy,
    clock: &LeaseClock,
) -> Result<Vec<Option<Receipt>>, StoreError> {
    let candidates = alone(arrivals);
    let mut offered = Decisions::default();
    for at in &candidates {
        let (arrival, event) = arrivals[*at];
        offered.insert(arrival, event, new_id(arrival.at, event.key_hash, entropy));
    }
    let wanted = plan::wanted(offered.calling(), entropy);
    let take = take_keys(&taken, &offered, &wanted);
    let ((), fresh, moment) =
        tokio::try_join!(biased; taken.open_planned(), take, moment(&taken, clock))?;
    let is_fresh = |event: &EventId| fresh.contains(&Uuid(event.bytes()));
    let mut decisions = Decisions::default();
    let mut receipts: Vec<Option<Receipt>> = arrivals.iter().map(|_| None).collect();
    for (at, row) in candidates.iter().zip(&offered.events) {
        if is_fresh(&row.id) {
            decisions.insert(row.arrival, row.event, row.id);
            receipts[*at] = Some(new_receipt(row.event, row.id));
        }
    }
    let ours = |row: &plan::Row<'_>| is_fresh(&row.event);
    let wanted: Wanted<'_> = wanted.into_iter().filter(|(_, row)| ours(row)).collect();
    let new = wanted.values().map(|row| row.id);
    let new: HashSet<EffectId> = new.filter(|id| fresh.contains(&Uuid(id.bytes()))).collect();
    let mut plan = called::plan(&taken, &mut decisions, &wanted, &new, moment).await?;
    for receipt in receipts.iter_mut().flatten() {
        // Only repeats are told apart by their number.
        plan.complete(0, receipt);
    }
    store(taken, decisions, Some(&plan), &BTreeMap::new()).await?;
    Ok(receipts)
}

/// The places of arrivals that share neither their key nor an effect with an earlier one, in the order in which keys are taken.
pub(super) fn alone(arrivals: &[(&Arrival, &NewEvent)]) -> Vec<usize> {
    let (mut keys, mut effects) = (BTreeSet::new(), BTreeSet::new());
    let alone = arrivals.iter().enumerate().filter(|(_, (arrival, event))| {
        let new_key = keys.insert(key_order(arrival, event));
        let plan: BTreeSet<plan::Key> = event.effects.iter().map(key_of).collect();
        let apart = plan.is_disjoint(&effects);
        effects.extend(plan);
        new_key && apart
    });
    let mut alone: Vec<usize> = alone.map(|(at, _)| at).collect();
    alone.sort_by_key(|at| key_order(arrivals[*at].0, arrivals[*at].1));
    alone
}

/// Takes the keys of events, and the keys of effects of those events that are new. Says which of both are.
///
/// The array of those events is complete before the first effect is inserted, which a join with them would not have to be: so nobody
/// holds the key of an effect while waiting for the key of an event.
async fn take_keys(
    taken: &Taken,
    offered: &Decisions<'_>,
    wanted: &Wanted<'_>,
) -> Result<HashSet<Uuid>, StoreError> {
    let effects = EffectColumns::of(wanted.values());
    let rows = offered.events.iter();
    let keys: Vec<_> = rows.map(|row| key_order(row.arrival, row.event)).collect();
    let (shards, sources, hashes) = key_columns(keys.iter());
    let rows = offered.events.iter();
    let events: Vec<Uuid> = rows.map(|row| Uuid(row.id.bytes())).collect();
    let mut params: Vec<Param<'_>> = effects.params().into();
    params.extend([
        (&shards as _, Type::INT2_ARRAY),
        (&sources as _, Type::TEXT_ARRAY),
        (&hashes as _, Type::UUID_ARRAY),
        (&events as _, Type::UUID_ARRAY),
    ]);
    let fresh = taken
        .query(
            take_effects!(
                "WITH fresh AS (
                     INSERT INTO hapax.identity (shard, source, key_hash, event)
                     SELECT unnest($16::int2[]), unnest($17::text[]), unnest($18::uuid[]), unnest($19::uuid[])
                     ON CONFLICT (shard, source, key_hash) DO NOTHING
                     RETURNING event
                 ), effects AS (",
                "WHERE k.event = ANY (ARRAY(SELECT event FROM fresh))",
                ") SELECT event FROM fresh UNION ALL SELECT id FROM effects"
            ),
            &params,
        )
        .await?;
    Ok(fresh.iter().map(|row| row.get(0)).collect())
}
