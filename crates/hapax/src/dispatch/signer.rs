//! Signing an effect's request, as Standard Webhooks says.

use hapax_ledger::time::Time;
use hapax_verify::provider;
use hapax_verify::{Secret, SecretError, SignInput, Verifier, sign};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Signs with the secrets of one effect: with all of them, so that one can be replaced by another.
#[derive(Clone, Debug)]
pub struct Signer(Verifier);

impl From<Verifier> for Signer {
    /// A signer from what the config made of its secret.
    fn from(verifier: Verifier) -> Signer {
        Signer(verifier)
    }
}

impl Signer {
    /// A signer with these secrets: `whsec_` and base64, or the base64 alone.
    ///
    /// # Errors
    /// If there is no secret, or one is too short or not of that form.
    pub fn new(secrets: Vec<Secret>) -> Result<Signer, SecretError> {
        let provider = provider::find("standard-webhooks")
            .expect("the preset is compiled in; `a_signature_verifies` keeps it so");
        Verifier::new(provider.scheme(), secrets).map(Signer)
    }

    /// Adds `webhook-id`, `webhook-timestamp` and `webhook-signature`. `id` is the same on all attempts and the time is
    /// not, so that receivers may refuse what is old.
    pub(super) fn add(&self, headers: &mut HeaderMap, id: &str, now: Time, body: &[u8]) {
        let input = SignInput {
            method: "POST",
            url: None,
            headers: &[],
            body,
            id,
            now: now.micros(),
        };
        let signed = sign(&self.0, &input)
            .expect("the scheme signs an id, a time and the body, and all three are given");
        for (name, value) in signed.headers {
            let name = HeaderName::try_from(name).expect("the scheme's names are header names");
            let value = HeaderValue::try_from(value)
                .expect("an id of letters, a number and base64 are header values");
            headers.insert(name, value);
        }
    }
}
