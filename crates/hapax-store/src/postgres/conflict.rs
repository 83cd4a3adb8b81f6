//! Deliveries that brought another body, and what somebody decided about them.

use std::cmp::Ordering;

use bytes::Bytes;
use hapax_ledger::id::EventId;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::pool::{Param, Pool, Statement, Taken};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::{ConflictDecision, DELIVERIES_KEPT_MAX};

const ACKNOWLEDGED: i16 = 0;
const PROMOTED: i16 = 1;

/// What was decided, from the columns that keep it.
pub(super) fn to_decision(code: Option<i16>, promoted: Option<Uuid>) -> Option<ConflictDecision> {
    match (code?, promoted) {
        (PROMOTED, Some(event)) => Some(ConflictDecision::Promoted(EventId::from_bytes(event.0))),
        _ => Some(ConflictDecision::Acknowledged),
    }
}

/// The number of the delivery whose row counts so far. The last row that is kept counts all that come later, and keeps its number.
pub(super) fn to_number(n: i32) -> u32 {
    (n as u32).min(DELIVERIES_KEPT_MAX)
}

/// A delivery, by its event and its number.
pub(super) struct Named {
    shard: i16,
    event: Uuid,
    /// Its row counts at least so far.
    low: i32,
    /// And at most so far.
    high: i32,
}

impl Named {
    pub(super) fn of(event: EventId, number: u32) -> Named {
        let count = i32::try_from(number).unwrap_or(i32::MAX);
        let (low, high) = match number.cmp(&DELIVERIES_KEPT_MAX) {
            Ordering::Less => (count, count),
            Ordering::Equal => (count, i32::MAX),
            // There is none of that number.
            Ordering::Greater => (i32::MAX, 0),
        };
        Named {
            shard: event.0.shard() as i16,
            event: Uuid(event.bytes()),
            low,
            high,
        }
    }

    fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.shard, Type::INT2),
            (&self.event, Type::UUID),
            (&self.low, Type::INT4),
            (&self.high, Type::INT4),
        ]
    }

    /// Finds it if it brought another body and nobody has decided on it.
    pub(super) fn look(&self) -> Statement<'_> {
        let sql = "SELECT n FROM hapax.delivery
             WHERE shard = $1 AND event = $2 AND n BETWEEN $3 AND $4 AND conflict AND decided IS NULL";
        (sql, self.params())
    }

    /// The same, and locks it. The event is locked.
    pub(super) async fn lock(&self, taken: &Taken) -> Result<Vec<Row>, StoreError> {
        taken
            .query(
                "SELECT n FROM hapax.delivery
                 WHERE shard = $1 AND event = $2 AND n BETWEEN $3 AND $4 AND conflict AND decided IS NULL
                 FOR UPDATE",
                &self.params(),
            )
            .await
    }
}

/// What somebody decides about a delivery.
pub(super) struct Decided {
    named: Named,
    decided: i16,
    promoted: Option<Uuid>,
}

impl Decided {
    pub(super) fn of(named: Named, decision: ConflictDecision) -> Decided {
        let (decided, promoted) = match decision {
            ConflictDecision::Acknowledged => (ACKNOWLEDGED, None),
            ConflictDecision::Promoted(event) => (PROMOTED, Some(Uuid(event.bytes()))),
        };
        Decided {
            named,
            decided,
            promoted,
        }
    }

    pub(super) fn statement(&self) -> Statement<'_> {
        let mut params = self.named.params();
        params.extend([
            (&self.decided as _, Type::INT2),
            (&self.promoted as _, Type::UUID),
        ]);
        let sql = "UPDATE hapax.delivery SET decided = $5, promoted = $6
             WHERE shard = $1 AND event = $2 AND n BETWEEN $3 AND $4";
        (sql, params)
    }
}

/// The bytes that a delivery brought instead of the first one's, as long as they are kept.
pub(super) async fn body(
    pool: &Pool,
    event: EventId,
    number: u32,
) -> Result<Option<Bytes>, StoreError> {
    let named = Named::of(event, number);
    let rows = pool
        .read(
            "SELECT body FROM hapax.delivery WHERE shard = $1 AND event = $2 AND n BETWEEN $3 AND $4 AND conflict",
            &named.params(),
        )
        .await?;
    let body = rows
        .first()
        .and_then(|row| row.get::<_, Option<Vec<u8>>>(0));
    Ok(body.map(Bytes::from))
}
