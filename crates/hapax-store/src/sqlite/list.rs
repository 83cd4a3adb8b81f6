//! Lists of events.
//!
//! Most lists go through the table in its own order, and SQLite itself passes over what does not fit: that is ten times as fast as
//! reading the rows, so that a page can look far. What is few has an index.

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::time::{Span, Time};
use rusqlite::{Connection, OptionalExtension, params};

use super::accept::event_id;
use super::index::KeyIndex;
use super::read::{ROWS_LOOKED_AT_MAX, count_deliveries, event_columns, row_of, to_event};
use super::sql_error;
use crate::error::StoreError;
use crate::nouns::{Event, EventFilter, Listed, PAGE_MAX, Page, PageFrom};
use crate::walk::{Walk, Way};

/// Row numbers that one page may pass over to find those that fit its filter: some 40 ms where all are in memory. A page that passed
/// over so many ends early and says where to go on, so that a rare filter cannot hold a reader for seconds.
const ROWS_PASSED_MAX: i64 = 150_000;
/// Rows stand in the order of their commits, and their times are those of their requests. So much out of order may they be: far more
/// than a commit takes, and as much as a clock is likely to be set back. Where it was set back by more, lists of a time that
/// came twice may leave rows out.
const DISORDER_MAX: Span = Span::from_secs(600);

/// A page of events, newest first.
pub(super) fn events(
    db: &Connection,
    index: &KeyIndex,
    filter: &EventFilter,
    page: Page,
) -> Result<Listed<Event>, StoreError> {
    let limit = page.limit.clamp(1, PAGE_MAX) as usize;
    let (way, from) = match page.from {
        PageFrom::Newest => (Way::Older, begin(db, index, filter, i64::MAX)?),
        PageFrom::OlderThan(id) => (Way::Older, begin(db, index, filter, row_of(id))?),
        PageFrom::NewerThan(id) => (Way::Newer, row_of(id)),
    };
    let mut listed = match filter.few() {
        Some(status) => few(db, filter, status, (way, from), limit),
        None => {
            // One picture: where the list begins and ends, and what is between.
            let db = &db.unchecked_transaction().map_err(sql_error)?;
            many(db, filter, (way, from), limit)
        }
    }?;
    for event in &mut listed.rows {
        count_deliveries(event, index.latest(row_of(event.id))?);
    }
    Ok(listed)
}

/// Where to begin. Source and key together name the newest event that has the key: there is nothing to be found before it. The
/// index hears of rows after their callers do, so what it has not read yet is looked at here.
fn begin(
    db: &Connection,
    index: &KeyIndex,
    filter: &EventFilter,
    before: i64,
) -> Result<i64, StoreError> {
    let (Some(source), Some(key)) = (&filter.source, &filter.key) else {
        return Ok(before);
    };
    let read = index.watermark()?.event;
    let unread: Option<i64> = db
        .prepare_cached("SELECT max(seq) FROM event WHERE seq > ?1 AND source = ?2 AND key = ?3")
        .and_then(|mut find| find.query_row(params![read, source, key], |row| row.get(0)))
        .map_err(sql_error)?;
    let holder = index.get(KeyHash::of(KeyKind::Identity, source, key))?;
    let newest = unread.max(holder);
    Ok(newest.map_or(before, |row| before.min(row.saturating_add(1))))
}

/// What is few is found by its index, whatever else there is.
fn few(
    db: &Connection,
    filter: &EventFilter,
    status: EventStatus,
    (way, from): (Way, i64),
    limit: usize,
) -> Result<Listed<Event>, StoreError> {
    let statement = match way {
        Way::Older => event_columns!(
            "INDEXED BY event_waiting WHERE (e.status = 4 OR e.status = 5) AND e.status = ?3 AND e.seq < ?1
             ORDER BY e.seq DESC LIMIT ?2"
        ),
        Way::Newer => event_columns!(
            "INDEXED BY event_waiting WHERE (e.status = 4 OR e.status = 5) AND e.status = ?3 AND e.seq > ?1
             ORDER BY e.seq LIMIT ?2"
        ),
    };
    let mut read = db.prepare_cached(statement).map_err(sql_error)?;
    let mut rows = read
        .query(params![from, ROWS_LOOKED_AT_MAX, status.code()])
        .map_err(sql_error)?;
    let mut walk = Walk::new(way, limit);
    let mut looked_at = 0;
    while let Some(row) = rows.next().map_err(sql_error)? {
        looked_at += 1;
        let event = to_event(row).map_err(sql_error)?;
        let id = event.id;
        if walk.is_over(id, Some(event).filter(|event| filter.fits(event))) {
            return Ok(walk.listed(false));
        }
    }
    Ok(walk.listed(looked_at == ROWS_LOOKED_AT_MAX))
}

