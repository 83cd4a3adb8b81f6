//! Pages of what is kept in memory: applications, endpoints, types of events.

use std::sync::Arc;

use hapax_store::nouns::PAGE_MAX;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::halt::{Halt, Outcome};
use crate::http::answer;
use crate::http::api::list::{Invalid, LIMIT_DEFAULT};
use crate::outbox::catalog::Way;

/// So many are looked at in a row.
const LOOK: usize = 256;

/// Which page.
#[derive(Debug)]
pub(super) struct Asked<F> {
    pub(super) filter: F,
    limit: usize,
    iterator: Option<String>,
    way: Way,
}

/// A page as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Page)]
pub(super) struct PageBody<T> {
    data: Vec<T>,
    iterator: Option<String>,
    prev_iterator: Option<String>,
    done: bool,
}

/// Reads a query. `narrow` takes what only this list knows: `Err(None)` for a parameter that it does not.
pub(super) fn parse<F>(
    query: Option<&str>,
    mut filter: F,
    narrow: impl Fn(&mut F, &str, &str) -> Result<(), Option<Invalid>>,
) -> Result<Asked<F>, Halt> {
    let (mut limit, mut iterator, mut way) = (LIMIT_DEFAULT as usize, None, Way::Up);
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let invalid = |msg| Invalid::query(&name, msg);
        match &*name {
            "limit" => {
                let found = value.parse().ok();
                let found = found.filter(|limit| (1..=PAGE_MAX).contains(limit));
                let found = found.ok_or_else(|| invalid("a number from 1 to 250 is expected"))?;
                limit = found as usize;
            }
            "iterator" => iterator = Some(value.into_owned()),
            "order" => {
                way = match &*value {
                    "ascending" => Way::Up,
                    "descending" => Way::Down,
                    _ => return Err(invalid("ascending or descending is expected").into()),
                };
            }
            _ => narrow(&mut filter, &name, &value).map_err(|told| {
                told.unwrap_or_else(|| invalid("this list has no such parameter"))
            })?,
        }
    }
    Ok(Asked {
        filter,
        limit,
        iterator,
        way,
    })
}

/// The same for a list whose newest come first unless told.
pub(super) fn parse_newest<F>(
    query: Option<&str>,
    filter: F,
    narrow: impl Fn(&mut F, &str, &str) -> Result<(), Option<Invalid>>,
) -> Result<Asked<F>, Halt> {
    let query = query.unwrap_or_default();
    let ordered = form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "order");
    let mut asked = parse(Some(query), filter, narrow)?;
    if !ordered {
        asked.way = Way::Down;
    }
    Ok(asked)
}

/// A page of rows that are few, given newest first.
pub(super) fn of_few<F, B: Serialize>(
    asked: &Asked<F>,
    mut rows: Vec<B>,
    id: impl Fn(&B) -> String,
    is_id: impl Fn(&str) -> bool,
) -> Outcome {
    if asked.iterator.as_deref().is_some_and(|text| !is_id(text)) {
        return Err(Invalid::query("iterator", "not an iterator of this list").into());
    }
    if asked.way == Way::Up {
        rows.reverse();
    }
    if let Some(iterator) = &asked.iterator {
        rows.retain(|row| match asked.way {
            Way::Up => id(row) > *iterator,
            Way::Down => id(row) < *iterator,
        });
    }
    let done = rows.len() <= asked.limit;
    rows.truncate(asked.limit);
    let page = PageBody {
        iterator: rows.last().map(&id),
        prev_iterator: None,
        done,
        data: rows,
    };
    Ok(answer::json(StatusCode::OK, &page))
}

/// A flag in a query.
pub(super) fn flag(name: &str, value: &str) -> Result<bool, Option<Invalid>> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Some(Invalid::query(name, "true or false is expected"))),
    }
}

/// Finds a page. `id` is what a row is found again by, `parse` reads it.
pub(super) fn find<F, T, I, B: Serialize>(
    asked: &Asked<F>,
    fetch: impl Fn(Option<&I>, Way, usize) -> Vec<Arc<T>>,
    id: impl Fn(&T) -> I,
    parse: impl Fn(&str) -> Option<I>,
    keep: impl Fn(&T) -> bool,
    body: impl Fn(&T) -> B,
) -> Outcome
where
    I: ToString,
{
    let back = asked
        .iterator
        .as_deref()
        .and_then(|text| text.strip_prefix('-'));
    let from = back.or(asked.iterator.as_deref()).map(&parse);
    let from = match from {
        Some(None) => return Err(Invalid::query("iterator", "not an iterator of this list").into()),
        other => other.flatten(),
    };
    let way = match (asked.way, back.is_some()) {
        (Way::Up, false) | (Way::Down, true) => Way::Up,
        (Way::Up, true) | (Way::Down, false) => Way::Down,
    };
    let mut rows: Vec<Arc<T>> = Vec::new();
    let mut after = from;
    while rows.len() <= asked.limit {
        let some = fetch(after.as_ref(), way, LOOK);
        let Some(last) = some.last() else { break };
        after = Some(id(last));
        rows.extend(some.into_iter().filter(|row| keep(row)));
    }
    let done = rows.len() <= asked.limit;
    rows.truncate(asked.limit);
    if back.is_some() {
        rows.reverse();
    }
    let page = PageBody {
        iterator: rows.last().map(|row| id(row).to_string()),
        prev_iterator: rows.first().map(|row| format!("-{}", id(row).to_string())),
        done,
        data: rows.iter().map(|row| body(row)).collect(),
    };
    Ok(answer::json(StatusCode::OK, &page))
}
