//! Deliveries that follow their message: frozen with it, and made in small steps, each with its cursor in one transaction (G1).

use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, params};

use super::accept::event_id;
use super::writer::Tx;
use super::{claim, plan, sql_error};
use crate::error::StoreError;
use crate::nouns::{FAN_OUT_STEP, FannedOut, LaterDelivery, NewEffect, NewEvent};
use crate::posting::{self, Template};
use crate::posting_code::{LATER_BYTES, from_later, from_template, to_later, to_template};

/// Freezes the deliveries that follow a message. Its first says what they are like.
pub(super) fn begin(
    tx: &Tx<'_>,
    row: i64,
    source: &str,
    event: &NewEvent,
    later: &[LaterDelivery],
) -> Result<(), StoreError> {
    let Some(template) = Template::of(event, tx.now) else {
        return Ok(());
    };
    let db = tx.db;
    db.prepare_cached(
        "INSERT INTO fan_out (seq, source, entity, template, made, total) VALUES (?1, ?2, ?3, ?4, 0, ?5)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            row,
            source,
            posting::entity(event),
            from_template(&template),
            later.len() as i64
        ])
    })
    .map_err(sql_error)?;
    db.prepare_cached("INSERT INTO fan_out_list (seq, later) VALUES (?1, ?2)")
        .and_then(|mut insert| insert.execute(params![row, from_later(later)]))
        .map_err(sql_error)?;
    Ok(())
}

/// Are deliveries of this order still being made?
pub(super) fn is_under_way(
    db: &Connection,
    source: &str,
    entity: &str,
) -> Result<bool, StoreError> {
    db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM fan_out WHERE entity IS NOT NULL AND source = ?1 AND entity = ?2)",
    )
    .and_then(|mut read| read.query_row([source, entity], |row| row.get(0)))
    .map_err(sql_error)
}

/// So many deliveries of an event are still to be made.
pub(super) fn to_come(db: &Connection, event: i64) -> Result<u64, StoreError> {
    let left: Option<i64> = db
        .prepare_cached("SELECT total - made FROM fan_out WHERE seq = ?1")
        .and_then(|mut read| read.query_row([event], |row| row.get(0)).optional())
        .map_err(sql_error)?;
    Ok(left.unwrap_or(0) as u64)
}

/// Is there anything to do?
pub(super) fn any(db: &Connection) -> Result<bool, StoreError> {
    db.prepare_cached("SELECT EXISTS (SELECT 1 FROM fan_out)")
        .and_then(|mut read| read.query_row([], |row| row.get(0)))
        .map_err(sql_error)
}

/// The message whose turn it is.
struct Next {
    event: EventId,
    row: i64,
    template: String,
    made: i64,
    total: i64,
    later: Vec<u8>,
}

/// The earliest message whose deliveries are not all made, with the next of them.
fn next(db: &Connection) -> Result<Option<Next>, StoreError> {
    db.prepare_cached(
        "SELECT f.seq, e.at, f.template, f.made, f.total, substr(l.later, f.made * ?1 + 1, ?2)
         FROM fan_out f JOIN event e ON e.seq = f.seq JOIN fan_out_list l ON l.seq = f.seq
         ORDER BY f.seq LIMIT 1",
    )
    .and_then(|mut read| {
        let bytes = (LATER_BYTES * FAN_OUT_STEP) as i64;
        let found = read.query_row([LATER_BYTES as i64, bytes], |row| {
            let seq = row.get(0)?;
            Ok(Next {
                event: event_id(Time::from_micros(row.get(1)?), seq),
                row: seq,
                template: row.get(2)?,
                made: row.get(3)?,
                total: row.get(4)?,
                later: row.get(5)?,
            })
        });
        found.optional()
    })
    .map_err(sql_error)
}

/// One step: makes some deliveries and moves the cursor.
pub(super) fn step(tx: &mut Tx<'_>) -> Result<FannedOut, StoreError> {
    let Some(next) = next(tx.db)? else {
        return Ok(FannedOut::default());
    };
    let template = to_template(&next.template)?;
    let later = to_later(&next.later).into_iter();
    let effects: Vec<NewEffect> = later.map(|one| template.delivery(one, tx.now)).collect();
    let made = next.made + effects.len() as i64;
    match made < next.total && !effects.is_empty() {
        true => tx
            .db
            .prepare_cached("UPDATE fan_out SET made = ?2 WHERE seq = ?1")
            .and_then(|mut update| update.execute([next.row, made]))
            .map_err(sql_error)?,
        false => end(tx.db, next.row)?,
    };
    plan::join(tx, next.event, &effects)?;
    let mut lanes = Vec::with_capacity(effects.len());
    for effect in effects {
        if claim::next_due(tx, &effect.lane)?.is_some() {
            lanes.push(effect.lane);
        }
    }
    let more = any(tx.db)?;
    Ok(FannedOut { lanes, more })
}

/// All of them are made.
fn end(db: &Connection, row: i64) -> Result<usize, StoreError> {
    db.prepare_cached("DELETE FROM fan_out_list WHERE seq = ?1")
        .and_then(|mut delete| delete.execute([row]))
        .map_err(sql_error)?;
    db.prepare_cached("DELETE FROM fan_out WHERE seq = ?1")
        .and_then(|mut delete| delete.execute([row]))
        .map_err(sql_error)
}
