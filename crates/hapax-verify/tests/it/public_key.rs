//! Public-key schemes, signed with keys made for the test.

use aws_lc_rs::digest;
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hapax_verify::{Refusal, SchemeSpec, Secret, SecretError, Verifier, provider};

use crate::support::{NOW, Owned, SECOND, URL};

const BODY: &str = r#"{"data":{"id":"evt_1"}}"#;
const NOW_TEXT: &str = "1750861210";

fn request(headers: &[(&str, &str)]) -> Owned {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Owned {
        method: "POST".to_owned(),
        url: Some(URL.to_owned()),
        headers: headers.collect(),
        body: BODY.as_bytes().to_vec(),
        now: NOW,
    }
}

fn verifier(name: &str, key: &str) -> Verifier {
    let scheme = provider::find(name).expect("known").scheme();
    Verifier::new(scheme, vec![Secret::from(key)]).expect("a public key")
}

fn pem(der: &[u8]) -> String {
    format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        STANDARD.encode(der)
    )
}

fn ecdsa(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    EcdsaKeyPair::generate(algorithm).expect("a key")
}

#[track_caller]
fn assert_only_this_verifies(verifier: &Verifier, request: &Owned) {
    request.verify(verifier).expect("it verifies");
    let mut tampered = request.clone();
    tampered.body.push(b' ');
    let refusal = tampered.verify(verifier).expect_err("another body");
    assert!(
        matches!(refusal, Refusal::Mismatch | Refusal::BodyDigest),
        "{refusal:?}"
    );
}

#[test]
fn telnyx_signs_with_ed25519() {
    let key = Ed25519KeyPair::generate().expect("a key");
    let signature = key.sign(format!("{NOW_TEXT}|{BODY}").as_bytes());
    let request = request(&[
        ("telnyx-signature-ed25519", &STANDARD.encode(signature)),
        ("telnyx-timestamp", NOW_TEXT),
    ]);
    let verifier = verifier("telnyx", &STANDARD.encode(key.public_key()));
    assert_only_this_verifies(&verifier, &request);
    let mut late = request;
    late.now = NOW + 301 * SECOND;
    assert!(matches!(
        late.verify(&verifier),
        Err(Refusal::TooOld { .. })
    ));
}

#[test]
fn keygen_signs_a_digest_of_the_body() {
    let key = Ed25519KeyPair::generate().expect("a key");
    let hash = STANDARD.encode(digest::digest(&digest::SHA256, BODY.as_bytes()));
    let date = "Wed, 25 Jun 2025 14:20:10 GMT";
    let signed = format!(
        "(request-target): post /in/sample?tenant=7\nhost: hooks.example.com\ndate: {date}\ndigest: sha-256={hash}"
    );
    let signature = STANDARD.encode(key.sign(signed.as_bytes()));
    let header = format!(
        "keyid=\"1\", algorithm=\"ed25519\", signature=\"{signature}\", headers=\"(request-target) host date digest\""
    );
    let request = request(&[
        ("keygen-signature", &header),
        ("host", "hooks.example.com"),
        ("date", date),
        ("digest", &format!("sha-256={hash}")),
    ]);
    let verifier = verifier("keygen", &hex::encode(key.public_key()));
    assert_only_this_verifies(&verifier, &request);
}

#[test]
fn sendgrid_signs_with_ecdsa() {
    let key = ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let random = SystemRandom::new();
    let signature = key
        .sign(&random, format!("{NOW_TEXT}{BODY}").as_bytes())
        .expect("signed");
    let request = request(&[
        (
            "x-twilio-email-event-webhook-signature",
            &STANDARD.encode(signature),
        ),
        ("x-twilio-email-event-webhook-timestamp", NOW_TEXT),
    ]);
    let der = key.public_key().as_der().expect("DER");
    assert_only_this_verifies(
        &verifier("sendgrid", &STANDARD.encode(der.as_ref())),
        &request,
    );
    assert_only_this_verifies(&verifier("sendgrid", &pem(der.as_ref())), &request);
}

#[test]
fn wise_signs_with_rsa_and_wix_sends_a_token() {
    let key = RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).expect("a key");
    let random = SystemRandom::new();
    let sign = |text: &str| {
        let mut signature = vec![0; key.public_modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature)
            .expect("signed");
        signature
    };
    let public = pem(key.public_key().as_der().expect("DER").as_ref());
    let request = request(&[("x-signature-sha256", &STANDARD.encode(sign(BODY)))]);
    assert_only_this_verifies(&verifier("wise", &public), &request);

    let wix = verifier("wix", &public);
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
    let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"data":"x","iat":{NOW_TEXT}}}"#));
    let signed = format!("{header}.{claims}");
    let mut token = request.clone();
    token.body = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(sign(&signed))).into_bytes();
    token.verify(&wix).expect("it verifies");
    // The public key is no secret: a token that takes it for a shared one must not pass.
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    token.body = format!("{header}.{claims}.AAAA").into_bytes();
    assert_eq!(token.verify(&wix), Err(Refusal::WrongAlgorithm));
}

#[test]
fn a_token_with_ecdsa() {
    let key = ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let spec: SchemeSpec = toml::from_str(
        "scheme = 'jwt'\nheader = 'x-token'\nalgorithm = 'es256'\nbody_hash_claim = 'hash'",
    )
    .expect("a spec");
    let der = key.public_key().as_der().expect("DER");
    let secrets = vec![Secret::from(pem(der.as_ref()).as_str())];
    let verifier = Verifier::new(spec.resolve().expect("valid"), secrets).expect("a public key");
    let hash = hex::encode(digest::digest(&digest::SHA256, BODY.as_bytes()));
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#);
    let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"hash":"{hash}"}}"#));
    let signed = format!("{header}.{claims}");
    let signature = key
        .sign(&SystemRandom::new(), signed.as_bytes())
        .expect("signed");
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
    assert_only_this_verifies(&verifier, &request(&[("x-token", &token)]));
}

#[test]
fn keys_that_are_none_are_refused() {
    for name in ["wise", "discord", "sendgrid", "telnyx", "keygen", "wix"] {
        let scheme = provider::find(name).expect("known").scheme();
        for key in [
            "not a key",
            "00",
            "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
        ] {
            let error = Verifier::new(scheme.clone(), vec![Secret::from(key)]).err();
            assert!(
                matches!(error, Some(SecretError::Malformed { .. })),
                "{name} {key}"
            );
        }
    }
}