/// Row numbers, the last one not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rows {
    first: i64,
    end: i64,
}

/// What may be many is passed over row by row, within the time that is asked for.
fn many(
    db: &Connection,
    filter: &EventFilter,
    (way, from): (Way, i64),
    limit: usize,
) -> Result<Listed<Event>, StoreError> {
    let Some(all) = all_rows(db)? else {
        return Ok(Listed::default());
    };
    let asked = within(db, filter, all)?;
    match way {
        Way::Older => {
            let window = window_before(db, asked, from)?;
            let rows = fitting(db, filter, way, window, limit)?;
            let last = rows.last().map(|event| event.id);
            let next = match rows.len() == limit {
                true => last.filter(|last| row_of(*last) > all.first),
                false => place(db, window.first, window.first > asked.first)?,
            };
            Ok(Listed {
                rows,
                next,
                newer: None,
            })
        }
        Way::Newer => {
            let window = window_after(db, asked, from)?;
            let mut rows = fitting(db, filter, way, window, limit)?;
            let stopped = rows.len() < limit && window.end < asked.end;
            let newer = place(db, window.end - 1, stopped)?;
            rows.reverse();
            // There is always something older: the event this page began after.
            let next = rows.last().map(|event| event.id).or(newer);
            Ok(Listed { rows, next, newer })
        }
    }
}

