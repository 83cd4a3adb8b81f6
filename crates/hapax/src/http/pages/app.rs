//! `/apps`: applications and endpoints.

use axum::extract::{Path, RawQuery};
use http::Method;
use serde_json::{Value, json};

use super::ask::{Ask, Trouble, piece};
use super::event_list::iterator;
use super::portal::endpoints::{TYPES, body, grace, number, written};
use super::shown::{self, Shown, back_to};
use super::submitted::Submitted;
use crate::dashboard::apps::{self, Shown as Data};
use crate::dashboard::json::Json;
use crate::dashboard::portal::settings::Written;

/// Applications.
pub async fn list(ask: Ask, RawQuery(query): RawQuery) -> Shown {
    list_page(&ask, &iterator(&query.unwrap_or_default()), None).await
}

async fn list_page(ask: &Ask, iterator: &str, trouble: Option<&Trouble>) -> Shown {
    let list = ask.get(&format!("/app?{iterator}")).await?;
    let told = trouble.map(|trouble| &trouble.told);
    let page = apps::list(&ask.looker, &list, !iterator.is_empty(), told);
    shown::told(&page, trouble)
}

/// Adds one.
pub async fn create(ask: Ask, form: Submitted) -> Shown {
    let mut body = json!({ "name": form.text("name") });
    if let Some(uid) = form.maybe("uid") {
        body["uid"] = uid.into();
    }
    match ask.post("/app", &body, form.once()).await {
        Ok(app) => back_to(&format!("/apps/{}", piece(app.text("id"))), "app"),
        Err(trouble) => list_page(&ask, "", Some(&trouble)).await,
    }
}

/// One application.
pub async fn show(ask: Ask, Path(app): Path<String>) -> Shown {
    page(&ask, &app, None, None).await
}

async fn page(ask: &Ask, app: &str, link: Option<&str>, trouble: Option<&Trouble>) -> Shown {
    let path = format!("/app/{}", piece(app));
    let app = ask.get(&path).await?;
    let endpoints = ask.get(&format!("{path}/endpoint?limit=250")).await?;
    let dead = ask.get(&format!("{path}/dead-letter")).await?;
    let told = trouble.map(|trouble| &trouble.told);
    let page = apps::page(&ask.looker, &app, &endpoints, &dead, link, told);
    shown::told(&page, trouble)
}

/// Makes a link to the portal. It holds a token, so it is on the page that answers, and nowhere else.
pub async fn portal(ask: Ask, Path(app): Path<String>, form: Submitted) -> Shown {
    let path = format!("/auth/app-portal-access/{}", piece(&app));
    match ask.post(&path, &json!({}), form.once()).await {
        Ok(made) => page(&ask, &app, made.maybe("url"), None).await,
        Err(trouble) => page(&ask, &app, None, Some(&trouble)).await,
    }
}

/// Adds an endpoint.
pub async fn add(ask: Ask, Path(app): Path<String>, form: Submitted) -> Shown {
    let mut body = json!({ "url": form.text("url"), "description": form.text("description") });
    let types: Vec<&str> = form.text("types").split(',').map(str::trim).collect();
    let types: Vec<&str> = types.into_iter().filter(|name| !name.is_empty()).collect();
    if !types.is_empty() {
        body["filterTypes"] = types.into();
    }
    let path = format!("/app/{}/endpoint", piece(&app));
    match ask.post(&path, &body, form.once()).await {
        Ok(made) => {
            let (app, made) = (piece(&app), piece(made.text("id")));
            back_to(&format!("/apps/{app}/endpoints/{made}"), "endpoint")
        }
        Err(trouble) => page(&ask, &app, None, Some(&trouble)).await,
    }
}

/// One endpoint.
pub async fn endpoint(ask: Ask, Path((app, endpoint)): Path<(String, String)>) -> Shown {
    endpoint_page(&ask, &app, &endpoint, (None, None), None).await
}

