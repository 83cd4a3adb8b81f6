//! `GET /event/{id}/verdict`: what would happen if somebody acted now; and the other bodies of conflicts.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::id::EventId;
use hapax_ledger::verdict::Action;
use hapax_store::verdict_json;
use http::StatusCode;

use super::Api;
use super::describe::asked::VerdictQuery;
use super::describe::told;
use super::event::{attached, unavailable};
use super::list::{Invalid, refuse};
use crate::http::answer::{self, problem};

/// Which action the verdict is about.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    action: Named,
    force: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Named {
    #[default]
    Retry,
    Replay,
    Reconcile,
}

/// What would happen if somebody acted now.
#[utoipa::path(get, path = "/event/{id}/verdict", operation_id = "getVerdict", tag = "events",
    params(("id" = String, Path, description = "the event"), VerdictQuery),
    responses((status = OK, description = "the verdict", body = told::Verdict)))]
pub async fn show(
    State(api): State<Api>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let Ok(id) = id.parse::<EventId>() else {
        return problem(answer::NOT_FOUND);
    };
    let asked = match parse(query.as_deref().unwrap_or("")) {
        Ok(asked) => asked,
        Err(invalid) => return refuse(invalid),
    };
    let action = match asked.action {
        Named::Retry => Action::Retry,
        Named::Replay => Action::Replay {
            force: &asked.force,
        },
        Named::Reconcile => Action::Reconcile,
    };
    match api.operator.verdict(id, action).await {
        Ok(Some(verdict)) => answer::json(StatusCode::OK, &verdict_json(&verdict)),
        Ok(None) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

fn parse(query: &str) -> Result<Asked, Invalid> {
    let mut asked = Asked::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match (&*name, &*value) {
            ("action", "retry") => asked.action = Named::Retry,
            ("action", "replay") => asked.action = Named::Replay,
            ("action", "reconcile") => asked.action = Named::Reconcile,
            ("action", _) => {
                let msg = "one of retry, replay, reconcile is expected";
                return Err(Invalid::query("action", msg));
            }
            ("force", name) => asked.force.push(name.to_owned()),
            (other, _) => return Err(Invalid::query(other, "there is no such parameter")),
        }
    }
    match asked.force.is_empty() || asked.action == Named::Replay {
        true => Ok(asked),
        false => Err(Invalid::query("force", "only a replay forces effects")),
    }
}

/// Another body that came under an event's key.
#[utoipa::path(get, path = "/event/{id}/conflict/{number}/body", operation_id = "getConflictBody", tag = "events",
    params(("id" = String, Path, description = "the event"),
        ("number" = u32, Path, description = "the delivery that brought it")),
    responses((status = OK, description = "the bytes", body = Value, content_type = "application/octet-stream")))]
pub async fn conflict_body(
    State(api): State<Api>,
    Path((id, number)): Path<(String, String)>,
) -> impl IntoResponse {
    let (Ok(id), Ok(number)) = (id.parse::<EventId>(), number.parse::<u32>()) else {
        return problem(answer::NOT_FOUND);
    };
    match api.store.conflict_body(id, number).await {
        Ok(Some(body)) => attached(None, body),
        Ok(None) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_about_one_action() {
        let asked = |action, force: &[&str]| Asked {
            action,
            force: force.iter().map(|name| (*name).to_owned()).collect(),
        };
        let table = [
            ("", asked(Named::Retry, &[])),
            ("action=reconcile", asked(Named::Reconcile, &[])),
            (
                "force=a&action=replay&force=b%20c",
                asked(Named::Replay, &["a", "b c"]),
            ),
        ];
        for (query, want) in table {
            assert_eq!(parse(query).expect(query), want);
        }
        for query in [
            "action=resend",
            "force=a",
            "action=retry&force=a",
            "limit=1",
        ] {
            assert!(parse(query).is_err(), "{query}");
        }
    }
}
