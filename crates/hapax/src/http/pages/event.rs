//! `/events/{id}`: one event, and what is decided about it.

use axum::extract::{Path, RawQuery};
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use super::ask::{Ask, Trouble, piece};
use super::shown::{self, Shown, back_to};
use super::submitted::Submitted;
use crate::dashboard::event::{self, Shown as Data};
use crate::dashboard::json::Json;
use crate::dashboard::verdict::Chosen;

/// Effects whose attempts one page shows.
const EFFECTS_SHOWN_MAX: usize = 32;
/// Other bodies that one page shows.
const OTHERS_SHOWN_MAX: usize = 8;

/// The page.
pub async fn show(ask: Ask, Path(id): Path<String>, RawQuery(query): RawQuery) -> Shown {
    let query = query.unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let action = pairs.find(|(name, _)| name == "action");
    let chosen = Chosen {
        action: action.map_or_else(String::new, |(_, action)| action.into_owned()),
        ..Chosen::default()
    };
    page(&ask, &id, chosen, None).await
}

/// The page, with what somebody has chosen, or with what went wrong.
async fn page(ask: &Ask, id: &str, chosen: Chosen, trouble: Option<Trouble>) -> Shown {
    let id = piece(id);
    let event = ask.get(&format!("/event/{id}")).await?;
    let mut effects = Vec::new();
    for effect in event.list("effects").iter().take(EFFECTS_SHOWN_MAX) {
        let path = format!("/effect/{}", piece(effect.text("id")));
        effects.push(ask.get(&path).await?);
    }
    let body = ask.bytes(&format!("/event/{id}/body")).await.ok();
    let data = Data {
        timeline: ask.get(&format!("/event/{id}/timeline")).await?,
        verdict: verdict(ask, &id, &chosen).await?,
        others: others(ask, &id, &event).await?,
        body: body.map(|body| body.to_vec()),
        told: trouble.as_ref().map(|trouble| trouble.told.clone()),
        event,
        effects,
        chosen,
    };
    shown::told(&event::page(&ask.looker, &data), trouble.as_ref())
}

async fn verdict(ask: &Ask, id: &str, chosen: &Chosen) -> Result<Value, Trouble> {
    let word = chosen.word();
    let mut path = format!("/event/{id}/verdict?action={word}");
    if word == "replay" {
        for name in &chosen.force {
            path = format!("{path}&force={}", piece(name));
        }
    }
    ask.get(&path).await
}

async fn others(ask: &Ask, id: &str, event: &Value) -> Result<Vec<(u64, Vec<u8>)>, Trouble> {
    let deliveries = event.list("deliveries").iter();
    let conflicts = deliveries.filter(|delivery| delivery.is("conflict"));
    let mut others = Vec::new();
    for delivery in conflicts.take(OTHERS_SHOWN_MAX) {
        let number = delivery.number("number");
        let path = format!("/event/{id}/conflict/{number}/body");
        if let Ok(body) = ask.bytes(&path).await {
            others.push((number, body.to_vec()));
        }
    }
    Ok(others)
}

/// The bytes, to be saved.
pub async fn body(ask: Ask, Path(id): Path<String>) -> Response {
    let path = format!("/event/{}/body", piece(&id));
    let mut answer = ask.pass(&path, &HeaderMap::new()).await;
    // Whatever its sender called it: nothing that came from outside is run as a script of ours.
    if answer.status().is_success() {
        let bytes = HeaderValue::from_static("application/octet-stream");
        answer.headers_mut().insert(CONTENT_TYPE, bytes);
    }
    answer
}

/// Retry, replay or reconcile: tried, or done.
pub async fn act(ask: Ask, Path(id): Path<String>, form: Submitted) -> Shown {
    let force = form.all("force").into_iter().map(str::to_owned).collect();
    let dry = form.text("do") != "act";
    let chosen = Chosen {
        action: form.text("action").to_owned(),
        reason: form.text("reason").to_owned(),
        force,
        dry,
    };
    let word = chosen.word();
    let mut body = json!({ "reason": chosen.reason, "dryRun": dry });
    if let Ok(revision) = form.text("revision").parse::<u64>() {
        body["ifRevision"] = revision.into();
    }
    if word == "replay" {
        body["force"] = chosen.force.clone().into();
    }
    // A dry run does nothing, so there is nothing to do once.
    let once = form.once().filter(|_| !dry);
    let path = format!("/event/{}/{word}", piece(&id));
    match ask.post(&path, &body, once).await {
        Ok(_) if dry => page(&ask, &id, chosen, None).await,
        Ok(_) => back_to(&format!("/events/{}", piece(&id)), word),
        Err(trouble) => {
            page(
                &ask,
                &id,
                Chosen {
                    dry: false,
                    ..chosen
                },
                Some(trouble),
            )
            .await
        }
    }
}

/// Release or dismiss.
pub async fn review(ask: Ask, Path(id): Path<String>, form: Submitted) -> Shown {
    decide(&ask, &id, "review", &form).await
}

/// What another body means.
pub async fn conflict(
    ask: Ask,
    Path((id, number)): Path<(String, String)>,
    form: Submitted,
) -> Shown {
    let action = format!("conflict/{}", piece(&number));
    decide(&ask, &id, &action, &form).await
}

async fn decide(ask: &Ask, id: &str, action: &str, form: &Submitted) -> Shown {
    let body = outcome(form);
    let path = format!("/event/{}/{action}", piece(id));
    match ask.post(&path, &body, form.once()).await {
        Ok(_) => back_to(&format!("/events/{}", piece(id)), form.text("outcome")),
        Err(trouble) => page(ask, id, Chosen::default(), Some(trouble)).await,
    }
}

fn outcome(form: &Submitted) -> Value {
    json!({ "outcome": form.text("outcome"), "reason": form.text("reason") })
}

/// What became of an effect.
pub async fn resolve(ask: Ask, Path(effect): Path<String>, form: Submitted) -> Shown {
    let event = form.text("event").to_owned();
    let path = format!("/effect/{}/resolve", piece(&effect));
    match ask.post(&path, &outcome(&form), form.once()).await {
        Ok(_) => back_to(&format!("/events/{}", piece(&event)), "resolve"),
        Err(trouble) => page(&ask, &event, Chosen::default(), Some(trouble)).await,
    }
}
