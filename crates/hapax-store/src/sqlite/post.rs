//! Messages, deliveries and attempts as they are listed, on reading connections.

use std::collections::HashMap;

use hapax_ledger::id::{EffectId, EndpointId, EventId};
use rusqlite::{Connection, params};

use super::effect::{self, PLACE_BITS, PLACE_MAX};
use super::index::KeyIndex;
use super::read::{self, ROWS_LOOKED_AT_MAX, row_of};
use super::{attempt, list, message, sql_error};
use crate::error::StoreError;
use crate::nouns::{
    Deliveries, Listed, Message, MessageFilter, PAGE_MAX, Page, PageFrom, Posted, PostedFilter,
    Tried, TriedPlace, WAITING_COUNTED_MAX,
};
use crate::walk::{Walk, Way};

/// Row numbers that are read at once.
const ROWS_AT_ONCE: usize = 512;

/// A page of messages, newest first.
pub(super) fn messages(
    db: &Connection,
    index: &KeyIndex,
    filter: &MessageFilter,
    page: Page,
) -> Result<Listed<Message>, StoreError> {
    let limit = page.limit.clamp(1, PAGE_MAX) as usize;
    let (way, from) = match page.from {
        PageFrom::Newest => (Way::Older, i64::MAX),
        PageFrom::OlderThan(id) => (Way::Older, row_of(id)),
        PageFrom::NewerThan(id) => {
            let since = filter.since.map(|since| list::before(db, since));
            let row = row_of(id);
            (
                Way::Newer,
                since.transpose()?.map_or(row, |since| row.max(since)),
            )
        }
    };
    let mut walk = Walk::new(way, limit);
    let mut rows = Rows::new(way, from, |from, way| message_rows(db, filter, from, way));
    while let Some(row) = rows.next()? {
        let Some(event) = read::row(db, index, row)? else {
            continue;
        };
        let id = event.id;
        let fits = filter.fits_event(&event);
        let message = match fits {
            true => message::of_event(db, event)?,
            false => None,
        };
        if walk.is_over(
            id,
            message.filter(|message| filter.fits_about(&message.about)),
        ) {
            break;
        }
    }
    Ok(walk.listed(rows.stopped_early()))
}

/// Rows of events that may be such messages, from here on.
fn message_rows(
    db: &Connection,
    filter: &MessageFilter,
    from: i64,
    way: Way,
) -> Result<Vec<i64>, StoreError> {
    let statement = match (filter.app, way) {
        (Some(_), Way::Older) => {
            "SELECT seq FROM message WHERE app = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2"
        }
        (Some(_), Way::Newer) => {
            "SELECT seq FROM message WHERE app = ?3 AND seq > ?1 ORDER BY seq LIMIT ?2"
        }
        (None, Way::Older) => {
            "SELECT seq FROM event WHERE seq < ?1 AND ?3 IS NULL ORDER BY seq DESC LIMIT ?2"
        }
        (None, Way::Newer) => {
            "SELECT seq FROM event WHERE seq > ?1 AND ?3 IS NULL ORDER BY seq LIMIT ?2"
        }
    };
    let app = filter.app.map(|app| app.bytes());
    db.prepare_cached(statement)
        .and_then(|mut read| {
            let rows = read.query_map(params![from, ROWS_AT_ONCE as i64, app], |row| row.get(0))?;
            rows.collect()
        })
        .map_err(sql_error)
}

/// Row numbers, some at a time, up to a limit.
struct Rows<F> {
    way: Way,
    from: i64,
    some: std::vec::IntoIter<i64>,
    ended: bool,
    looked_at: usize,
    read: F,
}

impl<F: Fn(i64, Way) -> Result<Vec<i64>, StoreError>> Rows<F> {
    fn new(way: Way, from: i64, read: F) -> Rows<F> {
        Rows {
            way,
            from,
            some: Vec::new().into_iter(),
            ended: false,
            looked_at: 0,
            read,
        }
    }

    fn next(&mut self) -> Result<Option<i64>, StoreError> {
        if self.some.len() == 0 && !self.ended && !self.stopped_early() {
            let some = (self.read)(self.from, self.way)?;
            self.ended = some.len() < ROWS_AT_ONCE;
            self.looked_at += some.len();
            self.from = some.last().copied().unwrap_or(self.from);
            self.some = some.into_iter();
        }
        Ok(self.some.next())
    }