async fn endpoint_page(
    ask: &Ask,
    app: &str,
    endpoint: &str,
    (secret, wrote): (Option<String>, Option<Written>),
    trouble: Option<&Trouble>,
) -> Shown {
    let (app, endpoint) = (piece(app), piece(endpoint));
    let path = format!("/app/{app}/endpoint/{endpoint}");
    let attempts = format!("/app/{app}/attempt/endpoint/{endpoint}?limit=20");
    let found = ask.get(&path).await?;
    let data = Data {
        app: ask.get(&format!("/app/{app}")).await?,
        endpoint: found.clone(),
        stats: ask.get(&format!("{path}/stats")).await?,
        attempts: ask.get(&attempts).await?,
        lane: ask.get(&format!("{path}/lane")).await?,
        types: ask.get(&format!("/event-type{TYPES}")).await?,
        written: wrote.unwrap_or_else(|| Written::of(&found)),
        // Without a vault key there are none that could be read.
        headers: ask.get(&format!("{path}/headers")).await.ok(),
        secret,
        told: trouble.map(|trouble| trouble.told.clone()),
    };
    shown::told(&apps::endpoint(&ask.looker, &data), trouble)
}

/// Changes what an endpoint is like.
pub async fn save(
    ask: Ask,
    Path((app, endpoint)): Path<(String, String)>,
    form: Submitted,
) -> Shown {
    let wrote = written(&form);
    let path = format!("/app/{}/endpoint/{}", piece(&app), piece(&endpoint));
    let mut body = body(&wrote);
    body["concurrency"] = number(&wrote.concurrency);
    body["timeoutSeconds"] = number(&wrote.timeout);
    match ask.change(Method::PATCH, &path, &body, form.once()).await {
        Ok(_) => back_to(&page_of(&app, &endpoint), "endpoint"),
        Err(trouble) => {
            endpoint_page(&ask, &app, &endpoint, (None, Some(wrote)), Some(&trouble)).await
        }
    }
}

/// Adds, replaces or removes a header.
pub async fn headers(
    ask: Ask,
    Path((app, endpoint)): Path<(String, String)>,
    form: Submitted,
) -> Shown {
    let body = match form.maybe("remove") {
        Some(name) => json!({ "deleteHeaders": [name] }),
        None => json!({ "headers": { form.text("name"): form.text("value") } }),
    };
    let path = format!("/app/{}/endpoint/{}/headers", piece(&app), piece(&endpoint));
    // The forms of a page share one key, and there are several of these. Done twice, it is as if done once.
    match ask.change(Method::PATCH, &path, &body, None).await {
        Ok(_) => back_to(&page_of(&app, &endpoint), "endpoint"),
        Err(trouble) => endpoint_page(&ask, &app, &endpoint, (None, None), Some(&trouble)).await,
    }
}

fn page_of(app: &str, endpoint: &str) -> String {
    format!("/apps/{}/endpoints/{}", piece(app), piece(endpoint))
}

/// Does something to an endpoint.
pub async fn act(
    ask: Ask,
    Path((app, endpoint)): Path<(String, String)>,
    form: Submitted,
) -> Shown {
    let path = format!("/app/{}/endpoint/{}", piece(&app), piece(&endpoint));
    let once = form.once();
    let switch = |disabled: bool| json!({ "disabled": disabled });
    let (done, word) = match form.text("do") {
        "enable" => (
            ask.change(Method::PATCH, &path, &switch(false), once).await,
            "endpoint",
        ),
        "disable" => (
            ask.change(Method::PATCH, &path, &switch(true), once).await,
            "endpoint",
        ),
        "rotate" => {
            let overlap = json!({ "gracePeriodSeconds": grace(&form) });
            (
                ask.post(&format!("{path}/secret/rotate"), &overlap, once)
                    .await,
                "rotate",
            )
        }
        "recover" => {
            let since = json!({ "since": form.text("since") });
            (
                ask.post(&format!("{path}/recover"), &since, once).await,
                "sent",
            )
        }
        // Showing changes nothing, but is asked for with a form, so that no secret is a link away.
        _ => {
            let shown = ask.get(&format!("{path}/secret")).await;
            let secret = shown
                .as_ref()
                .ok()
                .and_then(|shown: &Value| shown.maybe("key"));
            return endpoint_page(
                &ask,
                &app,
                &endpoint,
                (secret.map(str::to_owned), None),
                shown.as_ref().err(),
            )
            .await;
        }
    };
    match done {
        Ok(_) => back_to(&page_of(&app, &endpoint), word),
        Err(trouble) => endpoint_page(&ask, &app, &endpoint, (None, None), Some(&trouble)).await,
    }
}
