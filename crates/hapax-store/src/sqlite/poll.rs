//! What those who ask for messages ask of SQLite.

use async_trait::async_trait;
use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Time;
use rusqlite::{Connection, params};

use super::index::KeyIndex;
use super::queue::Whose;
use super::read::{self, ROWS_LOOKED_AT_MAX, row_of};
use super::writer::Space;
use super::{SqliteStore, message, poll_consumer, poll_turn, sql_error};
use crate::error::StoreError;
use crate::nouns::{Authority, Consumed, Message, PollAsk, PollPlace, Polled, Sought};
use crate::polling::{self, Given, Polls, Stream};

/// Row numbers that are read at once.
const ROWS_AT_ONCE: usize = 512;

#[async_trait]
impl Polls for SqliteStore {
    async fn poll(&self, ask: PollAsk) -> Result<Polled, StoreError> {
        let Some(app) = ask.filter.app else {
            return Ok(nothing(&ask));
        };
        // Mostly there are none, and the writer has better things to do than to find that out.
        let now = ask.now;
        let mut given = Given::All;
        if self
            .readers
            .run(move |db| poll_turn::any(db, app, now))
            .await?
        {
            given = self
                .writer
                .write(Whose::Ours, Space::Frees, 0, move |tx| {
                    poll_turn::give(tx.db, app, now)
                })
                .await?;
        }
        let index = self.index.clone();
        self.readers
            .run(move |db| poll(db, &index, app, &ask, given))
            .await
    }

    async fn consume(
        &self,
        endpoint: EndpointId,
        consumer: String,
        read: Option<PollPlace>,
        now: Time,
    ) -> Result<Consumed, StoreError> {
        let name = consumer.clone();
        let known = self
            .readers
            .run(move |db| poll_consumer::read(db, endpoint, &name));
        let (consumed, keep) = polling::consume(known.await?, read, now);
        if keep.is_none() {
            return Ok(consumed);
        }
        self.writer
            .write(Whose::Caller, Space::Frees, 0, move |tx| {
                poll_consumer::consume(tx.db, endpoint, &consumer, read, now)
            })
            .await
    }

    async fn seek(
        &self,
        endpoint: EndpointId,
        consumer: String,
        place: PollPlace,
        by: Authority,
        answer: String,
    ) -> Result<Sought, StoreError> {
        self.writer
            .write(Whose::Caller, Space::Frees, 0, move |tx| {
                poll_consumer::seek(tx.db, endpoint, &consumer, place, &by, answer)
            })
            .await
    }
}

fn nothing(ask: &PollAsk) -> Polled {
    Polled {
        messages: Vec::new(),
        place: ask.from,
        more: false,
    }
}

fn poll(
    db: &Connection,
    index: &KeyIndex,
    app: AppId,
    ask: &PollAsk,
    given: Given,
) -> Result<Polled, StoreError> {
    let db = &db.unchecked_transaction().map_err(sql_error)?;
    let limit = polling::limit(ask);
    let wanted = |row, at: Option<i64>| fitting(db, index, ask, row, at);
    let mut at_once = Stream::new(limit);
    walk(
        row_of(ask.from.at_once),
        |from| rows_at_once(db, app, from),
        |row, _| {
            let Some((event, at, message)) = wanted(row, None)? else {
                return Ok(false);
            };
            Ok(at_once.is_over(event, at, message))
        },
    )?
    .then(|| at_once.end());
    let mut later = Stream::new(limit);
    walk(
        ask.from.later,
        |from| rows_later(db, app, from),
        |turn, row| {
            let (at, message) = match wanted(row, Some(turn))? {
                Some((_, at, message)) => (at, message),
                None => (Time::from_micros(turn), None),
            };
            Ok(later.is_over(turn, at, message))
        },
    )?
    .then(|| later.end());
    Ok(polling::merge(ask.from, at_once, later, given, limit))
}

/// Goes along places until `look` has enough, or as many were looked at as may be. Was that all?
fn walk(
    mut from: i64,
    some: impl Fn(i64) -> Result<Vec<(i64, i64)>, StoreError>,
    mut look: impl FnMut(i64, i64) -> Result<bool, StoreError>,
) -> Result<bool, StoreError> {
    let mut looked_at = 0;
    while looked_at < ROWS_LOOKED_AT_MAX as usize {
        let rows = some(from)?;
        for (place, row) in &rows {
            from = *place;
            if look(*place, *row)? {
                return Ok(false);
            }
        }
        looked_at += rows.len();
        if rows.len() < ROWS_AT_ONCE {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Messages that are sent at once, after a row: their places are their rows.
fn rows_at_once(db: &Connection, app: AppId, from: i64) -> Result<Vec<(i64, i64)>, StoreError> {
    db.prepare_cached(
        "SELECT seq, seq FROM message WHERE app = ?1 AND seq > ?2 AND deliver_at IS NULL ORDER BY seq LIMIT ?3",
    )
    .and_then(|mut read| {
        let named = params![app.bytes(), from, ROWS_AT_ONCE as i64];
        let rows = read.query_map(named, |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    })
    .map_err(sql_error)
}

/// Messages that had their turn after another's.
fn rows_later(db: &Connection, app: AppId, from: i64) -> Result<Vec<(i64, i64)>, StoreError> {
    db.prepare_cached(
        "SELECT turn, seq FROM message INDEXED BY message_turn
         WHERE app = ?1 AND turn IS NOT NULL AND turn > ?2 ORDER BY turn LIMIT ?3",
    )
    .and_then(|mut read| {
        let named = params![app.bytes(), from, ROWS_AT_ONCE as i64];
        let rows = read.query_map(named, |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    })
    .map_err(sql_error)
}

type Looked = (hapax_ledger::id::EventId, Time, Option<Message>);

/// The message of a row, the time that it counts for (its turn, if it has one), and itself if it is asked for.
fn fitting(
    db: &Connection,
    index: &KeyIndex,
    ask: &PollAsk,
    row: i64,
    turn: Option<i64>,
) -> Result<Option<Looked>, StoreError> {
    let Some(event) = read::row(db, index, row)? else {
        return Ok(None);
    };
    let (id, at) = (event.id, turn.map_or(event.received_at, Time::from_micros));
    let wanted = ask.filter.fits_event(&event) && ask.from.since.is_none_or(|since| at >= since);
    let message = match wanted {
        true => message::of_event(db, event)?,
        false => None,
    };
    let message = message.filter(|message| ask.filter.fits_about(&message.about));
    Ok(Some((id, at, message)))
}
