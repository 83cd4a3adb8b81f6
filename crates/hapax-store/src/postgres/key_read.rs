//! Lists of guarded keys, and their count.

use hapax_ledger::guard::{GuardState, LEASE_GRACE};
use hapax_ledger::id::KeyId;
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::key::{KEY_COLUMNS, key_columns, to_key};
use super::moment::{LeaseClock, now};
use super::pool::{Param, Pool};
use super::read::ROWS_LOOKED_AT_MAX;
use super::wire::{Uuid, sendable};
use crate::error::StoreError;
use crate::nouns::{KeyFilter, KeyRecord, Listed, PAGE_MAX, Page, PageFrom};

/// Every key's id is smaller.
const BEHIND_ALL: Uuid = Uuid([0xff; 16]);

/// Keys that have not ended. Those of which nobody knows have an index; those that run are among those whose lease was not over when it was
/// last looked for lost ones (see [`super::key_sweep`]).
macro_rules! open {
    ($columns:literal, $walk:literal) => {
        concat!(
            "SELECT * FROM (SELECT ",
            $columns,
            " FROM hapax.guard_key
                 WHERE lease_until > (SELECT swept FROM hapax.store WHERE one = 1) AND state = 0 AND ",
            $walk,
            " UNION ALL SELECT ",
            $columns,
            " FROM hapax.guard_key WHERE unknown AND ",
            $walk,
            ") o"
        )
    };
}

/// One page of these keys, in this order, as far as they fit the filter as things stand now: a run may have been
/// lost, and an answered key forgotten, without anybody having said so. What is NULL does not narrow.
macro_rules! page {
    ($keys:expr, $order:literal) => {
        key_columns!(
            ", t.now",
            concat!(
                "FROM (",
                $keys,
                " ORDER BY id ",
                $order,
                " LIMIT 50000) k, ",
                now!("$3"),
                " AS t (now)
                 WHERE (k.state IN (0, 3) OR k.expires_at + k.grace > t.now)
                   AND ($4::int2 IS NULL
                     OR $4 = CASE WHEN k.state = 0 AND k.lease_until + $8 <= t.now THEN 3 ELSE k.state END)
                   AND ($5::text IS NULL OR k.guard = $5) AND ($6::text IS NULL OR k.principal = $6)
                   AND ($7::text IS NULL OR k.key = $7)
                 ORDER BY k.id ",
                $order,
                " LIMIT $2"
            )
        )
    };
}

const OLDER: &str = page!("SELECT * FROM hapax.guard_key WHERE id < $1", "DESC");
const NEWER: &str = page!("SELECT * FROM hapax.guard_key WHERE id > $1", "");
const OLDER_OPEN: &str = page!(open!("*", "id < $1"), "DESC");
const NEWER_OPEN: &str = page!(open!("*", "id > $1"), "");
/// The last key that a page has looked at, if it looked at as many as it may.
const END_OF_LOOK: &str =
    "SELECT id FROM hapax.guard_key WHERE id < $1 ORDER BY id DESC OFFSET $2 - 1 LIMIT 1";
const END_OF_LOOK_OPEN: &str = concat!(
    open!("id", "id < $1"),
    " ORDER BY id DESC OFFSET $2 - 1 LIMIT 1"
);
/// The same towards newer ones.
const END_OF_LOOK_NEWER: &str =
    "SELECT id FROM hapax.guard_key WHERE id > $1 ORDER BY id OFFSET $2 - 1 LIMIT 1";
const END_OF_LOOK_NEWER_OPEN: &str =
    concat!(open!("id", "id > $1"), " ORDER BY id OFFSET $2 - 1 LIMIT 1");

/// A filter as parameters `$3` to `$8`, after the id to begin at and the number of rows.
struct Wanted {
    given: Option<i64>,
    state: Option<i16>,
    texts: [Option<String>; 3],
    lease_grace: i64,
    /// Are only keys wanted that have not ended?
    only_open: bool,
}

impl Wanted {
    fn new(filter: &KeyFilter, clock: &LeaseClock) -> Wanted {
        let safe = |text: &Option<String>| text.as_deref().map(|text| sendable(text).into_owned());
        Wanted {
            given: clock.given(),
            state: filter.state.map(|state| state.code().into()),
            texts: [
                safe(&filter.guard),
                safe(&filter.principal),
                safe(&filter.key),
            ],
            lease_grace: LEASE_GRACE.micros(),
            only_open: matches!(
                filter.state,
                Some(GuardState::Running | GuardState::Unknown)
            ),
        }
    }

