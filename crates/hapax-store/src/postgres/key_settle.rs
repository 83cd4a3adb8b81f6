//! What happens to guarded keys after their claim: extended and settled in groups, resolved by somebody, swept when they were lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hapax_ledger::guard::{GuardRejected, LEASE_GRACE};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};
use tokio_postgres::types::Type;

use super::batch::{Job, TooMuch, Work};
use super::key::{Answers, KeyColumns, KeyRow, key_columns, to_key};
use super::key_end;
use super::moment::{LeaseClock, moment, now};
use super::pool::{Param, Pool, Taken};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::{KEYS_PER_STEP_MAX, KeyEnding, KeyResolution};

/// What a run says.
pub(super) enum Word {
    /// It needs so much longer.
    Extend(Span),
    /// It ended.
    Settle(KeyEnding),
}

/// What a run says, the key it is about, and the fence that it shows.
pub(super) struct KeyAsk {
    pub(super) id: KeyId,
    pub(super) fence: Fence,
    pub(super) word: Word,
}

/// Extends and settles runs.
pub(super) struct KeySettles {
    pub(super) pool: Pool,
    pub(super) clock: LeaseClock,
}

impl Work for KeySettles {
    type Ask = KeyAsk;
    /// When an answer expires.
    type Answer = Result<Time, GuardRejected>;
    /// Without it nobody knows what became of a run.
    const TOO_MUCH: TooMuch = TooMuch::Waits;
    const ASKS: &'static str = "settlements of keys";

    fn bytes(ask: &KeyAsk) -> usize {
        let answer = match &ask.word {
            Word::Settle(ending) => ending.answer.as_ref().map_or(0, bytes::Bytes::len),
            Word::Extend(_) => 0,
        };
        size_of::<KeyAsk>() + answer
    }

    /// One group: runs that ended, and still held their keys, in one statement; the rest behind them.
    async fn step(&self, taken: Taken, jobs: Vec<Job<KeySettles>>) {
        let mut free = Some(taken);
        let (ends, mut rest) = key_end::apart(jobs);
        if !ends.is_empty() {
            let asks: Vec<&KeyAsk> = ends.iter().map(|job| &job.ask).collect();
            let ended = match free.take() {
                Some(taken) => key_end::end(taken, &asks, &self.clock).await,
                None => Ok(HashMap::new()),
            };
            match ended {
                Ok(ended) => {
                    for job in ends {
                        match ended.get(&job.ask.id) {
                            Some(expires_at) => job.answer(Ok(Ok(*expires_at))),
                            None => rest.push(job),
                        }
                    }
                }
                Err(error) => refuse(ends, &error),
            }
        }
        if !rest.is_empty() {
            self.settle(free.take(), rest).await;
        }
        if let Some(taken) = free {
            taken.give_back();
        }
    }
}

impl KeySettles {
    async fn settle(&self, free: Option<Taken>, jobs: Vec<Job<KeySettles>>) {
        let asks: Vec<&KeyAsk> = jobs.iter().map(|job| &job.ask).collect();
        let taken = match free {
            Some(taken) => Ok(taken),
            None => self.pool.take().await,
        };
        let settled = match taken {
            Ok(taken) => settle(taken, &asks, &self.clock).await,
            Err(error) => Err(error),
        };
        match settled {
            Ok(settled) => {
                for (job, settled) in jobs.into_iter().zip(settled) {
                    job.answer(Ok(settled));
                }
            }
            Err(error) => refuse(jobs, &error),
        }
    }
}

fn refuse(jobs: Vec<Job<KeySettles>>, error: &StoreError) {
    tracing::error!(%error, settlements = jobs.len(), "a group of settlements of keys failed");
    Job::refuse(jobs, error);
}

/// Locks keys, in the order of their ids as everybody does, and reads them.
const LOCK: &str = key_columns!(
    "",
    "FROM unnest($1::uuid[]) AS x (id) JOIN hapax.guard_key k ON k.id = x.id
     ORDER BY k.id FOR UPDATE OF k"
);

