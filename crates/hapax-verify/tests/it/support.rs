//! What several tests need: a request that owns its parts, and secrets that fit every provider.

use hapax_verify::provider::{Provider, SampleInput};
use hapax_verify::{
    KeyForm, Refusal, Request, Scheme, Secret, SignInput, Verified, Verifier, sign,
};

/// 2025-06-25T14:20:10Z, in microseconds.
pub(crate) const NOW: i64 = 1_750_861_210_000_000;
pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const URL: &str = "https://hooks.example.com/in/sample?tenant=7";

/// A request that owns its parts, so that tests can change them.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    pub(crate) method: String,
    pub(crate) url: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) now: i64,
}

impl Owned {
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            url: self.url.as_deref(),
            headers: &self.headers,
            body: &self.body,
            now: self.now,
        }
    }

    pub(crate) fn verify(&self, verifier: &Verifier) -> Result<Verified, Refusal> {
        verifier.verify(&self.request())
    }

    pub(crate) fn header_mut(&mut self, name: &str) -> &mut String {
        let found = self.headers.iter_mut().find(|(have, _)| have == name);
        &mut found.expect("the header is there").1
    }
}

/// A secret of the form that the provider uses; `n` makes different ones.
pub(crate) fn secret_for(provider: &Provider, n: u8) -> Secret {
    let text = match (provider.scheme(), provider.verify.key) {
        (Scheme::Basic, _) => format!("user:password-{n:016}"),
        (_, Some(KeyForm::Hex)) => format!("{n:064x}"),
        (_, Some(KeyForm::Base64)) => format!("{n:040}AAA="),
        (_, Some(KeyForm::Whsec | KeyForm::WhsecOrText)) => format!("whsec_{n:040}AAA="),
        _ => format!("a secret that is long enough {n}"),
    };
    Secret::from(text.as_str())
}

/// A verifier for a provider whose secrets can be made up, which is all but the public-key ones.
pub(crate) fn verifier_for(provider: &Provider, secrets: &[u8]) -> Option<Verifier> {
    if provider.scheme().is_asymmetric() {
        return None;
    }
    let secrets = secrets.iter().map(|n| secret_for(provider, *n)).collect();
    Some(Verifier::new(provider.scheme(), secrets).expect("the secrets have the right form"))
}

/// A signed sample of a provider.
pub(crate) fn signed_sample(provider: &Provider, verifier: &Verifier, id: &str) -> Owned {
    let input = SampleInput {
        id,
        event_type: None,
        object: "obj_1",
        now: NOW,
    };
    let sample = provider.sample_request(&input).expect("there is a sample");
    let signed = sign(
        verifier,
        &SignInput {
            method: "POST",
            url: Some(URL),
            headers: &sample.headers,
            body: &sample.body,
            id,
            now: NOW,
        },
    );
    let signed = signed.unwrap_or_else(|error| panic!("{}: {error}", provider.name));
    let mut headers = signed.headers;
    for (name, value) in sample.headers {
        if !headers.iter().any(|(have, _)| *have == name) {
            headers.push((name, value));
        }
    }
    Owned {
        method: "POST".to_owned(),
        url: Some(signed.url.unwrap_or_else(|| URL.to_owned())),
        headers,
        body: signed.body.unwrap_or(sample.body),
        now: NOW,
    }
}
