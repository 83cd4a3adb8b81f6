//! Where events stand, brought level with their effects inside the transaction that moved one (D7).
//!
//! The effects of one event may be moved by different nodes at once. So its row is locked before its effects are looked at, and they
//! are looked at by a statement that begins after the lock is held: whoever comes second sees what the first one did.

use std::collections::BTreeMap;

use hapax_ledger::effect::{EffectState, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::status::Hold;
use tokio_postgres::types::Type;

use super::pool::Taken;
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::Effect;

/// Events that are locked, as columns.
#[derive(Default)]
struct Locked {
    shard: Vec<i16>,
    id: Vec<Uuid>,
    status: Vec<i16>,
}

/// Brings the status of every event that calls for these effects level with all of its effects. The effects are locked, so no
/// event can begin to call for one of them while this goes on.
pub(super) async fn touch_events(
    taken: &Taken,
    effects: impl Iterator<Item = &Effect>,
) -> Result<(), StoreError> {
    let mut owners = Locked::default();
    let mut ids = Vec::new();
    for effect in effects {
        owners.shard.push(effect.event.0.shard() as i16);
        owners.id.push(Uuid(effect.event.bytes()));
        ids.push(Uuid(effect.id.bytes()));
    }
    if ids.is_empty() {
        return Ok(());
    }
    let locked = lock(taken, &owners, &ids).await?;
    let current = statuses(taken, &locked).await?;
    let mut changed = Locked::default();
    for ((shard, id), before) in locked.shard.iter().zip(&locked.id).zip(&locked.status) {
        let now = current.get(id).copied().unwrap_or(EventStatus::Completed);
        if i16::from(now.code()) != *before {
            changed.shard.push(*shard);
            changed.id.push(*id);
            changed.status.push(now.code().into());
        }
    }
    update(taken, &changed).await
}

/// Locks the events in the order of their ids. One that waits for a person does so whatever its effects say.
async fn lock(taken: &Taken, owners: &Locked, effects: &Vec<Uuid>) -> Result<Locked, StoreError> {
    let rows = taken
        .query(
            "SELECT v.shard, v.id, v.status
             FROM (
                 SELECT * FROM unnest($1::int2[], $2::uuid[])
                 UNION
                 SELECT shard, event FROM hapax.effect_link WHERE effect = ANY ($3)
             ) AS c (shard, id)
             JOIN hapax.event v ON v.shard = c.shard AND v.id = c.id
             WHERE v.review_code IS NULL
             ORDER BY v.id FOR UPDATE OF v",
            &[
                (&owners.shard, Type::INT2_ARRAY),
                (&owners.id, Type::UUID_ARRAY),
                (effects, Type::UUID_ARRAY),
            ],
        )
        .await?;
    Ok(Locked {
        shard: rows.iter().map(|row| row.get(0)).collect(),
        id: rows.iter().map(|row| row.get(1)).collect(),
        status: rows.iter().map(|row| row.get(2)).collect(),
    })
}

async fn statuses(
    taken: &Taken,
    locked: &Locked,
) -> Result<BTreeMap<Uuid, EventStatus>, StoreError> {
    let rows = taken
        .query(
            "SELECT c.event, q.state, q.skip
             FROM (
                 SELECT event, shard, id FROM hapax.effect WHERE event = ANY ($2)
                 UNION ALL
                 SELECT l.event, l.effect_shard, l.effect FROM unnest($1::int2[], $2::uuid[]) AS k (shard, event)
                 JOIN hapax.effect_link l ON l.shard = k.shard AND l.event = k.event
             ) AS c (event, shard, effect)
             JOIN hapax.queue q ON q.shard = c.shard AND q.effect = c.effect",
            &[
                (&locked.shard, Type::INT2_ARRAY),
                (&locked.id, Type::UUID_ARRAY),
            ],
        )
        .await?;
    let mut states: BTreeMap<Uuid, Vec<(EffectState, Option<SkipReason>)>> = BTreeMap::new();
    for row in rows {
        let state = EffectState::from_code(row.get::<_, i16>(1) as u8);
        let skip = row.get::<_, Option<i16>>(2);
        states.entry(row.get(0)).or_default().push((
            // What cannot be read counts as the strictest there is.
            state.unwrap_or(EffectState::Uncertain),
            skip.and_then(|code| SkipReason::from_code(code as u8)),
        ));
    }
    let status = |states| EventStatus::of_effects(states, Hold::Free);
    Ok(states
        .into_iter()
        .map(|(event, states)| (event, status(states)))
        .collect())
}

async fn update(taken: &Taken, changed: &Locked) -> Result<(), StoreError> {
    if changed.id.is_empty() {
        return Ok(());
    }
    taken
        .query(
            "UPDATE hapax.event v SET status = x.status
             FROM unnest($1::int2[], $2::uuid[], $3::int2[]) AS x (shard, id, status)
             WHERE v.shard = x.shard AND v.id = x.id",
            &[
                (&changed.shard, Type::INT2_ARRAY),
                (&changed.id, Type::UUID_ARRAY),
                (&changed.status, Type::INT2_ARRAY),
            ],
        )
        .await?;
    Ok(())
}
