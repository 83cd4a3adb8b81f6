//! Answers to handshakes: pure, and only where it is safe.

use serde_json::{Value, json};

use super::Provider;
use super::handshake::{Handshake, When};
use crate::decode::Encoding;
use crate::form::Form;
use crate::json::{self, Path};
use crate::mac::Sink;
use crate::request::Request;
use crate::secret::Secret;
use crate::verify::Verifier;

/// The longest challenge that is answered.
const CHALLENGE_BYTES_MAX: usize = 2048;

/// The longest body that is looked at for a handshake.
const HANDSHAKE_BODY_BYTES_MAX: usize = 16 * 1024;

/// The longest challenge that is signed: long enough for every token in use, short and plain enough to be no event.
const SIGNED_CHALLENGE_BYTES_MAX: usize = 64;

/// What to answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HandshakeAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The content type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// A secret that the question offered for later events. Nobody vouches for it: a person has to take it over.
    pub offered_secret: Option<Secret>,
}

impl HandshakeAnswer {
    fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> HandshakeAnswer {
        HandshakeAnswer {
            status: 200,
            content_type,
            body: body.into(),
            // Dropbox asks for it, and whoever echoes a stranger's text should send it anyway.
            headers: vec![("x-content-type-options".to_owned(), "nosniff".to_owned())],
            offered_secret: None,
        }
    }

    fn text_or_json(challenge: &str, name: Option<&str>) -> HandshakeAnswer {
        match name {
            Some(name) => HandshakeAnswer::json(&json!({ name: challenge })),
            None => HandshakeAnswer::new("text/plain; charset=utf-8", challenge),
        }
    }

    fn json(value: &Value) -> HandshakeAnswer {
        HandshakeAnswer::new("application/json", value.to_string())
    }
}

impl Provider {
    /// The answer to a handshake of this provider, or nothing if the request is none, or is not what it claims to be:
    /// then it goes the way of every other request.
    ///
    /// `query` is the raw query string of the request.
    #[must_use]
    pub fn handshake_answer(
        &self,
        query: &str,
        request: &Request<'_>,
        verifier: &Verifier,
    ) -> Option<HandshakeAnswer> {
        self.handshake.as_ref()?.answer(query, request, verifier)
    }
}

impl Handshake {
    /// As [`Provider::handshake_answer`].
    #[must_use]
    pub fn answer(
        &self,
        query: &str,
        request: &Request<'_>,
        verifier: &Verifier,
    ) -> Option<HandshakeAnswer> {
        match self {
            Handshake::Head => {
                (request.method == "HEAD").then(|| HandshakeAnswer::new("text/plain", ""))
            }
            Handshake::QueryEcho {
                method,
                challenge,
                token,
                json,
            } => {
                if request.method != method {
                    return None;
                }
                let query = Form::parse(query.as_bytes());
                let challenge = plain(query.one(challenge)?)?;
                if let Some(token) = token {
                    let quoted = query.one(token)?;
                    verifier.knows_token(quoted).then_some(())?;
                }
                Some(HandshakeAnswer::text_or_json(challenge, json.as_deref()))
            }
            Handshake::HeaderEcho { method, .. } if request.method != method => None,
            Handshake::HeaderEcho { .. } => self.header_echo(request, verifier),
            Handshake::QueryMac {
                challenge,
                json,
                prefix,
                encoding,
            } => {
                let query = Form::parse(query.as_bytes());
                let challenge = query.one(challenge).filter(|_| request.method == "GET")?;
                let mac = mac_of_challenge(challenge, *encoding, verifier)?;
                Some(HandshakeAnswer::json(
                    &json!({ json: format!("{prefix}{mac}") }),
                ))
            }
            Handshake::BodyEcho { .. }
            | Handshake::BodyMac { .. }
            | Handshake::BodyReply { .. }
            | Handshake::EmptyBatch { .. } => self.body_answer(request, verifier),
        }
    }

    fn header_echo(&self, request: &Request<'_>, verifier: &Verifier) -> Option<HandshakeAnswer> {
        let Handshake::HeaderEcho {
            header,
            json,
            same_header,
            signed,
            offers_secret,
            ..
        } = self
        else {
            return None;
        };
        let challenge = plain(request.headers.get(header).one()?)?;
        if *signed {
            verifier.verify(request).ok()?;
        }
        let mut answer = if *same_header {
            let mut answer = HandshakeAnswer::new("text/plain", "");
            answer.headers.push((header.clone(), challenge.to_owned()));
            answer
        } else {
            HandshakeAnswer::text_or_json(challenge, json.as_deref())
        };
        answer.offered_secret = offers_secret.then(|| Secret::from(challenge));
        Some(answer)
    }

