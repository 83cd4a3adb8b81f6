//! Tries that change one thing about the request or the secret and verify again.

use super::body;
use super::{Cause, CauseKind};
use crate::provider;
use crate::request::{HeaderValue, Headers, Request};
use crate::scheme::Scheme;
use crate::secret::Secret;
use crate::verify::Verifier;

/// Whether the signature holds; how old it is does not matter here.
pub(super) fn fits(verifier: &Verifier, request: &Request<'_>) -> bool {
    match verifier.verify(request) {
        Ok(_) => true,
        Err(refusal) => refusal.is_clock(),
    }
}

/// The same scheme with another secret, however short.
pub(super) fn with_secret(scheme: &Scheme, secret: &Secret) -> Option<Verifier> {
    Verifier::with_secret_bytes_min(scheme.clone(), vec![secret.clone()], 1).ok()
}

pub(super) fn whitespace(verifier: &Verifier, request: &Request<'_>) -> Option<Cause> {
    verifier
        .secrets()
        .iter()
        .enumerate()
        .find_map(|(index, secret)| {
            let trimmed = with_secret(verifier.scheme(), &secret.trimmed()?)?;
            fits(&trimmed, request).then(|| {
                Cause::new(
                    CauseKind::SecretWhitespace,
                    format!(
                        "secret {} fits without the white space around it",
                        index + 1
                    ),
                    "remove the space or line end from the secret, often the last line of a file",
                )
            })
        })
}

pub(super) fn known_secret(
    verifier: &Verifier,
    request: &Request<'_>,
    known: &[(&str, &Secret)],
) -> Option<Cause> {
    known.iter().find_map(|(name, secret)| {
        let other = with_secret(verifier.scheme(), secret)?;
        fits(&other, request).then(|| {
            Cause::new(
                CauseKind::OtherSecret,
                format!("the secret of `{name}` fits"),
                format!(
                    "send this endpoint's requests to `{name}`, or give this source its secret"
                ),
            )
        })
    })
}

pub(super) fn changed_body(verifier: &Verifier, request: &Request<'_>) -> Option<Cause> {
    let done = body::find(request.body, |body| {
        fits(verifier, &Request { body, ..*request })
    })?;
    Some(Cause::new(
        CauseKind::BodyChanged,
        format!("the signature fits the body {done}"),
        "verify the raw bytes: something on the way parsed the body and wrote it again",
    ))
}

pub(super) fn other_url(verifier: &Verifier, request: &Request<'_>) -> Option<Cause> {
    let url = request.url.filter(|_| verifier.scheme().needs_url())?;
    urls(url)
        .into_iter()
        .filter(|other| other != url)
        .find_map(|other| {
            let changed = Request {
                url: Some(&other),
                ..*request
            };
            fits(verifier, &changed).then(|| {
                Cause::new(
                    CauseKind::UrlDiffers,
                    format!("the provider signed {other}, here it is {url}"),
                    "set public_url to the address that the provider was given, letter by letter",
                )
            })
        })
}

/// The usual slips in a public URL: scheme, port, last slash, query, `www`.
fn urls(url: &str) -> Vec<String> {
    use crate::url::UrlForm;
    let mut bases = vec![url.to_owned()];
    if let Some(rest) = url.strip_prefix("http://") {
        bases.push(format!("https://{rest}"));
    }
    if let Some(rest) = url.strip_prefix("https://") {
        bases.push(format!("http://{rest}"));
    }
    let mut all = Vec::new();
    for base in bases {
        for form in [UrlForm::AsIs, UrlForm::WithPort, UrlForm::WithoutPort] {
            let base = form.apply(&base).into_owned();
            let (path, query) = base.split_once('?').unwrap_or((&base, ""));
            let mark = if query.is_empty() { "" } else { "?" };
            all.push(path.to_owned());
            all.push(path.trim_end_matches('/').to_owned());
            all.push(format!("{}{mark}{query}", path.trim_end_matches('/')));
            all.push(format!("{}/{mark}{query}", path.trim_end_matches('/')));
            all.push(base);
        }
    }
    all
}

struct WithHeader<'a> {
    inner: &'a dyn Headers,
    name: &'a str,
    value: &'a [u8],
}

impl Headers for WithHeader<'_> {
    fn get(&self, name: &str) -> HeaderValue<'_> {
        if name == self.name {
            HeaderValue::One(self.value)
        } else {
            self.inner.get(name)
        }
    }
}

/// Whether the id that was signed is in another place of the request than it should be.
pub(super) fn moved_id(verifier: &Verifier, request: &Request<'_>) -> Option<Cause> {
    let name = verifier.scheme().layout()?.id.as_deref()?;
    let mut ids: Vec<(String, Vec<u8>)> = Vec::new();
    for header in id_headers() {
        if let Some(value) = request.headers.get(header).one() {
            ids.push((format!("header {header}"), value.to_vec()));
        }
    }
    if let Ok(body) = serde_json::from_slice::<serde_json::Value>(request.body) {
        for field in ["id", "event_id", "eventId", "messageId", "data.id"] {
            let value = crate::json::Path::new(field)
                .first(&body)
                .and_then(|v| v.as_str());
            ids.extend(value.map(|id| (format!("field {field} of the body"), id.into())));
        }
    }
    ids.into_iter().find_map(|(place, id)| {
        let headers = WithHeader {
            inner: request.headers,
            name,
            value: &id,
        };
        let changed = Request {
            headers: &headers,
            ..*request
        };
        fits(verifier, &changed).then(|| {
            Cause::new(
                CauseKind::IdMoved,
                format!("the signature fits the id in {place}, not the one in header {name}"),
                format!("find what rewrites {name} on the way: the id is part of what is signed"),
            )
        })
    })
}

/// Every header in which a known provider sends an id.
pub(super) fn id_headers() -> Vec<&'static str> {
    let mut names: Vec<&str> = provider::all()
        .iter()
        .filter_map(|provider| provider.event_id.as_ref()?.field.header())
        .chain(["webhook-id", "svix-id", "idempotency-key", "x-request-id"])
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

pub(super) fn other_provider(verifier: &Verifier, request: &Request<'_>) -> Option<Cause> {
    let secrets = verifier.secrets();
    provider::all().iter().find_map(|provider| {
        let scheme = provider.scheme();
        // A scheme that accepts everything, or the one that was refused, explains nothing.
        if scheme == Scheme::Unverified || scheme == *verifier.scheme() {
            return None;
        }
        let other = secrets
            .iter()
            .filter_map(|secret| with_secret(&scheme, secret))
            .find(|other| fits(other, request))?;
        Some(Cause::new(
            CauseKind::WrongScheme,
            format!(
                "it verifies as {} ({})",
                provider.title,
                other.scheme().name()
            ),
            format!("set provider = \"{}\"", provider.name),
        ))
    })
}
