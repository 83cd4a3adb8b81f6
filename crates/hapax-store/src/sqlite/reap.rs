//! Deletes what has expired, a little at a time: payloads first, identities last (I1).
//!
//! Expiry holds at once whether or not the reaper has run: an expired identity no longer holds its key, and
//! what is deleted here is only what nobody can see any more.

use hapax_ledger::event::EventStatus;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::time::Time;
use rusqlite::{OptionalExtension, params};

use super::effect::{self, Held, PLACE_BITS};
use super::writer::Tx;
use super::{chain, gate, sql_error};
use crate::error::StoreError;
use crate::nouns::Reaped;

/// Rows looked at in one step: a few milliseconds of the writer's time.
const ROWS_PER_STEP: i64 = 500;

struct Candidate {
    row: i64,
    key: KeyHash,
    status: Option<EventStatus>,
    identity_expired: bool,
    payload_expired: bool,
}

impl Candidate {
    /// One dead effect makes an event dead while others of it may still be on their way.
    fn may_hide_live_effects(&self) -> bool {
        self.status == Some(EventStatus::Dead) && (self.identity_expired || self.payload_expired)
    }
}

/// One step. It goes on where the last one stopped and says `more` until it has been once around.
pub(super) fn step(tx: &mut Tx<'_>, now: Time) -> Result<Reaped, StoreError> {
    let looked_at = candidates(tx, now)?;
    let mut reaped = Reaped::default();
    for candidate in &looked_at {
        if candidate.may_hide_live_effects() && has_live_effects(tx, candidate.row)? {
            continue;
        }
        if candidate.payload_expired || candidate.identity_expired {
            reaped.payloads += delete_payload(tx, candidate.row)?;
        }
        if candidate.identity_expired {
            delete_event(tx, candidate)?;
            reaped.identities += 1;
        }
    }
    reaped.more = looked_at.len() as i64 == ROWS_PER_STEP;
    let stopped_at = looked_at
        .last()
        .filter(|_| reaped.more)
        .map_or(0, |candidate| candidate.row);
    tx.group.reaper_stopped_at(stopped_at);
    Ok(reaped)
}

fn candidates(tx: &Tx<'_>, now: Time) -> Result<Vec<Candidate>, StoreError> {
    tx.db
        .prepare_cached(
            "SELECT seq, key_hash, status, expires_at, payload_until FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        )
        .and_then(|mut read| {
            let rows = read.query_map(params![tx.group.reaper_goes_on_after(), ROWS_PER_STEP], |row| {
                let status = EventStatus::from_code(row.get(2)?);
                let settled = status.is_some_and(EventStatus::is_settled);
                let expires_at = Time::from_micros(row.get(3)?);
                let payload_until = Time::from_micros(row.get(4)?);
                Ok(Candidate {
                    row: row.get(0)?,
                    key: KeyHash::from_bytes(row.get(1)?),
                    status,
                    identity_expired: settled && expires_at <= now,
                    payload_expired: settled && payload_until <= now,
                })
            })?;
            rows.collect()
        })
        .map_err(sql_error)
}

/// I1: what is on its way keeps its event and its bytes.
fn has_live_effects(tx: &Tx<'_>, event: i64) -> Result<bool, StoreError> {
    let effects = effect::of_event(tx.db, event)?;
    let mut states = effects.iter().map(|held| held.effect.record.state);
    Ok(states.any(gate::is_live))
}

fn delete_payload(tx: &Tx<'_>, row: i64) -> Result<u32, StoreError> {
    let gone = tx
        .db
        .prepare_cached("DELETE FROM payload WHERE seq = ?1")
        .and_then(|mut delete| delete.execute([row]))
        .map_err(sql_error)?;
    // An event whose bytes are gone already has no conflicting bodies left either.
    if gone > 0 {
        for delivery in deliveries(tx, row)? {
            tx.db
                .prepare_cached(
                    "UPDATE delivery SET body = NULL WHERE seq = ?1 AND body IS NOT NULL",
                )
                .and_then(|mut update| update.execute([delivery]))
                .map_err(sql_error)?;
        }
    }
    Ok(gone as u32)
}

/// The rows of an event's deliveries after the first.
fn deliveries(tx: &Tx<'_>, event: i64) -> Result<Vec<i64>, StoreError> {
    let latest = tx.group.latest(tx.index, event)?;
    let mut rows = Vec::new();
    let mut next = (latest.n > 0).then_some(latest.row);
    while let Some(row) = next {
        rows.push(row);
        next = tx
            .db
            .prepare_cached("SELECT previous FROM delivery WHERE seq = ?1")
            .and_then(|mut read| read.query_row([row], |row| row.get(0)).optional())
            .map_err(sql_error)?
            .flatten();
    }
    Ok(rows)
}

fn delete_event(tx: &mut Tx<'_>, candidate: &Candidate) -> Result<(), StoreError> {
    let effects = effect::of_event(tx.db, candidate.row)?;
    tx.db
        .prepare_cached("DELETE FROM effect_link WHERE event = ?1")
        .and_then(|mut delete| delete.execute([candidate.row]))
        .map_err(sql_error)?;
    for delivery in deliveries(tx, candidate.row)? {
        tx.db
            .prepare_cached("DELETE FROM delivery WHERE seq = ?1")
            .and_then(|mut delete| delete.execute([delivery]))
            .map_err(sql_error)?;
    }
    tx.db
        .prepare_cached("DELETE FROM run WHERE event = ?1")
        .and_then(|mut delete| delete.execute([candidate.row]))
        .map_err(sql_error)?;
    tx.db
        .prepare_cached("DELETE FROM event WHERE seq = ?1")
        .and_then(|mut delete| delete.execute([candidate.row]))
        .map_err(sql_error)?;
    tx.group.forget_event(candidate.key, candidate.row);
    effects.iter().try_for_each(|held| delete_effect(tx, held))
}

/// An effect's key holds as long as any event that calls for it is known (B5).
fn delete_effect(tx: &mut Tx<'_>, held: &Held) -> Result<(), StoreError> {
    let wanted: bool = tx
        .db
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM event WHERE seq = ?1) OR EXISTS (SELECT 1 FROM effect_link WHERE effect = ?2)",
        )
        .and_then(|mut read| read.query_row([held.row >> PLACE_BITS, held.row], |row| row.get(0)))
        .map_err(sql_error)?;
    if wanted {
        return Ok(());
    }
    tx.db
        .prepare_cached("DELETE FROM attempt WHERE effect = ?1")
        .and_then(|mut delete| delete.execute([held.row]))
        .map_err(sql_error)?;
    tx.db
        .prepare_cached("DELETE FROM snapshot WHERE effect = ?1")
        .and_then(|mut delete| delete.execute([held.row]))
        .map_err(sql_error)?;
    if let Some(place) = &held.place {
        chain::leave(tx.db, place)?;
    }
    tx.db
        .prepare_cached("DELETE FROM effect WHERE seq = ?1")
        .and_then(|mut delete| delete.execute([held.row]))
        .map_err(sql_error)?;
    tx.group.forget(
        KeyHash::of(KeyKind::Effect, &held.effect.name, &held.effect.key),
        held.row,
    );
    Ok(())
}
