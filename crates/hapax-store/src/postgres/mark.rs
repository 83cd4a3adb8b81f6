//! How endpoints do, as the dispatcher has seen it: many of them in one transaction.

use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::app::{boxed, lock_revision, set_revision};
use super::audit::{self, Entry as Record, Head, Way};
use super::entry_row::{endpoint_columns, to_endpoint, write};
use super::pool::{Pool, Taken};
use super::tiding::TidingColumns;
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::{Endpoint, Mark, Put, Standing, Tiding};
use crate::outbox;

/// Marks endpoints. Only a new standing is written down.
pub(super) async fn endpoints(
    pool: &Pool,
    marks: &[Mark],
    now: Time,
) -> Result<Vec<Put>, StoreError> {
    // No request of anybody's, so nothing is repeated.
    let by = outbox::marked_by(Standing::Enabled, now);
    let taken = pool.take().await?;
    // In the same order as every change, whether or not it is written down.
    let ((), way) = tokio::try_join!(biased; taken.open(), audit::enter(&taken, &by))?;
    let before = lock_revision(&taken).await?;
    let Way::Free(mut head) = way else {
        taken.roll_back().await;
        return Ok(vec![Put::Moved; marks.len()]);
    };
    let (mut revision, mut puts, mut tidings) = (before, Vec::new(), Vec::new());
    for mark in marks {
        let Some(endpoint) = stands(&taken, mark).await? else {
            puts.push(Put::Moved);
            continue;
        };
        let marked = Endpoint {
            standing: mark.standing,
            failing_since: mark.failing_since,
            disabled_from: mark.disabled_from,
            ..endpoint.clone()
        };
        if marked != endpoint {
            revision += 1;
            write(&taken, &boxed(marked.clone()).at_revision(revision)).await?;
        }
        if marked.standing != endpoint.standing {
            head = write_down(&taken, head, mark, now).await?;
        }
        tidings.extend(Tiding::of_mark(&endpoint, &marked, now));
        puts.push(Put::Done { revision });
    }
    if revision == before {
        taken.roll_back().await;
        return Ok(puts);
    }
    set_revision(&taken, revision).await?;
    if let Some((sql, params)) = TidingColumns::of(&tidings).statement() {
        taken.query(sql, &params).await?;
    }
    taken.commit().await?;
    Ok(puts)
}

/// The endpoint, unless it was changed since it was looked at.
async fn stands(taken: &Taken, mark: &Mark) -> Result<Option<Endpoint>, StoreError> {
    let rows = taken
        .query(
            endpoint_columns!("WHERE id = $1 AND deleted_at IS NULL AND revision = $2"),
            &[
                (&Uuid(mark.endpoint.bytes()), Type::UUID),
                (&(mark.was as i64), Type::INT8),
            ],
        )
        .await?;
    Ok(rows.first().map(to_endpoint))
}

async fn write_down(taken: &Taken, head: Head, mark: &Mark, now: Time) -> Result<Head, StoreError> {
    let record = Record {
        by: &outbox::marked_by(mark.standing, now),
        action: outbox::MARKED,
        subject: mark.endpoint.to_string(),
        event: None,
        detail: &outbox::marked_detail(mark.standing),
    };
    head.write(taken, &record).await
}
