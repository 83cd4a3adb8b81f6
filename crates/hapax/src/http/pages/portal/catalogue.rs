//! `/portal/events`: types of events.

use axum::extract::{Path, RawQuery};

use super::guest::{self, Portal, Shown};
use crate::dashboard::portal::catalogue as page;
use crate::http::pages::ask::piece;
use crate::http::pages::event_list::iterator;

/// The list.
pub async fn list(portal: Portal, RawQuery(query): RawQuery) -> Shown {
    let iterator = iterator(&query.unwrap_or_default());
    let list = portal.types(&format!("?limit=100&{iterator}")).await?;
    guest::ok(&page::page(&portal.guest, &list, !iterator.is_empty()))
}

/// One type.
pub async fn show(portal: Portal, Path(name): Path<String>) -> Shown {
    let known = portal.types(&format!("/{}", piece(&name))).await?;
    guest::ok(&page::event_type(&portal.guest, &known))
}
