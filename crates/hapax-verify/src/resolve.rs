//! From the raw table to a valid scheme: every question is asked here once, so that verification asks none.

use crate::decode::Encoding;
use crate::duration;
use crate::json::Path;
use crate::mac::{Algorithm, Construction};
use crate::scheme::{
    Digest, DigestPlace, HmacScheme, JwtAlgorithm, JwtScheme, Layout, Place, PublicKeyScheme,
    Scheme, SignatureForm, TimePlace, Timestamp, TokenScheme,
};
use crate::secret::KeyForm;
use crate::spec::{DigestSpec, FormName, SchemeName, SchemeSpec, SpecError, TimestampSpec};
use crate::template::{Part, Template};

/// Five minutes: what most providers' own libraries allow, and what Standard Webhooks asks for.
pub const TOLERANCE_DEFAULT_US: i64 = 300_000_000;

/// How far the clock of a token's issuer may be off, if nothing else is said.
const LEEWAY_DEFAULT_US: i64 = 60_000_000;

type Result<T> = std::result::Result<T, SpecError>;

fn wrong<T>(field: &'static str, message: impl Into<String>) -> Result<T> {
    Err(SpecError {
        field,
        message: message.into(),
    })
}

pub(crate) fn resolve(spec: &SchemeSpec) -> Result<Scheme> {
    refuse_meaningless(spec)?;
    match spec.scheme {
        SchemeName::Hmac => hmac(spec).map(Scheme::Hmac),
        SchemeName::Token => Ok(Scheme::Token(TokenScheme {
            place: place(spec)?,
            prefix: spec.prefix.clone().unwrap_or_default(),
        })),
        SchemeName::Basic => Ok(Scheme::Basic),
        SchemeName::Ed25519 => public_key(spec).map(Scheme::Ed25519),
        SchemeName::EcdsaP256 => public_key(spec).map(Scheme::EcdsaP256),
        SchemeName::Rsa => public_key(spec).map(Scheme::Rsa),
        SchemeName::Jwt => jwt(spec).map(Scheme::Jwt),
        SchemeName::Unverified => Ok(Scheme::Unverified),
    }
}

