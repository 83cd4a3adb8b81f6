//! `/review`, `/dead`, `/effects`: what waits for a person; and replays of many events.

use axum::extract::{Path, RawQuery};
use serde_json::{Value, json};

use super::ask::{Ask, Trouble, piece};
use super::event_list::{iterator, wanted};
use super::shown::{self, Shown, back_to};
use super::submitted::Submitted;
use crate::dashboard::events::Wanted;
use crate::dashboard::json::Json;
use crate::dashboard::{queues, replays};

/// Events that wait for a person.
pub async fn review(ask: Ask, RawQuery(query): RawQuery) -> Shown {
    let query = query.unwrap_or_default();
    let wanted = wanted(&query, &[]);
    let path = format!("/event?status=needs_review&{}", iterator(&query));
    let list = ask.get(&path).await?;
    shown::ok(&queues::review(&ask.looker, &wanted, &list))
}

/// Dead letters.
pub async fn dead(ask: Ask, RawQuery(query): RawQuery) -> Shown {
    let query = query.unwrap_or_default();
    let wanted = wanted(&query, &["source", "type", "since", "until"]);
    dead_page(&ask, wanted, &iterator(&query), None).await
}

async fn dead_page(ask: &Ask, wanted: Wanted, iterator: &str, trouble: Option<Trouble>) -> Shown {
    let filters = if trouble.is_some() { "" } else { &wanted.query };
    let path = format!("/event?status=dead&{filters}{iterator}");
    let (sources, list) = (ask.get("/source").await?, ask.get(&path).await?);
    let told = trouble.as_ref().map(|trouble| &trouble.told);
    let page = queues::dead(&ask.looker, &wanted, &sources, &list, told);
    shown::told(&page, trouble.as_ref())
}

/// Effects.
pub async fn effects(ask: Ask, RawQuery(query): RawQuery) -> Shown {
    let query = query.unwrap_or_default();
    let wanted = wanted(&query, &["state", "name", "source", "lane"]);
    let path = format!("/effect?{}{}", wanted.query, iterator(&query));
    let list = ask.get(&path).await?;
    shown::ok(&queues::effects(&ask.looker, &wanted, &list))
}

/// Starts a replay of dead letters, or a preview of one.
pub async fn start(ask: Ask, form: Submitted) -> Shown {
    let dry = form.text("do") != "act";
    let mut filter = json!({ "status": "dead" });
    let mut filters = Vec::new();
    for name in ["source", "type", "since", "until"] {
        if let Some(value) = form.maybe(name) {
            filter[name] = value.into();
            filters.push((name.to_owned(), value.to_owned()));
        }
    }
    let mut body = json!({ "filter": filter, "reason": form.text("reason"), "dryRun": dry });
    if let Some(rate) = form.maybe("rate") {
        // What is no number is left to the API to refuse.
        body["rate"] = rate
            .parse::<u64>()
            .map_or_else(|_| rate.into(), Value::from);
        filters.push(("rate".to_owned(), rate.to_owned()));
    }
    match ask.post("/replay", &body, form.once()).await {
        Ok(started) => back_to(&format!("/replays/{}", piece(started.text("id"))), "bulk"),
        Err(trouble) => {
            filters.push(("reason".to_owned(), form.text("reason").to_owned()));
            let wanted = Wanted {
                filters,
                ..Wanted::default()
            };
            dead_page(&ask, wanted, "", Some(trouble)).await
        }
    }
}

/// Replays.
pub async fn replays(ask: Ask) -> Shown {
    let list = ask.get("/replay").await?;
    shown::ok(&replays::list(&ask.looker, &list))
}

/// One replay.
pub async fn replay(ask: Ask, Path(id): Path<String>) -> Shown {
    let one = ask.get(&format!("/replay/{}", piece(&id))).await?;
    shown::ok(&replays::page(&ask.looker, &one, None))
}

/// Stops one.
pub async fn cancel(ask: Ask, Path(id): Path<String>, form: Submitted) -> Shown {
    let path = format!("/replay/{}", piece(&id));
    let body = json!({ "reason": form.text("reason") });
    match ask
        .post(&format!("{path}/cancel"), &body, form.once())
        .await
    {
        Ok(_) => back_to(&format!("/replays/{}", piece(&id)), "cancel"),
        Err(trouble) => {
            let one = ask.get(&path).await?;
            let page = replays::page(&ask.looker, &one, Some(&trouble.told));
            shown::told(&page, Some(&trouble))
        }
    }
}
