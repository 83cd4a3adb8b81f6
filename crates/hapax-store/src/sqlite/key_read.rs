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

/// A page of keys, newest first.
pub(super) fn keys(
    db: &Connection,
    filter: &KeyFilter,
    page: Page<KeyId>,
    now: Time,
) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
    let limit = page.limit.clamp(1, PAGE_MAX) as usize;
    match page.from {
        PageFrom::Newest => older(db, filter, i64::MAX, limit, now),
        PageFrom::OlderThan(id) => older(db, filter, key::row_of(id), limit, now),
        PageFrom::NewerThan(id) => newer(db, filter, key::row_of(id), limit, now),
    }
}

/// Are only keys wanted that have not ended? They are few, and have an index.
fn only_open(filter: &KeyFilter) -> bool {
    matches!(
        filter.state,
        Some(GuardState::Running | GuardState::Unknown)
    )
}

fn older(
    db: &Connection,
    filter: &KeyFilter,
    before: i64,
    limit: usize,
    now: Time,
) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
    let statement = match only_open(filter) {
        true => key_columns!(
            "INDEXED BY guard_key_open WHERE (k.state = 0 OR k.state = 3) AND k.seq < ?1 ORDER BY k.seq DESC LIMIT ?2"
        ),
        false => key_columns!("WHERE k.seq < ?1 ORDER BY k.seq DESC LIMIT ?2"),
    };
    let mut read = db.prepare_cached(statement).map_err(sql_error)?;
    let mut rows = read
        .query(params![before, ROWS_LOOKED_AT_MAX])
        .map_err(sql_error)?;
    let mut listed = Listed {
        rows: Vec::new(),
        next: None,
    };
    let mut looked_at = 0;
    let mut last = None;
    while let Some(row) = rows.next().map_err(sql_error)? {
        looked_at += 1;
        let key = to_key(row).map_err(sql_error)?.key;
        if listed.rows.len() == limit {
            listed.next = last;
            return Ok(listed);
        }
        last = Some(key.shown.id);
        let seen = key.seen(now);
        listed
            .rows
            .extend(seen.filter(|record| filter.fits(record)));
    }
    if looked_at == ROWS_LOOKED_AT_MAX {
        listed.next = last;
    }
    Ok(listed)
}

fn newer(
    db: &Connection,
    filter: &KeyFilter,
    after: i64,
    limit: usize,
    now: Time,
) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
    let statement = match only_open(filter) {
        true => key_columns!(
            "INDEXED BY guard_key_open WHERE (k.state = 0 OR k.state = 3) AND k.seq > ?1 ORDER BY k.seq LIMIT ?2"
        ),
        false => key_columns!("WHERE k.seq > ?1 ORDER BY k.seq LIMIT ?2"),
    };
    let mut read = db.prepare_cached(statement).map_err(sql_error)?;
    let mut rows = read
        .query(params![after, ROWS_LOOKED_AT_MAX])
        .map_err(sql_error)?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next().map_err(sql_error)?
    {
        let seen = to_key(row).map_err(sql_error)?.key.seen(now);
        found.extend(seen.filter(|record| filter.fits(record)));
    }
    found.reverse();
    // There is always something older: the key this page began after.
    let next = found.last().map(|record: &KeyRecord| record.id);
    Ok(Listed { rows: found, next })
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
