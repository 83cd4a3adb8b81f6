//! Lists of events.

use hapax_ledger::id::{EventId, ROW_MAX, RawId, SHARD_MAX};
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::SHARDS;
use super::pool::{Param, Pool};
use super::read::{ROWS_LOOKED_AT_MAX, event_columns, to_event};
use super::wire::{Uuid, sendable};
use crate::error::StoreError;
use crate::nouns::{Event, EventFilter, Listed, PAGE_MAX, Page, PageFrom};
use crate::walk::Way;

/// What a page looks for, from the parameters of [`Wanted`]; the planner drops what is NULL.
macro_rules! wanted {
    () => {
        "($6::text IS NULL OR e.source = $6) AND ($7::text IS NULL OR e.type = $7)
             AND ($8::int2 IS NULL OR e.status = $8) AND ($9::text IS NULL OR e.key = $9)
             AND ($10::text IS NULL OR e.entity = $10) AND ($11::int8 IS NULL OR e.at >= $11)
             AND ($12::int8 IS NULL OR e.at < $12) AND ($13::text IS NULL OR position($13 in e.key) > 0) "
    };
}

/// The events that a page looks at, in this order; `$walk` says along which index.
macro_rules! page {
    ($walk:literal, $from:literal, $order:literal) => {
        event_columns!(
            "FROM (SELECT * FROM hapax.event WHERE ",
            $walk,
            " AND ",
            $from,
            " AND id BETWEEN $3 AND $4 ORDER BY id ",
            $order,
            " LIMIT 50000) e WHERE ",
            wanted!(),
            "ORDER BY e.id ",
            $order,
            " LIMIT $2"
        )
    };
}

const OLDER: &str = page!("($5::int2 IS NULL OR shard = $5)", "id < $1", "DESC");
const NEWER: &str = page!("($5::int2 IS NULL OR shard = $5)", "id > $1", "");
/// Of what was given up or waits for a person, which is few, whatever else there is.
const OLDER_WAITING: &str = page!("waiting = $8 AND waiting IS NOT NULL", "id < $1", "DESC");
const NEWER_WAITING: &str = page!("waiting = $8 AND waiting IS NOT NULL", "id > $1", "");
/// The last event that a page has looked at, if it looked at as many as it may.
const END_OF_LOOK: &str = "SELECT id FROM hapax.event
     WHERE id < $1 AND id BETWEEN $3 AND $4 AND ($5::int2 IS NULL OR shard = $5)
     ORDER BY id DESC OFFSET $2 - 1 LIMIT 1";
const END_OF_LOOK_WAITING: &str = "SELECT id FROM hapax.event
     WHERE waiting = $8 AND waiting IS NOT NULL AND id < $1 AND id BETWEEN $3 AND $4
     ORDER BY id DESC OFFSET $2 - 1 LIMIT 1";
/// The same towards newer ones.
const END_OF_LOOK_NEWER: &str = "SELECT id FROM hapax.event
     WHERE id > $1 AND id BETWEEN $3 AND $4 AND ($5::int2 IS NULL OR shard = $5)
     ORDER BY id OFFSET $2 - 1 LIMIT 1";
const END_OF_LOOK_NEWER_WAITING: &str = "SELECT id FROM hapax.event
     WHERE waiting = $8 AND waiting IS NOT NULL AND id > $1 AND id BETWEEN $3 AND $4
     ORDER BY id OFFSET $2 - 1 LIMIT 1";

/// A filter as parameters: `$3` to `$13`, after the id to begin at and the number of rows.
struct Wanted<'a> {
    low: Uuid,
    high: Uuid,
    shard: Option<i16>,
    filter: &'a EventFilter,
    texts: [Option<String>; 5],
    status: Option<i16>,
    since: Option<i64>,
    until: Option<i64>,
}

