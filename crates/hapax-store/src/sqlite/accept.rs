//! What one arrival writes: its events with their bytes, or one more delivery of events that are known.

use hapax_ledger::effect::EffectState;
use hapax_ledger::event::{DeliveryOutcome, EventStatus};
use hapax_ledger::id::{EventId, RawId};
use hapax_ledger::identity::{self, Identity, Sighting};
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind};
use hapax_ledger::status::Hold;
use hapax_ledger::time::{Span, Time};
use rusqlite::{OptionalExtension, params};

use super::index::Latest;
use super::plan::{self, Planning};
use super::writer::Tx;
use super::{advance, delivery_key, sql_error};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{
    Arrival, CONFLICT_BODIES_MAX, DELIVERIES_KEPT_MAX, NewEvent, OnFailed, Receipt, Receipted,
};

/// Stores one arrival in the open transaction.
pub(super) fn accept(tx: &mut Tx<'_>, arrival: &Arrival) -> Result<Vec<Receipt>, StoreError> {
    arrival
        .events
        .iter()
        .map(|event| accept_one(tx, arrival, event))
        .collect()
}

/// The event that holds a key now.
pub(super) fn sighted(
    tx: &Tx<'_>,
    source: &str,
    key: &str,
    now: Time,
) -> Result<Option<EventId>, StoreError> {
    let known = find(tx, KeyHash::of(KeyKind::Identity, source, key), source, key)?;
    Ok(known
        .filter(|known| now < known.identity.expires_at)
        .map(|known| known.identity.event))
}

/// A write that changes nothing, to prove that writing works.
pub(super) fn touch(tx: &Tx<'_>) -> Result<(), StoreError> {
    tx.db
        .execute("UPDATE store SET epoch = epoch WHERE one = 1", [])
        .map_err(sql_error)?;
    Ok(())
}

/// Keeps a hash unless one is kept already.
pub(super) fn keep_admin_token(tx: &Tx<'_>, hash: [u8; 32]) -> Result<[u8; 32], StoreError> {
    tx.db
        .query_row(
            "UPDATE store SET admin_token_hash = coalesce(admin_token_hash, ?1) WHERE one = 1 RETURNING admin_token_hash",
            [hash],
            |row| row.get(0),
        )
        .map_err(sql_error)
}

/// The id of an event row.
pub(super) fn event_id(at: Time, row: i64) -> EventId {
    EventId(RawId::new(at, 0, row as u64))
}

/// What is known of the holder of a key.
pub(super) struct Known {
    row: i64,
    pub(super) identity: Identity,
    retry_window: Span,
    status: EventStatus,
    /// As stored: an unsettled event's key is held longer, but its end moves all the same.
    ends_at: Time,
    payload_until: Time,
}

/// What an event of an arrival is, before anything is written.
pub(super) enum Sighted {
    /// Nobody holds its key. The row of an event whose identity has expired, and which held it, may still be there.
    New { before: Option<i64> },
    /// It was here before, perhaps with another body.
    Known { known: Known, conflict: bool },
}

/// Looks who holds the key of an event.
pub(super) fn sight(
    tx: &Tx<'_>,
    arrival: &Arrival,
    event: &NewEvent,
) -> Result<Sighted, StoreError> {
    let known = find(tx, event.key_hash, &arrival.source, &event.key)?;
    let sighting = identity::decide(
        known.as_ref().map(|known| &known.identity),
        event.compare_hash,
        arrival.at,
    );
    Ok(match (sighting, known) {
        (Sighting::Duplicate { conflict, .. }, Some(known)) => Sighted::Known { known, conflict },
        (Sighting::New | Sighting::Expired, known) => Sighted::New {
            before: known.map(|known| known.row),
        },
        (Sighting::Duplicate { .. }, None) => Sighted::New { before: None },
    })
}

fn accept_one(tx: &mut Tx<'_>, arrival: &Arrival, event: &NewEvent) -> Result<Receipt, StoreError> {
    match sight(tx, arrival, event)? {
        Sighted::Known { known, conflict } => repeat(tx, arrival, event, &known, conflict),
        Sighted::New { before } => insert(tx, arrival, event, before, 0),
    }
}

