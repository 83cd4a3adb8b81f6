//! A provider that signs what it sends, as Stripe does.

use hapax_verify::{Secret, SignInput, Verifier, provider, sign};

use super::clock;

/// The secret that sender and config share.
pub(crate) const SECRET: &str = "whsec_of_the_fault_suite_0123456789";

/// Sends to one source.
#[derive(Debug)]
pub(crate) struct Sender {
    source: &'static str,
    verifier: Verifier,
}

impl Sender {
    pub(crate) fn to(source: &'static str) -> Sender {
        let stripe = provider::find("stripe").expect("a preset");
        let verifier =
            Verifier::new(stripe.scheme(), vec![Secret::from(SECRET)]).expect("a good secret");
        Sender { source, verifier }
    }

    /// The body of the event called `name`; the same on every attempt.
    pub(crate) fn body(name: &str) -> Vec<u8> {
        let body = serde_json::json!({
            "id": name, "object": "event", "type": "invoice.paid", "created": 1_700_000_000,
            "data": { "object": { "id": format!("in_{name}"), "object": "invoice" } },
        });
        body.to_string().into_bytes()
    }

    /// The request's head, with whatever headers a test adds, up to and with its empty line.
    pub(crate) fn head(&self, body: &[u8], more: &[(&str, &str)]) -> Vec<u8> {
        let input = SignInput {
            method: "POST",
            url: None,
            headers: &[],
            body,
            id: "",
            now: clock::now_micros(),
        };
        let signed = sign(&self.verifier, &input).expect("signed");
        let mut head = format!(
            "POST /in/{} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n",
            self.source
        );
        let signatures = signed
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in signatures.chain(more.iter().copied()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// A whole request with the event called `name`.
    pub(crate) fn request(&self, name: &str) -> Vec<u8> {
        self.request_with(&Sender::body(name))
    }

    /// A whole request with this body.
    pub(crate) fn request_with(&self, body: &[u8]) -> Vec<u8> {
        let length = body.len().to_string();
        let mut request = self.head(body, &[("content-length", &length)]);
        request.extend_from_slice(body);
        request
    }
}
