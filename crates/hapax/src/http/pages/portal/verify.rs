//! `/portal/verify`: how to verify what comes.

use std::collections::HashMap;

use axum::extract::{Path, Query};

use super::guest::{self, Portal, Shown};
use crate::dashboard::json::Json;
use crate::dashboard::portal::code::Language;
use crate::dashboard::portal::verify as page;
use crate::http::pages::ask::piece;
use crate::http::pages::shown;

/// To the page of the first endpoint: code has its ids in it.
pub async fn first(portal: Portal) -> Shown {
    let list = portal.get("/endpoint?limit=1").await?;
    match list.list("data").first() {
        Some(endpoint) => Ok(shown::to(&format!(
            "/portal/endpoints/{}/verify",
            piece(endpoint.text("id"))
        ))),
        None => guest::ok(&page::without(&portal.guest)),
    }
}

/// The page of one endpoint.
pub async fn show(
    portal: Portal,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Shown {
    let endpoint = portal.get(&format!("/endpoint/{}", piece(&id))).await?;
    let language = Language::find(query.get("in").map_or("", String::as_str));
    guest::ok(&page::page(&portal.guest, &endpoint, language))
}
