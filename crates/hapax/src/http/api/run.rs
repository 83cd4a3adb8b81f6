//! Runs as users see them.

use hapax_ledger::id::RunId;
use hapax_ledger::run::RunKind;
use hapax_store::nouns::{Event, Run};
use serde::Serialize;
use utoipa::ToSchema;

use super::describe::value;
use crate::clock::text as time_text;

/// What is said of the run that every event begins with.
const RECEIVED: &str = "received";

/// A run as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Run)]
pub(super) struct RunBody {
    #[schema(schema_with = value::run_id)]
    id: String,
    #[schema(schema_with = value::run_kind)]
    kind: &'static str,
    actor: String,
    reason: String,
    #[schema(schema_with = value::time)]
    at: String,
    #[schema(schema_with = value::run_id_or_null)]
    parent_id: Option<String>,
    /// What the source of truth said, of a reconcile.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    snapshot: Option<String>,
}

/// All runs of an event, the initial one first: that one is told from the event, and nowhere kept.
pub(super) fn bodies(event: &Event, runs: Vec<Run>) -> Vec<RunBody> {
    let initial = RunBody {
        id: RunId::initial(event.id).to_string(),
        kind: RunKind::Initial.word(),
        actor: event.source.to_string(),
        reason: RECEIVED.to_owned(),
        at: time_text(event.received_at),
        parent_id: None,
        snapshot: None,
    };
    let later = runs.into_iter().map(|run| RunBody {
        id: run.id.to_string(),
        kind: run.kind.word(),
        actor: run.actor.to_string(),
        reason: run.reason,
        at: time_text(run.at),
        parent_id: Some(run.parent.to_string()),
        snapshot: run
            .snapshot
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    });
    std::iter::once(initial).chain(later).collect()
}
