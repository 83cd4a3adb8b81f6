//! Deletes what has expired, a little at a time: payloads first, then ledgers, identities last (I1).
//!
//! Expiry holds at once whether or not the reaper has run: an expired identity no longer holds its key, and
//! what is deleted here is only what nobody can see any more.

use hapax_ledger::event::EventStatus;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, params};

use super::effect::{self, Held, PLACE_BITS};
use super::writer::Tx;
use super::{app, chain, fan_out, gate, message, poll_consumer, sql_error, tally};
use crate::error::StoreError;
use crate::nouns::Reaped;

/// Rows looked at in one step: a few milliseconds of the writer's time.
const ROWS_PER_STEP: i64 = 500;

struct Candidate {
    row: i64,
    source: String,
    key: KeyHash,
    status: Option<EventStatus>,
    identity_expired: bool,
    ledger_expired: bool,
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
        } else if candidate.ledger_expired {
            trim(tx, candidate.row)?;
            reaped.ledgers += 1;
        }
    }
    reaped.more = looked_at.len() as i64 == ROWS_PER_STEP;
    let stopped_at = looked_at
        .last()
        .filter(|_| reaped.more)
        .map_or(0, |candidate| candidate.row);
    tx.group.reaper_stopped_at(stopped_at);
    if !reaped.more {
        // What refers to the catalogue has gone as far as it goes.
        app::reap(tx.db, now)?;
        poll_consumer::reap(tx.db, now)?;
        reaped.more = tally::reap(tx.db, now)?;
    }
    Ok(reaped)
}

fn candidates(tx: &Tx<'_>, now: Time) -> Result<Vec<Candidate>, StoreError> {
    tx.db
        .prepare_cached(
            "SELECT seq, key_hash, status, expires_at, payload_until, ledger_until, source FROM event
             WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        )
        .and_then(|mut read| {
            let rows = read.query_map(params![tx.group.reaper_goes_on_after(), ROWS_PER_STEP], |row| {
                let status = EventStatus::from_code(row.get(2)?);
                let settled = status.is_some_and(EventStatus::is_settled);
                let expires_at = Time::from_micros(row.get(3)?);
                let payload_until = Time::from_micros(row.get(4)?);
                let ledger_until = Time::from_micros(row.get(5)?);
                Ok(Candidate {
                    row: row.get(0)?,
                    source: row.get(6)?,
                    key: KeyHash::from_bytes(row.get(1)?),
                    status,
                    identity_expired: settled && expires_at <= now,
                    ledger_expired: settled && ledger_until <= now && ledger_until != Time::MIN,
                    payload_expired: settled && payload_until.min(ledger_until) <= now,
                })
            })?;
            rows.collect()
        })
        .map_err(sql_error)
}

/// Counts what all steps of a round would delete.
pub(super) fn due(db: &Connection, now: Time) -> Result<Reaped, StoreError> {
    let settled: Vec<String> = EventStatus::ALL
        .iter()
        .filter(|status| status.is_settled())
        .map(|status| status.code().to_string())
        .collect();
    let (payloads, ledgers, identities) = db
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM payload p WHERE p.seq = e.seq)),
                 count(*) FILTER (WHERE e.ledger_until <= ?1 AND e.ledger_until <> ?2 AND e.expires_at > ?1),
                 count(*) FILTER (WHERE e.expires_at <= ?1)
             FROM event e
             WHERE min(e.payload_until, e.ledger_until, e.expires_at) <= ?1
               AND e.status IN (SELECT value FROM json_each(?3))
               AND NOT EXISTS (SELECT 1 FROM effect f
                   WHERE f.seq >= e.seq << ?4 AND f.seq < (e.seq + 1) << ?4 AND f.state IN (0, 1, 3))
               AND NOT EXISTS (SELECT 1 FROM effect_link l JOIN effect f ON f.seq = l.effect
                   WHERE l.event = e.seq AND f.state IN (0, 1, 3))
               AND NOT EXISTS (SELECT 1 FROM fan_out o WHERE o.seq = e.seq AND o.total > o.made)",
        )
        .and_then(|mut read| {
            let codes = format!("[{}]", settled.join(","));
            let params = params![now.micros(), Time::MIN.micros(), codes, PLACE_BITS];
            read.query_row(params, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        })
        .map_err(sql_error)?;
    Ok(Reaped {
        payloads,
        ledgers,
        identities,
        keys: 0,
        more: false,
    })
}

