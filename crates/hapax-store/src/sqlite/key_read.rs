//! Lists of guarded keys, and their count.

use hapax_ledger::guard::GuardState;
use hapax_ledger::id::KeyId;
use hapax_ledger::time::Time;
use rusqlite::{Connection, params};

use super::key::{self, key_columns, to_key};
use super::read::ROWS_LOOKED_AT_MAX;
use super::sql_error;
use crate::error::StoreError;
use crate::nouns::{KeyFilter, KeyRecord, Listed, PAGE_MAX, Page, PageFrom};
use crate::walk::{Walk, Way};

/// A page of keys, newest first.
pub(super) fn keys(
    db: &Connection,
    filter: &KeyFilter,
    page: Page<KeyId>,
    now: Time,
) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
    let limit = page.limit.clamp(1, PAGE_MAX) as usize;
    let from = match page.from {
        PageFrom::Newest => (Way::Older, i64::MAX),
        PageFrom::OlderThan(id) => (Way::Older, key::row_of(id)),
        PageFrom::NewerThan(id) => (Way::Newer, key::row_of(id)),
    };
    walk(db, filter, from, limit, now)
}

/// Are only keys wanted that have not ended? They are few, and have indexes.
fn only_open(filter: &KeyFilter) -> bool {
    matches!(
        filter.state,
        Some(GuardState::Running | GuardState::Unknown)
    )
}

fn statement(filter: &KeyFilter, way: Way) -> &'static str {
    match (only_open(filter), way) {
        (true, Way::Older) => concat!(
            key_columns!("INDEXED BY guard_key_running WHERE k.state = 0 AND k.seq < ?1"),
            " UNION ALL ",
            key_columns!("INDEXED BY guard_key_unknown WHERE k.state = 3 AND k.seq < ?1"),
            " ORDER BY 1 DESC LIMIT ?2"
        ),
        (true, Way::Newer) => concat!(
            key_columns!("INDEXED BY guard_key_running WHERE k.state = 0 AND k.seq > ?1"),
            " UNION ALL ",
            key_columns!("INDEXED BY guard_key_unknown WHERE k.state = 3 AND k.seq > ?1"),
            " ORDER BY 1 LIMIT ?2"
        ),
        (false, Way::Older) => key_columns!("WHERE k.seq < ?1 ORDER BY k.seq DESC LIMIT ?2"),
        (false, Way::Newer) => key_columns!("WHERE k.seq > ?1 ORDER BY k.seq LIMIT ?2"),
    }
}

fn walk(
    db: &Connection,
    filter: &KeyFilter,
    (way, from): (Way, i64),
    limit: usize,
    now: Time,
) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
    let mut read = db
        .prepare_cached(statement(filter, way))
        .map_err(sql_error)?;
    let mut rows = read
        .query(params![from, ROWS_LOOKED_AT_MAX])
        .map_err(sql_error)?;
    let mut walk = Walk::new(way, limit);
    let mut looked_at = 0;
    while let Some(row) = rows.next().map_err(sql_error)? {
        looked_at += 1;
        let key = to_key(row).map_err(sql_error)?.key;
        let id = key.shown.id;
        let seen = key.seen(now).filter(|record| filter.fits(record));
        if walk.is_over(id, seen) {
            return Ok(walk.listed(false));
        }
    }
    Ok(walk.listed(looked_at == ROWS_LOOKED_AT_MAX))
}

/// How many keys there are, and how many of them have more than one row.
pub(super) fn count(db: &Connection) -> Result<(u64, u64), StoreError> {
    let counted: (i64, i64) = db
        .query_row(
            "SELECT coalesce(sum(n), 0), count(*) FILTER (WHERE n > 1)
             FROM (SELECT count(*) AS n FROM guard_key GROUP BY key_hash)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(sql_error)?;
    Ok((counted.0 as u64, counted.1 as u64))
}
