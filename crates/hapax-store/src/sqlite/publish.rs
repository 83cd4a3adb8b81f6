//! Messages: stored like any other event, and in the same group.

use hapax_ledger::id::AppId;

use super::accept::{self, Sighted};
use super::message::keep_about;
use super::writer::Tx;
use super::{fan_out, read};
use crate::error::StoreError;
use crate::nouns::{NewMessage, Published, Receipt, Receipted, app_of_source};
use crate::posting;

/// Stores a message, or says what is known under its key.
pub(super) fn publish(tx: &mut Tx<'_>, mut message: NewMessage) -> Result<Published, StoreError> {
    posting::arrival(&mut message);
    let arrival = &message.arrival;
    let (Some(event), Some(app)) = (arrival.events.first(), app_of_source(&arrival.source)) else {
        return Ok(Published::Outdated);
    };
    match accept::sight(tx, arrival, event)? {
        // Whoever publishes hears of it at once, so that nobody else has to look at it.
        Sighted::Known {
            known,
            conflict: true,
        } => Ok(Published::Stored(Receipt {
            event: known.identity.event,
            sighting: Receipted::Conflict,
            needs_review: false,
            claims: Vec::new(),
            revived: Vec::new(),
        })),
        Sighted::Known { known, conflict } => {
            accept::repeat(tx, arrival, event, &known, conflict).map(Published::Stored)
        }
        Sighted::New { .. } if message.revision != tx.group.catalogue(tx.db)? => {
            Ok(Published::Outdated)
        }
        Sighted::New { before } => publish_new(tx, &message, app, before).map(Published::Stored),
    }
}

fn publish_new(
    tx: &mut Tx<'_>,
    message: &NewMessage,
    app: AppId,
    before: Option<i64>,
) -> Result<Receipt, StoreError> {
    let waits = match message.arrival.events.first().and_then(posting::entity) {
        Some(entity) => fan_out::is_under_way(tx.db, &message.arrival.source, entity)?,
        None => false,
    };
    let in_line;
    let (arrival, later) = match waits {
        true => {
            in_line = posting::in_line(message);
            (&in_line.0, &in_line.1)
        }
        false => (&message.arrival, &message.later),
    };
    let (Some(event), Some(planned)) = (arrival.events.first(), message.arrival.events.first())
    else {
        return Err(posting::not_one_event());
    };
    let mut receipt = accept::insert(tx, arrival, event, before, later.len())?;
    receipt.claims.resize(planned.effects.len(), None);
    let row = read::row_of(receipt.event);
    keep_about(tx.db, app, row, &message.about)?;
    if !later.is_empty() {
        fan_out::begin(tx, row, &arrival.source, planned, later)?;
    }
    Ok(receipt)
}
