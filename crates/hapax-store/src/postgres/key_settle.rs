//! What happens to guarded keys after their claim: extended, and settled where that takes a look at them first, resolved by somebody.

use std::collections::{BTreeMap, BTreeSet};

use hapax_ledger::guard::GuardRejected;
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};
use tokio_postgres::types::Type;

use super::key::{Answers, KeyColumns, KeyRow, key_columns, to_key};
use super::key_group::{Asked, KeyWork};
use super::moment::{LeaseClock, moment};
use super::pool::Taken;
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::{KeyEnding, KeyResolution};

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
