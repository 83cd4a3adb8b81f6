//! The search for another scheme: hashes of all usual contents, compared with everything in the request that could be
//! a signature.

use super::trials::id_headers;
use super::{Cause, CauseKind};
use crate::decode::Encoding;
use crate::mac::{Algorithm, Construction, Mac, Sink};
use crate::provider;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::scheme::{HmacScheme, Place, Scheme, SignatureForm, TimePlace};
use crate::secret::KeyForm;
use crate::template::Template;
use crate::url::UrlForm;
use crate::verify::Content;
use crate::verify::Verifier;

/// What providers usually sign.
const TEMPLATES: [&str; 11] = [
    "{body}",
    "{timestamp}.{body}",
    "{timestamp}:{body}",
    "{timestamp}{body}",
    "{body}{timestamp}",
    "v0:{timestamp}:{body}",
    "{id}.{timestamp}.{body}",
    "{id}{timestamp}{body}",
    "{url}{body}",
    "{body}{url}",
    "{method}{url}{body}{timestamp}",
];

/// A text in the request that could be a signature.
struct Found {
    bytes: Vec<u8>,
    encoding: Encoding,
}

pub(super) fn search(verifier: &Verifier, request: &Request<'_>) -> Option<Cause> {
    let Scheme::Hmac(scheme) = verifier.scheme() else {
        return None;
    };
    let found = signatures(scheme, request);
    let contents = contents(scheme, request);
    for form in key_forms(scheme.key) {
        for algorithm in algorithms(scheme.algorithm) {
            for secret in verifier.secrets() {
                let Some(key) = form.key(secret).filter(|key| !key.is_empty()) else {
                    continue;
                };
                let mac = Mac::new(Construction::Hmac, algorithm, &key);
                for (template, content) in &contents {
                    let mut mac = mac.clone();
                    mac.put(content);
                    let tag = mac.finish();
                    let hit = found.iter().find(|f| bool::from(tag.matches(&f.bytes)));
                    if let Some(hit) = hit {
                        return Some(cause(scheme, form, algorithm, template, hit));
                    }
                }
            }
        }
    }
    None
}

/// The configured one first: the smallest difference is the likeliest cause.
fn key_forms(configured: KeyForm) -> impl Iterator<Item = KeyForm> {
    let others = KeyForm::ALL
        .into_iter()
        .filter(move |form| *form != configured);
    std::iter::once(configured).chain(others)
}

fn algorithms(configured: Algorithm) -> impl Iterator<Item = Algorithm> {
    let others = Algorithm::ALL
        .into_iter()
        .filter(move |other| *other != configured);
    std::iter::once(configured).chain(others)
}

fn cause(
    scheme: &HmacScheme,
    form: KeyForm,
    algorithm: Algorithm,
    template: &Option<&str>,
    hit: &Found,
) -> Cause {
    let encoding = hit.encoding.as_str();
    if algorithm != scheme.algorithm || template.is_some() {
        let signed = template.unwrap_or("the configured content");
        return Cause::new(
            CauseKind::WrongScheme,
            format!(
                "the signature is HMAC-{} over {signed}, in {encoding}",
                algorithm.as_str()
            ),
            format!(
                "set algorithm = \"{}\", encoding = \"{encoding}\", key = \"{}\" and `signed` accordingly",
                algorithm.as_str(),
                form.as_str()
            ),
        );
    }
    if form != scheme.key {
        return Cause::new(
            CauseKind::SecretForm,
            format!(
                "the secret fits if it is read as {}, not as {}",
                form.as_str(),
                scheme.key.as_str()
            ),
            format!("set key = \"{}\"", form.as_str()),
        );
    }
    let prefix = match &scheme.layout.form {
        SignatureForm::Plain { prefix } | SignatureForm::List { prefix, .. } => prefix.as_str(),
        SignatureForm::Pairs { key, .. } => key.as_str(),
        SignatureForm::Positional { .. } => "",
    };
    Cause::new(
        CauseKind::WrongEncoding,
        format!("the signature is right, but it is written in {encoding}, or not after `{prefix}`"),
        format!("set encoding = \"{encoding}\", and prefix and form as the header shows them"),
    )
}

