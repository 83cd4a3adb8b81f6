//! The two answers of verification: [`Verified`], or a [`Refusal`] that says why not.

use std::fmt;

use serde::Deserialize;

/// How much of the body the signature vouches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// Every byte of the body, or a hash of it, is in the signed content.
    Body,
    /// Some fields of the body are in the signed content; the rest can be changed by whoever carries it.
    Partial,
    /// Nothing of the body is covered: the sender is known, the words are not.
    Nothing,
}

impl Coverage {
    /// The word used in configuration and listings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Coverage::Body => "body",
            Coverage::Partial => "partial",
            Coverage::Nothing => "nothing",
        }
    }
}

/// The request is authentic, to the extent that `covers` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Which scheme vouched, e.g. `hmac-sha256`, `token`, `unverified`.
    pub scheme: &'static str,
    /// Which of the configured secrets matched; none for an unverified source.
    pub secret_index: Option<u8>,
    /// When the provider says it signed, in unix microseconds.
    pub signed_at: Option<i64>,
    /// How much of the body is vouched for.
    pub covers: Coverage,
}

/// Why a request was refused. Callers give the same HTTP answer for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The signature, token or credentials are not there.
    MissingSignature,
    /// A header that verification reads arrived more than once.
    RepeatedHeader,
    /// The signature is there but does not have the configured form, encoding or length.
    MalformedSignature,
    /// Well formed, and not made with any of the secrets over this content.
    Mismatch,
    /// The scheme signs a timestamp and there is none.
    MissingTimestamp,
    /// The timestamp is not in the configured unit.
    MalformedTimestamp,
    /// The signature is right, but older than the tolerance.
    TooOld {
        /// How old it is, in microseconds.
        age_us: i64,
        /// What the scheme allows, in microseconds.
        tolerance_us: i64,
    },
    /// The signature is right, but from further in the future than the tolerance.
    TooNew {
        /// How far ahead it is, in microseconds.
        ahead_us: i64,
        /// What the scheme allows, in microseconds.
        tolerance_us: i64,
    },
    /// The signed content names a header, field, id or URL that the request does not have.
    MissingPart,
    /// The body is not the JSON or form that the scheme reads fields from, or it names a field twice.
    MalformedBody,
    /// The signature is right, but the body does not have the hash that was signed.
    BodyDigest,
    /// The token names another algorithm than the configured one.
    WrongAlgorithm,
    /// A claim of the token is missing or is not what the configuration asks for.
    WrongClaim,
    /// There is no such source; the work was done all the same.
    UnknownSource,
}

impl Refusal {
    /// A short stable word for metrics and listings.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Refusal::MissingSignature => "missing_signature",
            Refusal::RepeatedHeader => "repeated_header",
            Refusal::MalformedSignature => "malformed_signature",
            Refusal::Mismatch => "mismatch",
            Refusal::MissingTimestamp => "missing_timestamp",
            Refusal::MalformedTimestamp => "malformed_timestamp",
            Refusal::TooOld { .. } => "too_old",
            Refusal::TooNew { .. } => "too_new",
            Refusal::MissingPart => "missing_part",
            Refusal::MalformedBody => "malformed_body",
            Refusal::BodyDigest => "body_digest",
            Refusal::WrongAlgorithm => "wrong_algorithm",
            Refusal::WrongClaim => "wrong_claim",
            Refusal::UnknownSource => "unknown_source",
        }
    }

    /// Whether the signature itself was right, so that only the time is in question.
    #[must_use]
    pub fn is_clock(self) -> bool {
        matches!(self, Refusal::TooOld { .. } | Refusal::TooNew { .. })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND_US: i64 = 1_000_000;
        match self {
            Refusal::MissingSignature => f.write_str("the signature is missing"),
            Refusal::RepeatedHeader => f.write_str("a header that is verified arrived twice"),
            Refusal::MalformedSignature => f.write_str("the signature is malformed"),
            Refusal::Mismatch => f.write_str("the signature does not match"),
            Refusal::MissingTimestamp => f.write_str("the timestamp is missing"),
            Refusal::MalformedTimestamp => f.write_str("the timestamp is malformed"),
            Refusal::TooOld {
                age_us,
                tolerance_us,
            } => write!(
                f,
                "signed {} s ago, allowed are {} s",
                age_us / SECOND_US,
                tolerance_us / SECOND_US
            ),
            Refusal::TooNew {
                ahead_us,
                tolerance_us,
            } => write!(
                f,
                "signed {} s in the future, allowed are {} s",
                ahead_us / SECOND_US,
                tolerance_us / SECOND_US
            ),
            Refusal::MissingPart => f.write_str("a part of the signed content is missing"),
            Refusal::MalformedBody => f.write_str("the body cannot be read for its signature"),
            Refusal::BodyDigest => f.write_str("the body does not have the signed hash"),
            Refusal::WrongAlgorithm => f.write_str("the token names another algorithm"),
            Refusal::WrongClaim => f.write_str("a claim of the token does not hold"),
            Refusal::UnknownSource => f.write_str("there is no such source"),
        }
    }
}

impl std::error::Error for Refusal {}
