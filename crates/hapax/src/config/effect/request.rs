//! What a request by Hapax carries and where it goes: URLs, headers, the secret that signs it.

use hapax_verify::provider;
use hapax_verify::{KeyForm, Secret, SecretError, Verifier};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::url::{BadUrl, Url, UrlTemplate};
use crate::config::scan::{Scan, Text};
use crate::config::table::Named;

/// The shortest signing secret, as Standard Webhooks has it: 24 bytes after decoding.
const SIGNING_BYTES_MIN: usize = 24;
/// What no config sets: the names that Hapax or the connection speaks for itself.
const OWN_HEADERS: [&str; 11] = [
    "idempotency-key",
    "content-length",
    "host",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
];
const OWN_PREFIXES: [&str; 2] = ["hapax-", "webhook-"];

/// A URL.
pub(in crate::config) fn url(scan: &Scan<'_>, field: &str, text: &Text) -> Option<Url> {
    let parsed = Url::parse(&text.value);
    parsed.map_err(|bad| refuse(scan, field, text, &bad)).ok()
}

/// A URL with places.
pub(in crate::config) fn template(
    scan: &Scan<'_>,
    field: &str,
    text: &Text,
) -> Option<UrlTemplate> {
    let parsed = UrlTemplate::parse(&text.value);
    parsed.map_err(|bad| refuse(scan, field, text, &bad)).ok()
}

fn refuse(scan: &Scan<'_>, field: &str, text: &Text, bad: &BadUrl) {
    let wrong = format!("`{field}` cannot be called: {bad}");
    let remedy = match bad {
        BadUrl::Userinfo => "put the credentials into headers = { authorization = \"env:NAME\" }",
        BadUrl::Place(_) => "write the host out; fields may stand in the path and the query",
        _ => "write scheme, host and path, such as https://billing.internal/activate",
    };
    scan.error("H0130", &text.at, wrong, remedy);
}

/// The headers that a request carries besides those that Hapax sets.
pub(super) fn headers(scan: &Scan<'_>, named: Option<&Named>) -> Option<HeaderMap> {
    let Some(named) = named else {
        return Some(HeaderMap::new());
    };
    let mut headers = HeaderMap::new();
    let mut fine = named.complete;
    for (name, at, text) in &named.found {
        let refused = |at, wrong: String, remedy: &str| scan.error("H0131", at, wrong, remedy);
        let lower = name.to_ascii_lowercase();
        let own = OWN_HEADERS.contains(&lower.as_str())
            || OWN_PREFIXES.iter().any(|prefix| lower.starts_with(prefix));
        let header = HeaderName::from_bytes(lower.as_bytes());
        let value = HeaderValue::from_str(&text.value);
        fine &= match (header, value) {
            _ if own => {
                refused(
                    at,
                    format!("`{name}` is a header that Hapax sets itself"),
                    "remove it",
                );
                false
            }
            (Err(_), _) => {
                let remedy = "use letters, digits and hyphens";
                refused(at, format!("`{name}` is not the name of a header"), remedy);
                false
            }
            (_, Err(_)) => {
                let remedy = "use printable ASCII on one line";
                refused(
                    &text.at,
                    format!("no header can carry the value of `{name}`"),
                    remedy,
                );
                false
            }
            (Ok(header), Ok(_)) if headers.contains_key(&header) => {
                refused(
                    at,
                    format!("the header `{name}` is set twice"),
                    "remove one of them",
                );
                false
            }
            (Ok(header), Ok(mut value)) => {
                // Shown by nobody's `Debug`, and not kept in the tables of HTTP/2.
                value.set_sensitive(true);
                headers.insert(header, value);
                true
            }
        };
    }
    fine.then_some(headers)
}

/// What signs a request as Standard Webhooks has it: base64 after `whsec_`, or else the text itself.
pub(in crate::config) fn signer(scan: &Scan<'_>, text: &Text) -> Option<Verifier> {
    let preset = provider::find("standard-webhooks").expect("a built-in preset");
    let mut spec = preset.verify.clone();
    spec.key = Some(KeyForm::WhsecOrText);
    let scheme = spec.resolve().expect("a built-in preset resolves");
    let secret = Secret::new(text.value.as_bytes());
    let wrong = match Verifier::with_secret_bytes_min(scheme, vec![secret], SIGNING_BYTES_MIN) {
        Ok(signer) => return Some(signer),
        Err(SecretError::Empty { .. }) => "is empty".to_owned(),
        Err(SecretError::TooShort { bytes_min, .. }) => {
            format!("is shorter than {bytes_min} bytes")
        }
        Err(SecretError::Malformed { .. }) => "is not base64 after whsec_".to_owned(),
        Err(other) => format!("cannot be used: {other}"),
    };
    let remedy =
        "use whsec_ and the output of `openssl rand -base64 32`; the receiver gets the same";
    scan.error(
        "H0113",
        &text.at,
        format!("the signing secret {wrong}"),
        remedy,
    );
    None
}
