//! Signing, as the provider would: for sending samples, for tests, and for one's own webhooks.

mod draft;
mod jwt;

use std::fmt;

use self::draft::Draft;
use crate::decode::Encoding;
use crate::mac::Mac;
use crate::refusal::Refusal;
use crate::scheme::{Layout, Place, Scheme, SignatureForm, TimePlace};
use crate::verify::{Content, Verifier};

/// What is to be signed.
#[derive(Debug, Clone, Copy)]
pub struct SignInput<'a> {
    /// The HTTP method in upper case.
    pub method: &'a str,
    /// The URL it will be sent to, as the receiver knows it.
    pub url: Option<&'a str>,
    /// Headers that the request will carry anyway; some schemes sign them.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
    /// The id of this event or delivery, where the scheme signs one.
    pub id: &'a str,
    /// The time of signing in unix microseconds.
    pub now: i64,
}

/// A signed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// Headers to add.
    pub headers: Vec<(String, String)>,
    /// The body to send instead, where the signature is part of it.
    pub body: Option<Vec<u8>>,
    /// The URL to send to instead, where the signature or a hash of the body is part of it.
    pub url: Option<String>,
}

/// Why a request cannot be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignError {
    /// The scheme needs the provider's private key; only its public one is known here.
    NoPrivateKey,
    /// The scheme signs the URL and none is given.
    MissingUrl,
    /// The signature goes into a JSON body, and the body is something else.
    BodyNotJson,
    /// A part of the signed content is not there.
    Missing(Refusal),
    /// The secret is not text, though it travels as text.
    SecretNotText,
}

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignError::NoPrivateKey => {
                f.write_str("only the provider can sign: its key is private")
            }
            SignError::MissingUrl => f.write_str("the scheme signs the URL and none is given"),
            SignError::BodyNotJson => f.write_str("the signature goes into a JSON body"),
            SignError::Missing(refusal) => write!(f, "{refusal}"),
            SignError::SecretNotText => f.write_str("the secret is not text"),
        }
    }
}

impl std::error::Error for SignError {}

/// Signs in the way that the same verifier accepts: with its first secret, and where the scheme has room for several
/// signatures with all of them, as providers do while a secret is rotated.
///
/// # Errors
/// If the scheme is a public-key one, or the input lacks something that the scheme signs.
pub fn sign(verifier: &Verifier, input: &SignInput<'_>) -> Result<Signed, SignError> {
    if verifier.scheme().needs_url() && input.url.is_none() {
        return Err(SignError::MissingUrl);
    }
    let mut draft = Draft::new(input);
    let secret = || {
        let secret = verifier.secrets().first().map(|secret| secret.bytes());
        std::str::from_utf8(secret.unwrap_or_default()).map_err(|_| SignError::SecretNotText)
    };
    match verifier.scheme() {
        Scheme::Unverified => {}
        Scheme::Basic => {
            let credentials = Encoding::Base64.encode(secret()?.as_bytes());
            draft.set_header("authorization", format!("Basic {credentials}"));
        }
        Scheme::Token(token) => {
            let text = format!("{}{}", token.prefix, secret()?);
            draft.place(&token.place, text)?;
        }
        Scheme::Jwt(scheme) => {
            let mac = verifier.first_mac().ok_or(SignError::NoPrivateKey)?;
            let token = jwt::token(scheme, mac, &draft)?;
            draft.place(&scheme.place, format!("{}{token}", scheme.prefix))?;
        }
        Scheme::Hmac(scheme) => {
            sign_layout(&scheme.layout, verifier.macs(), &mut draft)?;
        }
        Scheme::Ed25519(_) | Scheme::EcdsaP256(_) | Scheme::Rsa(_) => {
            return Err(SignError::NoPrivateKey);
        }
    }
    Ok(draft.finish())
}

fn sign_layout(layout: &Layout, macs: &[Mac], draft: &mut Draft<'_>) -> Result<(), SignError> {
    draft.prepare(layout)?;
    let Some(path) = &layout.each else {
        let text = signature(layout, macs, draft, draft.json().as_ref())?;
        return draft.place(&layout.place, text);
    };
    let Place::Body(signature_path) = &layout.place else {
        return Err(SignError::BodyNotJson);
    };
    let mut json = draft.json().ok_or(SignError::BodyNotJson)?;
    let batched = path.every(&json).is_ok_and(|items| !items.is_empty());
    let items = if batched {
        path.every_mut(&mut json)
    } else {
        vec![&mut json]
    };
    for item in items {
        let text = signature(layout, macs, draft, Some(item))?;
        if !signature_path.set(item, text.into()) {
            return Err(SignError::BodyNotJson);
        }
    }
    draft.set_json(&json);
    Ok(())
}

/// The text of the signature, with its timestamp where they travel together. Where the form has room for several, there
/// is one per secret, as during a rotation.
fn signature(
    layout: &Layout,
    macs: &[Mac],
    draft: &Draft<'_>,
    json: Option<&serde_json::Value>,
) -> Result<String, SignError> {
    let time = draft.time_text(layout);
    let mut signatures = Vec::with_capacity(macs.len());
    for mac in macs {
        let mut mac = mac.clone();
        draft
            .with_content(layout, time.as_deref(), json, |content: &Content<'_>| {
                content.render(&mut mac)
            })
            .map_err(SignError::Missing)?;
        signatures.push(layout.encoding.encode(mac.finish().as_slice()));
    }
    let each = |before: &str, between: &str| {
        let texts: Vec<String> = signatures.iter().map(|s| format!("{before}{s}")).collect();
        texts.join(between)
    };
    let time_key = match layout.timestamp.as_ref().map(|t| &t.place) {
        Some(TimePlace::Pair(key)) => Some(key),
        _ => None,
    };
    Ok(match (&layout.form, time, time_key) {
        (SignatureForm::Plain { prefix }, _, _) => {
            let first = signatures.first().map_or("", String::as_str);
            format!("{prefix}{first}")
        }
        (SignatureForm::Pairs { separator, key, .. }, Some(time), Some(time_key)) => {
            let pairs = each(&format!("{key}="), separator);
            format!("{time_key}={time}{separator}{pairs}")
        }
        (SignatureForm::Pairs { separator, key, .. }, _, _) => each(&format!("{key}="), separator),
        (
            SignatureForm::List {
                separator,
                prefix,
                after,
            },
            _,
            _,
        ) => match after {
            Some(mark) => each(&format!("{prefix}hapax{mark}"), separator),
            None => each(prefix, separator),
        },
        (SignatureForm::Positional { separator }, time, _) => {
            let signatures = each("", separator);
            format!("{}{separator}{signatures}", time.unwrap_or_default())
        }
    })
}
