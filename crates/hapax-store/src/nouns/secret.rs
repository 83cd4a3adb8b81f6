//! Secrets that are kept sealed. A store never sees what is in them: [`crate::vault`] seals and opens.

use hapax_ledger::time::Time;

/// Secrets that one look names.
pub const SECRETS_PER_LOOK_MAX: u32 = 200;

/// A sealed secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    /// What it belongs to, such as `source/billing/offered/1`. It was sealed for this place and opens nowhere else.
    pub place: String,
    /// The secret, sealed.
    pub sealed: Vec<u8>,
    /// When it was kept.
    pub at: Time,
}

/// What somebody wants changed about secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretChange {
    /// Somebody expects a secret: what is kept says until when, instead of an earlier one at that place.
    Expect(SealedSecret),
    /// Keeps a secret at a place that has none, and takes away what said that it was expected. Not found, if that is not there
    /// as it was any more: of two that came for one expectation one is kept.
    Keep {
        /// The secret.
        secret: SealedSecret,
        /// What said that it was expected.
        expected: SealedSecret,
    },
    /// The secret at this place goes.
    Drop(String),
}

impl SecretChange {
    /// What it is called in the audit log.
    pub const fn word(&self) -> &'static str {
        match self {
            SecretChange::Expect(_) => "secret.expect",
            SecretChange::Keep { .. } => "secret.keep",
            SecretChange::Drop(_) => "secret.drop",
        }
    }

    /// What it is about.
    pub(crate) fn subject(&self) -> String {
        match self {
            SecretChange::Expect(secret) | SecretChange::Keep { secret, .. } => {
                secret.place.clone()
            }
            SecretChange::Drop(place) => place.clone(),
        }
    }
}

/// The end of the range of places that begin with this text: places are ASCII, and nothing of ASCII stands behind it.
pub(crate) fn end_of(under: &str) -> String {
    format!("{under}\u{7f}")
}
