//! Claims of guarded keys that somebody holds: most are answered from a look at the key; that something runs once more is decided by the
//! ledger under the key's lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use hapax_ledger::guard::Body;
use hapax_ledger::id::KeyId;
use tokio_postgres::types::Type;

use super::key::{Answers, KeyColumns, KeyPlace, KeyRow, key_columns, place_of, to_key};
use super::key_group::{Asked, KeyWork};
use super::key_look::{Looked, look};
use super::moment::{LeaseClock, moment};
use super::pool::Taken;
use super::wire::Uuid;
use crate::error::StoreError;
use crate::guarded::{Ruling, rule};
use crate::nouns::{KeyClaim, KeyClaimed};

/// Keys that are looked at with one statement: all of them may have a large answer.
const LOOKS_MAX: usize = 64;

impl KeyWork {
    /// Answers claims whose keys somebody holds; gives back those whose key is gone.
    pub(super) async fn look_at(&self, mut held: Vec<Asked<KeyClaim>>) -> Vec<Asked<KeyClaim>> {
        let mut all_gone = Vec::new();
        while !held.is_empty() {
            let some = held.split_off(held.len().saturating_sub(LOOKS_MAX));
            let (gone, open) = self.look(some).await;
            all_gone.extend(gone);
            if !open.is_empty() {
                all_gone.extend(self.decide(open).await);
            }
        }
        all_gone
    }

    /// Answers those that can be answered without a lock; gives back those whose key is gone, and those that have to be decided about.
    async fn look(
        &self,
        claims: Vec<Asked<KeyClaim>>,
    ) -> (Vec<Asked<KeyClaim>>, Vec<Asked<KeyClaim>>) {
        let asks: Vec<&KeyClaim> = claims.iter().map(|asked| &asked.ask).collect();
        let found = match self.pool.take().await {
            Ok(taken) => look(taken, &asks, &self.clock).await,
            Err(error) => Err(error),
        };
        let (mut gone, mut open) = (Vec::new(), Vec::new());
        match found {
            Ok(found) => {
                for (asked, looked) in claims.into_iter().zip(found) {
                    match looked {
                        Looked::Said(said) => asked.answer(said),
                        Looked::Open => open.push(asked),
                        Looked::Gone => gone.push(asked),
                    }
                }
            }
            Err(error) => Asked::refuse(claims, &error),
        }
        (gone, open)
    }

    /// Decides about those whose keys somebody holds and gives back those whose key is gone.
    async fn decide(&self, claims: Vec<Asked<KeyClaim>>) -> Vec<Asked<KeyClaim>> {
        let asks: Vec<&KeyClaim> = claims.iter().map(|asked| &asked.ask).collect();
        let decided = match self.pool.take().await {
            Ok(taken) => decide(taken, &asks, &self.clock).await,
            Err(error) => Err(error),
        };
        let mut gone = Vec::new();
        match decided {
            Ok(decided) => {
                for (asked, said) in claims.into_iter().zip(decided) {
                    match said {
                        Some(said) => asked.answer(said),
                        None => gone.push(asked),
                    }
                }
            }
            Err(error) => Asked::refuse(claims, &error),
        }
        gone
    }
}

/// Locks keys, in the order of their ids as everybody does, and reads them.
const LOCK: &str = key_columns!(
    "",
    "FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS x (shard, key_hash)
     JOIN hapax.guard_key k ON k.shard = x.shard AND k.key_hash = x.key_hash
     ORDER BY k.id FOR UPDATE OF k"
);

/// What a claim comes to; an answer is looked up when all are decided.
enum Decided {
    Said(KeyClaimed),
    Answered(KeyPlace, Body),
    Gone,
}

