//! Lists: how one asks for a page, and what a page looks like. The same for everything that can be listed.

use std::fmt::Display;
use std::str::FromStr;

use hapax_ledger::time::Time;
use hapax_store::nouns::{Listed, PAGE_MAX, Page, PageFrom};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::answer::{self, Answer};

/// Rows of a list that does not say how many.
pub(super) const LIMIT_DEFAULT: u32 = 50;

/// A page of a list as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = List)]
pub(super) struct ListBody<T> {
    data: Vec<T>,
    iterator: Option<String>,
    prev_iterator: Option<String>,
    done: bool,
}

impl<T> ListBody<T> {
    /// A page, with iterators made of its rows' ids.
    pub(super) fn new<R, I: Display>(
        listed: Listed<R, I>,
        id: impl Fn(&R) -> I,
        body: impl Fn(R) -> T,
    ) -> ListBody<T> {
        let done = listed.next.is_none();
        let next = listed.next.or_else(|| listed.rows.last().map(&id));
        let newer = listed.newer.or_else(|| listed.rows.first().map(&id));
        ListBody {
            iterator: next.map(|id| id.to_string()),
            prev_iterator: newer.map(|id| format!("-{id}")),
            done,
            data: listed.rows.into_iter().map(body).collect(),
        }
    }
}

/// A list that is given as a whole.
#[derive(Serialize, ToSchema)]
#[schema(as = Data)]
pub(super) struct DataBody<T> {
    pub(super) data: Vec<T>,
}

#[derive(Serialize)]
struct InvalidBody {
    detail: Vec<Invalid>,
}

/// What is wrong with a request, in the shape that the API's clients know.
#[derive(Debug, Serialize)]
pub(super) struct Invalid {
    loc: [String; 2],
    msg: String,
    r#type: &'static str,
}

impl Invalid {
    /// A parameter in the query.
    pub(super) fn query(name: &str, msg: &str) -> Invalid {
        Invalid {
            loc: ["query".into(), name.into()],
            msg: msg.into(),
            r#type: "value_error",
        }
    }

    /// Is it about the field of this name?
    pub(super) fn is_about(&self, name: &str) -> bool {
        self.loc[1] == name
    }

    /// A header.
    pub(super) fn header(name: &str, msg: &str) -> Invalid {
        Invalid {
            loc: ["header".into(), name.into()],
            msg: msg.into(),
            r#type: "value_error",
        }
    }

    /// A field of the body.
    pub(super) fn field(name: &str, msg: &str, kind: &'static str) -> Invalid {
        Invalid {
            loc: ["body".into(), name.into()],
            msg: msg.into(),
            r#type: kind,
        }
    }
}

/// Says what is wrong with a request.
pub(super) fn refuse(invalid: Invalid) -> Answer {
    refuse_all(vec![invalid])
}

/// Says all that is wrong with a request.
pub(super) fn refuse_all(detail: Vec<Invalid>) -> Answer {
    answer::json(StatusCode::UNPROCESSABLE_ENTITY, &InvalidBody { detail })
}

/// What was asked for.
#[derive(Debug)]
pub(super) struct Asked<F, I> {
    /// Which rows.
    pub(super) filter: F,
    /// Which part of them.
    pub(super) page: Page<I>,
}

/// Reads a query. `narrow` takes what only this list knows: `Err(None)` for a parameter that it does not.
pub(super) fn parse<F, I: FromStr>(
    query: &str,
    mut filter: F,
    narrow: impl Fn(&mut F, &str, &str) -> Result<(), Option<Invalid>>,
) -> Result<Asked<F, I>, Invalid> {
    let mut page = Page {
        limit: LIMIT_DEFAULT,
        from: PageFrom::Newest,
    };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let invalid = |msg| Invalid::query(&name, msg);
        match &*name {
            "limit" => {
                let limit = value
                    .parse()
                    .ok()
                    .filter(|limit| (1..=PAGE_MAX).contains(limit));
                page.limit = limit.ok_or_else(|| invalid("a number from 1 to 250 is expected"))?;
            }
            "iterator" => {
                page.from =
                    page_from(&value).ok_or_else(|| invalid("not an iterator of this list"))?;
            }
            _ => narrow(&mut filter, &name, &value).map_err(|told| {
                told.unwrap_or_else(|| invalid("this list has no such parameter"))
            })?,
        }
    }
    Ok(Asked { filter, page })
}

/// An iterator is a row's id; with a minus it goes towards the newer ones.
fn page_from<I: FromStr>(iterator: &str) -> Option<PageFrom<I>> {
    match iterator.strip_prefix('-') {
        Some(id) => id.parse().ok().map(PageFrom::NewerThan),
        None => iterator.parse().ok().map(PageFrom::OlderThan),
    }
}

/// A time in a query.
pub(super) fn time(name: &str, value: &str) -> Result<Time, Option<Invalid>> {
    let time = jiff::Timestamp::from_str(value);
    let time = time.map(|time| Time::from_micros(time.as_microsecond()));
    time.map_err(|_| {
        Some(Invalid::query(
            name,
            "a time such as 2026-01-31T12:00:00Z is expected",
        ))
    })
}
