//! A form that somebody sent: its fields, after its CSRF token was found to be the session's.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::response::Response;
use subtle::ConstantTimeEq;

use super::Pages;
use super::shown;
use super::visitor::Visitor;

/// The largest form: a schema, a payload for a test, and some fields.
const FORM_BYTES_MAX: usize = 256 * 1024;
/// How long a form may take to arrive.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

/// The fields of a form.
#[derive(Clone, Debug, Default)]
pub struct Submitted {
    fields: Vec<(String, String)>,
}

impl Submitted {
    /// The fields of a form that no session stands behind.
    pub async fn read(request: Request) -> Option<Submitted> {
        let reading = axum::body::to_bytes(request.into_body(), FORM_BYTES_MAX);
        let body = tokio::time::timeout(FORM_TIMEOUT, reading)
            .await
            .ok()?
            .ok()?;
        let fields = form_urlencoded::parse(&body).into_owned().collect();
        Some(Submitted { fields })
    }

    /// A field, without space around it; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        let field = self.fields.iter().find(|(known, _)| known == name);
        field.map_or("", |(_, value)| value.trim())
    }

    /// A field that says something.
    pub fn maybe(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// All fields of this name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.fields.iter().filter(|(known, _)| known == name);
        fields.map(|(_, value)| value.as_str()).collect()
    }

    /// Under what the form counts once.
    pub fn once(&self) -> Option<&str> {
        self.maybe("once")
    }
}

impl FromRequest<Pages> for Submitted {
    type Rejection = Response;

    async fn from_request(request: Request, _: &Pages) -> Result<Submitted, Response> {
        let Some(visitor) = request.extensions().get::<Visitor>().cloned() else {
            return Err(shown::to("/login"));
        };
        let Some(form) = Submitted::read(request).await else {
            return Err(shown::refused_form());
        };
        let ours = hex::encode(visitor.session.csrf);
        match bool::from(ours.as_bytes().ct_eq(form.text("csrf").as_bytes())) {
            true => Ok(form),
            false => Err(shown::refused_form()),
        }
    }
}
