//! Guarded keys that are only looked at, any number of them in one statement. What was committed is true, and the row shows when it ends to
//! be; that something may run is decided in [`super::key_claim`] and nowhere else.

use bytes::Bytes;
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::key::{KEY_COLUMNS, KeyRow, key_columns, place_of, to_key};
use super::moment::{LeaseClock, now};
use super::pool::{Param, Taken};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::guarded::{Ruling, rule};
use crate::nouns::{KeyClaim, KeyClaimed};

/// What a look finds.
pub(super) enum Looked {
    /// All there is to say.
    Said(KeyClaimed),
    /// Somebody has to decide under the key's lock.
    Open,
    /// There is no such key.
    Gone,
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
        Ruling::Run { .. } | Ruling::Lost(_) => Looked::Open,
        Ruling::Answered(body) => Looked::Said(key.told(body, found.answer)),
        Ruling::Said(said) => Looked::Said(said),
    }
}

/// What there is to say to each of these claims.
pub(super) async fn look(
    taken: Taken,
    claims: &[&KeyClaim],
    clock: &LeaseClock,
) -> Result<Vec<Looked>, StoreError> {
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
    let mut all: Vec<Looked> = claims.iter().map(|_| Looked::Gone).collect();
    for row in &rows {
        let place = row.get::<_, i32>(KEY_COLUMNS) as usize - 1;
        if let (Some(said), Some(claim)) = (all.get_mut(place), claims.get(place)) {
            *said = looked(claim, to_found(row));
        }
    }
    Ok(all)
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
    ", x.n, t.now, CASE WHEN k.state IN (1, 2) THEN k.answer END",
    concat!(
        "FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), generate_subscripts($1::int2[], 1)) AS x (shard, key_hash, n)
         JOIN hapax.guard_key k ON k.shard = x.shard AND k.key_hash = x.key_hash
         CROSS JOIN ",
        now!("$3"),
        " AS t (now)"
    )
);