/// I1: what is on its way keeps its event and its bytes.
fn has_live_effects(tx: &Tx<'_>, event: i64) -> Result<bool, StoreError> {
    let effects = effect::of_event(tx.db, event)?;
    let mut states = effects.iter().map(|held| held.effect.record.state);
    Ok(states.any(gate::is_live) || fan_out::to_come(tx.db, event)? > 0)
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

/// The rows of an event's deliveries after the first, latest first.
pub(super) fn deliveries(tx: &Tx<'_>, event: i64) -> Result<Vec<i64>, StoreError> {
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

/// What happened to an event goes, but for its first and its latest delivery, which count how often it came. Of attempts only those
/// that no other event tells of.
fn trim(tx: &Tx<'_>, event: i64) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("UPDATE event SET ledger_until = ?2 WHERE seq = ?1")
        .and_then(|mut update| update.execute(params![event, Time::MIN.micros()]))
        .map_err(sql_error)?;
    let deliveries = deliveries(tx, event)?;
    if let Some((latest, before)) = deliveries.split_first() {
        tx.db
            .prepare_cached("UPDATE delivery SET previous = NULL WHERE seq = ?1")
            .and_then(|mut update| update.execute([latest]))
            .map_err(sql_error)?;
        before
            .iter()
            .try_for_each(|row| delete_delivery(tx, *row))?;
    }
    tx.db
        .prepare_cached("DELETE FROM run WHERE event = ?1")
        .and_then(|mut delete| delete.execute([event]))
        .map_err(sql_error)?;
    for held in effect::of_event(tx.db, event)? {
        trim_attempts(tx, held.row)?;
    }
    Ok(())
}

fn trim_attempts(tx: &Tx<'_>, effect: i64) -> Result<(), StoreError> {
    let told: bool = tx
        .db
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM event WHERE seq = ?1 AND ledger_until <> ?3)
                 OR EXISTS (SELECT 1 FROM effect_link l JOIN event e ON e.seq = l.event
                            WHERE l.effect = ?2 AND e.ledger_until <> ?3)",
        )
        .and_then(|mut read| {
            let params = params![effect >> PLACE_BITS, effect, Time::MIN.micros()];
            read.query_row(params, |row| row.get(0))
        })
        .map_err(sql_error)?;
    if told {
        return Ok(());
    }
    tx.db
        .prepare_cached("DELETE FROM attempt WHERE effect = ?1")
        .and_then(|mut delete| delete.execute([effect]))
        .map_err(sql_error)?;
    // How the latest one ended stays with the effect; the rest of it is what the others were.
    tx.db
        .prepare_cached(
            "UPDATE effect SET last_fence = NULL, last_generation = NULL, last_number = NULL, last_node = NULL,
                 last_started_at = NULL, last_ended_at = NULL, last_excerpt = NULL, last_body_bytes = NULL,
                 last_error = NULL, last_late_at = NULL, last_late_outcome = NULL, last_late_detail = NULL
             WHERE seq = ?1",
        )
        .and_then(|mut update| update.execute([effect]))
        .map_err(sql_error)?;
    Ok(())
}

fn delete_delivery(tx: &Tx<'_>, row: i64) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("DELETE FROM delivery WHERE seq = ?1")
        .and_then(|mut delete| delete.execute([row]))
        .map_err(sql_error)?;
    Ok(())
}

fn delete_event(tx: &mut Tx<'_>, candidate: &Candidate) -> Result<(), StoreError> {
    let effects = effect::of_event(tx.db, candidate.row)?;
    tx.db
        .prepare_cached("DELETE FROM effect_link WHERE event = ?1")
        .and_then(|mut delete| delete.execute([candidate.row]))
        .map_err(sql_error)?;
    for delivery in deliveries(tx, candidate.row)? {
        delete_delivery(tx, delivery)?;
    }
    tx.db
        .prepare_cached("DELETE FROM run WHERE event = ?1")
        .and_then(|mut delete| delete.execute([candidate.row]))
        .map_err(sql_error)?;
    tx.db
        .prepare_cached("DELETE FROM event WHERE seq = ?1")
        .and_then(|mut delete| delete.execute([candidate.row]))
        .map_err(sql_error)?;
    message::forget(tx.db, &candidate.source, candidate.row)?;
    tx.group.census.forget(candidate.row);
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
        // The event that is gone may have been the last that told of it.
        return trim_attempts(tx, held.row);
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
