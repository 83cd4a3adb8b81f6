//! `principal`: how a guard tells callers apart.
//!
//! A replay is answered without asking the upstream, so whoever can name another caller could read that caller's answers.

use std::sync::Arc;

use http::HeaderName;

use super::raw::RawGuard;
use super::resolve::missing;
use super::resolved::{CallerConfig, JwtConfig};
use crate::config::scan::{Scan, Text};
use crate::guard::jwt::KeySet;

const REMEDY: &str = "write \"header.NAME\", \"jwt.CLAIM\" with `jwks`, \"mtls.subject\" with `tls`, or \"auth.NAME\" with \
     `forward_auth`";

/// Who calls; nothing if there was an error, which is reported.
pub(super) fn caller(scan: &Scan<'_>, raw: &RawGuard) -> Option<CallerConfig> {
    let jwt = unused_without_jwt(scan, raw);
    let Some(text) = &raw.principal else {
        return match raw.shared_scope {
            Some(true) if !raw.meant.contains(&"principal") => jwt.then_some(CallerConfig::Shared),
            _ => {
                nobody(scan, raw);
                None
            }
        };
    };
    if raw.shared_scope == Some(true) {
        let wrong = "a guard with a `principal` does not share its scope";
        scan.error(
            "H0153",
            &text.at,
            wrong,
            "remove `principal` or `shared_scope`",
        );
        return None;
    }
    let caller = match text.value.split_once('.') {
        Some(("header", name)) => header(scan, text, name).map(CallerConfig::Header),
        Some(("auth", name)) => auth(scan, raw, text, name),
        Some(("jwt", claim)) if !claim.is_empty() => tokens(scan, raw, claim),
        Some(("mtls", "subject")) => subject(scan, raw, text),
        _ => {
            let wrong = format!("{} is not a way to tell callers apart", text.shown());
            scan.error("H0153", &text.at, wrong, REMEDY);
            None
        }
    };
    caller.filter(|_| jwt)
}

fn nobody(scan: &Scan<'_>, raw: &RawGuard) {
    if raw.meant.contains(&"principal") {
        return;
    }
    let wrong = "this [[guard]] has no `principal`: a caller who guesses another's key would get that caller's answer";
    let remedy =
        format!("{REMEDY}; or shared_scope = true, if all callers may see each other's answers");
    scan.error("H0153", &raw.at, wrong, remedy);
}

/// What would do nothing is an error; true if there is nothing of that kind.
fn unused_without_jwt(scan: &Scan<'_>, raw: &RawGuard) -> bool {
    let is_jwt = match &raw.principal {
        Some(text) => text.value.starts_with("jwt."),
        None => raw.meant.contains(&"principal"),
    };
    let given = [
        ("jwks", &raw.jwks),
        ("issuer", &raw.issuer),
        ("audience", &raw.audience),
    ];
    let mut fine = true;
    for (field, text) in given {
        if let (false, Some(text)) = (is_jwt, text) {
            let wrong = format!("`{field}` does nothing without principal = \"jwt.CLAIM\"");
            scan.error(
                "H0153",
                &text.at,
                wrong,
                "remove it, or name callers by a claim",
            );
            fine = false;
        }
    }
    fine
}

fn header(scan: &Scan<'_>, text: &Text, name: &str) -> Option<HeaderName> {
    let header = HeaderName::from_bytes(name.as_bytes()).ok();
    if header.is_none() {
        let wrong = format!("{} names no header", text.shown());
        scan.error(
            "H0153",
            &text.at,
            wrong,
            "write header.NAME, such as header.x-user",
        );
    }
    header
}

fn auth(scan: &Scan<'_>, raw: &RawGuard, text: &Text, name: &str) -> Option<CallerConfig> {
    if raw.forward_auth.is_none() {
        let wrong = "the principal comes from the answer of `forward_auth`, and there is none";
        let remedy = "write forward_auth = \"http://127.0.0.1:4000/auth\"";
        scan.error("H0153", &text.at, wrong, remedy);
        return None;
    }
    header(scan, text, name).map(CallerConfig::Auth)
}

fn subject(scan: &Scan<'_>, raw: &RawGuard, text: &Text) -> Option<CallerConfig> {
    let verified = raw.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    if !verified && (raw.tls.is_some() || !raw.meant.contains(&"tls")) {
        let wrong =
            "the principal is the subject of a client's certificate, and nobody asks for one";
        let remedy =
            "write tls = { cert = \"file:...\", key = \"file:...\", client_ca = \"file:...\" }";
        scan.error("H0153", &text.at, wrong, remedy);
    }
    verified.then_some(CallerConfig::Subject)
}

fn tokens(scan: &Scan<'_>, raw: &RawGuard, claim: &str) -> Option<CallerConfig> {
    let Some(text) = &raw.jwks else {
        let remedy = "write jwks = \"file:jwks.json\": a claim counts only if the token's signature verifies";
        missing(scan, raw, "jwks", remedy);
        return None;
    };
    let keys = match KeySet::parse(&text.value) {
        Ok(keys) => keys,
        Err(why) => {
            let wrong = format!("`jwks` holds no keys that could verify a token: {why}");
            let remedy =
                "write a JWK set with RSA (2048 bits or more), EC P-256 or Ed25519 public keys";
            scan.error("H0154", &text.at, wrong, remedy);
            return None;
        }
    };
    let value = |text: &Option<Text>| text.as_ref().map(|text| text.value.clone());
    Some(CallerConfig::Jwt(Arc::new(JwtConfig {
        claim: claim.to_owned(),
        keys,
        issuer: value(&raw.issuer),
        audience: value(&raw.audience),
    })))
}
