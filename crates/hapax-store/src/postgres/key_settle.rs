//! What happens to guarded keys after their claim: extended, and settled where that takes a look at them first, resolved by somebody, swept when they were lost.

use std::collections::{BTreeMap, BTreeSet};

use hapax_ledger::guard::{GuardRejected, LEASE_GRACE};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};
use tokio_postgres::types::Type;

use super::key::{Answers, KeyColumns, KeyRow, key_columns, to_key};
use super::key_group::{Asked, KeyWork};
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
pub(super) struct KeyWord {
    pub(super) id: KeyId,
    pub(super) fence: Fence,
    pub(super) word: Word,
}

impl KeyWork {
    /// Hears words that need a look at their keys, under their locks.
    pub(super) async fn settle(&self, words: Vec<Asked<KeyWord>>) {
        if words.is_empty() {
            return;
        }
        let asks: Vec<&KeyWord> = words.iter().map(|asked| &asked.ask).collect();
        let settled = match self.pool.take().await {
            Ok(taken) => settle(taken, &asks, &self.clock).await,
            Err(error) => Err(error),
        };
        match settled {
            Ok(settled) => {
                for (asked, settled) in words.into_iter().zip(settled) {
                    asked.answer(settled);
                }
            }
            Err(error) => Asked::refuse(words, &error),
        }
    }
}

/// Locks keys, in the order of their ids as everybody does, and reads them.
const LOCK: &str = key_columns!(
    "",
    "FROM unnest($1::uuid[]) AS x (id) JOIN hapax.guard_key k ON k.id = x.id
     ORDER BY k.id FOR UPDATE OF k"
);

async fn settle(
    taken: Taken,
    asks: &[&KeyWord],
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
    ask: &KeyWord,
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
