//! Where the deliveries of a message stand, counted. A message may have thousands, and its status is asked for whenever one of them
//! moves: reading all of them each time would cost by the square of their number.
//!
//! Only ever what the open transaction or an earlier one wrote. When a transaction fails, all of it is forgotten with the group.

use std::collections::HashMap;

use hapax_ledger::effect::{EffectRecord, EffectState, SkipReason};
use hapax_ledger::event::EventStatus;
use rusqlite::Connection;

use super::effect::{Held, PLACE_BITS, PLACE_MAX};
use super::gate::{self, Opened};
use super::sql_error;
use super::writer::Tx;
use crate::error::StoreError;

/// Messages that are counted in memory. Beyond that all are counted anew.
const COUNTED_MAX: usize = 1_024;

/// So many effects of an event give it this status.
type Counts = HashMap<EventStatus, i64>;

/// The counts that are known, by event.
#[derive(Default)]
pub(super) struct Census(HashMap<i64, Counts>);

impl Census {
    /// An event calls for more than it did, or is gone.
    pub(super) fn forget(&mut self, event: i64) {
        self.0.remove(&event);
    }

    /// Where an event stands, now that an effect of it has moved from one place to another.
    fn moved(
        &mut self,
        db: &Connection,
        event: i64,
        from: &EffectRecord,
        to: &EffectRecord,
    ) -> Result<EventStatus, StoreError> {
        match self.0.get_mut(&event) {
            Some(counts) => {
                let place =
                    |record: &EffectRecord| EventStatus::of_effect(record.state, record.skip);
                *counts.entry(place(from)).or_default() -= 1;
                *counts.entry(place(to)).or_default() += 1;
            }
            None => {
                if self.0.len() >= COUNTED_MAX {
                    self.0.clear();
                }
                self.0.insert(event, count(db, event)?);
            }
        }
        let counts = self.0.get(&event).into_iter().flatten();
        let worst = counts
            .filter(|(_, effects)| **effects > 0)
            .map(|(status, _)| *status);
        Ok(worst.max().unwrap_or(EventStatus::Completed))
    }
}

/// Counts the effects that an event calls for.
fn count(db: &Connection, event: i64) -> Result<Counts, StoreError> {
    let first = event << PLACE_BITS;
    let found: Vec<(u8, Option<u8>, i64)> = db
        .prepare_cached(
            "SELECT state, skip, count(*) FROM (
                 SELECT state, skip FROM effect WHERE seq BETWEEN ?1 AND ?2
                 UNION ALL
                 SELECT e.state, e.skip FROM effect_link l JOIN effect e ON e.seq = l.effect
                 WHERE l.event = ?3 AND l.effect NOT BETWEEN ?1 AND ?2
             ) GROUP BY state, skip",
        )
        .and_then(|mut read| {
            let rows = read.query_map([first, first | PLACE_MAX, event], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
            rows.collect()
        })
        .map_err(sql_error)?;
    let mut counts = Counts::new();
    for (state, skip, effects) in found {
        // What cannot be read counts as the strictest there is.
        let state = EffectState::from_code(state).unwrap_or(EffectState::Uncertain);
        let place = EventStatus::of_effect(state, skip.and_then(SkipReason::from_code));
        *counts.entry(place).or_default() += effects;
    }
    Ok(counts)
}

/// Something that is no delivery has changed, and a message may call for it all the same: the user's own code may add to its effects.
pub(super) fn is_outdated(tx: &mut Tx<'_>, held: &Held) -> Result<(), StoreError> {
    if held.alone || tx.group.census.0.is_empty() {
        return Ok(());
    }
    for event in gate::calling(tx.db, held.row, held.row >> PLACE_BITS)? {
        tx.group.census.forget(event);
    }
    Ok(())
}

/// A delivery's state has changed: brings the status of the messages that call for it level (D7), and lets the next of its chain go.
/// Deliveries of a message do not wait for each other.
pub(super) fn state_changed(
    tx: &mut Tx<'_>,
    held: &Held,
    before: &EffectRecord,
    opened: &mut Opened,
) -> Result<(), StoreError> {
    let first = held.row >> PLACE_BITS;
    for event in gate::calling(tx.db, held.row, first)? {
        let (from, to) = (before, &held.effect.record);
        let status = tx.group.census.moved(tx.db, event, from, to)?;
        gate::set_status(tx.db, event, status)?;
    }
    gate::settle_chain(tx.db, held, before.state, opened)
}
