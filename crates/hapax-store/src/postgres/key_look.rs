//! Guarded keys that are only looked at, any number of them in one statement. What was committed is true, and the row shows when it ends to
//! be; that something may run is decided in [`super::key_claim`] and nowhere else.

use bytes::Bytes;
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::batch::{Job, TooMuch, Work};
use super::key::{KEY_COLUMNS, KeyRow, key_columns, place_of, to_key};
use super::moment::{LeaseClock, now};
use super::pool::{Param, Taken};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::guarded::{Ruling, rule};
use crate::nouns::{KeyClaim, KeyClaimed};

/// What an answer weighs, as far as groups are concerned: nobody knows how many of a group are answered with a large one.
const ANSWER_BYTES: usize = 128 * 1024;

/// What a look finds.
pub(super) enum Looked {
    /// All there is to say.
    Said(KeyClaimed),
    /// The key is there, and somebody has to decide under its lock.
    Known(KeyClaim),
    /// There is no such key.
    New(KeyClaim),
}

/// Looks at keys.
pub(super) struct Looks {
    pub(super) clock: LeaseClock,
}

impl Work for Looks {
    type Ask = KeyClaim;
    type Answer = Looked;
    const TOO_MUCH: TooMuch = TooMuch::IsRefused;
    const ASKS: &'static str = "looks at keys";

    fn bytes(_: &KeyClaim) -> usize {
        ANSWER_BYTES
    }

    async fn step(&self, taken: Taken, jobs: Vec<Job<Looks>>) {
        let claims: Vec<&KeyClaim> = jobs.iter().map(|job| &job.ask).collect();
        match look(taken, &claims, &self.clock).await {
            Ok(found) => {
                for (job, found) in jobs.into_iter().zip(found) {
                    let looked = match found {
                        None => Looked::New(job.ask.clone()),
                        Some(found) => looked(&job.ask, found),
                    };
                    job.answer(Ok(looked));
                }
            }
            Err(error) => {
                tracing::error!(%error, looks = jobs.len(), "a group of looks at keys failed");
                Job::refuse(jobs, &error);
            }
        }
    }
}

/// A key, what is kept of its answer, and when that was seen.
struct Found {
    row: KeyRow,
    answer: Option<Bytes>,
    now: Time,
}

fn looked(claim: &KeyClaim, found: Found) -> Looked {
    let key = found.row.key;
    // Which epoch it is matters only to a run.
    match rule(&key, claim, found.now, 0) {
        Ruling::Run { .. } | Ruling::Lost(_) => Looked::Known(claim.clone()),
        Ruling::Answered(body) => Looked::Said(key.told(body, found.answer)),
        Ruling::Said(said) => Looked::Said(said),
    }
}

/// What there is under each of these keys.
async fn look(
    taken: Taken,
    claims: &[&KeyClaim],
    clock: &LeaseClock,
) -> Result<Vec<Option<Found>>, StoreError> {
    let places = claims.iter().map(|claim| place_of(claim.key_hash));
    let (shards, hashes): (Vec<i16>, Vec<Uuid>) = places.unzip();
    let given = clock.given();
    let params: Vec<Param<'_>> = vec![
        (&shards, Type::INT2_ARRAY),
        (&hashes, Type::UUID_ARRAY),
        (&given, Type::INT8),
    ];
    let rows = taken.read_planned(LOOK, &params).await?;
    taken.give_back();
    let mut found: Vec<Option<Found>> = claims.iter().map(|_| None).collect();
    for row in &rows {
        let place = row.get::<_, i64>(KEY_COLUMNS) as usize - 1;
        if let Some(place) = found.get_mut(place) {
            *place = Some(to_found(row));
        }
    }
    Ok(found)
}

fn to_found(row: &Row) -> Found {
    let answer: Option<Vec<u8>> = row.get(KEY_COLUMNS + 2);
    Found {
        row: to_key(row),
        answer: answer.map(Bytes::from),
        now: Time::from_micros(row.get(KEY_COLUMNS + 1)),
    }
}

const LOOK: &str = key_columns!(
    ", x.n, t.now, a.answer",
    concat!(
        "FROM unnest($1::int2[], $2::uuid[]) WITH ORDINALITY AS x (shard, key_hash, n)
         JOIN hapax.guard_key k ON k.shard = x.shard AND k.key_hash = x.key_hash
         LEFT JOIN hapax.guard_answer a ON k.state IN (1, 2) AND a.shard = k.shard AND a.id = k.id
         CROSS JOIN ",
        now!("$3"),
        " AS t (now)"
    )
);
