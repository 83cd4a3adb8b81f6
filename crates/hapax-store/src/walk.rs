//! A page of a list as it fills, whatever the store.

use hapax_ledger::id::EffectId;

use crate::nouns::{Listed, TriedPlace};

/// Which way a list is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the newest on.
    Older,
    /// From an older one on.
    Newer,
}

impl TriedPlace {
    /// Behind all attempts of an effect, as they are gone through.
    pub(crate) fn behind(effect: EffectId, way: Way) -> TriedPlace {
        let fence = match way {
            Way::Older => 0,
            Way::Newer => u64::MAX,
        };
        TriedPlace { effect, fence }
    }
}

/// A page as it fills.
pub(crate) struct Walk<T, I> {
    way: Way,
    limit: usize,
    found: Vec<(I, T)>,
    last: Option<I>,
    more: bool,
}

impl<T, I: Copy> Walk<T, I> {
    /// An empty page for so many rows.
    pub(crate) fn new(way: Way, limit: usize) -> Walk<T, I> {
        Walk {
            way,
            limit,
            found: Vec::new(),
            last: None,
            more: false,
        }
    }

    /// One more was looked at, and perhaps fits. Is the page full?
    pub(crate) fn is_over(&mut self, place: I, fitting: Option<T>) -> bool {
        if self.found.len() == self.limit {
            self.more = true;
            return true;
        }
        self.last = Some(place);
        self.found.extend(fitting.map(|one| (place, one)));
        self.way == Way::Newer && self.found.len() == self.limit
    }

    /// All up to here was looked at, and nothing more of it fits.
    pub(crate) fn passed(&mut self, place: I) {
        if self.found.len() < self.limit {
            self.last = Some(place);
        }
    }

    /// The page. It may have ended early because it had looked at as much as it may: then it says where to go on.
    pub(crate) fn listed(mut self, stopped_early: bool) -> Listed<T, I> {
        let reached = self.last.filter(|_| stopped_early);
        let (next, newer) = match self.way {
            Way::Older => (self.last.filter(|_| self.more || stopped_early), None),
            Way::Newer => {
                self.found.reverse();
                // There is always something older: the one this page began after.
                let older = self.found.last().map(|(place, _)| *place);
                (older.or(reached), reached)
            }
        };
        let rows = self.found.into_iter().map(|(_, one)| one).collect();
        Listed { rows, next, newer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places `1..=5`, of which only the even ones fit.
    fn walk(way: Way, limit: usize, stopped_early: bool) -> Listed<u32, u32> {
        let mut walk = Walk::new(way, limit);
        for place in 1..=5 {
            if walk.is_over(place, Some(place).filter(|place| place % 2 == 0)) {
                return walk.listed(false);
            }
        }
        walk.listed(stopped_early)
    }

    #[test]
    fn a_page_that_ends_early_says_how_far_it_looked() {
        let newer = walk(Way::Newer, 9, true);
        assert_eq!(
            (newer.rows, newer.next, newer.newer),
            (vec![4, 2], Some(2), Some(5))
        );
        let whole = walk(Way::Newer, 9, false);
        assert_eq!((whole.next, whole.newer), (Some(2), None));
        let full = walk(Way::Newer, 1, true);
        assert_eq!(
            (full.rows, full.newer),
            (vec![2], None),
            "it goes on at its row"
        );
        let older = walk(Way::Older, 9, true);
        assert_eq!((older.next, older.newer), (Some(5), None));
    }

    #[test]
    fn a_page_without_rows_leads_both_ways() {
        let mut empty: Walk<u32, u32> = Walk::new(Way::Newer, 9);
        empty.passed(7);
        let empty = empty.listed(true);
        assert_eq!((empty.next, empty.newer), (Some(7), Some(7)));
    }
}
