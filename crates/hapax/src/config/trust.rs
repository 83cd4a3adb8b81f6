//! Who is believed: a source's scheme and secrets, and which of its fields the signature vouches for.

use hapax_ledger::field::Field;
use hapax_verify::{
    Coverage, SECRET_BYTES_MIN, Scheme, SchemeName, SchemeSpec, Secret, SecretError, Verifier,
};

use super::raw::RawSource;
use super::scan::Scan;
use super::source::{Kind, PublicUrl};

/// The scheme of a source, with the table that describes it.
pub(super) fn scheme(scan: &Scan<'_>, raw: &RawSource, kind: Kind) -> Option<(Scheme, SchemeSpec)> {
    let at = raw.provider.as_ref().map_or(&raw.at, |text| &text.at);
    match (kind, &raw.verify) {
        (Kind::Custom, Some(verify)) => verify
            .resolve(scan)
            .map(|(scheme, spec)| (scheme, spec.clone())),
        (Kind::Custom, None) if raw.meant.contains(&"verify") => None,
        (Kind::Custom, None) => {
            let remedy = "add [source.verify] below it, or name a preset";
            scan.error(
                "H0117",
                at,
                "a custom provider needs [source.verify]",
                remedy,
            );
            None
        }
        (Kind::Preset(_) | Kind::Unverified, Some(verify)) => {
            let wrong = "[source.verify] is for provider = \"custom\" only";
            let remedy = "remove it, or set provider = \"custom\" and describe the whole scheme";
            scan.error("H0117", &verify.at, wrong, remedy);
            None
        }
        (Kind::Preset(preset), None) => Some((preset.scheme(), preset.verify.clone())),
        (Kind::Unverified, None) => {
            Some((Scheme::Unverified, SchemeSpec::new(SchemeName::Unverified)))
        }
    }
}

/// Joins the scheme and the source's secrets.
pub(super) fn verifier(
    scan: &Scan<'_>,
    raw: &RawSource,
    kind: Kind,
    scheme: &Scheme,
    url: PublicUrl<'_>,
) -> Option<Verifier> {
    let at = raw.provider.as_ref().map_or(&raw.at, |text| &text.at);
    let mut fits = true;
    if scheme.needs_url() && url.is_none() {
        let wrong = "this provider signs the URL that it calls, and `public_url` is not set";
        let remedy =
            "set public_url to what the provider was told, such as https://hooks.example.com";
        scan.error("H0118", at, wrong, remedy);
        fits = false;
    }
    if *scheme == Scheme::Unverified {
        let wrong = "anybody who knows the URL can make events here: nothing is verified";
        let remedy = "use a preset or \"custom\"; if there is no signature to check, keep strangers out by other means";
        scan.warn("H0114", at, wrong, remedy);
        if let Some(secrets) = &raw.secrets {
            let wrong = "`secrets` verify nothing here, because the source is unverified";
            scan.error(
                "H0113",
                &secrets.at,
                wrong,
                "remove them, or name the scheme that uses them",
            );
            return None;
        }
    }
    let texts = raw.secrets.as_ref();
    let complete = texts.is_none_or(|texts| texts.complete);
    let found = texts.map_or(&[][..], |texts| &texts.found);
    let secrets = found.iter().map(|text| Secret::new(text.value.as_bytes()));
    let secrets: Vec<Secret> = secrets.collect();
    match Verifier::new(scheme.clone(), secrets.clone()) {
        Ok(verifier) => (fits && complete).then(|| match &raw.verify_token {
            Some(token) => verifier.with_verify_token(Secret::new(token.value.as_bytes())),
            None => verifier,
        }),
        Err(SecretError::None)
            if offers(kind) && texts.is_none() && !raw.meant.contains(&"secrets") =>
        {
            fits.then(|| Verifier::closed(scheme.clone()))
        }
        // None could be read, which is said already, or the field is misspelt, which is said too.
        Err(SecretError::None)
            if !complete || raw.meant.contains(&"secrets") && texts.is_none() =>
        {
            None
        }
        Err(
            SecretError::Empty { .. }
            | SecretError::TooShort { .. }
            | SecretError::Malformed { .. },
        ) => {
            for (place, secret) in secrets.into_iter().enumerate() {
                if let Err(error) = Verifier::new(scheme.clone(), vec![secret]) {
                    refuse_secret(scan, raw, kind, place, error);
                }
            }
            None
        }
        Err(error) => {
            let at = texts.map_or(at, |texts| &texts.at);
            scan.error("H0113", at, error.to_string(), hint(kind));
            None
        }
    }
}

