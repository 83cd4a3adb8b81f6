//! `GET /audit`: who decided what, newest first. For admins.

use axum::extract::{RawQuery, State};
use axum::response::IntoResponse;
use hapax_store::nouns::{AuditFilter, AuditRecord};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::describe::asked::AuditQuery;
use super::describe::value;
use super::event::unavailable;
use super::list::{self, Asked, Invalid, ListBody};
use crate::clock::text as time_text;
use crate::http::answer;

/// A record as users see it: all that its hash covers, letter by letter, so that anybody can check the chain.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditRecord)]
struct RecordBody {
    seq: u64,
    #[schema(schema_with = value::time)]
    at: String,
    actor: String,
    action: String,
    subject: String,
    reason: String,
    /// JSON as text: another spelling would have another hash.
    detail: String,
    previous: String,
    hash: String,
}

/// Who decided what, newest first.
#[utoipa::path(get, path = "/audit", operation_id = "listAudit", tag = "audit",
    params(AuditQuery),
    responses((status = OK, description = "a page", body = ListBody<RecordBody>)))]
pub async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let query = query.as_deref().unwrap_or("");
    let Asked { filter, page } = match list::parse(query, AuditFilter::default(), narrow) {
        Ok(asked) => asked,
        Err(invalid) => return list::refuse(invalid),
    };
    match api.store.audit(filter, page).await {
        Ok(listed) => {
            let body = ListBody::new(listed, |record| record.seq, to_body);
            answer::json(StatusCode::OK, &body)
        }
        Err(error) => unavailable(&error),
    }
}

fn narrow(filter: &mut AuditFilter, name: &str, value: &str) -> Result<(), Option<Invalid>> {
    match name {
        "actor" => filter.actor = Some(value.to_owned()),
        "event" => {
            let id = value.parse();
            let id = id.map_err(|_| Invalid::query(name, "the id of an event is expected"))?;
            filter.event = Some(id);
        }
        _ => return Err(None),
    }
    Ok(())
}

fn to_body(record: AuditRecord) -> RecordBody {
    RecordBody {
        seq: record.seq,
        at: time_text(record.at),
        actor: record.actor.to_string(),
        action: record.action,
        subject: record.subject,
        reason: record.reason,
        detail: record.detail,
        previous: hex::encode(record.previous),
        hash: hex::encode(record.hash),
    }
}
