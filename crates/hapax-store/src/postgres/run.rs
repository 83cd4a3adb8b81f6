//! Passes over an event that somebody asked for, as rows.

use std::borrow::Cow;

use bytes::Bytes;
use hapax_ledger::id::RunId;
use hapax_ledger::run::RunKind;
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::pool::{Param, Statement};
use super::wire::{Uuid, received, sendable};
use crate::nouns::{Command, Run};

/// Reads the runs of an event, oldest first. Its shard and id are the parameters.
pub(super) const OF_EVENT: &str =
    "SELECT id, kind, actor, reason, at, parent, snapshot FROM hapax.run
     WHERE shard = $1 AND event = $2 ORDER BY n";

/// A run from [`OF_EVENT`].
pub(super) fn to_run(row: &Row) -> Run {
    Run {
        id: RunId::from_bytes(row.get::<_, Uuid>(0).0),
        kind: RunKind::from_code(row.get::<_, i16>(1) as u8).unwrap_or(RunKind::Replay),
        actor: received(row.get(2)).into(),
        reason: received(row.get(3)),
        at: Time::from_micros(row.get(4)),
        parent: RunId::from_bytes(row.get::<_, Uuid>(5).0),
        snapshot: row.get::<_, Option<Vec<u8>>>(6).map(Bytes::from),
    }
}

/// A run that is about to be kept.
pub(super) struct RunRow<'a> {
    shard: i16,
    event: Uuid,
    id: Uuid,
    initial: Uuid,
    at: i64,
    kind: i16,
    actor: Cow<'a, str>,
    reason: Cow<'a, str>,
    snapshot: Option<&'a [u8]>,
}

impl<'a> RunRow<'a> {
    /// The run that a command makes, if it makes one.
    pub(super) fn of(command: &'a Command) -> Option<RunRow<'a>> {
        let kind = command.decision.run()?;
        let event = command.event;
        Some(RunRow {
            shard: event.0.shard() as i16,
            event: Uuid(event.bytes()),
            id: Uuid(command.run.bytes()),
            initial: Uuid(RunId::initial(event).bytes()),
            at: command.by.at.micros(),
            kind: kind.code().into(),
            actor: sendable(&command.by.actor),
            reason: sendable(&command.by.reason),
            snapshot: command.decision.snapshot().map(|body| &body[..]),
        })
    }

    /// It follows the latest run of the event, which is locked.
    pub(super) fn statement(&self) -> Statement<'_> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2),
            (&self.event, Type::UUID),
            (&self.id, Type::UUID),
            (&self.initial, Type::UUID),
            (&self.at, Type::INT8),
            (&self.kind, Type::INT2),
            (&self.actor, Type::TEXT),
            (&self.reason, Type::TEXT),
            (&self.snapshot, Type::BYTEA),
        ];
        let sql =
            "INSERT INTO hapax.run (shard, event, n, id, parent, at, kind, actor, reason, snapshot)
             SELECT $1, $2, coalesce(l.n, 0) + 1, $3, coalesce(l.id, $4), $5, $6, $7, $8, $9
             FROM (VALUES (1)) AS one LEFT JOIN LATERAL (
                 SELECT n, id FROM hapax.run WHERE shard = $1 AND event = $2 ORDER BY n DESC LIMIT 1
             ) l ON true";
        (sql, params)
    }
}