    fn params<'p>(&'p self, from: &'p Uuid, limit: &'p i64) -> [Param<'p>; 8] {
        let [guard, principal, key] = &self.texts;
        [
            (from, Type::UUID),
            (limit, Type::INT8),
            (&self.given, Type::INT8),
            (&self.state, Type::INT2),
            (guard, Type::TEXT),
            (principal, Type::TEXT),
            (key, Type::TEXT),
            (&self.lease_grace, Type::INT8),
        ]
    }
}

/// A row of [`page`] as operators see it.
fn to_record(row: &Row) -> Option<KeyRecord> {
    to_key(row)
        .key
        .seen(Time::from_micros(row.get(KEY_COLUMNS)))
}

/// One key.
pub(super) async fn one(
    pool: &Pool,
    id: KeyId,
    clock: &LeaseClock,
) -> Result<Option<KeyRecord>, StoreError> {
    let sql = key_columns!(
        ", t.now",
        concat!(
            "FROM hapax.guard_key k, ",
            now!("$2"),
            " AS t (now) WHERE k.id = $1"
        )
    );
    let params: [Param<'_>; 2] = [
        (&Uuid(id.bytes()), Type::UUID),
        (&clock.given(), Type::INT8),
    ];
    let rows = pool.read(sql, &params).await?;
    Ok(rows.first().and_then(to_record))
}

/// A page of keys, newest first.
pub(super) async fn keys(
    pool: &Pool,
    filter: &KeyFilter,
    page: Page<KeyId>,
    clock: &LeaseClock,
) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
    let limit = i64::from(page.limit.clamp(1, PAGE_MAX));
    let wanted = Wanted::new(filter, clock);
    match page.from {
        PageFrom::Newest => older(pool, &wanted, BEHIND_ALL, limit).await,
        PageFrom::OlderThan(id) => older(pool, &wanted, Uuid(id.bytes()), limit).await,
        PageFrom::NewerThan(id) => newer(pool, &wanted, Uuid(id.bytes()), limit).await,
    }
}

async fn older(
    pool: &Pool,
    wanted: &Wanted,
    from: Uuid,
    limit: i64,
) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
    let (page, end) = match wanted.only_open {
        true => (OLDER_OPEN, END_OF_LOOK_OPEN),
        false => (OLDER, END_OF_LOOK),
    };
    // One more than fits says whether the list goes on.
    let found = pool.walk(page, &wanted.params(&from, &(limit + 1))).await?;
    let mut rows: Vec<KeyRecord> = found.iter().filter_map(to_record).collect();
    let next = match found.len() as i64 > limit {
        true => {
            rows.truncate(limit as usize);
            rows.last().map(|last| last.id)
        }
        false => end_of_look(pool, from, end).await?,
    };
    Ok(Listed {
        rows,
        next,
        newer: None,
    })
}

/// Where a page stopped looking, if it did before the end.
async fn end_of_look(
    pool: &Pool,
    from: Uuid,
    end: &'static str,
) -> Result<Option<KeyId>, StoreError> {
    let params: [Param<'_>; 2] = [(&from, Type::UUID), (&ROWS_LOOKED_AT_MAX, Type::INT8)];
    let last = pool.walk(end, &params).await?;
    Ok(last
        .first()
        .map(|row| KeyId::from_bytes(row.get::<_, Uuid>(0).0)))
}

async fn newer(
    pool: &Pool,
    wanted: &Wanted,
    from: Uuid,
    limit: i64,
) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
    let (page, end) = match wanted.only_open {
        true => (NEWER_OPEN, END_OF_LOOK_NEWER_OPEN),
        false => (NEWER, END_OF_LOOK_NEWER),
    };
    let found = pool.walk(page, &wanted.params(&from, &limit)).await?;
    let rows: Vec<KeyRecord> = found.iter().rev().filter_map(to_record).collect();
    let newer = match (found.len() as i64) < limit {
        true => end_of_look(pool, from, end).await?,
        false => None,
    };
    // There is always something older: the key this page began after.
    let next = rows.last().map(|record| record.id).or(newer);
    Ok(Listed { rows, next, newer })
}

/// How many keys there are. That none has two rows is the primary key's to say.
pub(super) async fn count(pool: &Pool) -> Result<u64, StoreError> {
    let rows = pool
        .read("SELECT count(*) FROM hapax.guard_key", &[])
        .await?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0) as u64))
}
