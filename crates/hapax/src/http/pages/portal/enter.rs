//! In by a magic link, and out.

use axum::extract::{Extension, Path, Request, State};
use axum::response::Response;
use http::header::{RETRY_AFTER, SET_COOKIE};
use http::{HeaderValue, StatusCode};

use super::guest::{self, Form, Portal};
use crate::clock;
use crate::dashboard::portal::enter as page;
use crate::dashboard::trouble::Told;
use crate::http::answer::{self, Problem};
use crate::http::auth::token_hash;
use crate::http::listen::Remote;
use crate::http::pages::Pages;
use crate::http::pages::session::Realm;
use crate::http::pages::shown::{self, html, told_of};
use crate::http::pages::submitted::Submitted;
use crate::http::pages::visitor;
use crate::operate::tokens::Actor;

/// Whoever failed too often waits this long.
const WAIT_SECONDS: u64 = 60;

/// Where a link leads. Its key is not sent to us: only the page in the browser sees it.
pub async fn show(
    State(pages): State<Pages>,
    path: Option<Path<String>>,
    request: Request,
) -> Response {
    let known = guest::find(&pages, &request).and_then(|visitor| visitor.actor.app);
    match (path, known) {
        // No link, so nothing that could be another's.
        (None, Some(_)) => shown::to("/portal/endpoints"),
        (Some(Path(app)), known) => {
            let theirs = known.is_some_and(|known| known == app);
            html(
                StatusCode::OK,
                &page::page(&pages.api.look.now(), theirs, None),
            )
        }
        (None, None) => html(
            StatusCode::OK,
            &page::page(&pages.api.look.now(), false, None),
        ),
    }
}

/// Somebody shows a key, or the link that it stands in.
pub async fn enter(
    State(pages): State<Pages>,
    remote: Option<Extension<Remote>>,
    request: Request,
) -> Response {
    if !visitor::is_from_here(request.headers()) {
        return guest::refuse(&pages, answer::OTHER_FORM);
    }
    let here = guest::find(&pages, &request).and_then(|visitor| visitor.actor.app);
    let from = remote.map_or_else(|| "".into(), |Extension(Remote(address))| address);
    let now = clock::now();
    if pages.attempts.too_many(&from, now) {
        let mut answer = refused(&pages, answer::TOO_MANY_LOGINS, None);
        let wait = HeaderValue::from(WAIT_SECONDS);
        answer.headers_mut().insert(RETRY_AFTER, wait);
        return answer;
    }
    let Some(form) = Submitted::read(request).await else {
        return guest::refuse(&pages, answer::OTHER_FORM);
    };
    let key = key(form.text("key"));
    let token = token_hash(key.as_bytes());
    match pages.api.tokens.find(token, now) {
        Some(actor) if actor.app.is_some() && is_elsewhere(here.as_deref(), &actor, &form) => {
            leave_first(&pages, here.as_deref(), actor.app.as_deref(), key)
        }
        Some(actor) if actor.app.is_some() => {
            let mut answer = shown::to("/portal/endpoints");
            let cookie = pages.sessions.begin(Realm::Portal, token, now);
            answer.headers_mut().insert(SET_COOKIE, cookie);
            answer
        }
        Some(_) => refused(
            &pages,
            answer::OTHER_APP,
            Some("this is no link to the portal; operators log in at /login"),
        ),
        None => {
            pages.attempts.failed(&from, now);
            refused(
                &pages,
                answer::WRONG_TOKEN,
                Some("this link has ended, or is not whole; ask for another where you got it"),
            )
        }
    }
}

/// Would this link take somebody out of another application's portal without their knowing?
fn is_elsewhere(here: Option<&str>, actor: &Actor, form: &Submitted) -> bool {
    here.is_some() && here != actor.app.as_deref() && form.text("leave") != "yes"
}

/// Asks before one application's pages take the place of another's.
fn leave_first(pages: &Pages, here: Option<&str>, there: Option<&str>, key: &str) -> Response {
    let catalog = pages.api.publisher.registry.catalog();
    let name = |id: Option<&str>| {
        let app = id.and_then(|id| catalog.app(id));
        app.map_or_else(|| "an application".to_owned(), |app| app.name.clone())
    };
    let (here, there) = (name(here), name(there));
    let look = pages.api.look.now();
    html(
        StatusCode::CONFLICT,
        &page::another(&look, &here, &there, key),
    )
}

fn refused(pages: &Pages, problem: Problem, detail: Option<&str>) -> Response {
    let mut told: Told = told_of(problem);
    if let Some(detail) = detail {
        detail.clone_into(&mut told.detail);
    }
    let page = page::page(&pages.api.look.now(), false, Some(&told));
    html(problem.status, &page)
}

/// The key of a link, or the key itself.
fn key(text: &str) -> &str {
    let behind = text.split_once("#key=").map_or(text, |(_, key)| key);
    behind.split('&').next().unwrap_or_default()
}

/// Out: the browser forgets, and the link that led in ends. Whoever has left a computer that others use has left nothing on it.
pub async fn leave(State(pages): State<Pages>, portal: Portal, _: Form) -> Response {
    portal.log_out().await;
    let mut answer = shown::to("/portal");
    let cookie = pages.sessions.end(Realm::Portal);
    answer.headers_mut().insert(SET_COOKIE, cookie);
    answer
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn a_key_is_found_in_a_link() {
        for text in [
            "hpx_1",
            "https://hooks.example.com/portal/app_1#key=hpx_1",
            "https://hooks.example.com/portal/app_1#key=hpx_1&x=y",
        ] {
            assert_eq!(key(text), "hpx_1");
        }
    }
}