fn find(tx: &Tx<'_>, hash: KeyHash, source: &str, key: &str) -> Result<Option<Known>, StoreError> {
    let Some(row) = tx.group.find(tx.index, hash)? else {
        return Ok(None);
    };
    let mut read = tx
        .db
        .prepare_cached(
            "SELECT at, source, key, body_hash, compare_hash, expires_at, retry_window, status,
                 payload_until
             FROM event WHERE seq = ?1",
        )
        .map_err(sql_error)?;
    let found = read
        .query_row([row], |read| {
            let at = Time::from_micros(read.get(0)?);
            let same = read.get_ref(1)?.as_str()? == source && read.get_ref(2)?.as_str()? == key;
            let body_hash: [u8; 32] = read.get(3)?;
            let compare_hash: Option<[u8; 32]> = read.get(4)?;
            let status = EventStatus::from_code(read.get(7)?).unwrap_or(EventStatus::NeedsReview);
            let ends_at = Time::from_micros(read.get(5)?);
            let identity = Identity {
                event: event_id(at, row),
                compare_hash: BodyHash::from_bytes(compare_hash.unwrap_or(body_hash)),
                first_seen: at,
                last_seen: at,
                expires_at: if status.is_settled() {
                    ends_at
                } else {
                    Time::MAX
                },
            };
            let retry_window = Span::from_micros(read.get(6)?);
            Ok((
                same,
                Known {
                    row,
                    identity,
                    retry_window,
                    status,
                    ends_at,
                    payload_until: Time::from_micros(read.get(8)?),
                },
            ))
        })
        .optional()
        .map_err(sql_error)?;
    match found {
        // The index was not told that the row is gone: nothing holds the key.
        None => Ok(None),
        Some((true, known)) => Ok(Some(known)),
        Some((false, _)) => Err(StoreError::new(
            StoreErrorKind::Corrupt,
            "two keys share one 128-bit hash, or the key index points to a wrong row",
        )),
    }
}

fn insert_payload(tx: &Tx<'_>, row: i64, event: &NewEvent) -> Result<(), StoreError> {
    tx.db
        .prepare_cached("INSERT INTO payload (seq, content_type, body) VALUES (?1, ?2, ?3)")
        .and_then(|mut insert| insert.execute(params![row, event.content_type, &event.body[..]]))
        .map_err(sql_error)?;
    Ok(())
}

/// Its row: the event, its identity and its first delivery.
fn insert_row(
    tx: &Tx<'_>,
    row: i64,
    arrival: &Arrival,
    event: &NewEvent,
    (status, outcome): (EventStatus, DeliveryOutcome),
) -> Result<(), StoreError> {
    let expires_at = identity::expiry(
        arrival.at,
        arrival.at,
        event.keep.identity,
        event.keep.retry_window,
    );
    let body_hash = event.body_hash.bytes();
    let compare_hash = (event.compare_hash != event.body_hash).then(|| event.compare_hash.bytes());
    tx.db
        .prepare_cached(
            "INSERT INTO event (seq, at, source, type, key, key_hash, key_origin, body_hash, compare_hash,
                 provider_event_id, object_id, entity, version, status, review_code, review_message,
                 scheme, secret_index, signed_at, remote, retry_window, expires_at, payload_until, outcome,
                 ledger_until)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
                 ?21, ?22, ?23, ?24, ?25)",
        )
        .and_then(|mut insert| {
            insert.execute(params![
                row,
                arrival.at.micros(),
                arrival.source,
                event.event_type,
                event.key,
                event.key_hash.bytes(),
                event.key_origin.code(),
                body_hash,
                compare_hash,
                event.provider_event_id,
                event.object_id,
                event.entity,
                event.version,
                status.code(),
                event.review.as_ref().map(|review| review.code.as_str()),
                event.review.as_ref().map(|review| review.message.as_str()),
                arrival.proof.scheme,
                arrival.proof.secret_index,
                arrival.proof.signed_at.map(Time::micros),
                arrival.proof.remote,
                event.keep.retry_window.micros(),
                expires_at.micros(),
                (arrival.at + event.keep.payload).micros(),
                outcome.code(),
                (arrival.at + event.keep.ledger).micros(),
            ])
        })
        .map_err(sql_error)?;
    Ok(())
}

