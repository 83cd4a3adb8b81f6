//! Pages of a map that is in the order of its ids.

use std::collections::BTreeMap;

use crate::nouns::{Listed, PAGE_MAX, Page, PageFrom};

/// The rows of one page, as `shown` gives those that fit; newest first.
pub(super) fn page<I: Ord + Copy, R, T>(
    rows: &BTreeMap<I, R>,
    page: Page<I>,
    shown: impl Fn(&R) -> Option<T>,
) -> Listed<T, I> {
    let limit = page.limit.clamp(1, PAGE_MAX) as usize;
    match page.from {
        PageFrom::NewerThan(id) => {
            let newer = rows.range(id..).filter(|(at, _)| **at != id);
            let mut found: Vec<(I, T)> = newer
                .filter_map(|(id, row)| Some((*id, shown(row)?)))
                .take(limit)
                .collect();
            found.reverse();
            let next = found.last().map(|(id, _)| *id);
            let rows = found.into_iter().map(|(_, row)| row).collect();
            Listed {
                rows,
                next,
                newer: None,
            }
        }
        PageFrom::Newest => older(rows.range(..), shown, limit),
        PageFrom::OlderThan(id) => older(rows.range(..id), shown, limit),
    }
}

fn older<'a, I: Copy + 'a, R: 'a, T>(
    range: impl DoubleEndedIterator<Item = (&'a I, &'a R)>,
    shown: impl Fn(&R) -> Option<T>,
    limit: usize,
) -> Listed<T, I> {
    let mut rows = Vec::new();
    let mut last = None;
    for (id, row) in range.rev() {
        if rows.len() == limit {
            return Listed {
                rows,
                next: last,
                newer: None,
            };
        }
        last = Some(*id);
        rows.extend(shown(row));
    }
    Listed {
        rows,
        next: None,
        newer: None,
    }
}