/// All rows there are.
fn all_rows(db: &Connection) -> Result<Option<Rows>, StoreError> {
    let ends: (Option<i64>, Option<i64>) = db
        .prepare_cached("SELECT (SELECT min(seq) FROM event), (SELECT max(seq) FROM event)")
        .and_then(|mut read| read.query_row([], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(sql_error)?;
    Ok(ends.0.zip(ends.1).map(|(first, last)| Rows {
        first,
        end: last + 1,
    }))
}

/// The rows among which all are that came in the time that is asked for.
fn within(db: &Connection, filter: &EventFilter, all: Rows) -> Result<Rows, StoreError> {
    let first = match filter.since {
        Some(since) => first_at(db, all, since - DISORDER_MAX)?,
        None => all.first,
    };
    let end = match filter.until {
        Some(until) => first_at(db, all, until + DISORDER_MAX)?,
        None => all.end,
    };
    Ok(Rows {
        first,
        end: end.max(first),
    })
}

/// A row before which none came at this time or later.
pub(super) fn before(db: &Connection, at: Time) -> Result<i64, StoreError> {
    Ok(match all_rows(db)? {
        Some(all) => first_at(db, all, at - DISORDER_MAX)? - 1,
        None => 0,
    })
}

/// The first row that came at this time or later, as if times only rose; found by halving.
fn first_at(db: &Connection, all: Rows, at: Time) -> Result<i64, StoreError> {
    let mut read = db
        .prepare_cached("SELECT seq, at FROM event WHERE seq >= ?1 ORDER BY seq LIMIT 1")
        .map_err(sql_error)?;
    let (mut low, mut high, mut first) = (all.first, all.end, all.end);
    while low < high {
        let middle = low + (high - low) / 2;
        let found: Option<(i64, i64)> = read
            .query_row([middle], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(sql_error)?;
        match found {
            // Rows may be missing between the middle and the one that was found.
            Some((row, came)) if came < at.micros() => low = row + 1,
            Some((row, _)) => (high, first) = (middle, row),
            None => high = middle,
        }
    }
    Ok(first)
}

/// The rows that a page towards older ones passes over. It begins at a row that is there, so that a gap costs one page.
fn window_before(db: &Connection, asked: Rows, before: i64) -> Result<Rows, StoreError> {
    let last: Option<i64> = db
        .prepare_cached("SELECT max(seq) FROM event WHERE seq < ?1")
        .and_then(|mut read| read.query_row([before.min(asked.end)], |row| row.get(0)))
        .map_err(sql_error)?;
    let end = last.map_or(asked.first, |last| last + 1).max(asked.first);
    Ok(Rows {
        first: asked.first.max(end - ROWS_PASSED_MAX),
        end,
    })
}

/// The same towards newer ones.
fn window_after(db: &Connection, asked: Rows, after: i64) -> Result<Rows, StoreError> {
    let next: Option<i64> = db
        .prepare_cached("SELECT min(seq) FROM event WHERE seq > ?1")
        .and_then(|mut read| read.query_row([after.max(asked.first - 1)], |row| row.get(0)))
        .map_err(sql_error)?;
    let first = next.unwrap_or(asked.end).min(asked.end);
    Ok(Rows {
        first,
        end: asked.end.min(first + ROWS_PASSED_MAX),
    })
}

/// What fits among these rows; SQLite decides, and what is NULL does not narrow.
macro_rules! fitting {
    ($order:literal) => {
        event_columns!(
            "WHERE e.seq >= ?1 AND e.seq < ?2 AND (?4 IS NULL OR e.source = ?4) AND (?5 IS NULL OR e.type = ?5)
                 AND (?6 IS NULL OR e.key = ?6) AND (?7 IS NULL OR e.entity = ?7) AND (?8 IS NULL OR e.status = ?8)
                 AND (?9 IS NULL OR e.at >= ?9) AND (?10 IS NULL OR e.at < ?10)
                 AND (?11 IS NULL OR instr(e.key, ?11) > 0)
             ORDER BY e.seq ",
            $order,
            " LIMIT ?3"
        )
    };
}

fn fitting(
    db: &Connection,
    filter: &EventFilter,
    way: Way,
    window: Rows,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let statement = match way {
        Way::Older => fitting!("DESC"),
        Way::Newer => fitting!(""),
    };
    let named = params![
        window.first,
        window.end,
        limit as i64,
        filter.source,
        filter.event_type,
        filter.key,
        filter.entity,
        filter.status.map(EventStatus::code),
        filter.since.map(Time::micros),
        filter.until.map(Time::micros),
        filter.key_contains,
    ];
    let rows: Vec<Event> = db
        .prepare_cached(statement)
        .and_then(|mut read| read.query_map(named, to_event)?.collect())
        .map_err(sql_error)?;
    debug_assert!(rows.iter().all(|event| filter.fits(event)));
    Ok(rows)
}

/// The place of a row number, which need not be there, if a page stopped at it: its time is the next row's.
fn place(db: &Connection, row: i64, stopped: bool) -> Result<Option<EventId>, StoreError> {
    if !stopped {
        return Ok(None);
    }
    db.prepare_cached("SELECT at FROM event WHERE seq >= ?1 ORDER BY seq LIMIT 1")
        .and_then(|mut read| {
            read.query_row([row], |found| {
                Ok(event_id(Time::from_micros(found.get(0)?), row))
            })
            .optional()
        })
        .map_err(sql_error)
}

/// Pages that end early lead on, and lists of a time leave nothing out.
#[cfg(test)]
mod tests {
    use super::*;

    /// Events of type `a` and `b`, by row number, type and the second in which they came.
    fn ledger(rows: &[(i64, &str, i64)]) -> Connection {
        let db = Connection::open_in_memory().expect("a database in memory");
        db.execute_batch(include_str!("schema.sql"))
            .expect("the schema fits");
        for (seq, kind, second) in rows {
            let insert = "INSERT INTO event (seq, at, source, type, key, key_hash, key_origin, body_hash, status, outcome, scheme,
                     retry_window, expires_at, payload_until, ledger_until)
                 VALUES (?1, ?2, 's', ?3, 'k' || ?1, x'00', 0, zeroblob(32), 2, 0, 'none', 0, 0, 0, 0)";
            let at = Time::from_secs(*second).micros();
            db.execute(insert, params![seq, at, kind])
                .expect("the row fits");
        }
        db
    }

    fn of_type(kind: &str) -> EventFilter {
        EventFilter {
            event_type: Some(kind.to_owned()),
            ..EventFilter::default()
        }
    }

    /// Goes through a list page by page, as somebody does who follows its iterators; gives all rows in the order they came up.
    fn through(db: &Connection, filter: &EventFilter, way: Way, from: i64) -> Vec<i64> {
        let (mut from, mut found) = (from, Vec::new());
        for _ in 0..20 {
            let listed = many(db, filter, (way, from), 2).expect("a page");
            let mut rows: Vec<i64> = listed.rows.iter().map(|event| row_of(event.id)).collect();
            if way == Way::Newer {
                rows.reverse();
            }
            let on = match way {
                Way::Older => listed.next.map(row_of),
                // As the API does: where the page stopped looking, or else at its newest row.
                Way::Newer => listed.newer.map(row_of).or(rows.last().copied()),
            };
            found.extend(rows);
            match on {
                Some(on) => from = on,
                None => return found,
            }
        }
        panic!("the list has no end: {found:?}");
    }

    /// A page may pass over 150,000 rows: these stand further apart than that.
    const FAR: [(i64, &str, i64); 7] = [
        (1, "a", 0),
        (2, "b", 1),
        (3, "b", 2),
        (300_003, "b", 3),
        (600_000, "a", 4),
        (1_200_000, "a", 5),
        (1_200_001, "b", 6),
    ];

    #[test]
    fn a_page_that_ends_early_leads_on_both_ways() {
        let db = ledger(&FAR);
        let filter = of_type("a");
        let first = many(&db, &filter, (Way::Newer, 1), 2).expect("a page");
        assert!(first.rows.is_empty(), "nothing fits within reach");
        assert_eq!(first.newer, first.next, "it leads on, and back");
        assert!(first.newer.is_some_and(|place| row_of(place) < 600_000));
        assert_eq!(through(&db, &filter, Way::Newer, 1), [600_000, 1_200_000]);
        assert_eq!(
            through(&db, &filter, Way::Older, i64::MAX),
            [1_200_000, 600_000, 1]
        );
        let back = many(
            &db,
            &filter,
            (Way::Older, row_of(first.next.expect("a place"))),
            2,
        );
        let rows = back.expect("a page").rows;
        assert_eq!(rows.first().map(|event| row_of(event.id)), Some(1));
    }

    #[test]
    fn a_list_without_what_fits_ends() {
        let db = ledger(&FAR);
        for way in [Way::Older, Way::Newer] {
            let from = if way == Way::Older { i64::MAX } else { 0 };
            assert_eq!(through(&db, &of_type("c"), way, from), Vec::<i64>::new());
            let nothing = ledger(&[]);
            let everything = EventFilter::default();
            assert_eq!(through(&nothing, &everything, way, from), Vec::<i64>::new());
        }
    }

    #[test]
    fn lists_of_a_time_are_those_that_came_in_it_however_commits_ended() {
        // One row every four minutes, every seventh of them almost ten minutes late, and a gap.
        let rows: Vec<(i64, &str, i64)> = (1..=400)
            .filter(|n| !(150..250).contains(n))
            .map(|n| (n * 3, "a", n * 240 - if n % 7 == 0 { 590 } else { 0 }))
            .collect();
        let db = ledger(&rows);
        let steps = || (-2_000..100_000).step_by(4_321).map(Some).chain([None]);
        for (since, until) in steps().flat_map(|since| steps().map(move |until| (since, until))) {
            let filter = EventFilter {
                since: since.map(Time::from_secs),
                until: until.map(Time::from_secs),
                ..EventFilter::default()
            };
            let fits = |second: i64| {
                since.is_none_or(|since| second >= since)
                    && until.is_none_or(|until| second < until)
            };
            let mut wanted: Vec<i64> = rows
                .iter()
                .filter(|row| fits(row.2))
                .map(|row| row.0)
                .collect();
            let pages = wanted.len() / 200 + 2;
            assert!(pages < 20, "few enough for the test");
            let all = |way, from| {
                let listed = many(&db, &filter, (way, from), 250).expect("a page");
                let mut rows: Vec<i64> = listed.rows.iter().map(|event| row_of(event.id)).collect();
                if way == Way::Older && rows.len() == 250 {
                    let rest = many(&db, &filter, (way, rows[249]), 250).expect("a page");
                    rows.extend(rest.rows.iter().map(|event| row_of(event.id)));
                }
                rows
            };
            let newer = all(Way::Newer, 0);
            let first: Vec<i64> = wanted.iter().copied().take(250).rev().collect();
            assert_eq!(newer, first, "{since:?} {until:?}");
            wanted.reverse();
            assert_eq!(all(Way::Older, i64::MAX), wanted, "{since:?} {until:?}");
        }
    }

    #[test]
    fn a_time_is_found_without_going_through_what_is_before_it() {
        let hour = |n: i64| n * 3_600;
        let db = ledger(&[
            (1, "a", 0),
            (900_000, "b", hour(24)),
            (1_800_000, "b", hour(48)),
        ]);
        let filter = EventFilter {
            until: Some(Time::from_secs(hour(12))),
            ..EventFilter::default()
        };
        let listed = many(&db, &filter, (Way::Older, i64::MAX), 2).expect("a page");
        assert_eq!((listed.rows.len(), listed.next), (1, None));
        let filter = EventFilter {
            since: Some(Time::from_secs(hour(36))),
            ..of_type("a")
        };
        let listed = many(&db, &filter, (Way::Older, i64::MAX), 2).expect("a page");
        assert_eq!(
            (listed.rows.len(), listed.next),
            (0, None),
            "nothing before it is looked at"
        );
    }
}
