//! Claims under way, as the writer knows them: what a worker of this process holds need not be read again when it says how it went.
//!
//! Only ever what the open transaction or an earlier one wrote. When a transaction fails, all of it is forgotten with the group.

use std::collections::HashMap;

use super::effect::Held;

/// Claims that are remembered. More than this are read from the database when their turn comes.
const REMEMBERED_MAX: usize = 16_384;

/// The claims that are remembered, by row.
#[derive(Default)]
pub(super) struct UnderWay {
    held: HashMap<i64, Held>,
}

impl UnderWay {
    /// Somebody holds this effect now, and it looks like this.
    pub(super) fn remember(&mut self, held: Held) {
        if self.held.len() < REMEMBERED_MAX || self.held.contains_key(&held.row) {
            self.held.insert(held.row, held);
        }
    }

    /// What is remembered of a row. Whoever takes it writes it, and remembers it again if somebody still holds it.
    pub(super) fn take(&mut self, row: i64) -> Option<Held> {
        self.held.remove(&row)
    }

    /// One more event calls for this effect.
    pub(super) fn is_shared(&mut self, row: i64) {
        if let Some(held) = self.held.get_mut(&row) {
            held.alone = false;
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}
