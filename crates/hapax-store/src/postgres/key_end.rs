//! Runs that ended, as columns of the statement that settles all of a group; see [`super::key_group`].

use std::borrow::Cow;
use std::collections::HashSet;

use hapax_ledger::id::KeyId;
use tokio_postgres::types::Type;

use super::key_group::Asked;
use super::key_settle::{KeyWord, Word};
use super::pool::Param;
use super::wire::{Uuid, sendable};
use crate::guarded::{ended, kept_answer};

/// Words that may end a run there, and the others: extensions, and what says something about a key that another word is about.
pub(super) fn apart(words: Vec<Asked<KeyWord>>) -> (Vec<Asked<KeyWord>>, Vec<Asked<KeyWord>>) {
    let mut seen = HashSet::new();
    let twice: HashSet<KeyId> = words
        .iter()
        .map(|asked| asked.ask.id)
        .filter(|id| !seen.insert(*id))
        .collect();
    let ends = |asked: &Asked<KeyWord>| {
        matches!(asked.ask.word, Word::Settle(_)) && !twice.contains(&asked.ask.id)
    };
    words.into_iter().partition(ends)
}

/// The columns of runs that ended, in the order of their ids.
#[derive(Default)]
pub(super) struct Columns<'a> {
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
    pub(super) fn of(mut words: Vec<&'a KeyWord>) -> Columns<'a> {
        words.sort_unstable_by_key(|word| word.id);
        let mut columns = Columns::default();
        for word in words {
            let Word::Settle(ending) = &word.word else {
                continue;
            };
            let Ok((state, good_for)) = ended(ending) else {
                continue;
            };
            columns.id.push(Uuid(word.id.bytes()));
            columns.fence.push(word.fence.as_u64() as i64);
            columns.state.push(state.code().into());
            columns.ended_at.push(ending.at.micros());
            columns.status.push(ending.status.map(i32::from));
            columns.error.push(ending.error.as_deref().map(sendable));
            columns.ttl.push(good_for.micros());
            columns.answer.push(kept_answer(ending));
        }
        columns
    }

    pub(super) fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    pub(super) fn params(&self) -> [Param<'_>; 8] {
        [
            (&self.id, Type::UUID_ARRAY),
            (&self.fence, Type::INT8_ARRAY),
            (&self.state, Type::INT2_ARRAY),
            (&self.ended_at, Type::INT8_ARRAY),
            (&self.status, Type::INT4_ARRAY),
            (&self.error, Type::TEXT_ARRAY),
            (&self.ttl, Type::INT8_ARRAY),
            (&self.answer, Type::BYTEA_ARRAY),
        ]
    }
}