/// Stores a new event, whose key an expired one may have held before. So many effects of it are made after it.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    arrival: &Arrival,
    event: &NewEvent,
    before: Option<i64>,
    to_come: usize,
) -> Result<Receipt, StoreError> {
    if let Some(before) = before {
        delivery_key::inherit(tx, before)?;
    }
    let row = tx.group.give_row()?;
    let at = arrival.at;
    let mut planned = plan::plan(tx, Planning::of_new(at, row, event, to_come > 0))?;
    if to_come > 0 {
        planned.states.push((EffectState::Pending, None));
    }
    let (status, outcome) = match event.review {
        Some(_) => (EventStatus::NeedsReview, DeliveryOutcome::FailedValidation),
        None => {
            let status = EventStatus::of_effects(planned.states, Hold::Free);
            (status, DeliveryOutcome::Accepted)
        }
    };
    insert_row(tx, row, arrival, event, (status, outcome))?;
    insert_payload(tx, row, event)?;
    tx.group.take(event.key_hash, row);
    Ok(Receipt {
        event: event_id(arrival.at, row),
        sighting: Receipted::New,
        needs_review: event.review.is_some(),
        claims: planned.claims,
        revived: Vec::new(),
    })
}

pub(super) fn repeat(
    tx: &mut Tx<'_>,
    arrival: &Arrival,
    event: &NewEvent,
    known: &Known,
    conflict: bool,
) -> Result<Receipt, StoreError> {
    let before = tx.group.latest(tx.index, known.row)?;
    let mut latest = Latest {
        row: before.row,
        n: before.n + 1,
        conflicts: before.conflicts + u32::from(conflict),
    };
    if before.n >= DELIVERIES_KEPT_MAX {
        // The last row stands for all later ones.
        tx.db
            .prepare_cached("UPDATE delivery SET n = ?2, at = ?3, conflicts = ?4 WHERE seq = ?1")
            .and_then(|mut update| {
                update.execute(params![
                    latest.row,
                    latest.n,
                    arrival.at.micros(),
                    latest.conflicts
                ])
            })
            .map_err(sql_error)?;
    } else {
        latest.row = tx.group.give_delivery_row();
        insert_delivery(tx, arrival, event, known, before, latest)?;
    }
    tx.group.delivered(known.row, latest);
    outlive_the_sender(tx, known, arrival.at)?;
    let revived = match (event.on_failed, conflict, known.status) {
        // An event with a dead effect is no better than this.
        (OnFailed::Retry, false, EventStatus::Dead | EventStatus::NeedsReview) => {
            advance::revive(tx, known.row)?
        }
        _ => Vec::new(),
    };
    Ok(Receipt {
        event: known.identity.event,
        sighting: if conflict {
            Receipted::Conflict
        } else {
            Receipted::Duplicate
        },
        needs_review: known.status == EventStatus::NeedsReview,
        claims: Vec::new(),
        revived,
    })
}

fn insert_delivery(
    tx: &Tx<'_>,
    arrival: &Arrival,
    event: &NewEvent,
    known: &Known,
    before: Latest,
    latest: Latest,
) -> Result<(), StoreError> {
    let conflict = latest.conflicts > before.conflicts;
    // Bytes are kept no longer than those of the event itself.
    let kept = arrival.at < known.payload_until || !known.status.is_settled();
    let kept = kept && known.payload_until != Time::MIN;
    let body =
        (conflict && kept && before.conflicts < CONFLICT_BODIES_MAX).then_some(&event.body[..]);
    tx.db
        .prepare_cached(
            "INSERT INTO delivery (seq, event, previous, n, at, outcome, conflict, conflicts, body_hash, scheme,
                 secret_index, signed_at, remote, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )
        .and_then(|mut insert| {
            insert.execute(params![
                latest.row,
                known.row,
                (before.n > 0).then_some(before.row),
                latest.n,
                arrival.at.micros(),
                DeliveryOutcome::Duplicate.code(),
                conflict,
                latest.conflicts,
                event.body_hash.bytes(),
                arrival.proof.scheme,
                arrival.proof.secret_index,
                arrival.proof.signed_at.map(Time::micros),
                arrival.proof.remote,
                body,
            ])
        })
        .map_err(sql_error)?;
    Ok(())
}

/// A late sighting moves the identity's end, so that it outlives the sender's retries (B5). Seldom needed, since the
/// window is far longer than the retries; the row is only touched when it is.
fn outlive_the_sender(tx: &Tx<'_>, known: &Known, now: Time) -> Result<(), StoreError> {
    let wanted = now + known.retry_window;
    if wanted > known.ends_at {
        tx.db
            .prepare_cached("UPDATE event SET expires_at = max(expires_at, ?2) WHERE seq = ?1")
            .and_then(|mut update| update.execute(params![known.row, wanted.micros()]))
            .map_err(sql_error)?;
    }
    Ok(())
}
