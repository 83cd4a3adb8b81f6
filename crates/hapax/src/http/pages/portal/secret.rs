//! `/portal/endpoints/{id}/secret`: shown to whoever asks with the form, so that it is on no page that is merely opened.

use axum::extract::Path;
use serde_json::json;

use super::endpoints::grace;
use super::guest::{self, Form, Portal, Shown};
use crate::dashboard::json::Json;
use crate::dashboard::portal::secret::{self as page, Seen};
use crate::http::pages::ask::piece;

/// The page without the secret.
pub async fn hidden(portal: Portal, Path(id): Path<String>) -> Shown {
    let endpoint = portal.get(&format!("/endpoint/{}", piece(&id))).await?;
    guest::ok(&page::page(&portal.guest, &endpoint, Seen::Hidden, None))
}

/// The page with it.
pub async fn show(portal: Portal, Path(id): Path<String>, _: Form) -> Shown {
    let at = piece(&id);
    let endpoint = portal.get(&format!("/endpoint/{at}")).await?;
    match portal.get(&format!("/endpoint/{at}/secret")).await {
        Ok(secret) => {
            let seen = Seen::Shown(secret.text("key"));
            guest::ok(&page::page(&portal.guest, &endpoint, seen, None))
        }
        Err(fault) => {
            let told = Some(&fault.told);
            let page = page::page(&portal.guest, &endpoint, Seen::Hidden, told);
            guest::told(&page, Some(&fault))
        }
    }
}

/// Another secret. It is shown at once: whoever rotates needs it next.
pub async fn rotate(portal: Portal, Path(id): Path<String>, form: Form) -> Shown {
    let at = piece(&id);
    let body = json!({ "gracePeriodSeconds": grace(&form.0) });
    let endpoint = portal.get(&format!("/endpoint/{at}")).await?;
    let path = format!("/endpoint/{at}/secret/rotate");
    match portal.post(&path, &body, &form).await {
        Ok(secret) => {
            let seen = Seen::Rotated(secret.text("key"));
            guest::ok(&page::page(&portal.guest, &endpoint, seen, None))
        }
        Err(fault) => {
            let told = Some(&fault.told);
            let page = page::page(&portal.guest, &endpoint, Seen::Hidden, told);
            guest::told(&page, Some(&fault))
        }
    }
}
