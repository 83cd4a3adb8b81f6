//! `/tokens`, `/audit`, `/settings`: for admins. The API refuses everybody else.

use axum::extract::{Path, RawQuery};
use serde_json::{Value, json};

use super::ask::{Ask, Trouble, piece};
use super::event_list::{iterator, wanted};
use super::shown::{self, Shown, back_to};
use super::submitted::Submitted;
use crate::dashboard::admin;

/// Tokens.
pub async fn tokens(ask: Ask) -> Shown {
    token_page(&ask, None, None).await
}

async fn token_page(ask: &Ask, made: Option<&Value>, trouble: Option<&Trouble>) -> Shown {
    let list = ask.get("/token").await?;
    let told = trouble.map(|trouble| &trouble.told);
    shown::told(&admin::tokens(&ask.looker, &list, made, told), trouble)
}

/// Makes one. Its secret is on the page that answers, and nowhere else: so there is no redirect.
pub async fn create(ask: Ask, form: Submitted) -> Shown {
    let mut body = json!({ "name": form.text("name"), "role": form.text("role"), "reason": "made in the dashboard" });
    for name in ["app", "expiresAt"] {
        if let Some(value) = form.maybe(name) {
            body[name] = value.into();
        }
    }
    match ask.post("/token", &body, form.once()).await {
        Ok(made) => token_page(&ask, Some(&made), None).await,
        Err(trouble) => token_page(&ask, None, Some(&trouble)).await,
    }
}

/// Revokes one.
pub async fn revoke(ask: Ask, Path(id): Path<String>, form: Submitted) -> Shown {
    let path = format!("/token/{}/revoke", piece(&id));
    let body = json!({ "reason": "revoked in the dashboard" });
    match ask.post(&path, &body, form.once()).await {
        Ok(_) => back_to("/tokens", "token"),
        Err(trouble) => token_page(&ask, None, Some(&trouble)).await,
    }
}

/// Who decided what.
pub async fn audit(ask: Ask, RawQuery(query): RawQuery) -> Shown {
    let query = query.unwrap_or_default();
    let wanted = wanted(&query, &["actor", "event"]);
    let path = format!("/audit?{}{}", wanted.query, iterator(&query));
    let list = ask.get(&path).await?;
    shown::ok(&admin::audit(&ask.looker, &wanted, &list, None))
}

/// What this node goes by.
pub async fn settings(ask: Ask) -> Shown {
    let running = ask.get("/settings").await?;
    shown::ok(&admin::settings(&ask.looker, &running))
}