/// Everything at the place of the signature that decodes to the length of a MAC.
fn signatures(scheme: &HmacScheme, request: &Request<'_>) -> Vec<Found> {
    let mut texts: Vec<&[u8]> = Vec::new();
    if let Place::Headers(names) = &scheme.layout.place {
        for value in names
            .iter()
            .filter_map(|name| request.headers.get(name).one())
        {
            for piece in value.split(|b| b" ,;|&\"".contains(b)) {
                texts.push(piece);
                // `sha256=...` and `v1=...`: the text after the first sign; base64 has its own at the end.
                let at = piece.iter().position(|b| matches!(b, b'=' | b':'));
                texts.extend(at.map(|at| &piece[at + 1..]));
            }
        }
    }
    let lengths = Algorithm::ALL.map(Algorithm::tag_bytes);
    let mut found = Vec::new();
    for text in texts {
        for encoding in Encoding::ALL {
            let bytes = encoding.decode_vec(text);
            if let Some(bytes) = bytes.filter(|bytes| lengths.contains(&bytes.len())) {
                found.push(Found { bytes, encoding });
            }
        }
    }
    found
}

/// The configured content, then the usual ones, with every timestamp and id that the request has.
fn contents(scheme: &HmacScheme, request: &Request<'_>) -> Vec<(Option<&'static str>, Vec<u8>)> {
    let times = times(scheme, request);
    let ids: Vec<&[u8]> = id_headers()
        .into_iter()
        .filter_map(|name| request.headers.get(name).one())
        .collect();
    let mut contents: Vec<(Option<&str>, Vec<u8>)> = Vec::new();
    let mut add = |name: Option<&'static str>, template: &Template, time, id| {
        if let Ok(content) = render(template, request, time, id) {
            if !contents.iter().any(|(_, have)| *have == content) {
                contents.push((name, content));
            }
        }
    };
    let own_id = scheme.layout.id.as_ref();
    let own_id = own_id.and_then(|name| request.headers.get(name).one());
    add(
        None,
        &scheme.layout.template,
        times.first().copied(),
        own_id,
    );
    for text in TEMPLATES {
        let Ok(template) = Template::parse(text) else {
            continue;
        };
        for time in times.iter().copied().map(Some).chain([None]) {
            for id in ids.iter().copied().map(Some).chain([None]) {
                add(Some(text), &template, time, id);
            }
        }
    }
    contents
}

/// The configured timestamp first, then whatever looks like one.
fn times<'a>(scheme: &HmacScheme, request: &Request<'a>) -> Vec<&'a [u8]> {
    let mut times: Vec<&[u8]> = Vec::new();
    let mut add = |text: Option<&'a [u8]>| {
        if let Some(text) = text.filter(|text| !times.contains(text)) {
            times.push(text);
        }
    };
    let layout = &scheme.layout;
    if let Place::Headers(names) = &layout.place {
        for value in names
            .iter()
            .filter_map(|name| request.headers.get(name).one())
        {
            let group = layout.form.group(value, layout.timestamp.as_ref());
            add(group.ok().and_then(|group| group.timestamp));
            for piece in value.split(|b| b" ,;".contains(b)) {
                for name in [&b"t="[..], b"ts=", b"timestamp="] {
                    add(piece.strip_prefix(name));
                }
            }
        }
    }
    if let Some(TimePlace::Header(name)) = layout.timestamp.as_ref().map(|t| &t.place) {
        add(request.headers.get(name).one());
    }
    for provider in provider::all() {
        let header = provider
            .verify
            .timestamp
            .as_ref()
            .and_then(|t| t.header.as_deref());
        add(header.and_then(|name| request.headers.get(name).one()));
    }
    times
}

fn render(
    template: &Template,
    request: &Request<'_>,
    timestamp: Option<&[u8]>,
    id: Option<&[u8]>,
) -> Result<Vec<u8>, Refusal> {
    let mut content = Vec::new();
    Content {
        template,
        request,
        timestamp,
        timestamp_header: None,
        id,
        url: UrlForm::AsIs,
        json: None,
        form: None,
        body_by_digest: false,
    }
    .render(&mut content)?;
    Ok(content)
}
