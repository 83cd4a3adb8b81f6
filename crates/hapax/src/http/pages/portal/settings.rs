//! `/portal/endpoints/{id}/settings`: what goes where, headers, a pause, an end.

use axum::extract::Path;
use http::Method;
use serde_json::{Value, json};

use super::endpoints::{TYPES, body, written};
use super::guest::{self, Fault, Form, Portal, Shown};
use crate::dashboard::portal::settings::{self as page, Written};
use crate::http::pages::ask::piece;

/// The page.
pub async fn show(portal: Portal, Path(id): Path<String>) -> Shown {
    render(&portal, &id, None, None).await
}

/// The page, with what somebody wrote and what is wrong with it.
async fn render(portal: &Portal, id: &str, wrote: Option<Written>, fault: Option<&Fault>) -> Shown {
    let at = piece(id);
    let endpoint = portal.get(&format!("/endpoint/{at}")).await?;
    let types = portal.types(TYPES).await?;
    // Without a vault key there are none that could be read.
    let headers = portal.get(&format!("/endpoint/{at}/headers")).await.ok();
    let wrote = wrote.unwrap_or_else(|| Written::of(&endpoint));
    let told = fault.map(|fault| &fault.told);
    let page = page::page(
        &portal.guest,
        &endpoint,
        &wrote,
        &types,
        headers.as_ref(),
        told,
    );
    guest::told(&page, fault)
}

/// Changes it.
pub async fn save(portal: Portal, Path(id): Path<String>, form: Form) -> Shown {
    let (at, wrote) = (piece(&id), written(&form.0));
    let path = format!("/endpoint/{at}");
    match portal
        .change(Method::PATCH, &path, &body(&wrote), &form)
        .await
    {
        Ok(_) => guest::back_to(&format!("/portal/endpoints/{at}/settings"), "changed"),
        Err(fault) => render(&portal, &id, Some(wrote), Some(&fault)).await,
    }
}

/// Adds, replaces or removes a header.
pub async fn headers(portal: Portal, Path(id): Path<String>, form: Form) -> Shown {
    let body = match form.0.maybe("remove") {
        Some(name) => json!({ "deleteHeaders": [name] }),
        None => json!({ "headers": { form.0.text("name"): form.0.text("value") } }),
    };
    let at = piece(&id);
    let path = format!("/endpoint/{at}/headers");
    match portal.change(Method::PATCH, &path, &body, &form).await {
        Ok(_) => guest::back_to(&format!("/portal/endpoints/{at}/settings"), "header"),
        Err(fault) => render(&portal, &id, None, Some(&fault)).await,
    }
}

/// Goes on.
pub async fn enable(portal: Portal, Path(id): Path<String>, form: Form) -> Shown {
    stand(
        &portal,
        &id,
        &json!({ "disabled": false }),
        &form,
        "enabled",
    )
    .await
}

/// Pauses.
pub async fn disable(portal: Portal, Path(id): Path<String>, form: Form) -> Shown {
    stand(
        &portal,
        &id,
        &json!({ "disabled": true }),
        &form,
        "disabled",
    )
    .await
}

async fn stand(portal: &Portal, id: &str, body: &Value, form: &Form, word: &str) -> Shown {
    let at = piece(id);
    let path = format!("/endpoint/{at}");
    portal.change(Method::PATCH, &path, body, form).await?;
    guest::back_to(&format!("/portal/endpoints/{at}"), word)
}

/// Deletes it.
pub async fn delete(portal: Portal, Path(id): Path<String>, form: Form) -> Shown {
    if form.0.text("sure") != "yes" {
        return render(&portal, &id, None, None).await;
    }
    let path = format!("/endpoint/{}", piece(&id));
    portal
        .change(Method::DELETE, &path, &Value::Null, &form)
        .await?;
    guest::back_to("/portal/endpoints", "deleted")
}
