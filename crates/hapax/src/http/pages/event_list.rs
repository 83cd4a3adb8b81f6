//! `/events`: the list, and its stream.

use axum::extract::RawQuery;
use axum::response::Response;
use http::HeaderMap;

use super::ask::Ask;
use super::shown::{self, Shown};
use crate::dashboard::events::{self, Wanted};

/// What the list can be narrowed by: the API's own words.
const FILTERS: [&str; 8] = [
    "status",
    "source",
    "type",
    "key",
    "keyContains",
    "entity",
    "since",
    "until",
];

/// The list.
pub async fn show(ask: Ask, RawQuery(query): RawQuery) -> Shown {
    let query = query.unwrap_or_default();
    let wanted = wanted(&query, &FILTERS);
    let asked = format!("/event?{}{}", wanted.query, iterator(&query));
    let sources = ask.get("/source").await?;
    let (list, trouble) = match ask.get(&asked).await {
        Ok(list) => (list, None),
        Err(trouble) => (serde_json::Value::Null, Some(trouble)),
    };
    let told = trouble.as_ref().map(|trouble| &trouble.told);
    let page = events::page(&ask.looker, &wanted, &sources, &list, told);
    shown::told(&page, trouble.as_ref())
}

/// Events as they are accepted.
pub async fn stream(ask: Ask, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = query.unwrap_or_default();
    ask.pass(&format!("/event/stream?{query}"), &headers).await
}

/// The filters of a query that say something. Forms send empty fields, too.
pub fn wanted(query: &str, known: &[&str]) -> Wanted {
    let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
    let filters: Vec<(String, String)> = pairs
        .map(|(name, value)| (name, value.trim().to_owned()))
        .filter(|(name, value)| known.contains(&name.as_str()) && !value.is_empty())
        .collect();
    let mut query_out = form_urlencoded::Serializer::new(String::new());
    query_out.extend_pairs(&filters);
    let mut text = query_out.finish();
    if !text.is_empty() {
        text.push('&');
    }
    Wanted {
        filters,
        query: text,
        paged: !iterator(query).is_empty(),
    }
}

/// Where a list goes on, as a query.
pub fn iterator(query: &str) -> String {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let found = pairs.find(|(name, _)| name == "iterator");
    found.map_or_else(String::new, |(_, value)| {
        format!("iterator={}", super::ask::piece(&value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_filters_that_say_something_count() {
        let wanted = wanted(
            "status=&type=a%20b&did=retry&iterator=evt_1&key=%26x",
            &FILTERS,
        );
        assert_eq!(wanted.query, "type=a+b&key=%26x&");
        assert!(wanted.paged);
        assert_eq!(iterator("type=a&iterator=-evt_1"), "iterator=-evt_1");
        assert_eq!(iterator("iterator=a%26b"), "iterator=a%26b");
    }
}
