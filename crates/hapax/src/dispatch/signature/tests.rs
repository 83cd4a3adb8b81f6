//! Signatures that others verify: by our own verifier, by the library of the cipher, and by published vectors.

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use hapax_verify::Request;

use super::*;

const NOW: Time = Time::from_secs(1_614_265_330);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";

fn secret(key: &str, expires_at: Option<Time>) -> LiveSecret {
    LiveSecret {
        key: Secret::from(key),
        expires_at,
    }
}

fn signed(signer: &DeliverySigner, now: Time) -> HeaderMap {
    let mut headers = HeaderMap::new();
    signer.add(&mut headers, ID, now, BODY);
    headers
}

fn verifies(preset: &str, key: &str, headers: &HeaderMap, now: Time) -> bool {
    let scheme = provider::find(preset).expect("a preset").scheme();
    let verifier = Verifier::new(scheme, vec![Secret::from(key)]).expect("a secret");
    let given: Vec<(&str, &[u8])> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    let request = Request {
        method: "POST",
        url: None,
        headers: &given,
        body: BODY,
        now: now.micros(),
    };
    verifier.verify(&request).is_ok()
}

/// The vector that the libraries of Standard Webhooks and of Svix test themselves with.
#[test]
fn the_published_vector_comes_out_under_both_names() {
    let signer = DeliverySigner::new(Scheme::Hmac, Names::Both, &[secret(SECRET, None)]);
    let headers = signed(&signer.expect("a secret"), NOW);
    for prefix in ["webhook", "svix"] {
        assert_eq!(headers[format!("{prefix}-id")], ID);
        assert_eq!(headers[format!("{prefix}-timestamp")], "1614265330");
        assert_eq!(
            headers[format!("{prefix}-signature")],
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }
    assert_eq!(headers.len(), 6);
    assert!(verifies("standard-webhooks", SECRET, &headers, NOW));
    assert!(verifies("svix", SECRET, &headers, NOW));
}

#[test]
fn the_names_are_a_choice() {
    for (names, one, other) in [
        (Names::Webhook, "webhook-id", "svix-id"),
        (Names::Svix, "svix-id", "webhook-id"),
    ] {
        let signer = DeliverySigner::new(Scheme::Hmac, names, &[secret(SECRET, None)]);
        let headers = signed(&signer.expect("a secret"), NOW);
        assert!(headers.contains_key(one) && !headers.contains_key(other));
    }
}

/// G4: during the overlap both verify, and after it only the new one does.
#[test]
fn old_and_new_sign_during_the_overlap_and_not_a_moment_longer() {
    let end = Time::from_secs(1_614_265_400);
    let secrets = [secret(OTHER, None), secret(SECRET, Some(end))];
    for scheme in [
        Scheme::Hmac,
        Scheme::Stripe(HeaderName::from_static("stripe-signature")),
    ] {
        let preset = match scheme {
            Scheme::Hmac => "standard-webhooks",
            _ => "stripe",
        };
        let signer = DeliverySigner::new(scheme, Names::Both, &secrets).expect("secrets");
        let before = signed(&signer, NOW);
        assert!(verifies(preset, SECRET, &before, NOW));
        assert!(verifies(preset, OTHER, &before, NOW));
        let after = signed(&signer, end);
        assert!(!verifies(preset, SECRET, &after, end));
        assert!(verifies(preset, OTHER, &after, end));
    }
}

#[test]
fn a_key_pair_signs_what_its_public_key_verifies() {
    let private = format!("{PRIVATE_PREFIX}{}", STANDARD.encode([7; 32]));
    let old = format!("{PRIVATE_PREFIX}{}", STANDARD.encode([8; 32]));
    let secrets = [
        secret(&private, None),
        secret(&old, Some(NOW + hapax_ledger::time::Span::from_hours(1))),
    ];
    let signer = DeliverySigner::new(Scheme::Ed25519, Names::Both, &secrets).expect("keys");
    let headers = signed(&signer, NOW);
    let text = headers["webhook-signature"].to_str().expect("text");
    assert_eq!(headers["svix-signature"], text);
    let signatures: Vec<Vec<u8>> = text
        .split(' ')
        .map(|one| one.strip_prefix("v1a,").expect("the scheme's mark"))
        .map(|one| STANDARD.decode(one).expect("base64"))
        .collect();
    let content = [format!("{ID}.1614265330.").as_bytes(), BODY].concat();
    let keys = signer.public_keys(NOW);
    assert_eq!((keys.len(), signatures.len()), (2, 2));
    for (key, signature) in keys.iter().zip(&signatures) {
        let key = UnparsedPublicKey::new(&ED25519, key);
        key.verify(&content, signature).expect("it is signed");
        key.verify(b"other", signature).expect_err("not that");
    }
    let public = public_text(&Secret::from(private.as_str())).expect("a key");
    assert_eq!(
        public,
        format!("{PUBLIC_PREFIX}{}", STANDARD.encode(keys[0]))
    );
}

#[test]
fn what_is_no_key_signs_nothing() {
    let both = [0; 64];
    let table = [
        (Scheme::Hmac, "whsec_c2hvcnQ=".to_owned(), BadSecret::Shared),
        (
            Scheme::Hmac,
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned(),
            BadSecret::Shared,
        ),
        (
            Scheme::Hmac,
            format!("whsec_{}", STANDARD.encode([0; 65])),
            BadSecret::Shared,
        ),
        (Scheme::Ed25519, SECRET.to_owned(), BadSecret::Private),
        (
            Scheme::Ed25519,
            format!("whsk_{}", STANDARD.encode([0; 31])),
            BadSecret::Private,
        ),
        (
            Scheme::Ed25519,
            format!("whsk_{}", STANDARD.encode(both)),
            BadSecret::Private,
        ),
    ];
    for (scheme, key, why) in table {
        let made = DeliverySigner::new(scheme, Names::Both, &[secret(&key, None)]);
        assert_eq!(made.map(drop), Err(why));
    }
    let ending = [secret(SECRET, Some(NOW))];
    let made = DeliverySigner::new(Scheme::Hmac, Names::Both, &ending);
    assert_eq!(made.map(drop), Err(BadSecret::Nothing));
}
