//! In, with a token, and out. Whoever fails too often waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Extension, Query, Request, State};
use axum::response::{IntoResponse, Response};
use hapax_ledger::time::{Span, Time};
use http::header::{RETRY_AFTER, SET_COOKIE};
use http::{HeaderValue, StatusCode};

use super::Pages;
use super::session::Realm;
use super::shown::{self, Shown, html, told_of};
use super::submitted::Submitted;
use super::visitor;
use crate::clock;
use crate::dashboard::login as page;
use crate::http::answer;
use crate::http::auth::token_hash;
use crate::http::listen::Remote;

/// Failed logins of one address within [`WINDOW`]; then it waits for the next.
const FAILURES_MAX: u32 = 10;
/// See [`FAILURES_MAX`].
const WINDOW: Span = Span::from_secs(60);
/// Addresses that are remembered. When there are more, the oldest go: tokens cannot be guessed in any number of tries, and what
/// this limits is the noise.
const ADDRESSES_MAX: usize = 10_000;

/// Failed logins, by address.
#[derive(Default)]
pub struct Attempts(Mutex<HashMap<Arc<str>, (Time, u32)>>);

impl Attempts {
    /// Has this address failed too often?
    pub fn too_many(&self, from: &str, now: Time) -> bool {
        let known = self.lock();
        let failed = known.get(from);
        failed.is_some_and(|(since, times)| now < *since + WINDOW && *times >= FAILURES_MAX)
    }

    /// It has failed once more.
    pub fn failed(&self, from: &Arc<str>, now: Time) {
        let mut known = self.lock();
        if known.len() >= ADDRESSES_MAX {
            known.retain(|_, (since, _)| now < *since + WINDOW);
        }
        if known.len() >= ADDRESSES_MAX {
            known.clear();
        }
        let entry = known.entry(from.clone()).or_insert((now, 0));
        if now >= entry.0 + WINDOW {
            *entry = (now, 0);
        }
        entry.1 += 1;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, (Time, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The form.
pub async fn show(Query(query): Query<HashMap<String, String>>) -> Shown {
    let next = query.get("next").map_or("/", |next| safe(next));
    shown::ok(&page::page(next, None))
}

/// Somebody shows a token.
pub async fn enter(
    State(pages): State<Pages>,
    remote: Option<Extension<Remote>>,
    request: Request,
) -> Response {
    if !visitor::is_from_here(request.headers()) {
        return shown::refused_form();
    }
    let from = remote.map_or_else(|| "".into(), |Extension(Remote(address))| address);
    let now = clock::now();
    if pages.attempts.too_many(&from, now) {
        return refused("/", answer::TOO_MANY_LOGINS);
    }
    let Some(form) = Submitted::read(request).await else {
        return shown::refused_form();
    };
    let next = safe(form.text("next"));
    let token = token_hash(form.text("token").as_bytes());
    match pages.api.tokens.find(token, now) {
        Some(actor) if actor.app.is_none() => {
            let mut answer = shown::to(next);
            let cookie = pages.sessions.begin(Realm::Operators, token, now);
            answer.headers_mut().insert(SET_COOKIE, cookie);
            answer
        }
        Some(_) => refused(next, answer::OTHER_APP),
        None => {
            pages.attempts.failed(&from, now);
            refused(next, answer::WRONG_TOKEN)
        }
    }
}

fn refused(next: &str, problem: answer::Problem) -> Response {
    let told = told_of(problem);
    let mut answer = html(problem.status, &page::page(next, Some(&told)));
    if problem.status == StatusCode::TOO_MANY_REQUESTS {
        let wait = HeaderValue::from(WINDOW.secs_ceil());
        answer.headers_mut().insert(RETRY_AFTER, wait);
    }
    answer
}

/// Out: the browser forgets. A token that others may have seen is revoked instead.
pub async fn leave(State(pages): State<Pages>, _: Submitted) -> Response {
    let mut answer = shown::to("/login");
    let cookie = pages.sessions.end(Realm::Operators);
    answer.headers_mut().insert(SET_COOKIE, cookie);
    answer.into_response()
}

/// Only to a page of our own: a path, and not one that browsers take for another host.
fn safe(next: &str) -> &str {
    let path = next.starts_with('/') && !next.starts_with("//") && !next.starts_with("/\\");
    let plain = next.bytes().all(|byte| byte.is_ascii_graphic());
    if path && plain { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_leads_to_pages_of_our_own_only() {
        for (next, to) in [
            ("/events?status=dead", "/events?status=dead"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nset-cookie: b", "/"),
            ("", "/"),
        ] {
            assert_eq!(safe(next), to);
        }
    }

    #[test]
    fn whoever_fails_too_often_waits_and_others_do_not() {
        let (attempts, now) = (Attempts::default(), Time::from_secs(0));
        let (one, other): (Arc<str>, Arc<str>) = ("192.0.2.1".into(), "192.0.2.2".into());
        for _ in 0..FAILURES_MAX {
            assert!(!attempts.too_many(&one, now));
            attempts.failed(&one, now);
        }
        assert!(attempts.too_many(&one, now));
        assert!(!attempts.too_many(&other, now));
        assert!(!attempts.too_many(&one, now + WINDOW));
    }
}
