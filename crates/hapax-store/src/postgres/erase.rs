//! Bytes that go at once because somebody said so, and all that was said about them.

use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::pool::{Param, Statement};
use super::wire::Uuid;

/// What the event calls for, as `c`.
macro_rules! called {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            " (SELECT shard, id FROM hapax.effect WHERE event = $2
               UNION ALL
               SELECT effect_shard, effect FROM hapax.effect_link WHERE shard = $1 AND event = $2) AS c (shard, id) ",
            $after
        )
    };
}

/// Of the event itself, and of the effects that it calls for. All of them are locked.
const STATEMENTS: [&str; 5] = [
    "DELETE FROM hapax.payload WHERE shard = $1 AND event = $2",
    "UPDATE hapax.delivery SET body = NULL WHERE shard = $1 AND event = $2 AND body IS NOT NULL",
    "UPDATE hapax.run SET snapshot = NULL WHERE shard = $1 AND event = $2 AND snapshot IS NOT NULL",
    called!(
        "DELETE FROM hapax.snapshot s USING",
        "WHERE s.shard = c.shard AND s.effect = c.id"
    ),
    called!(
        "UPDATE hapax.attempt a SET excerpt = NULL, error = NULL FROM",
        "WHERE a.shard = c.shard AND a.effect = c.id AND (a.excerpt IS NOT NULL OR a.error IS NOT NULL)"
    ),
];

/// Erases what an event brought. Its row, its keys and how its effects ended stay.
pub(super) struct Erasure {
    shard: i16,
    event: Uuid,
    erased: i64,
}

impl Erasure {
    pub(super) fn of(event: EventId) -> Erasure {
        Erasure {
            shard: event.0.shard() as i16,
            event: Uuid(event.bytes()),
            erased: Time::MIN.micros(),
        }
    }

    pub(super) fn statements(&self) -> Vec<Statement<'_>> {
        let named =
            || -> Vec<Param<'_>> { vec![(&self.shard, Type::INT2), (&self.event, Type::UUID)] };
        let mut statements: Vec<Statement<'_>> =
            STATEMENTS.iter().map(|sql| (*sql, named())).collect();
        // From now on no other body under its key is kept either.
        let mut params = named();
        params.push((&self.erased, Type::INT8));
        statements.push((
            "UPDATE hapax.event SET payload_until = $3 WHERE shard = $1 AND id = $2",
            params,
        ));
        statements
    }
}