    /// So many were looked at that the page ends here, and says where to go on.
    fn stopped_early(&self) -> bool {
        !self.ended && self.looked_at >= ROWS_LOOKED_AT_MAX as usize
    }
}

/// Deliveries with their messages, each message read once.
struct Posts<'a> {
    db: &'a Connection,
    index: &'a KeyIndex,
    messages: HashMap<EventId, Option<Message>>,
}

impl Posts<'_> {
    fn new<'a>(db: &'a Connection, index: &'a KeyIndex) -> Posts<'a> {
        Posts {
            db,
            index,
            messages: HashMap::new(),
        }
    }

    /// The delivery of a row, if it fits.
    fn read(
        &mut self,
        row: i64,
        filter: &PostedFilter,
    ) -> Result<Option<(EffectId, Option<Posted>)>, StoreError> {
        let Some(held) = effect::read(self.db, row)? else {
            return Ok(None);
        };
        let effect = held.effect;
        let (id, state) = (effect.id, effect.record.state);
        if !filter.states.is_empty() && !filter.states.contains(&state) {
            return Ok(Some((id, None)));
        }
        if self.messages.len() >= ROWS_AT_ONCE {
            self.messages.clear();
        }
        let message = match self.messages.get(&effect.event) {
            Some(message) => message.clone(),
            None => {
                let message = message::message(self.db, self.index, effect.event)?;
                self.messages.insert(effect.event, message.clone());
                message
            }
        };
        let posted = Posted { effect, message };
        let fitting = filter.fits(&posted).then_some(posted);
        Ok(Some((id, fitting)))
    }
}

/// Rows of the deliveries that are meant, from here on.
fn delivery_rows(
    db: &Connection,
    which: &Deliveries,
    from: i64,
    way: Way,
) -> Result<Vec<i64>, StoreError> {
    let many = ROWS_AT_ONCE as i64;
    let run = |statement: &str, named: &[&dyn rusqlite::ToSql]| -> rusqlite::Result<Vec<i64>> {
        let mut read = db.prepare_cached(statement)?;
        read.query_map(named, |row| row.get(0))?.collect()
    };
    let rows = match (which, way) {
        (Deliveries::To(endpoint), Way::Older) => run(
            "SELECT seq FROM effect INDEXED BY effect_posted
             WHERE lane >= 'ep_' AND lane < 'ep`' AND lane = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3",
            &[&endpoint.to_string(), &from, &many],
        ),
        (Deliveries::To(endpoint), Way::Newer) => run(
            "SELECT seq FROM effect INDEXED BY effect_posted
             WHERE lane >= 'ep_' AND lane < 'ep`' AND lane = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
            &[&endpoint.to_string(), &from, &many],
        ),
        (Deliveries::Of(event), way) => {
            let first = row_of(*event) << PLACE_BITS;
            let named: [&dyn rusqlite::ToSql; 5] =
                [&first, &(first | PLACE_MAX), &from, &row_of(*event), &many];
            match way {
                Way::Older => run(
                    "SELECT seq FROM effect WHERE seq BETWEEN ?1 AND ?2 AND seq < ?3
                     UNION SELECT effect FROM effect_link WHERE event = ?4 AND effect < ?3
                     ORDER BY 1 DESC LIMIT ?5",
                    &named,
                ),
                Way::Newer => run(
                    "SELECT seq FROM effect WHERE seq BETWEEN ?1 AND ?2 AND seq > ?3
                     UNION SELECT effect FROM effect_link WHERE event = ?4 AND effect > ?3
                     ORDER BY 1 LIMIT ?5",
                    &named,
                ),
            }
        }
    };
    rows.map_err(sql_error)
}

fn effect_row(id: EffectId) -> i64 {
    id.0.row() as i64
}

