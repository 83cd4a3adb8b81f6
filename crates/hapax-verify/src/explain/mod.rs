//! Why a request was refused: the known causes are tried one after the other, and the one that fits is named.
//!
//! This is the slow path, for a person who asks. It does in a hundred tries what nobody should have to do by hand;
//! the answer to the sender stays the same for all of them.

mod body;
mod faults;
mod search;
mod trials;

use std::fmt;

use crate::refusal::{Refusal, Verified};
use crate::request::Request;
use crate::secret::Secret;
use crate::verify::Verifier;

/// The result of looking closely at one request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// What verification says.
    pub verdict: Result<Verified, Refusal>,
    /// Causes that fit, the likeliest first; none for a request that verifies.
    pub causes: Vec<Cause>,
}

/// A likely cause.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause {
    /// Which one.
    pub kind: CauseKind,
    /// What speaks for it, as a sentence.
    pub evidence: String,
    /// What to do about it, as a sentence.
    pub remedy: String,
}

impl Cause {
    fn new(kind: CauseKind, evidence: impl Into<String>, remedy: impl Into<String>) -> Cause {
        Cause {
            kind,
            evidence: evidence.into(),
            remedy: remedy.into(),
        }
    }
}

/// The known causes of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CauseKind {
    /// Signed with a secret that this source does not have.
    OtherSecret,
    /// The configured secret has white space around it.
    SecretWhitespace,
    /// The secret is right, but its text is turned into key bytes in another way.
    SecretForm,
    /// Something parsed the body and wrote it again, or trimmed it.
    BodyChanged,
    /// The clocks differ, or the request was held up on its way.
    Clock,
    /// The signature is right but written in another encoding or with another prefix.
    WrongEncoding,
    /// The provider signs something else, with another algorithm, or is another provider.
    WrongScheme,
    /// The id that was signed is not where it should be.
    IdMoved,
    /// The public URL here is not the one that the provider signed.
    UrlDiffers,
    /// A header that verification needs is not there.
    HeaderMissing,
    /// A header that verification needs is there more than once.
    HeaderRepeated,
    /// The body cannot be read for the fields that are signed.
    BodyUnreadable,
    /// A claim of the token does not hold.
    TokenClaims,
}

impl CauseKind {
    /// A short stable word for listings.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            CauseKind::OtherSecret => "other_secret",
            CauseKind::SecretWhitespace => "secret_whitespace",
            CauseKind::SecretForm => "secret_form",
            CauseKind::BodyChanged => "body_changed",
            CauseKind::Clock => "clock",
            CauseKind::WrongEncoding => "wrong_encoding",
            CauseKind::WrongScheme => "wrong_scheme",
            CauseKind::IdMoved => "id_moved",
            CauseKind::UrlDiffers => "url_differs",
            CauseKind::HeaderMissing => "header_missing",
            CauseKind::HeaderRepeated => "header_repeated",
            CauseKind::BodyUnreadable => "body_unreadable",
            CauseKind::TokenClaims => "token_claims",
        }
    }
}

impl fmt::Display for CauseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Looks for the cause of a refusal.
#[must_use]
pub fn explain(verifier: &Verifier, request: &Request<'_>) -> Explanation {
    explain_with(verifier, request, &[])
}

/// As [`explain`], with further secrets to try, each under a name that may be shown (another source, an old secret).
#[must_use]
pub fn explain_with(
    verifier: &Verifier,
    request: &Request<'_>,
    known: &[(&str, &Secret)],
) -> Explanation {
    let verdict = verifier.verify(request);
    let causes = match verdict {
        Ok(_) => Vec::new(),
        Err(refusal) => causes(verifier, request, known, refusal),
    };
    Explanation { verdict, causes }
}

fn causes(
    verifier: &Verifier,
    request: &Request<'_>,
    known: &[(&str, &Secret)],
    refusal: Refusal,
) -> Vec<Cause> {
    match refusal {
        Refusal::UnknownSource => Vec::new(),
        Refusal::RepeatedHeader => vec![faults::repeated(verifier, request)],
        Refusal::TooOld { .. } | Refusal::TooNew { .. } => {
            vec![faults::clock(verifier, request, refusal)]
        }
        Refusal::MalformedTimestamp => vec![faults::time_unit(verifier, request)],
        Refusal::MissingSignature | Refusal::MissingTimestamp | Refusal::MissingPart => {
            faults::missing(verifier, request, refusal)
        }
        Refusal::MalformedBody => vec![Cause::new(
            CauseKind::BodyUnreadable,
            "the signed fields are read from the body, and it is not valid JSON or names a field twice",
            "look at the raw bytes; if the provider sends another content type, another preset fits",
        )],
        Refusal::WrongAlgorithm => vec![Cause::new(
            CauseKind::WrongScheme,
            "the token names another algorithm than the configured one",
            "set `algorithm` to what the provider documents; never take it from the token",
        )],
        Refusal::WrongClaim => vec![Cause::new(
            CauseKind::TokenClaims,
            "the signature of the token holds, but a claim is missing or has another value",
            "compare the claims, and public_url if the token vouches for the URL",
        )],
        Refusal::BodyDigest => match trials::changed_body(verifier, request) {
            Some(cause) => vec![cause],
            None => vec![Cause::new(
                CauseKind::BodyChanged,
                "the signature holds, but the body does not have the hash that was signed",
                "verify the raw bytes, before any parser or proxy rewrites them",
            )],
        },
        Refusal::MalformedSignature | Refusal::Mismatch => {
            mismatch(verifier, request, known, refusal)
        }
    }
}

/// The first try that fits is the cause. Without one, what is left is a secret that is not known here.
fn mismatch(
    verifier: &Verifier,
    request: &Request<'_>,
    known: &[(&str, &Secret)],
    refusal: Refusal,
) -> Vec<Cause> {
    let cause = trials::whitespace(verifier, request)
        .or_else(|| trials::known_secret(verifier, request, known))
        .or_else(|| trials::changed_body(verifier, request))
        .or_else(|| trials::other_url(verifier, request))
        .or_else(|| trials::moved_id(verifier, request))
        .or_else(|| search::search(verifier, request))
        .or_else(|| trials::other_provider(verifier, request));
    if let Some(cause) = cause {
        return vec![cause];
    }
    if refusal == Refusal::MalformedSignature {
        return vec![Cause::new(
            CauseKind::WrongScheme,
            "the signature does not have the configured form, and no known scheme explains it",
            "compare a real header with prefix, form and encoding of the scheme",
        )];
    }
    vec![Cause::new(
        CauseKind::OtherSecret,
        "the signature is well formed and no change of body, URL, encoding or scheme makes it fit",
        "copy the secret again from the endpoint that sends this: test and live mode, and every \
         endpoint, have their own",
    )]
}
