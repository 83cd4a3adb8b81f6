//! What `sign` makes, `verify` accepts: for every provider that can be signed for.

use crate::support::{NOW, SECOND, signed_sample, verifier_for};
use hapax_verify::provider::{self, SampleInput};
use hapax_verify::{Coverage, Scheme, SchemeName, SignError, SignInput, sign};

#[test]
fn every_provider_that_can_be_signed_verifies_its_own_sample() {
    let mut signed = 0;
    for provider in provider::all() {
        let Some(verifier) = verifier_for(provider, &[1]) else {
            continue;
        };
        let request = signed_sample(provider, &verifier, "evt_1");
        let verified = request
            .verify(&verifier)
            .unwrap_or_else(|refusal| panic!("{}: {refusal}\n{request:#?}", provider.name));
        assert_eq!(verified.scheme, provider.scheme().name());
        if provider.verify.timestamp.is_some() {
            let at = verified.signed_at.expect("a signed time");
            assert!((NOW - at).abs() < SECOND, "{}", provider.name);
        }
        signed += 1;
    }
    assert!(signed >= 95, "{signed} providers can be signed for");
}

#[test]
fn the_second_secret_is_as_good_and_is_named() {
    for provider in provider::all() {
        let (Some(old), Some(both)) = (
            verifier_for(provider, &[1]),
            verifier_for(provider, &[2, 1]),
        ) else {
            continue;
        };
        if matches!(provider.scheme(), Scheme::Unverified) {
            continue;
        }
        let request = signed_sample(provider, &old, "evt_1");
        let verified = request.verify(&both);
        let index = verified.map(|verified| verified.secret_index);
        assert_eq!(index, Ok(Some(1)), "{}", provider.name);
        let other = verifier_for(provider, &[3]).expect("not a public-key scheme");
        assert!(request.verify(&other).is_err(), "{}", provider.name);
    }
}

#[test]
fn a_rotation_is_signed_with_both_secrets_where_there_is_room() {
    for (name, both) in [
        ("standard-webhooks", true),
        ("stripe", true),
        ("github", false),
    ] {
        let provider = provider::find(name).expect("known");
        let rotating = verifier_for(provider, &[2, 1]).expect("HMAC");
        let request = signed_sample(provider, &rotating, "evt_1");
        let old = verifier_for(provider, &[1]).expect("HMAC");
        let new = verifier_for(provider, &[2]).expect("HMAC");
        assert!(request.verify(&new).is_ok(), "{name}");
        assert_eq!(request.verify(&old).is_ok(), both, "{name}");
    }
}

#[test]
fn verifiers_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<hapax_verify::Verifier>();
    shared::<provider::Provider>();
}

#[test]
fn what_only_the_provider_can_sign_is_said() {
    let provider = provider::find("discord").expect("known");
    let input = SignInput {
        method: "POST",
        url: None,
        headers: &[],
        body: b"{}",
        id: "1",
        now: NOW,
    };
    if cfg!(feature = "asymmetric") {
        let key = "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664";
        let verifier = hapax_verify::Verifier::new(provider.scheme(), vec![key.into()]);
        let error = sign(&verifier.expect("a public key"), &input).expect_err("no private key");
        assert_eq!(error, SignError::NoPrivateKey);
    }
    let square = provider::find("square").expect("known");
    let verifier = verifier_for(square, &[1]).expect("an HMAC scheme");
    assert_eq!(sign(&verifier, &input), Err(SignError::MissingUrl));
}

#[test]
fn schemes_that_do_not_cover_the_body_say_so() {
    for (name, covers) in [
        ("stripe", Coverage::Body),
        ("twilio", Coverage::Body),
        ("keygen", Coverage::Body),
        ("messagebird", Coverage::Body),
        ("adyen", Coverage::Partial),
        ("mercado-pago", Coverage::Partial),
        ("mailgun", Coverage::Nothing),
        ("gitlab", Coverage::Nothing),
        ("monday", Coverage::Nothing),
        ("strava", Coverage::Nothing),
    ] {
        let provider = provider::find(name).expect("known");
        assert_eq!(provider.scheme().covers(), covers, "{name}");
    }
}

#[test]
fn samples_carry_what_they_are_given() {
    let provider = provider::find("github").expect("known");
    let sample = provider
        .sample_request(&SampleInput {
            id: "a\"b",
            event_type: Some("push"),
            object: "42",
            now: NOW,
        })
        .expect("there is a sample");
    let body: serde_json::Value = serde_json::from_slice(&sample.body).expect("valid JSON");
    assert_eq!(body["issue"]["title"], "sample a\"b");
    let has = |name: &str, value: &str| {
        sample
            .headers
            .contains(&(name.to_owned(), value.to_owned()))
    };
    assert!(has("x-github-event", "push"));
    assert!(has("x-github-delivery", "a\"b"));
    assert_eq!(provider.verify.scheme, SchemeName::Hmac);
}
