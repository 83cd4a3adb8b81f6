//! Random input: nothing verifies, nothing panics.

use hapax_verify::{Headers, Request, Secret, Verifier, explain, provider};
use proptest::prelude::*;

use crate::support::{NOW, URL, signed_sample, verifier_for};

/// Headers of which every name has the same value: whatever a scheme asks for, it finds.
struct Everywhere<'a>(&'a [u8]);

impl Headers for Everywhere<'_> {
    fn get(&self, _name: &str) -> hapax_verify::HeaderValue<'_> {
        hapax_verify::HeaderValue::One(self.0)
    }
}

fn verifiers() -> Vec<Verifier> {
    provider::all()
        .iter()
        .filter(|provider| provider.scheme().name() != "unverified")
        .filter_map(|provider| verifier_for(provider, &[1]))
        .collect()
}

/// Texts that look a little like signatures, so that the parsers get past their first line.
fn signature_like() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        "(t|ts|timestamp)=[0-9]{1,12}[,;] ?(v1|h1|signature)=[0-9a-f]{64}"
            .prop_map(String::into_bytes),
        "(sha256=|sha1=|v0=|v1=|v1,|)[0-9a-f]{40,128}".prop_map(String::into_bytes),
        "(v1,)?[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=){0,20}".prop_map(String::into_bytes),
        "(Bearer |Basic )?[A-Za-z0-9_-]{0,80}(\\.[A-Za-z0-9_-]{0,80}){0,3}"
            .prop_map(String::into_bytes),
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{0,20}(Z|[+-][0-9]{2}:?[0-9]{2})?"
            .prop_map(String::into_bytes),
    ]
}

fn body_like() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        r#"\{"[a-z]{1,9}":("[^"\\]{0,20}"|[0-9]{1,20}|\{\}|\[\]|null)\}"#.prop_map(String::into_bytes),
        "([a-z%+]{1,9}=[a-z0-9%+]{0,9}&?){0,9}".prop_map(String::into_bytes),
        r#"\{"signature":\{"timestamp":"[0-9]{10}","token":"[a-z]{5}","signature":"[0-9a-f]{64}"\}\}"#
            .prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_verify(value in signature_like(), body in body_like(), now in any::<i64>()) {
        let headers = Everywhere(&value);
        let request = Request { method: "POST", url: Some(URL), headers: &headers, body: &body, now };
        for verifier in verifiers() {
            prop_assert!(verifier.verify(&request).is_err(), "{:?}", verifier);
        }
    }

    #[test]
    fn handshakes_and_explanations_never_panic(
        value in signature_like(),
        body in body_like(),
        query in "[a-z._%&=0-9]{0,60}",
    ) {
        let headers = Everywhere(&value);
        for method in ["GET", "POST", "HEAD"] {
            let request = Request { method, url: Some(URL), headers: &headers, body: &body, now: NOW };
            for provider in provider::all() {
                if let Some(verifier) = verifier_for(provider, &[1]) {
                    let _ = provider.handshake_answer(&query, &request, &verifier);
                }
            }
        }
        let request = Request { method: "POST", url: None, headers: &headers, body: &body, now: NOW };
        for name in ["stripe", "svix", "messagebird", "gitlab"] {
            let verifier = provider::find(name).and_then(|p| verifier_for(p, &[1])).expect("known");
            prop_assert!(explain(&verifier, &request).verdict.is_err());
        }
    }

    #[test]
    fn every_body_can_be_signed_and_verified(body in proptest::collection::vec(any::<u8>(), 0..300), id in "[a-zA-Z0-9_-]{1,40}") {
        for name in ["stripe", "github", "svix", "slack", "paddle", "twitch", "square"] {
            let provider = provider::find(name).expect("known");
            let verifier = verifier_for(provider, &[1]).expect("HMAC");
            let mut request = signed_sample(provider, &verifier, &id);
            prop_assert!(request.verify(&verifier).is_ok());
            let same = request.body == body;
            request.body.clone_from(&body);
            prop_assert_eq!(request.verify(&verifier).is_ok(), same);
        }
    }

    #[test]
    fn secrets_of_every_kind_are_taken_or_refused(secret in proptest::collection::vec(any::<u8>(), 0..80)) {
        for provider in provider::all() {
            let _ = Verifier::new(provider.scheme(), vec![Secret::new(secret.clone())]);
        }
    }
}