/// A field that does nothing is a misunderstanding: better said than ignored.
fn refuse_meaningless(spec: &SchemeSpec) -> Result<()> {
    const LAYOUT: &[SchemeName] = &[
        SchemeName::Hmac,
        SchemeName::Ed25519,
        SchemeName::EcdsaP256,
        SchemeName::Rsa,
    ];
    const HMAC: &[SchemeName] = &[SchemeName::Hmac];
    const JWT: &[SchemeName] = &[SchemeName::Jwt];
    const PLACED: &[SchemeName] = &[
        SchemeName::Hmac,
        SchemeName::Ed25519,
        SchemeName::EcdsaP256,
        SchemeName::Rsa,
        SchemeName::Token,
        SchemeName::Jwt,
    ];
    const KEYED: &[SchemeName] = &[
        SchemeName::Hmac,
        SchemeName::Ed25519,
        SchemeName::EcdsaP256,
        SchemeName::Rsa,
        SchemeName::Jwt,
    ];
    let table: [(&'static str, bool, &[SchemeName]); 21] = [
        ("header", spec.header.is_some(), PLACED),
        ("headers", !spec.headers.is_empty(), PLACED),
        ("field", spec.field.is_some(), PLACED),
        ("prefix", spec.prefix.is_some(), PLACED),
        (
            "algorithm",
            spec.algorithm.is_some(),
            &[SchemeName::Hmac, SchemeName::Jwt],
        ),
        ("encoding", spec.encoding.is_some(), LAYOUT),
        ("form", spec.form.is_some(), LAYOUT),
        ("separator", spec.separator.is_some(), LAYOUT),
        ("group_separator", spec.group_separator.is_some(), LAYOUT),
        ("signature_key", spec.signature_key.is_some(), LAYOUT),
        ("after", spec.after.is_some(), LAYOUT),
        ("signed", spec.signed.is_some(), LAYOUT),
        ("id", spec.id.is_some(), LAYOUT),
        ("timestamp", spec.timestamp.is_some(), LAYOUT),
        ("key", spec.key.is_some(), KEYED),
        ("construction", spec.construction.is_some(), HMAC),
        ("each", spec.each.is_some(), HMAC),
        ("claims", !spec.claims.is_empty(), JWT),
        ("body_hash_claim", spec.body_hash_claim.is_some(), JWT),
        ("url_hash_claim", spec.url_hash_claim.is_some(), JWT),
        ("leeway", spec.leeway.is_some(), JWT),
    ];
    for (field, given, schemes) in table {
        if given && !schemes.contains(&spec.scheme) {
            return wrong(field, "has no meaning for this scheme");
        }
    }
    Ok(())
}

fn hmac(spec: &SchemeSpec) -> Result<HmacScheme> {
    let algorithm = match spec.algorithm.as_deref() {
        None | Some("sha256") => Algorithm::Sha256,
        Some("sha1") => Algorithm::Sha1,
        Some("sha384") => Algorithm::Sha384,
        Some("sha512") => Algorithm::Sha512,
        Some(other) => {
            return wrong(
                "algorithm",
                format!("`{other}` is not sha1, sha256, sha384 or sha512"),
            );
        }
    };
    let construction = spec.construction.unwrap_or_default();
    let layout = layout(spec)?;
    let has_secret = layout.template.has(|part| *part == Part::Secret);
    match (construction, has_secret) {
        (Construction::Hmac, true) => {
            return wrong("signed", "`{secret}` is for construction = \"digest\"");
        }
        (Construction::Digest, false) => {
            return wrong(
                "signed",
                "a digest without `{secret}` can be made by anybody",
            );
        }
        (Construction::Hmac, false) | (Construction::Digest, true) => {}
    }
    Ok(HmacScheme {
        layout,
        algorithm,
        construction,
        key: spec.key.unwrap_or_default(),
    })
}

fn public_key(spec: &SchemeSpec) -> Result<PublicKeyScheme> {
    let key = match spec.key {
        None | Some(KeyForm::Base64) => Encoding::Base64,
        Some(KeyForm::Hex) => Encoding::Hex,
        Some(_) => return wrong("key", "a public key is hex, base64 or PEM"),
    };
    Ok(PublicKeyScheme {
        layout: layout(spec)?,
        key,
    })
}

fn jwt(spec: &SchemeSpec) -> Result<JwtScheme> {
    let algorithm = match spec.algorithm.as_deref() {
        None | Some("hs256") => JwtAlgorithm::Hs256,
        Some("hs384") => JwtAlgorithm::Hs384,
        Some("hs512") => JwtAlgorithm::Hs512,
        Some("rs256") => JwtAlgorithm::Rs256,
        Some("es256") => JwtAlgorithm::Es256,
        Some(other) => {
            return wrong(
                "algorithm",
                format!("`{other}` is not hs256, hs384, hs512, rs256 or es256"),
            );
        }
    };
    let leeway_us = match spec.leeway.as_deref() {
        None => LEEWAY_DEFAULT_US,
        Some(text) => duration_us("leeway", text)?,
    };
    Ok(JwtScheme {
        place: place(spec)?,
        prefix: spec.prefix.clone().unwrap_or_default(),
        algorithm,
        key: spec.key.unwrap_or_default(),
        claims: spec.claims.clone(),
        body_hash_claim: spec.body_hash_claim.clone(),
        url_hash_claim: spec.url_hash_claim.clone(),
        leeway_us,
    })
}

fn duration_us(field: &'static str, text: &str) -> Result<i64> {
    match duration::parse_us(text) {
        Some(us) => Ok(us),
        None => wrong(
            field,
            format!("`{text}` is not a duration like 30s, 5m or 72h"),
        ),
    }
}

fn place(spec: &SchemeSpec) -> Result<Place> {
    let lower = |name: &String| name.to_ascii_lowercase();
    match (&spec.header, spec.headers.as_slice(), spec.field.as_deref()) {
        (Some(header), [], None) if !header.is_empty() => Ok(Place::Headers(vec![lower(header)])),
        (None, headers @ [_, ..], None) => Ok(Place::Headers(headers.iter().map(lower).collect())),
        (None, [], Some("body")) if spec.scheme == SchemeName::Jwt => Ok(Place::WholeBody),
        (None, [], Some(field)) => match field.split_once('.') {
            Some(("body", path)) if !path.is_empty() => Ok(Place::Body(Path::new(path))),
            Some(("form", name)) if !name.is_empty() => Ok(Place::Form(name.to_owned())),
            Some(("query", name)) if !name.is_empty() => Ok(Place::Query(name.to_owned())),
            _ => wrong("field", "is body.PATH, form.NAME or query.NAME"),
        },
        (None, [], None) | (Some(_), [], None) => {
            wrong("header", "the place of the signature is missing")
        }
        _ => wrong("header", "give one of header, headers and field"),
    }
}

fn layout(spec: &SchemeSpec) -> Result<Layout> {
    let template =
        Template::parse(spec.signed.as_deref().unwrap_or("{body}")).map_err(|message| {
            SpecError {
                field: "signed",
                message,
            }
        })?;
    let form = form(spec)?;
    let timestamp = spec
        .timestamp
        .as_ref()
        .map(|timestamp| self::timestamp(timestamp, &form))
        .transpose()?;
    if template.has(|part| *part == Part::Timestamp) && timestamp.is_none() {
        return wrong("timestamp", "`{timestamp}` is signed, so say where it is");
    }
    if let Some(timestamp) = &timestamp {
        refuse_unsigned_time(timestamp, &template)?;
    }
    let id = spec.id.as_ref().map(|id| id.header.to_ascii_lowercase());
    if template.has(|part| *part == Part::Id) != id.is_some() {
        return wrong(
            "id",
            "`{id}` in `signed` and the field `id` belong together",
        );
    }
    let digest = spec
        .digest
        .as_ref()
        .map(|digest| self::digest(digest, &template))
        .transpose()?;
    let covers = match (spec.covers, &digest) {
        (Some(covers), _) => covers,
        (None, Some(_)) => crate::Coverage::Body,
        (None, None) => template.coverage(),
    };
    Ok(Layout {
        place: place(spec)?,
        form,
        encoding: spec.encoding.unwrap_or_default(),
        template,
        id,
        timestamp,
        url_ports: spec.url_ports,
        digest,
        each: spec.each.as_deref().map(Path::new),
        covers,
    })
}

fn form(spec: &SchemeSpec) -> Result<SignatureForm> {
    let separator = || match spec.separator.as_deref() {
        Some(text) if text.len() != 1 => wrong("separator", "is one character"),
        separator => Ok(separator.unwrap_or(",").to_owned()),
    };
    let prefix = spec.prefix.clone().unwrap_or_default();
    match spec.form.unwrap_or_default() {
        FormName::Plain => Ok(SignatureForm::Plain { prefix }),
        FormName::Pairs => match &spec.signature_key {
            Some(key) => Ok(SignatureForm::Pairs {
                separator: separator()?,
                group: spec.group_separator.clone().filter(|text| !text.is_empty()),
                key: key.clone(),
            }),
            None => wrong("signature_key", "names the signature among the pairs"),
        },
        FormName::List => Ok(SignatureForm::List {
            separator: separator()?,
            prefix,
            after: spec.after.clone().filter(|text| !text.is_empty()),
        }),
        FormName::Positional => Ok(SignatureForm::Positional {
            separator: separator()?,
        }),
    }
}

fn timestamp(spec: &TimestampSpec, form: &SignatureForm) -> Result<Timestamp> {
    let place = match (&spec.header, &spec.pair, &spec.body, form) {
        (Some(header), None, None, _) => TimePlace::Header(header.to_ascii_lowercase()),
        (None, Some(pair), None, SignatureForm::Pairs { .. }) => TimePlace::Pair(pair.clone()),
        (None, Some(_), None, _) => return wrong("timestamp", "`pair` is for form = \"pairs\""),
        (None, None, Some(path), _) => TimePlace::Body(Path::new(path)),
        (None, None, None, SignatureForm::Positional { .. }) => TimePlace::First,
        _ => return wrong("timestamp", "give one of header, pair and body"),
    };
    let past_us = match spec.tolerance.as_deref() {
        None => Some(TOLERANCE_DEFAULT_US),
        Some("off") => None,
        Some(text) => Some(duration_us("timestamp", text)?),
    };
    let future_us = match spec.future.as_deref() {
        None => past_us,
        Some("off") => None,
        Some(text) => Some(duration_us("timestamp", text)?),
    };
    Ok(Timestamp {
        place,
        unit: spec.unit,
        past_us,
        future_us,
    })
}

/// A time that the signature does not cover can be changed by whoever carries the request: checking it is theatre.
fn refuse_unsigned_time(timestamp: &Timestamp, template: &Template) -> Result<()> {
    let signed = template.has(|part| match (part, &timestamp.place) {
        (Part::Timestamp, _) => true,
        (Part::Header(signed), TimePlace::Header(name)) => signed == name,
        // Whether the list names the timestamp is checked for every request.
        (Part::SignedHeaders(_), TimePlace::Header(_)) => true,
        (Part::Body, TimePlace::Body(_)) => true,
        (Part::BodyField { path, .. }, TimePlace::Body(place)) => path == place,
        _ => false,
    });
    if signed {
        Ok(())
    } else {
        wrong("timestamp", "the signed content does not hold it")
    }
}

fn digest(spec: &DigestSpec, template: &Template) -> Result<Digest> {
    let place = match (&spec.header, &spec.query) {
        (Some(header), None) => DigestPlace::Header(header.to_ascii_lowercase()),
        (None, Some(query)) => DigestPlace::Query(query.clone()),
        _ => return wrong("digest", "give one of header and query"),
    };
    // A digest that is not itself signed proves nothing.
    let signed = template.has(|part| match (&place, part) {
        (DigestPlace::Header(name), Part::Header(signed)) => name == signed,
        (DigestPlace::Query(_), Part::Url | Part::Path) => true,
        _ => false,
    });
    if !signed {
        return wrong("digest", "the signed content does not hold it");
    }
    Ok(Digest {
        place,
        prefix: spec.prefix.clone(),
        encoding: spec.encoding,
    })
}
