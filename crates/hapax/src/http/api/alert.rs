//! What somebody should look at, as this node sees it.

use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;
use serde_json::{Value, json};

use super::Api;
use super::describe::told::AlertsTold;
use crate::alert::notice;
use crate::http::answer;

/// The alerts that stand, and then those that were cleared lately, the latest first, as this node sees them.
#[utoipa::path(get, path = "/alert", operation_id = "listAlerts", tag = "alerts",
    responses((status = OK, description = "what somebody should look at", body = AlertsTold)))]
pub async fn list(State(api): State<Api>) -> impl IntoResponse {
    let data: Vec<Value> = api.alerts.all().iter().map(notice::body).collect();
    answer::json(StatusCode::OK, &json!({ "data": data }))
}
