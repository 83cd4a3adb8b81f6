//! How endpoints do, as the dispatcher has seen it.

use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, params};

use super::app::{boxed, next_revision, revision};
use super::audit::{self, Entry as Record};
use super::entry_row::{endpoint_columns, to_endpoint, write};
use super::{sql_error, tiding};
use crate::error::StoreError;
use crate::nouns::{Endpoint, Mark, Put, Tiding};
use crate::outbox;

/// The dispatcher has seen how an endpoint does.
pub(super) fn endpoint(db: &Connection, mark: &Mark, now: Time) -> Result<Put, StoreError> {
    let Mark {
        endpoint: id,
        was,
        standing,
        failing_since,
        disabled_from,
    } = *mark;
    let stands = db
        .prepare_cached(endpoint_columns!(
            "WHERE id = ?1 AND deleted_at IS NULL AND revision = ?2"
        ))
        .and_then(|mut read| {
            read.query_row(params![id.bytes(), was as i64], to_endpoint)
                .optional()
        })
        .map_err(sql_error)?;
    let Some(endpoint) = stands else {
        return Ok(Put::Moved);
    };
    let marked = Endpoint {
        standing,
        failing_since,
        disabled_from,
        ..endpoint.clone()
    };
    if marked != endpoint {
        let revision = next_revision(db)?;
        write(db, &boxed(marked.clone()).at_revision(revision))?;
    }
    if let Some(told) = Tiding::of_mark(&endpoint, &marked, now) {
        tiding::write(db, &told)?;
    }
    if standing != endpoint.standing {
        let record = Record {
            action: outbox::MARKED,
            subject: id.to_string(),
            detail: outbox::marked_detail(standing),
            event: None,
        };
        audit::write_down(db, &outbox::marked_by(standing, now), record)?;
    }
    let revision = revision(db)?;
    Ok(Put::Done { revision })
}
