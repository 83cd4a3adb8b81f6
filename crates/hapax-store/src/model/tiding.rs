//! What operators are to hear, in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::ModelStore;
use crate::error::StoreError;
use crate::nouns::{TIDINGS_PER_PAGE, Tiding, Untold};
use crate::tidings::Tidings;

/// What was not told yet, by number.
#[derive(Default)]
pub(super) struct Kept {
    last: i64,
    untold: BTreeMap<i64, Tiding>,
}

impl Kept {
    pub(super) fn write(&mut self, tiding: Tiding) {
        self.last += 1;
        self.untold.insert(self.last, tiding);
    }
}

#[async_trait]
impl Tidings for ModelStore {
    async fn untold(&self, after: i64) -> Result<Vec<Untold>, StoreError> {
        let state = self.lock();
        let behind = state.effects.tidings.untold.range(after + 1..);
        let page = behind
            .take(TIDINGS_PER_PAGE)
            .map(|(number, tiding)| Untold {
                number: *number,
                tiding: Some(tiding.clone()),
            });
        Ok(page.collect())
    }

    async fn told(&self, numbers: Vec<i64>) -> Result<(), StoreError> {
        let untold = &mut self.lock().effects.tidings.untold;
        for number in numbers {
            untold.remove(&number);
        }
        Ok(())
    }
}
