//! Actions: what operators decide about an event or an effect.
//!
//! All of them take a `reason`, honour `ifRevision` and `dryRun`, and answer with the verdict.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::transition::Resolution;
use hapax_ledger::verdict::Verdict;
use hapax_store::nouns::{Commanded, WhyNot};
use hapax_store::{StoreError, verdict_json};
use http::StatusCode;

use super::Api;
use super::body::{Fields, Refused};
use super::describe::asked::{
    ActionRequest, ConflictRequest, ReplayEventRequest, ResolveRequest, ReviewRequest,
};
use super::describe::told;
use super::event::unavailable;
use super::posted::{self, Posted};
use crate::http::answer::{self, Answer, Problem, explained, problem};
use crate::operate::{Granted, Terms, Wish};

/// The largest revision: they fit into a JSON number.
pub(super) const REVISION_MAX: u64 = (1 << 53) - 1;

/// Tries again what failed.
#[utoipa::path(post, path = "/event/{id}/retry", operation_id = "retryEvent", tag = "actions",
    params(("id" = String, Path, description = "the event")), request_body = ActionRequest,
    responses(
        (status = ACCEPTED, description = "the run has begun", body = told::Acted),
        (status = OK, description = "what would happen, with `dryRun`", body = told::Acted),
        (status = GONE, description = "the bytes of the event are deleted", body = told::Problem)))]
pub async fn retry(api: State<Api>, id: Path<String>, posted: Posted) -> impl IntoResponse {
    on_event(api, id, posted, |_| Some(Wish::Retry)).await
}

/// Does what has not been done; what is named in `force`, also again.
#[utoipa::path(post, path = "/event/{id}/replay", operation_id = "replayEvent", tag = "actions",
    params(("id" = String, Path, description = "the event")), request_body = ReplayEventRequest,
    responses(
        (status = ACCEPTED, description = "the run has begun", body = told::Acted),
        (status = OK, description = "what would happen, with `dryRun`", body = told::Acted),
        (status = GONE, description = "the bytes of the event are deleted", body = told::Problem)))]
pub async fn replay(api: State<Api>, id: Path<String>, posted: Posted) -> impl IntoResponse {
    let wish = |fields: &mut Fields| {
        let force = fields.texts("force");
        Some(Wish::Replay { force })
    };
    on_event(api, id, posted, wish).await
}

/// Asks the source of truth, and goes on from what it says.
#[utoipa::path(post, path = "/event/{id}/reconcile", operation_id = "reconcileEvent", tag = "actions",
    params(("id" = String, Path, description = "the event")), request_body = ActionRequest,
    responses(
        (status = ACCEPTED, description = "the run has begun", body = told::Acted),
        (status = OK, description = "what would happen, with `dryRun`", body = told::Acted),
        (status = GONE, description = "the bytes of the event are deleted", body = told::Problem),
        (status = BAD_GATEWAY, description = "the source of truth could not be asked", body = told::Problem)))]
pub async fn reconcile(api: State<Api>, id: Path<String>, posted: Posted) -> impl IntoResponse {
    on_event(api, id, posted, |_| Some(Wish::Reconcile)).await
}

/// Decides about an event that waits for a person.
#[utoipa::path(post, path = "/event/{id}/review", operation_id = "reviewEvent", tag = "actions",
    params(("id" = String, Path, description = "the event")), request_body = ReviewRequest,
    responses(
        (status = OK, description = "done; or what would happen, with `dryRun`", body = told::Acted),
        (status = GONE, description = "the bytes of the event are deleted", body = told::Problem)))]
pub async fn review(api: State<Api>, id: Path<String>, posted: Posted) -> impl IntoResponse {
    let wish = |fields: &mut Fields| {
        fields.word("outcome", "release, dismiss", |word| match word {
            "release" => Some(Wish::Release),
            "dismiss" => Some(Wish::Dismiss),
            _ => None,
        })
    };
    on_event(api, id, posted, wish).await
}

/// Decides about another body under an event's key.
#[utoipa::path(post, path = "/event/{id}/conflict/{number}", operation_id = "decideConflict", tag = "actions",
    params(("id" = String, Path, description = "the event"),
        ("number" = u32, Path, description = "the delivery that brought it")), request_body = ConflictRequest,
    responses(
        (status = OK, description = "done; or what would happen, with `dryRun`", body = told::Acted),
        (status = GONE, description = "the bytes of the event are deleted", body = told::Problem)))]
pub async fn conflict(
    api: State<Api>,
    Path((id, number)): Path<(String, String)>,
    posted: Posted,
) -> Response {
    let Ok(number) = number.parse::<u32>() else {
        return problem(answer::NOT_FOUND).into_response();
    };
    let wish = |fields: &mut Fields| {
        fields.word("outcome", "acknowledge, promote", |word| match word {
            "acknowledge" => Some(Wish::Acknowledge(number)),
            "promote" => Some(Wish::Promote(number)),
            _ => None,
        })
    };
    let answer = on_event(api, Path(id), posted, wish).await;
    answer.into_response()
}