impl Wanted<'_> {
    fn new(filter: &EventFilter) -> Wanted<'_> {
        // Ids sort by time: a range of time is a range of ids, to the millisecond.
        let low = filter
            .since
            .map_or([0; 16], |since| RawId::new(since, 0, 0).bytes());
        let high = filter.until.map_or([0xff; 16], |until| {
            RawId::new(until, SHARD_MAX, ROW_MAX).bytes()
        });
        // Scope and key together name the shard.
        let shard = filter
            .source
            .as_ref()
            .zip(filter.key.as_ref())
            .map(|(source, key)| KeyHash::of(KeyKind::Identity, source, key).shard(SHARDS) as i16);
        let safe = |text: &Option<String>| text.as_deref().map(|text| sendable(text).into_owned());
        Wanted {
            low: Uuid(low),
            high: Uuid(high),
            shard,
            filter,
            texts: [
                safe(&filter.source),
                safe(&filter.event_type),
                safe(&filter.key),
                safe(&filter.entity),
                safe(&filter.key_contains),
            ],
            status: filter.status.map(|status| status.code().into()),
            since: filter.since.map(Time::micros),
            until: filter.until.map(Time::micros),
        }
    }

    /// A text that begins like the second half of an escape (see [`sendable`]) is found in it, too: those rows go here.
    fn exact(&self, mut rows: Vec<Event>) -> Vec<Event> {
        rows.retain(|event| self.filter.fits(event));
        rows
    }

    fn is_everything(&self) -> bool {
        *self.filter == EventFilter::default()
    }

    fn params<'p>(&'p self, from: &'p Uuid, limit: &'p i64) -> [Param<'p>; 13] {
        let [source, kind, key, entity, text] = &self.texts;
        [
            (from, Type::UUID),
            (limit, Type::INT8),
            (&self.low, Type::UUID),
            (&self.high, Type::UUID),
            (&self.shard, Type::INT2),
            (source, Type::TEXT),
            (kind, Type::TEXT),
            (&self.status, Type::INT2),
            (key, Type::TEXT),
            (entity, Type::TEXT),
            (&self.since, Type::INT8),
            (&self.until, Type::INT8),
            (text, Type::TEXT),
        ]
    }
}

/// A page of events, newest first.
pub(super) async fn events(
    pool: &Pool,
    filter: &EventFilter,
    page: Page,
) -> Result<Listed<Event>, StoreError> {
    let limit = i64::from(page.limit.clamp(1, PAGE_MAX));
    let wanted = Wanted::new(filter);
    match page.from {
        PageFrom::Newest => older(pool, &wanted, Uuid([0xff; 16]), limit).await,
        PageFrom::OlderThan(id) => older(pool, &wanted, Uuid(id.bytes()), limit).await,
        PageFrom::NewerThan(id) => newer(pool, &wanted, Uuid(id.bytes()), limit).await,
    }
}

async fn older(
    pool: &Pool,
    wanted: &Wanted<'_>,
    from: Uuid,
    limit: i64,
) -> Result<Listed<Event>, StoreError> {
    let page = match wanted.filter.few() {
        Some(_) => OLDER_WAITING,
        None => OLDER,
    };
    let found = pool.walk(page, &wanted.params(&from, &limit)).await?;
    let rows: Vec<Event> = found.iter().map(to_event).collect();
    let next = match rows.last() {
        Some(last) if rows.len() as i64 == limit => {
            let older = "SELECT 1 FROM hapax.event WHERE id < $1 LIMIT 1";
            let more = pool
                .read(older, &[(&Uuid(last.id.bytes()), Type::UUID)])
                .await?;
            (!more.is_empty()).then_some(last.id)
        }
        _ if wanted.is_everything() => None,
        _ => end_of_look(pool, wanted, from, Way::Older).await?,
    };
    Ok(Listed {
        rows: wanted.exact(rows),
        next,
        newer: None,
    })
}

/// Where a page stopped looking, if it did before the end.
async fn end_of_look(
    pool: &Pool,
    wanted: &Wanted<'_>,
    from: Uuid,
    way: Way,
) -> Result<Option<EventId>, StoreError> {
    let sql = match (wanted.filter.few(), way) {
        (Some(_), Way::Older) => END_OF_LOOK_WAITING,
        (Some(_), Way::Newer) => END_OF_LOOK_NEWER_WAITING,
        (None, Way::Older) => END_OF_LOOK,
        (None, Way::Newer) => END_OF_LOOK_NEWER,
    };
    let last = pool
        .walk(sql, &wanted.params(&from, &ROWS_LOOKED_AT_MAX))
        .await?;
    Ok(last
        .first()
        .map(|row| EventId::from_bytes(row.get::<_, Uuid>(0).0)))
}

async fn newer(
    pool: &Pool,
    wanted: &Wanted<'_>,
    from: Uuid,
    limit: i64,
) -> Result<Listed<Event>, StoreError> {
    let page = match wanted.filter.few() {
        Some(_) => NEWER_WAITING,
        None => NEWER,
    };
    let found = pool.walk(page, &wanted.params(&from, &limit)).await?;
    let rows: Vec<Event> = found.iter().rev().map(to_event).collect();
    let newer = match (rows.len() as i64) < limit && !wanted.is_everything() {
        true => end_of_look(pool, wanted, from, Way::Newer).await?,
        false => None,
    };
    // There is always something older: the event this page began after.
    let next = rows.last().map(|event| event.id).or(newer);
    Ok(Listed {
        rows: wanted.exact(rows),
        next,
        newer,
    })
}