/// Decides about claims in the order in which they came, under the locks of their keys. `None` stands for a key that is gone.
async fn decide(
    taken: Taken,
    claims: &[&KeyClaim],
    clock: &LeaseClock,
) -> Result<Vec<Option<KeyClaimed>>, StoreError> {
    let places: BTreeSet<KeyPlace> = claims
        .iter()
        .map(|claim| place_of(claim.key_hash))
        .collect();
    let (shards, hashes): (Vec<i16>, Vec<Uuid>) = places.into_iter().unzip();
    let params = [
        (&shards as _, Type::INT2_ARRAY),
        (&hashes as _, Type::UUID_ARRAY),
    ];
    let lock = taken.query(LOCK, &params);
    let ((), rows, moment) =
        tokio::try_join!(biased; taken.open_planned(), lock, moment(&taken, clock))?;
    let rows = rows.iter().map(to_key);
    let mut keys: BTreeMap<KeyPlace, KeyRow> = rows.map(|row| (place_of(row.hash), row)).collect();
    let mut written = BTreeSet::new();
    let mut old_answers = Answers::default();
    let mut decided = Vec::with_capacity(claims.len());
    for claim in claims {
        let place = place_of(claim.key_hash);
        let Some(KeyRow { key, .. }) = keys.get_mut(&place) else {
            decided.push(Decided::Gone);
            continue;
        };
        let id = key.shown.id;
        decided.push(match rule(key, claim, moment.now, moment.epoch) {
            Ruling::Run { record, again } => {
                key.runs(claim, record);
                written.insert(place);
                old_answers.forget(id);
                Decided::Said(key.begun(again))
            }
            Ruling::Lost(record) => {
                key.record = record;
                written.insert(place);
                Decided::Said(KeyClaimed::OutcomeUnknown { id })
            }
            Ruling::Answered(body) => Decided::Answered(place, body),
            Ruling::Said(said) => Decided::Said(said),
        });
    }
    let answers = answers(&taken, &keys, &decided).await?;
    let columns = KeyColumns::of(written.iter().filter_map(|place| keys.get(place)));
    let mut last = Vec::new();
    if !written.is_empty() {
        last.push(columns.update());
    }
    if !old_answers.is_empty() {
        last.push(old_answers.delete());
    }
    match last.is_empty() {
        true => taken.roll_back().await,
        false => drop(taken.commit_behind(&last).await?),
    }
    let said = decided.into_iter().map(|decided| match decided {
        Decided::Said(said) => Some(said),
        Decided::Answered(place, body) => {
            let key = &keys.get(&place)?.key;
            Some(key.told(body, answers.get(&key.shown.id).cloned()))
        }
        Decided::Gone => None,
    });
    Ok(said.collect())
}

/// What is kept of the answers that are asked for.
async fn answers(
    taken: &Taken,
    keys: &BTreeMap<KeyPlace, KeyRow>,
    decided: &[Decided],
) -> Result<HashMap<KeyId, Bytes>, StoreError> {
    let wanted = decided.iter().filter_map(|decided| match decided {
        Decided::Answered(place, _) => keys.get(place),
        Decided::Said(_) | Decided::Gone => None,
    });
    let wanted: BTreeSet<KeyId> = wanted.map(|row| row.key.shown.id).collect();
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let shards: Vec<i16> = wanted.iter().map(|id| id.0.shard() as i16).collect();
    let ids: Vec<Uuid> = wanted.iter().map(|id| Uuid(id.bytes())).collect();
    let rows = taken
        .query(
            "SELECT k.id, k.answer FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS x (shard, id)
             JOIN hapax.guard_key k ON k.id = x.id AND k.shard = x.shard",
            &[(&shards, Type::INT2_ARRAY), (&ids, Type::UUID_ARRAY)],
        )
        .await?;
    let found = rows.iter().filter_map(|row| {
        let id = KeyId::from_bytes(row.get::<_, Uuid>(0).0);
        let answer: Option<Vec<u8>> = row.get(1);
        Some((id, Bytes::from(answer?)))
    });
    Ok(found.collect())
}