/// A page of deliveries, newest first.
pub(super) fn deliveries(
    db: &Connection,
    index: &KeyIndex,
    which: &Deliveries,
    filter: &PostedFilter,
    page: Page<EffectId>,
) -> Result<Listed<Posted, EffectId>, StoreError> {
    let db = &db.unchecked_transaction().map_err(sql_error)?;
    let limit = page.limit.clamp(1, PAGE_MAX) as usize;
    let (way, from) = match page.from {
        PageFrom::Newest => (Way::Older, i64::MAX),
        PageFrom::OlderThan(id) => (Way::Older, effect_row(id)),
        PageFrom::NewerThan(id) => (Way::Newer, effect_row(id)),
    };
    let mut walk = Walk::new(way, limit);
    let mut posts = Posts::new(db, index);
    let mut rows = Rows::new(way, from, |from, way| delivery_rows(db, which, from, way));
    while let Some(row) = rows.next()? {
        if let Some((id, posted)) = posts.read(row, filter)?
            && walk.is_over(id, posted)
        {
            break;
        }
    }
    Ok(walk.listed(rows.stopped_early()))
}

/// A page of ended attempts, newest message first and of each the latest attempt first.
pub(super) fn attempts(
    db: &Connection,
    index: &KeyIndex,
    which: &Deliveries,
    filter: &PostedFilter,
    page: Page<TriedPlace>,
) -> Result<Listed<Tried, TriedPlace>, StoreError> {
    let db = &db.unchecked_transaction().map_err(sql_error)?;
    let limit = page.limit.clamp(1, PAGE_MAX) as usize;
    // The delivery that the last page ended with may have more: it is looked at again.
    let (way, from, after) = match page.from {
        PageFrom::Newest => (Way::Older, i64::MAX, None),
        PageFrom::OlderThan(place) => (Way::Older, effect_row(place.effect) + 1, Some(place)),
        PageFrom::NewerThan(place) => (Way::Newer, effect_row(place.effect) - 1, Some(place)),
    };
    let mut walk = Walk::new(way, limit);
    let mut posts = Posts::new(db, index);
    let mut rows = Rows::new(way, from, |from, way| delivery_rows(db, which, from, way));
    'page: while let Some(row) = rows.next()? {
        let Some((effect, posted)) = posts.read(row, filter)? else {
            continue;
        };
        let mut tried = match &posted {
            Some(_) => attempt::of_effect(db, row)?,
            None => Vec::new(),
        };
        if way == Way::Older {
            tried.reverse();
        }
        for attempt in tried {
            let fence = attempt.fence.as_u64();
            let place = TriedPlace { effect, fence };
            let is_further = after.is_none_or(|after| match way {
                Way::Older => place < after || effect != after.effect,
                Way::Newer => place > after || effect != after.effect,
            });
            let one = posted.clone().map(|posted| Tried { posted, attempt });
            if is_further && walk.is_over(place, one) {
                break 'page;
            }
        }
        walk.passed(TriedPlace::behind(effect, way));
    }
    Ok(walk.listed(rows.stopped_early()))
}

/// Deliveries to an endpoint that wait, and that are under way, each counted up to a limit.
pub(super) fn waiting(db: &Connection, endpoint: EndpointId) -> Result<(u64, u64), StoreError> {
    let count = |statement: &str| -> Result<u64, StoreError> {
        let counted: i64 = db
            .prepare_cached(statement)
            .and_then(|mut count| {
                let named = params![endpoint.to_string(), WAITING_COUNTED_MAX as i64];
                count.query_row(named, |row| row.get(0))
            })
            .map_err(sql_error)?;
        Ok(counted as u64)
    };
    let due = count(
        "SELECT count(*) FROM (SELECT 1 FROM effect INDEXED BY effect_due
             WHERE state = 0 AND gate = 0 AND lane = ?1 LIMIT ?2)",
    )?;
    let behind = count(
        "SELECT count(*) FROM (SELECT 1 FROM effect INDEXED BY effect_behind
             WHERE state = 0 AND gate <> 0 AND lane = ?1 LIMIT ?2)",
    )?;
    let under_way = count(
        "SELECT count(*) FROM (SELECT 1 FROM effect INDEXED BY effect_held
             WHERE state = 1 AND lane = ?1 LIMIT ?2)",
    )?;
    Ok(((due + behind).min(WAITING_COUNTED_MAX), under_way))
}
