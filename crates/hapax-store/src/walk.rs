//! A page of a list as it fills, whatever the store.

use crate::nouns::Listed;

/// Which way a list is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the newest on.
    Older,
    /// From an older one on.
    Newer,
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

    /// The page. It may have ended early because it had looked at as much as it may: then it says where to go on.
    pub(crate) fn listed(mut self, stopped_early: bool) -> Listed<T, I> {
        let next = match self.way {
            Way::Older => self.last.filter(|_| self.more || stopped_early),
            Way::Newer => {
                self.found.reverse();
                // There is always something older: the one this page began after.
                self.found.last().map(|(place, _)| *place)
            }
        };
        let rows = self.found.into_iter().map(|(_, one)| one).collect();
        Listed { rows, next }
    }
}
