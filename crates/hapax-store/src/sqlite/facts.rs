//! What a verdict on an event depends on, in one picture: on a reading connection, or in the writer's transaction.

use std::collections::HashMap;
use std::sync::Arc;

use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use hapax_ledger::verdict::Kept;
use rusqlite::{Connection, OptionalExtension};

use super::accept::event_id;
use super::index::{KeyIndex, Latest};
use super::read::row_of;
use super::{chain, conflict, effect, fan_out, sql_error};
use crate::error::StoreError;
use crate::nouns::{EffectFacts, EventFacts};

/// The facts as a reading connection sees them.
pub(super) fn read(
    db: &Connection,
    index: &KeyIndex,
    id: EventId,
    now: Time,
) -> Result<Option<EventFacts>, StoreError> {
    // Before the picture is taken: all that the index names is in it.
    let latest = index.latest(row_of(id))?.unwrap_or_default();
    let db = &db.unchecked_transaction().map_err(sql_error)?;
    facts(db, latest, id, now)
}

/// The facts of an event whose latest delivery is this.
pub(super) fn facts(
    db: &Connection,
    latest: Latest,
    id: EventId,
    now: Time,
) -> Result<Option<EventFacts>, StoreError> {
    let row = row_of(id);
    let found = db
        .prepare_cached(
            "SELECT at, review_message, EXISTS (SELECT 1 FROM payload WHERE seq = ?1), ledger_until
             FROM event WHERE seq = ?1",
        )
        .and_then(|mut read| {
            let found = read.query_row([row], |row| {
                let ledger_until = Time::from_micros(row.get(3)?);
                Ok((
                    Time::from_micros(row.get(0)?),
                    row.get(1)?,
                    row.get(2)?,
                    ledger_until,
                ))
            });
            found.optional()
        })
        .map_err(sql_error)?;
    // A row number alone does not make an id: the time has to be the row's too.
    let Some((_, held, has_payload, ledger_until)) =
        found.filter(|(at, ..)| event_id(*at, row) == id)
    else {
        return Ok(None);
    };
    Ok(Some(EventFacts {
        now,
        payload: if has_payload {
            Kept::Whole
        } else {
            Kept::Reaped
        },
        ledger: match ledger_until {
            Time::MIN => Kept::Reaped,
            _ => Kept::Whole,
        },
        held,
        conflicts_open: conflict::open(db, latest)?.len() as u32,
        to_come: fan_out::to_come(db, row)?,
        effects: effects(db, row)?,
    }))
}

fn effects(db: &Connection, event: i64) -> Result<Vec<EffectFacts>, StoreError> {
    let all = effect::of_event(db, event)?;
    let names: HashMap<i64, Arc<str>> = all
        .iter()
        .map(|held| (held.row, held.effect.name.clone()))
        .collect();
    let facts = all.into_iter().map(|held| {
        let before = held.after.iter().filter_map(|row| names.get(row));
        Ok(EffectFacts {
            after: before.map(ToString::to_string).collect(),
            order: chain::verdict(db, &held)?,
            effect: held.effect,
        })
    });
    facts.collect()
}
