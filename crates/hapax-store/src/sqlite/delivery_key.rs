//! The keys of deliveries, which are not in the key index.
//!
//! A delivery is named after its endpoint and has the key of its message, so whoever has the message has its deliveries: a message
//! whose key nobody holds has none yet, and those of one that is there are found by the endpoint's lane. That spares every message
//! half of what it would ask of the index and put into it.
//!
//! One case is left. A message's identity may have expired and its row still be there when another message takes the key. From then
//! on no key leads to the earlier one, and its deliveries hold theirs until they are reaped (D6). So these are put into the index.

use std::collections::HashMap;

use hapax_ledger::key::{KeyHash, KeyKind};
use rusqlite::Connection;

use super::index::KeyIndex;
use super::open::Unread;
use super::writer::Tx;
use super::{addressed, effect};
use crate::error::StoreError;
use crate::nouns::{NewEffect, is_endpoint_name};

/// The row of a delivery of a message that is there: its own, or one that an earlier message of the same key has called for.
pub(super) fn find(
    tx: &Tx<'_>,
    message: i64,
    delivery: &NewEffect,
) -> Result<Option<i64>, StoreError> {
    match addressed::delivery(tx.db, message, &delivery.lane)? {
        Some(row) => Ok(Some(row)),
        None => tx.group.find(tx.index, delivery.key_hash),
    }
}

/// Another message takes the key that this one held.
pub(super) fn inherit(tx: &mut Tx<'_>, before: i64) -> Result<(), StoreError> {
    for (key, row) in of_message(tx.db, before)? {
        tx.group.take(key, row);
    }
    Ok(())
}

/// The same for an index that reads on: what is in line was accepted in this order.
pub(super) fn inherited(
    db: &Connection,
    index: &KeyIndex,
    unread: &[Unread],
) -> Result<Vec<(KeyHash, i64)>, StoreError> {
    let mut keys = Vec::new();
    let mut holders = HashMap::new();
    for event in unread.iter().filter(|event| event.is_message) {
        let before = match holders.insert(event.key, event.row) {
            Some(before) => Some(before),
            None => index.get(event.key)?,
        };
        if let Some(before) = before.filter(|before| *before != event.row) {
            keys.extend(of_message(db, before)?);
        }
    }
    Ok(keys)
}

fn of_message(db: &Connection, message: i64) -> Result<Vec<(KeyHash, i64)>, StoreError> {
    let effects = effect::of_event(db, message)?.into_iter();
    let deliveries = effects.filter(|held| is_endpoint_name(&held.effect.name));
    Ok(deliveries
        .map(|held| {
            let key = KeyHash::of(KeyKind::Effect, &held.effect.name, &held.effect.key);
            (key, held.row)
        })
        .collect())
}