/// Says what became of an effect.
#[utoipa::path(post, path = "/effect/{id}/resolve", operation_id = "resolveEffect", tag = "actions",
    params(("id" = String, Path, description = "the effect")), request_body = ResolveRequest,
    responses(
        (status = OK, description = "done; or what would happen, with `dryRun`", body = told::Acted)))]
pub async fn resolve(
    State(api): State<Api>,
    Path(id): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let Ok(effect) = id.parse::<EffectId>() else {
        return problem(answer::NOT_FOUND);
    };
    let read = read(&posted, |fields| {
        fields.word("outcome", "applied, not_applied, skip", |word| match word {
            "applied" => Some(Wish::Resolve(effect, Resolution::Applied)),
            "not_applied" => Some(Wish::Resolve(effect, Resolution::NotApplied)),
            "skip" => Some(Wish::Resolve(effect, Resolution::Skip)),
            _ => None,
        })
    });
    match (read, api.store.effect(effect).await) {
        (Err(refused), _) => refused.answer(),
        (_, Err(error)) => unavailable(&error),
        (_, Ok(None)) => problem(answer::NOT_FOUND),
        (Ok((wish, terms)), Ok(Some(detail))) => {
            carry_out(&api, detail.effect.event, wish, terms).await
        }
    }
}

pub(super) async fn on_event(
    State(api): State<Api>,
    Path(id): Path<String>,
    posted: Posted,
    wish: impl Fn(&mut Fields) -> Option<Wish>,
) -> Answer {
    let Ok(event) = id.parse::<EventId>() else {
        return problem(answer::NOT_FOUND);
    };
    match read(&posted, wish) {
        Ok((wish, terms)) => carry_out(&api, event, wish, terms).await,
        Err(refused) => refused.answer(),
    }
}

/// Reads the body of an action.
fn read(
    posted: &Posted,
    wish: impl Fn(&mut Fields) -> Option<Wish>,
) -> Result<(Wish, Terms), Refused> {
    let mut fields = posted.fields();
    let wish = wish(&mut fields);
    let reason = fields.text("reason");
    let if_revision = fields.optional_number("ifRevision", 0..=REVISION_MAX);
    let dry_run = fields.flag("dryRun");
    fields.finish()?;
    let terms = Terms {
        by: posted.authority(reason),
        if_revision,
        dry_run,
    };
    // Only if the body was refused is there no wish.
    let wish = wish.ok_or_else(Refused::default)?;
    Ok((wish, terms))
}

async fn carry_out(api: &Api, event: EventId, wish: Wish, terms: Terms) -> Answer {
    let status = match (&wish, terms.dry_run) {
        (Wish::Retry | Wish::Replay { .. } | Wish::Reconcile, false) => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    let granted = match wish {
        Wish::Erase => api.operator.erase(event, terms).await,
        wish => api.operator.grant(event, wish, terms).await,
    };
    said(granted, status)
}

fn said(granted: Result<Granted, StoreError>, status: StatusCode) -> Answer {
    match granted {
        Ok(Granted::Commanded(Commanded::Done(done))) => {
            answer::with_type(status, "application/json", done.answer)
        }
        Ok(Granted::Commanded(Commanded::Before(before))) => posted::before(before, status),
        Ok(Granted::Commanded(Commanded::Refused { why, verdict })) => refused(why, &verdict),
        Ok(Granted::Commanded(Commanded::NoEvent) | Granted::NoEvent) => problem(answer::NOT_FOUND),
        Ok(Granted::NoBytes) => problem(answer::REAPED),
        Ok(Granted::NoReconcile) => problem(answer::NO_RECONCILE),
        Ok(Granted::NoTruth(why)) => with_why(answer::NO_TRUTH, &why),
        Ok(Granted::NoPlan(why)) => with_why(answer::NO_PLAN, &why),
        Ok(Granted::NoConflict) => problem(answer::NO_CONFLICT),
        Err(error) => unavailable(&error),
    }
}

fn with_why(problem: Problem, why: &str) -> Answer {
    explained(problem, &format!("{}: {why}", problem.detail), None)
}

/// Nothing was done; here is where things stand.
fn refused(why: WhyNot, verdict: &Verdict) -> Answer {
    let (problem, detail) = match why {
        WhyNot::Moved => (answer::MOVED, None),
        WhyNot::NeedsDecision => (answer::NEEDS_DECISION, None),
        WhyNot::NoEffect => (
            answer::NOT_NOW,
            Some("the event has no effect of that name".to_owned()),
        ),
        WhyNot::Rejected(rejected) => {
            let detail = format!("{}: {rejected}", answer::NOT_NOW.detail);
            (answer::NOT_NOW, Some(detail))
        }
        WhyNot::NotHeld => (answer::NOT_HELD, None),
        WhyNot::NoConflict => (answer::NO_CONFLICT, None),
        WhyNot::PayloadReaped => (answer::REAPED, None),
    };
    let detail = detail.as_deref().unwrap_or(problem.detail);
    explained(problem, detail, Some(verdict_json(verdict)))
}