    fn body_answer(&self, request: &Request<'_>, verifier: &Verifier) -> Option<HandshakeAnswer> {
        // Whoever asks has not proved anything yet: nothing larger than a handshake is parsed for them.
        if request.method != "POST" || request.body.len() > HANDSHAKE_BODY_BYTES_MAX {
            return None;
        }
        let body = json::parse_strict(request.body)?;
        let text = |path: &str| Path::new(path).first(&body).and_then(Value::as_str);
        let verified = || verifier.verify(request).ok();
        match self {
            Handshake::BodyEcho {
                when,
                challenge,
                json,
                signed,
            } => {
                if !when.as_ref().is_none_or(|when| when.holds(&body, request)) {
                    return None;
                }
                let challenge = plain(text(challenge)?.as_bytes())?;
                if *signed {
                    verified()?;
                }
                Some(HandshakeAnswer::text_or_json(challenge, json.as_deref()))
            }
            Handshake::BodyMac {
                when,
                challenge,
                plain: plain_name,
                mac: mac_name,
            } => {
                let challenge = text(challenge).filter(|_| when.holds(&body, request))?;
                verified()?;
                let mac = mac_of_challenge(challenge.as_bytes(), Encoding::Hex, verifier)?;
                let answer = json!({ plain_name: challenge, mac_name: mac });
                Some(HandshakeAnswer::json(&answer))
            }
            Handshake::BodyReply { when, body: reply } => {
                when.holds(&body, request).then_some(())?;
                verified()?;
                Some(HandshakeAnswer::new("application/json", reply.as_str()))
            }
            Handshake::EmptyBatch { array } => {
                let items = Path::new(array).first(&body)?.as_array()?;
                items.is_empty().then_some(())?;
                verified()?;
                Some(HandshakeAnswer::new("text/plain", ""))
            }
            _ => None,
        }
    }
}

impl When {
    fn holds(&self, body: &Value, request: &Request<'_>) -> bool {
        match (self.field.header(), self.field.path()) {
            (Some(name), _) => request.headers.get(name).one() == Some(self.equals.as_bytes()),
            (None, Some(path)) => Path::new(path)
                .first(body)
                .and_then(json::scalar)
                .is_some_and(|text| text == self.equals),
            (None, None) => false,
        }
    }
}

impl Provider {
    /// Could this body have been signed by a handshake's answer? Where a provider asks for the MAC of a challenge under the
    /// same key as its events, whoever asks first holds a signature of that challenge. Such a body is no event.
    #[must_use]
    pub fn may_be_a_challenge(&self, body: &[u8]) -> bool {
        match &self.handshake {
            Some(Handshake::QueryMac { .. } | Handshake::BodyMac { .. }) => is_signable(body),
            _ => false,
        }
    }
}

/// A challenge that is short, printable ASCII: safe to echo.
fn plain(challenge: &[u8]) -> Option<&str> {
    let safe = |b: &u8| matches!(b, b' '..=b'~');
    let short = !challenge.is_empty() && challenge.len() <= CHALLENGE_BYTES_MAX;
    (short && challenge.iter().all(safe))
        .then(|| std::str::from_utf8(challenge).ok())
        .flatten()
}

/// The MAC of a challenge. Its characters are those of a token: no body of an event and no `v0:time:body` has only
/// these, and [`Provider::may_be_a_challenge`] keeps out what does, so that the answer is never the signature of an event.
fn mac_of_challenge(challenge: &[u8], encoding: Encoding, verifier: &Verifier) -> Option<String> {
    if !is_signable(challenge) {
        return None;
    }
    let mut mac = verifier.first_mac()?;
    mac.put(challenge);
    Some(encoding.encode(mac.finish().as_slice()))
}

/// Is it a challenge that we would sign?
fn is_signable(challenge: &[u8]) -> bool {
    let safe = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'=' | b'.');
    let short = !challenge.is_empty() && challenge.len() <= SIGNED_CHALLENGE_BYTES_MAX;
    short && challenge.iter().all(safe)
}
