//! Runs that ended, all of a group in one statement and one round trip.
//!
//! Nothing has to be read first: that the run still has its key, by its fence, is part of the statement. Who finds it otherwise goes the
//! ordinary way, and hears there what the ledger says to it (see [`super::key_settle`]).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use hapax_ledger::guard::GuardState;
use hapax_ledger::id::KeyId;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::batch::Job;
use super::key_settle::{KeyAsk, KeySettles, Word};
use super::moment::{LeaseClock, now};
use super::pool::{Param, Taken};
use super::wire::{Uuid, sendable};
use crate::error::StoreError;
use crate::guarded::{ended, kept_answer};

/// Jobs that may end here, and the others: extensions, and what says something about a key that another job is about.
pub(super) fn apart(jobs: Vec<Job<KeySettles>>) -> (Vec<Job<KeySettles>>, Vec<Job<KeySettles>>) {
    let mut seen = HashSet::new();
    let twice: HashSet<KeyId> = jobs
        .iter()
        .map(|job| job.ask.id)
        .filter(|id| !seen.insert(*id))
        .collect();
    let ends = |job: &Job<KeySettles>| {
        matches!(job.ask.word, Word::Settle(_)) && !twice.contains(&job.ask.id)
    };
    jobs.into_iter().partition(ends)
}

/// The columns of runs that ended.
#[derive(Default)]
struct Columns<'a> {
    id: Vec<Uuid>,
    fence: Vec<i64>,
    state: Vec<i16>,
    ended_at: Vec<i64>,
    status: Vec<Option<i32>>,
    error: Vec<Option<Cow<'a, str>>>,
    ttl: Vec<i64>,
    answer: Vec<Option<&'a [u8]>>,
}

impl<'a> Columns<'a> {
    fn of(asks: &[&'a KeyAsk]) -> Columns<'a> {
        let mut columns = Columns::default();
        for ask in asks {
            let Word::Settle(ending) = &ask.word else {
                continue;
            };
            let Ok((state, good_for)) = ended(ending) else {
                continue;
            };
            columns.id.push(Uuid(ask.id.bytes()));
            columns.fence.push(ask.fence.as_u64() as i64);
            columns.state.push(state.code().into());
            columns.ended_at.push(ending.at.micros());
            columns.status.push(ending.status.map(i32::from));
            columns.error.push(ending.error.as_deref().map(sendable));
            columns.ttl.push(good_for.micros());
            columns.answer.push(kept_answer(ending));
        }
        columns
    }
}

/// Settles those that still have their keys, in the order of their ids; says which, and when their answers expire.
pub(super) async fn end(
    taken: Taken,
    asks: &[&KeyAsk],
    clock: &LeaseClock,
) -> Result<HashMap<KeyId, Time>, StoreError> {
    let mut asks = asks.to_vec();
    asks.sort_unstable_by_key(|ask| ask.id);
    let columns = Columns::of(&asks);
    let (running, unknown) = (GuardState::Running.code(), GuardState::Unknown.code());
    let open: Vec<i16> = vec![running.into(), unknown.into()];
    let given = clock.given();
    let params: Vec<Param<'_>> = vec![
        (&columns.id, Type::UUID_ARRAY),
        (&columns.fence, Type::INT8_ARRAY),
        (&columns.state, Type::INT2_ARRAY),
        (&columns.ended_at, Type::INT8_ARRAY),
        (&columns.status, Type::INT4_ARRAY),
        (&columns.error, Type::TEXT_ARRAY),
        (&columns.ttl, Type::INT8_ARRAY),
        (&columns.answer, Type::BYTEA_ARRAY),
        (&given, Type::INT8),
        (&open, Type::INT2_ARRAY),
    ];
    let found = taken.alone(END, params).await?;
    let ended = found.iter().map(|row| {
        let id = KeyId::from_bytes(row.get::<_, Uuid>(0).0);
        (id, Time::from_micros(row.get(1)))
    });
    Ok(ended.collect())
}

/// What an earlier run of the key was answered with went when this one began.
const END: &str = concat!(
    "UPDATE hapax.guard_key k SET state = x.state, ended_at = x.ended_at, status = x.status, error = x.error,
             expires_at = t.now + x.ttl, answer = x.answer
         FROM unnest($1::uuid[], $2::int8[], $3::int2[], $4::int8[], $5::int4[], $6::text[], $7::int8[], $8::bytea[])
             AS x (id, fence, state, ended_at, status, error, ttl, answer), ",
    now!("$9"),
    " AS t (now)
         WHERE k.id = x.id AND k.fence = x.fence AND k.state = ANY ($10)
         RETURNING k.id, k.expires_at"
);
