//! Claims of guarded keys, any number of them in one commit. Keys that nobody holds go in with one statement; what finds its key held
//! is decided by the ledger under the key's lock.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use hapax_ledger::guard::Body;
use hapax_ledger::id::{KeyId, RawId};
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::batch::{Job, TooMuch, Work};
use super::fault::unavailable;
use super::key::{Answers, INSERT, KeyColumns, KeyPlace, KeyRow, key_columns, place_of, to_key};
use super::key_look::{Looked, look};
use super::moment::{LeaseClock, moment, no_row};
use super::pool::{Pool, Taken};
use super::wire::Uuid;
use super::{Entropy, SHARDS};
use crate::error::StoreError;
use crate::guarded::{Guarded, Ruling, rule};
use crate::nouns::{KeyClaim, KeyClaimed};

/// A key may be forgotten between the two steps, and then taken by somebody else before it is tried again. Not so often.
const ROUNDS_MAX: usize = 4;

/// Keys that are looked at with one statement: all of them may have a large answer.
const LOOKS_MAX: usize = 64;

/// Claims keys.
pub(super) struct KeyClaims {
    pub(super) pool: Pool,
    pub(super) entropy: Entropy,
    pub(super) clock: LeaseClock,
    /// The store's epoch as it was last seen.
    pub(super) epoch: AtomicU32,
}

impl Work for KeyClaims {
    type Ask = KeyClaim;
    type Answer = KeyClaimed;
    const TOO_MUCH: TooMuch = TooMuch::IsRefused;
    const ASKS: &'static str = "claims of keys";

    fn bytes(claim: &KeyClaim) -> usize {
        size_of::<KeyClaim>() + claim.path.len() + claim.key.len()
    }

    /// One group: new keys in one commit. Those that somebody holds are looked at, and most are answered by that; what may run again is
    /// decided in another commit.
    async fn step(&self, taken: Taken, jobs: Vec<Job<KeyClaims>>) {
        let (mut free, mut new) = (Some(taken), jobs);
        for _ in 0..ROUNDS_MAX {
            let mut held = self.insert(free.take(), new).await;
            new = Vec::new();
            while !held.is_empty() {
                let some = held.split_off(held.len().saturating_sub(LOOKS_MAX));
                let (gone, open) = self.look(some).await;
                new.extend(gone);
                if !open.is_empty() {
                    new.extend(self.decide(open).await);
                }
            }
            if new.is_empty() {
                return;
            }
        }
        Job::refuse(
            new,
            &unavailable("the key was taken and forgotten again and again"),
        );
    }
}

impl KeyClaims {
    async fn taken(&self, free: Option<Taken>) -> Result<Taken, StoreError> {
        match free {
            Some(taken) => Ok(taken),
            None => self.pool.take().await,
        }
    }

    /// Answers those whose keys nobody held and gives back the others.
    async fn insert(&self, free: Option<Taken>, jobs: Vec<Job<KeyClaims>>) -> Vec<Job<KeyClaims>> {
        let claims: Vec<&KeyClaim> = jobs.iter().map(|job| &job.ask).collect();
        let inserted = self.insert_all(free, &claims).await;
        self.answer(jobs, inserted)
    }

    /// A key is claimed for the epoch that was last seen. If it is another by now nothing was written, and that one is known.
    async fn insert_all(
        &self,
        mut free: Option<Taken>,
        claims: &[&KeyClaim],
    ) -> Result<Vec<Option<KeyClaimed>>, StoreError> {
        for _ in 0..ROUNDS_MAX {
            let taken = self.taken(free.take()).await?;
            let epoch = self.epoch.load(Ordering::Relaxed);
            match insert(taken, claims, &self.entropy, &self.clock, epoch).await? {
                Inserted::Said(said) => return Ok(said),
                Inserted::OtherEpoch(epoch) => self.epoch.store(epoch, Ordering::Relaxed),
            }
        }
        Err(unavailable("the store was restored again and again"))
    }

