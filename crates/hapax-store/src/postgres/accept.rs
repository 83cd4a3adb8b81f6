//! The happy path: arrivals whose key nobody holds and that call for no effects, any number of them in one statement that is
//! its own transaction.
//!
//! Whoever gets its identity in is new, and its event and bytes go in with it. Whoever does not goes on to [`super::known`].

use std::collections::HashSet;

use hapax_ledger::id::{EventId, RawId};
use hapax_ledger::identity;
use hapax_ledger::key::KeyHash;
use hapax_ledger::time::Time;

use super::columns::{EventColumns, EventRow, first_status};
use super::pool::Taken;
use super::wire::Uuid;
use super::{Entropy, SHARDS};
use crate::error::StoreError;
use crate::nouns::{Arrival, NewEvent, Receipt, Receipted};

/// The statement that stores events with their bytes, from the parameters of [`EventColumns`]. One text, so that the way of
/// new keys and the way of known keys cannot drift apart.
macro_rules! insert_events {
    ($before:expr, $only:literal, $after:literal) => {
        concat!(
            "WITH ",
            $before,
            " event AS (
                 INSERT INTO hapax.event (shard, id, source, key_hash, at, type, key, key_origin, body_hash, compare_hash,
                     provider_event_id, object_id, entity, version, status, review_code, review_message, scheme,
                     secret_index, signed_at, remote, retry_window, expires_at, payload_until, outcome,
                     ledger_until)
                 SELECT e.* FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::text[]), unnest($4::uuid[]),
                     unnest($5::int8[]), unnest($6::text[]), unnest($7::text[]), unnest($8::int2[]), unnest($9::bytea[]),
                     unnest($10::bytea[]), unnest($11::text[]), unnest($12::text[]), unnest($13::text[]), unnest($14::text[]),
                     unnest($15::int2[]), unnest($16::text[]), unnest($17::text[]), unnest($18::text[]), unnest($19::int2[]),
                     unnest($20::int8[]), unnest($21::text[]), unnest($22::int8[]), unnest($23::int8[]), unnest($24::int8[]),
                     unnest($27::int2[]), unnest($28::int8[])) AS e (shard, id) ",
            $only,
            "), payload AS (
                 INSERT INTO hapax.payload (shard, event, content_type, body)
                 SELECT e.* FROM (
                     SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($25::text[]), unnest($26::bytea[])
                 ) AS e (shard, id) ",
            $only,
            ") ",
            $after
        )
    };
}
pub(super) use insert_events;

/// An id that was never given before: its time, its key's shard, and randomness.
pub(super) fn new_id(at: Time, key: KeyHash, entropy: &Entropy) -> EventId {
    EventId(RawId::new(at, key.shard(SHARDS), entropy()))
}

/// The row of a new event.
pub(super) fn new_row<'a>(arrival: &'a Arrival, event: &'a NewEvent, id: EventId) -> EventRow<'a> {
    let expires_at = identity::expiry(
        arrival.at,
        arrival.at,
        event.keep.identity,
        event.keep.retry_window,
    );
    EventRow {
        id,
        arrival,
        event,
        expires_at,
        status: first_status(event),
    }
}

/// What is said of a new event.
pub(super) fn new_receipt(event: &NewEvent, id: EventId) -> Receipt {
    Receipt {
        event: id,
        sighting: Receipted::New,
        needs_review: event.review.is_some(),
        claims: Vec::new(),
        revived: Vec::new(),
    }
}

/// What orders keys: all nodes insert and lock in this order, so that they wait for each other but never in a circle.
pub(super) fn key_order<'a>(arrival: &'a Arrival, event: &NewEvent) -> (u16, &'a str, KeyHash) {
    (
        event.key_hash.shard(SHARDS),
        &arrival.source,
        event.key_hash,
    )
}

/// Stores arrivals of one event each, as far as their keys are free. `None` stands for a key that somebody holds, perhaps an
/// earlier one of the same group.
pub(super) async fn accept_new(
    taken: Taken,
    arrivals: &[(&Arrival, &NewEvent)],
    entropy: &Entropy,
) -> Result<Vec<Option<Receipt>>, StoreError> {
    let ids: Vec<EventId> = arrivals
        .iter()
        .map(|(arrival, event)| new_id(arrival.at, event.key_hash, entropy))
        .collect();
    let mut order: Vec<usize> = (0..arrivals.len()).collect();
    // Stable: of two with the same key the first to come is the first to be inserted.
    order.sort_by_key(|&at| key_order(arrivals[at].0, arrivals[at].1));
    let rows = order
        .iter()
        .map(|&at| new_row(arrivals[at].0, arrivals[at].1, ids[at]));
    let columns = EventColumns::of(rows);
    let stored = taken
        .query_and_commit(
            insert_events!(
                "fresh AS (
                     INSERT INTO hapax.identity (shard, event, source, key_hash)
                     SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::text[]), unnest($4::uuid[])
                     ON CONFLICT (shard, source, key_hash) DO NOTHING
                     RETURNING event
                 ),",
                "WHERE e.id IN (SELECT event FROM fresh)",
                "SELECT event FROM fresh"
            ),
            &columns.params(),
        )
        .await?;
    let stored: HashSet<Uuid> = stored.iter().map(|row| row.get(0)).collect();
    let receipts = ids.iter().zip(arrivals).map(|(id, (_, event))| {
        stored
            .contains(&Uuid(id.bytes()))
            .then(|| new_receipt(event, *id))
    });
    Ok(receipts.collect())
}
