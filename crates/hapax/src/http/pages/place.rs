//! `/sources` and `/guard`: where requests come from.

use axum::extract::{Path, RawQuery};
use serde_json::{Value, json};

use super::ask::{Ask, piece};
use super::event_list::{iterator, wanted};
use super::shown::{self, Shown, back_to, told_of};
use super::submitted::Submitted;
use crate::dashboard::json::Json;
use crate::dashboard::{guard, sources};
use crate::http::answer;

/// Sources.
pub async fn sources(ask: Ask) -> Shown {
    let list = ask.get("/source").await?;
    shown::ok(&sources::list(&ask.looker, &list))
}

/// One source.
pub async fn source(ask: Ask, Path(name): Path<String>) -> Shown {
    let list = ask.get("/source").await?;
    let mut all = list.list("data").iter();
    let Some(source) = all.find(|source| source.text("name") == name) else {
        let problem = answer::NOT_FOUND;
        return Err(ask.refuse(problem.status, told_of(problem)));
    };
    let name = piece(&name);
    let refused = ask.get(&format!("/source/{name}/refused")).await?;
    let audit = ask.get(&format!("/source/{name}/audit")).await?;
    shown::ok(&sources::page(&ask.looker, source, &refused, &audit))
}

/// Guard keys.
pub async fn keys(ask: Ask, RawQuery(query): RawQuery) -> Shown {
    let query = query.unwrap_or_default();
    let wanted = wanted(&query, &["state", "guard", "key", "principal"]);
    let path = format!("/guard/key?{}{}", wanted.query, iterator(&query));
    let list = ask.get(&path).await?;
    shown::ok(&guard::list(&ask.looker, &wanted, &list))
}

/// One guard key.
pub async fn key(ask: Ask, Path(id): Path<String>) -> Shown {
    let key: Value = ask.get(&format!("/guard/key/{}", piece(&id))).await?;
    shown::ok(&guard::page(&ask.looker, &key, None))
}

/// What became of a guarded request.
pub async fn resolve(ask: Ask, Path(id): Path<String>, form: Submitted) -> Shown {
    let mut body = json!({ "outcome": form.text("outcome"), "reason": form.text("reason") });
    if let Ok(fence) = form.text("fence").parse::<u64>() {
        body["ifFence"] = fence.into();
    }
    let path = format!("/guard/key/{}", piece(&id));
    match ask
        .post(&format!("{path}/resolve"), &body, form.once())
        .await
    {
        Ok(_) => back_to(&format!("/guard/{}", piece(&id)), "key"),
        Err(trouble) => {
            let key = ask.get(&path).await?;
            let page = guard::page(&ask.looker, &key, Some(&trouble.told));
            shown::told(&page, Some(&trouble))
        }
    }
}