    /// Answers those that can be answered without a lock; gives back those whose key is gone, and those that have to be decided about.
    async fn look(&self, jobs: Vec<Job<KeyClaims>>) -> (Vec<Job<KeyClaims>>, Vec<Job<KeyClaims>>) {
        let claims: Vec<&KeyClaim> = jobs.iter().map(|job| &job.ask).collect();
        let found = match self.pool.take().await {
            Ok(taken) => look(taken, &claims, &self.clock).await,
            Err(error) => Err(error),
        };
        let (mut gone, mut open) = (Vec::new(), Vec::new());
        match found {
            Ok(found) => {
                for (job, looked) in jobs.into_iter().zip(found) {
                    match looked {
                        Looked::Said(said) => job.answer(Ok(said)),
                        Looked::Open => open.push(job),
                        Looked::Gone => gone.push(job),
                    }
                }
            }
            Err(error) => {
                tracing::error!(%error, looks = jobs.len(), "a group of looks at keys failed");
                Job::refuse(jobs, &error);
            }
        }
        (gone, open)
    }

    /// Decides about those whose keys somebody holds and gives back those whose key is gone.
    async fn decide(&self, jobs: Vec<Job<KeyClaims>>) -> Vec<Job<KeyClaims>> {
        let claims: Vec<&KeyClaim> = jobs.iter().map(|job| &job.ask).collect();
        let decided = match self.pool.take().await {
            Ok(taken) => decide(taken, &claims, &self.clock).await,
            Err(error) => Err(error),
        };
        self.answer(jobs, decided)
    }

    fn answer(
        &self,
        jobs: Vec<Job<KeyClaims>>,
        said: Result<Vec<Option<KeyClaimed>>, StoreError>,
    ) -> Vec<Job<KeyClaims>> {
        match said {
            Ok(said) => {
                let mut rest = Vec::new();
                for (job, said) in jobs.into_iter().zip(said) {
                    match said {
                        Some(said) => job.answer(Ok(said)),
                        None => rest.push(job),
                    }
                }
                rest
            }
            Err(error) => {
                tracing::error!(%error, claims = jobs.len(), "a group of claims of keys failed");
                Job::refuse(jobs, &error);
                Vec::new()
            }
        }
    }
}

/// What became of a group of claims.
enum Inserted {
    /// `None` stands for a key that somebody holds, perhaps an earlier claim of the same group.
    Said(Vec<Option<KeyClaimed>>),
    /// Nothing is written: it is this epoch.
    OtherEpoch(u32),
}

/// Keeps keys that nobody holds, in one round trip.
async fn insert(
    taken: Taken,
    claims: &[&KeyClaim],
    entropy: &Entropy,
    clock: &LeaseClock,
    epoch: u32,
) -> Result<Inserted, StoreError> {
    let rows = claims.iter().map(|claim| {
        let shard = claim.key_hash.shard(SHARDS);
        let id = KeyId(RawId::new(claim.at, shard, entropy()));
        KeyRow {
            // The statement adds the time at which it runs.
            key: Guarded::first(id, claim, Time::from_micros(0), epoch),
            hash: claim.key_hash,
        }
    });
    let rows: Vec<KeyRow> = rows.collect();
    let mut order: Vec<&KeyRow> = rows.iter().collect();
    // Stable: of two with the same key the first to come is the first to be inserted.
    order.sort_by_key(|row| place_of(row.hash));
    let columns = KeyColumns::of(order);
    let (given, wanted) = (clock.given(), epoch as i32);
    let mut params = columns.params();
    params.extend([(&given as _, Type::INT8), (&wanted as _, Type::INT4)]);
    let found = taken.alone(INSERT, params).await?;
    let seen = found.first().map(|row| row.get::<_, i32>(0) as u32);
    match seen {
        Some(seen) if seen == epoch => {}
        Some(other) => return Ok(Inserted::OtherEpoch(other)),
        None => return Err(no_row()),
    }
    let kept: HashSet<Uuid> = found.iter().filter_map(|row| row.get(1)).collect();
    let said = rows.iter().map(|row| {
        let id = Uuid(row.key.shown.id.bytes());
        kept.contains(&id).then(|| row.key.begun(false))
    });
    Ok(Inserted::Said(said.collect()))
}

/// Locks keys, in the order of their ids as everybody does, and reads them.
const LOCK: &str = key_columns!(
    "",
    "FROM unnest($1::int2[], $2::uuid[]) AS x (shard, key_hash)
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
            "SELECT k.id, k.answer FROM unnest($1::int2[], $2::uuid[]) AS x (shard, id)
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
