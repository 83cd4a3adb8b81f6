//! Who came by a link: their session, their way to the API, and what they are told when something does not work.

use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hapax_ledger::key::BodyHash;
use http::header::SET_COOKIE;
use http::request::Parts;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dashboard::indent::indent;
use crate::dashboard::json::Json;
use crate::dashboard::portal::frame::{self, Guest};
use crate::dashboard::portal::messages::Published;
use crate::dashboard::trouble::Told;
use crate::http::answer::{self, Problem};
use crate::http::pages::Pages;
use crate::http::pages::ask::{Ask, Trouble, piece};
use crate::http::pages::session::Realm;
use crate::http::pages::shown::{self, html, told_of};
use crate::http::pages::submitted::Submitted;
use crate::http::pages::visitor::{self, Visitor};

/// Bytes of a hash that are enough to tell forms apart.
const KEY_BYTES: usize = 16;

/// Somebody who came by a link, and their way to the API.
#[derive(Clone)]
pub struct Portal {
    ask: Ask,
    /// The application that their token is of.
    app: String,
    /// What pages are made for.
    pub guest: Guest,
}

/// A message of the API, as far as its payload goes.
#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// What the API refused, as a page of the portal.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The API's status.
    pub status: StatusCode,
    /// What it said.
    pub told: Told,
    guest: Box<Guest>,
}

/// What a handler of the portal answers.
pub type Shown = Result<Response, Fault>;

/// A form of the portal, after its CSRF token was found to be the session's.
#[derive(Clone, Debug)]
pub struct Form(pub Submitted);

/// Lets those through whose session is of a token that counts and is of one application.
pub async fn require(State(pages): State<Pages>, mut request: Request, next: Next) -> Response {
    let Some(visitor) = find(&pages, &request) else {
        return match pages.sessions.is_shown(Realm::Portal, request.headers()) {
            true => ended(&pages),
            false => shown::to("/portal"),
        };
    };
    let looks = matches!(*request.method(), Method::GET | Method::HEAD);
    if !looks && !visitor::is_from_here(request.headers()) {
        return refuse(&pages, answer::OTHER_FORM);
    }
    request.extensions_mut().insert(visitor);
    next.run(request).await
}

/// To the way in, without the session that has ended.
fn ended(pages: &Pages) -> Response {
    let mut answer = shown::to("/portal");
    let ends = pages.sessions.end(Realm::Portal);
    answer.headers_mut().insert(SET_COOKIE, ends);
    answer
}

/// Whose request it is.
pub fn find(pages: &Pages, request: &Request) -> Option<Visitor> {
    let found = visitor::find(pages, Realm::Portal, request.headers());
    found.filter(|visitor| visitor.actor.app.is_some())
}

/// A page without the way around.
pub fn refuse(pages: &Pages, problem: Problem) -> Response {
    let page = frame::bare_trouble(&pages.api.look.now(), &told_of(problem));
    html(problem.status, &page)
}

/// A page that is not there.
pub async fn nothing_here(portal: Portal) -> Shown {
    Err(portal.refuse(answer::NOT_FOUND))
}

impl FromRequestParts<Pages> for Portal {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, pages: &Pages) -> Result<Portal, Response> {
        let ask = Ask::from_request_parts(parts, pages).await?;
        let Some(app) = ask.visitor.actor.app.clone() else {
            return Err(ended(pages));
        };
        let about = ask.get(&format!("/app/{}", piece(&app))).await;
        let name = match &about {
            Ok(about) => about.text("name"),
            // The application is gone, or the token was revoked just now.
            Err(trouble) if trouble.status.is_client_error() => return Err(ended(pages)),
            Err(_) => "",
        };
        let guest = Guest {
            looker: ask.looker.clone(),
            app: name.to_owned(),
            theme: pages.api.look.now(),
        };
        Ok(Portal { ask, app, guest })
    }
}