/// Does the provider choose the secret itself, so that nobody can write it here beforehand?
fn offers(kind: Kind) -> bool {
    matches!(kind, Kind::Preset(preset) if preset.offers_secret())
}

/// What is wrong with the secrets whatever the scheme is, where nobody knows it.
pub(super) fn judge_secrets(scan: &Scan<'_>, raw: &RawSource) {
    let found = raw.secrets.iter().flat_map(|texts| &texts.found);
    for (place, text) in found.enumerate() {
        let error = match text.value.len() {
            0 => SecretError::Empty { index: 0 },
            1..SECRET_BYTES_MIN => SecretError::TooShort {
                index: 0,
                bytes_min: SECRET_BYTES_MIN,
            },
            _ => continue,
        };
        refuse_secret(scan, raw, Kind::Custom, place, error);
    }
}

/// Says what is wrong with one secret, the one at this place among those that could be read.
fn refuse_secret(scan: &Scan<'_>, raw: &RawSource, kind: Kind, place: usize, error: SecretError) {
    let Some(texts) = &raw.secrets else { return };
    let (Some(text), Some(index)) = (texts.found.get(place), texts.indexes.get(place)) else {
        return;
    };
    let wrong = match error {
        SecretError::Empty { .. } => "is empty".to_owned(),
        SecretError::TooShort { bytes_min, .. } => format!("is shorter than {bytes_min} bytes"),
        SecretError::Malformed { expected, .. } => format!("is not {expected}"),
        other => other.to_string(),
    };
    let wrong = format!("secrets[{index}] {wrong}");
    scan.error("H0113", &text.at, wrong, hint(kind));
}

fn hint(kind: Kind) -> String {
    match kind {
        Kind::Preset(preset) => format!("{}: {}", preset.title, preset.secret_hint),
        Kind::Custom | Kind::Unverified => {
            "set secrets = [\"env:NAME\"] to what the provider signs with".to_owned()
        }
    }
}

/// Does the signature vouch for what the field says?
pub(super) fn covers(scheme: &Scheme, spec: &SchemeSpec, field: &Field) -> bool {
    let signed = spec
        .signed
        .as_deref()
        .unwrap_or("{body}")
        .to_ascii_lowercase();
    let name = field.text();
    match scheme.covers() {
        // A token vouches for the sender and so for all that it says: no field is better than another.
        Coverage::Nothing => true,
        Coverage::Body if !field.is_header() => true,
        Coverage::Partial if !field.is_header() => {
            let path = name.to_ascii_lowercase();
            signed.contains(&format!("{{body.{path}}}"))
                || signed.contains(&format!("{{body.{path}?}}"))
        }
        Coverage::Body | Coverage::Partial => {
            let id = spec
                .id
                .as_ref()
                .map(|id| format!("header.{}", id.header.to_ascii_lowercase()));
            let is_id = signed.contains("{id}") && id.as_deref() == Some(name);
            is_id || signed.contains(&format!("{{{name}}}"))
        }
    }
}

/// A key from a header that nobody signed is not authentic (B4): whoever saw one request can send it again under
/// another key. The operator may know better, and says so with `trust_unsigned_id`.
pub(super) fn warn_of_unsigned_key(
    scan: &Scan<'_>,
    raw: &RawSource,
    key: &[Field],
    scheme: &Scheme,
    spec: &SchemeSpec,
) {
    let Some(texts) = raw.key.as_ref().filter(|_| !raw.trust_unsigned_id) else {
        return;
    };
    for (field, text) in key.iter().zip(&texts.found) {
        if !covers(scheme, spec, field) {
            let wrong = format!("the signature does not cover `{field}`, which is part of the key");
            let remedy = "use a field of the signed body, or set trust_unsigned_id = true if nobody can replay requests";
            scan.warn("H0124", &text.at, wrong, remedy);
        }
    }
}
