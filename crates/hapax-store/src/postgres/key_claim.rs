//! Claims of guarded keys, any number of them in one commit. Keys that nobody holds go in with one statement; what finds its key held
//! is decided by the ledger under the key's lock.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use hapax_ledger::guard::Body;
use hapax_ledger::id::{KeyId, RawId};
use tokio_postgres::types::Type;

use super::batch::{Job, TooMuch, Work};
use super::fault::unavailable;
use super::key::{Answers, INSERT, KeyColumns, KeyPlace, KeyRow, key_columns, place_of, to_key};
use super::moment::{LeaseClock, moment};
use super::pool::{Pool, Taken};
use super::wire::Uuid;
use super::{Entropy, SHARDS};
use crate::error::StoreError;
use crate::guarded::{Guarded, Ruling, rule};
use crate::nouns::{KeyClaim, KeyClaimed};

/// A key may be forgotten between the two steps, and then taken by somebody else before it is tried again. Not so often.
const ROUNDS_MAX: usize = 4;

/// A claim, and whether its key was there a moment ago.
pub(super) struct ClaimAsk {
    pub(super) claim: KeyClaim,
    pub(super) known: bool,
}

/// Claims keys.
pub(super) struct KeyClaims {
    pub(super) pool: Pool,
    pub(super) entropy: Entropy,
    pub(super) clock: LeaseClock,
}

impl Work for KeyClaims {
    type Ask = ClaimAsk;
    type Answer = KeyClaimed;
    const TOO_MUCH: TooMuch = TooMuch::IsRefused;
    const ASKS: &'static str = "claims of keys";

    fn bytes(ask: &ClaimAsk) -> usize {
        size_of::<ClaimAsk>() + ask.claim.path.len() + ask.claim.key.len()
    }

    /// One group: new keys in one commit, and those that somebody holds in another.
    async fn step(&self, taken: Taken, jobs: Vec<Job<KeyClaims>>) {
        let (mut known, mut new): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|job| job.ask.known);
        let mut free = Some(taken);
        for _ in 0..ROUNDS_MAX {
            if !new.is_empty() {
                known.extend(self.insert(free.take(), new).await);
            }
            if known.is_empty() {
                return;
            }
            new = self.decide(free.take(), known).await;
            known = Vec::new();
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
        let claims: Vec<&KeyClaim> = jobs.iter().map(|job| &job.ask.claim).collect();
        let inserted = match self.taken(free).await {
            Ok(taken) => insert(taken, &claims, &self.entropy, &self.clock).await,
            Err(error) => Err(error),
        };
        self.answer(jobs, inserted)
    }

    /// Decides about those whose keys somebody holds and gives back those whose key is gone.
    async fn decide(&self, free: Option<Taken>, jobs: Vec<Job<KeyClaims>>) -> Vec<Job<KeyClaims>> {
        let claims: Vec<&KeyClaim> = jobs.iter().map(|job| &job.ask.claim).collect();
        let decided = match self.taken(free).await {
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

/// Keeps keys that nobody holds. `None` stands for one that somebody does, perhaps an earlier claim of the same group. The time is read
/// before the keys are taken, so that leases are if anything too short.
async fn insert(
    taken: Taken,
    claims: &[&KeyClaim],
    entropy: &Entropy,
    clock: &LeaseClock,
) -> Result<Vec<Option<KeyClaimed>>, StoreError> {
    let moment = moment(&taken, clock).await?;
    let rows = claims.iter().map(|claim| {
        let shard = claim.key_hash.shard(SHARDS);
        let id = KeyId(RawId::new(claim.at, shard, entropy()));
        KeyRow {
            key: Guarded::first(id, claim, moment.now, moment.epoch),
            hash: claim.key_hash,
        }
    });
    let rows: Vec<KeyRow> = rows.collect();
    let mut order: Vec<&KeyRow> = rows.iter().collect();
    // Stable: of two with the same key the first to come is the first to be inserted.
    order.sort_by_key(|row| place_of(row.hash));
    let columns = KeyColumns::of(order);
    let kept = taken.in_one_trip(&[(INSERT, columns.params())]).await?;
    let kept: HashSet<Uuid> = kept.iter().flatten().map(|row| row.get(0)).collect();
    let said = rows.iter().map(|row| {
        let id = Uuid(row.key.shown.id.bytes());
        kept.contains(&id).then(|| row.key.begun(false))
    });
    Ok(said.collect())
}

/// Locks keys, in order, and reads them.
const LOCK: &str = key_columns!(
    "",
    "FROM unnest($1::int2[], $2::uuid[]) AS x (shard, key_hash)
     JOIN hapax.guard_key k ON k.shard = x.shard AND k.key_hash = x.key_hash
     ORDER BY k.shard, k.key_hash FOR UPDATE OF k"
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
            "SELECT a.id, a.answer FROM unnest($1::int2[], $2::uuid[]) AS x (shard, id)
             JOIN hapax.guard_answer a ON a.shard = x.shard AND a.id = x.id",
            &[(&shards, Type::INT2_ARRAY), (&ids, Type::UUID_ARRAY)],
        )
        .await?;
    let found = rows.iter().map(|row| {
        let id = KeyId::from_bytes(row.get::<_, Uuid>(0).0);
        (id, Bytes::from(row.get::<_, Vec<u8>>(1)))
    });
    Ok(found.collect())
}