impl Portal {
    /// Asks about the application. `rest` is what stands behind it in the API's paths.
    ///
    /// # Errors
    /// What the API said instead.
    pub async fn get(&self, rest: &str) -> Result<Value, Fault> {
        self.faulty(self.ask.get(&self.path(rest)).await)
    }

    /// A message, with its payload as it was published: in JSON that is read and written again, fields and digits move.
    ///
    /// # Errors
    /// What the API said instead.
    pub async fn message(&self, id: &str) -> Result<Published, Fault> {
        let path = self.path(&format!("/msg/{}", piece(id)));
        let bytes = self.ask.bytes(&path).await;
        let bytes = bytes.map_err(|trouble| self.fault(trouble.status, trouble.told))?;
        let about: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let payload: Option<Payload<'_>> = serde_json::from_slice(&bytes).ok();
        let payload = payload.map(|read| indent(read.payload.get()));
        Ok(Published {
            about,
            payload: payload.unwrap_or_default(),
        })
    }

    /// Types of events, which are the same for all applications.
    ///
    /// # Errors
    /// What the API said instead.
    pub async fn types(&self, query: &str) -> Result<Value, Fault> {
        self.faulty(self.ask.get(&format!("/event-type{query}")).await)
    }

    /// Changes something of the application. Sent twice, `form` counts once.
    ///
    /// # Errors
    /// What the API said instead.
    pub async fn change(
        &self,
        method: Method,
        rest: &str,
        body: &Value,
        form: &Form,
    ) -> Result<Value, Fault> {
        let path = self.path(rest);
        let once = form.0.once().map(|once| {
            // A page has several forms and one key; what each of them says makes it the form's own.
            let said = format!("{once} {method} {path} {body}");
            hex::encode(&BodyHash::of(said.as_bytes()).bytes()[..KEY_BYTES])
        });
        let done = self.ask.change(method, &path, body, once.as_deref()).await;
        self.faulty(done)
    }

    /// The same with POST.
    ///
    /// # Errors
    /// What the API said instead.
    pub async fn post(&self, rest: &str, body: &Value, form: &Form) -> Result<Value, Fault> {
        self.change(Method::POST, rest, body, form).await
    }

    /// Ends the token of the session, if it is one of a link.
    pub async fn log_out(&self) {
        // A token that was made in another way stays: the browser forgets it all the same.
        let _ = self.ask.post("/auth/logout", &Value::Null, None).await;
    }

    /// Something that the page itself refuses.
    pub fn refuse(&self, problem: Problem) -> Fault {
        self.fault(problem.status, told_of(problem))
    }

    /// The same in other words.
    pub fn fault(&self, status: StatusCode, told: Told) -> Fault {
        Fault {
            status,
            told,
            guest: Box::new(self.guest.clone()),
        }
    }

    fn path(&self, rest: &str) -> String {
        format!("/app/{}{rest}", piece(&self.app))
    }

    fn faulty(&self, answer: Result<Value, Trouble>) -> Result<Value, Fault> {
        answer.map_err(|trouble| self.fault(trouble.status, trouble.told))
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        html(self.status, &frame::trouble(&self.guest, &self.told))
    }
}

impl FromRequest<Pages> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, pages: &Pages) -> Result<Form, Response> {
        let read = Submitted::from_request(request, pages).await;
        read.map(Form)
            .map_err(|_| refuse(pages, answer::OTHER_FORM))
    }
}

/// A page where all is well.
pub fn ok(page: &maud::Markup) -> Shown {
    Ok(html(StatusCode::OK, page))
}

/// A page with what went wrong on it, or without.
pub fn told(page: &maud::Markup, fault: Option<&Fault>) -> Shown {
    let status = fault.map_or(StatusCode::OK, |fault| fault.status);
    Ok(html(status, page))
}

/// To another page that says what was done: a word that the portal's frame knows.
pub fn back_to(path: &str, word: &str) -> Shown {
    Ok(shown::to(&format!("{path}?did={word}")))
}