async fn settle(
    taken: Taken,
    asks: &[&KeyAsk],
    clock: &LeaseClock,
) -> Result<Vec<Result<Time, GuardRejected>>, StoreError> {
    let ids: BTreeSet<KeyId> = asks.iter().map(|ask| ask.id).collect();
    let ids: Vec<Uuid> = ids.into_iter().map(|id| Uuid(id.bytes())).collect();
    let params = [(&ids as _, Type::UUID_ARRAY)];
    let lock = taken.query(LOCK, &params);
    let ((), rows, moment) =
        tokio::try_join!(biased; taken.open_planned(), lock, moment(&taken, clock))?;
    let rows = rows.iter().map(to_key);
    let mut keys: BTreeMap<KeyId, KeyRow> = rows.map(|row| (row.key.shown.id, row)).collect();
    let (mut written, mut answers) = (BTreeSet::new(), Answers::default());
    let mut said = Vec::with_capacity(asks.len());
    for ask in asks {
        let taken_word = match keys.get_mut(&ask.id) {
            Some(row) => carry_out(row, ask, moment.now, &mut answers),
            None => Err(GuardRejected::StaleFence),
        };
        if taken_word.is_ok() {
            written.insert(ask.id);
        }
        said.push(taken_word);
    }
    if written.is_empty() {
        taken.roll_back().await;
        return Ok(said);
    }
    let columns = KeyColumns::of(written.iter().filter_map(|id| keys.get(id)));
    let mut last = vec![columns.update()];
    if !answers.is_empty() {
        last.push(answers.update());
    }
    taken.commit_behind(&last).await?;
    Ok(said)
}

fn carry_out(
    row: &mut KeyRow,
    ask: &KeyAsk,
    now: Time,
    answers: &mut Answers,
) -> Result<Time, GuardRejected> {
    match &ask.word {
        Word::Extend(lease) => row.key.extend(ask.fence, *lease, now)?,
        Word::Settle(ending) => {
            if let Some(answer) = row.key.settle(ask.fence, ending, now)? {
                answers.keep(ask.id, &answer);
            }
        }
    }
    Ok(row.key.record.expires_at)
}

/// Somebody found out what became of a run. In an open transaction; says whether that settles anything.
pub(super) async fn resolve(
    taken: &Taken,
    (id, fence): (KeyId, Fence),
    resolution: KeyResolution,
    at: Time,
    clock: &LeaseClock,
) -> Result<bool, StoreError> {
    let ids = vec![Uuid(id.bytes())];
    let params = [(&ids as _, Type::UUID_ARRAY)];
    let lock = taken.query(LOCK, &params);
    let (rows, moment) = tokio::try_join!(biased; lock, moment(taken, clock))?;
    let Some(mut row) = rows.first().map(to_key) else {
        return Ok(false);
    };
    if row.key.resolve(fence, resolution, at, moment.now).is_err() {
        return Ok(false);
    }
    let columns = KeyColumns::of([&row]);
    taken.run_all(&[columns.update()]).await?;
    Ok(true)
}

/// Runs whose lease and grace are over, those that were lost first first. What somebody holds is being decided.
const LOCK_OVERDUE: &str = key_columns!(
    "",
    concat!(
        "FROM hapax.guard_key k WHERE k.state = 0 AND k.lease_until <= ",
        now!("$1"),
        " - $2 ORDER BY k.lease_until LIMIT $3 FOR UPDATE OF k SKIP LOCKED"
    )
);
/// One of them, if there is one. Without a lock: mostly there is none.
const ANY_OVERDUE: &str = concat!(
    "SELECT 1 FROM hapax.guard_key k WHERE k.state = 0 AND k.lease_until <= ",
    now!("$1"),
    " - $2 LIMIT $3"
);

/// Marks runs that were lost; names them.
pub(super) async fn lose(pool: &Pool, clock: &LeaseClock) -> Result<Vec<KeyId>, StoreError> {
    let (given, grace) = (clock.given(), LEASE_GRACE.micros());
    let params = |limit| -> [Param<'_>; 3] {
        [
            (&given, Type::INT8),
            (&grace, Type::INT8),
            (limit, Type::INT8),
        ]
    };
    if pool.walk(ANY_OVERDUE, &params(&1_i64)).await?.is_empty() {
        return Ok(Vec::new());
    }
    let taken = pool.take().await?;
    let most = KEYS_PER_STEP_MAX as i64;
    let rows = taken.begin(LOCK_OVERDUE, &params(&most)).await?;
    let moment = moment(&taken, clock).await?;
    let rows = rows.iter().map(to_key);
    let lost = rows.filter_map(|mut row| row.key.lose(moment.now).is_ok().then_some(row));
    let lost: Vec<KeyRow> = lost.collect();
    let columns = KeyColumns::of(&lost);
    taken.commit_behind(&[columns.update()]).await?;
    Ok(lost.iter().map(|row| row.key.shown.id).collect())
}
