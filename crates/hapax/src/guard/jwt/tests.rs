//! Tokens that name somebody, and the ways in which others do not.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;

fn now() -> Time {
    Time::from_secs(NOW)
}

fn text(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A token with a header and claims, signed by `sign`.
fn token(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let signed = format!("{}.{}", text(header.to_string()), text(claims.to_string()));
    let signature = text(sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

type Sign<'k> = dyn Fn(&[u8]) -> Vec<u8> + 'k;

fn ed25519() -> (Ed25519KeyPair, Value) {
    let pair = Ed25519KeyPair::generate().expect("a key");
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "e", "x": text(pair.public_key())});
    (pair, jwk)
}

fn set(keys: &[&Value]) -> KeySet {
    KeySet::parse(&json!({ "keys": keys }).to_string()).expect("keys")
}

#[test]
fn a_token_of_each_kind_names_its_caller() {
    let (ed, ed_jwk) = ed25519();
    let random = SystemRandom::new();
    let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
    let point = ec.public_key().as_ref();
    let ec_jwk = json!({"kty": "EC", "crv": "P-256", "kid": "c", "x": text(&point[1..33]), "y": text(&point[33..])});
    let rsa = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
    // A sequence of two numbers: modulus, with a zero before it, and exponent.
    let der = rsa.public_key().as_ref();
    let (n, e) = (&der[9..265], &der[267..]);
    let rsa_jwk = json!({"kty": "RSA", "kid": "r", "alg": "RS256", "n": text(n), "e": text(e)});
    let keys = set(&[&ed_jwk, &ec_jwk, &rsa_jwk]);
    let claims = json!({"sub": "ada", "exp": NOW + 10});
    let signers: [(&str, &str, Box<Sign<'_>>); 3] = [
        (
            "EdDSA",
            "e",
            Box::new(|message| ed.sign(message).as_ref().to_vec()),
        ),
        (
            "ES256",
            "c",
            Box::new(|message| ec.sign(&random, message).expect("signed").as_ref().to_vec()),
        ),
        (
            "RS256",
            "r",
            Box::new(|message| {
                let mut signature = vec![0; rsa.public_modulus_len()];
                rsa.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .expect("signed");
                signature
            }),
        ),
    ];
    for (alg, kid, sign) in &signers {
        let good = token(&json!({"alg": alg, "kid": kid}), &claims, sign);
        let found = keys.claims(&good, now(), Demands::default()).expect(alg);
        assert_eq!(name(&found, "sub").as_deref(), Some("ada"));
        let nameless = token(&json!({"alg": alg}), &claims, sign);
        assert!(
            keys.claims(&nameless, now(), Demands::default()).is_ok(),
            "{alg}"
        );
        let other = token(&json!({"alg": alg, "kid": "other"}), &claims, sign);
        let refused = keys.claims(&other, now(), Demands::default());
        assert_eq!(refused.err(), Some(BadToken::Signature), "{alg}");
    }
}

#[test]
fn what_is_not_signed_by_a_known_key_names_nobody() {
    let (ed, jwk) = ed25519();
    let keys = set(&[&jwk]);
    let claims = json!({"sub": "ada", "exp": NOW + 10});
    let sign = |message: &[u8]| ed.sign(message).as_ref().to_vec();
    let public = ed.public_key().as_ref().to_vec();
    let mac = |message: &[u8]| {
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &public);
        aws_lc_rs::hmac::sign(&key, message).as_ref().to_vec()
    };
    let changed = token(&json!({"alg": "EdDSA"}), &claims, |_| {
        sign(b"something else")
    });
    let table = [
        (
            token(&json!({"alg": "none"}), &claims, |_| Vec::new()),
            BadToken::Signature,
        ),
        (
            token(&json!({"alg": "HS256"}), &claims, mac),
            BadToken::Signature,
        ),
        (
            token(&json!({"alg": "ES256"}), &claims, sign),
            BadToken::Signature,
        ),
        (
            token(&json!({"alg": "EdDSA", "crit": ["x"]}), &claims, sign),
            BadToken::Form,
        ),
        (changed, BadToken::Signature),
        ("a.b".to_owned(), BadToken::Form),
        (String::new(), BadToken::Form),
        ("x".repeat(TOKEN_BYTES_MAX + 1), BadToken::Form),
    ];
    for (token, why) in table {
        let refused = keys.claims(&token, now(), Demands::default());
        assert_eq!(refused.err(), Some(why), "{token:.60}");
    }
}

#[test]
fn a_token_counts_in_its_time_and_for_whom_it_is_meant() {
    let (ed, jwk) = ed25519();
    let keys = set(&[&jwk]);
    let demands = Demands {
        issuer: Some("https://id"),
        audience: Some("api"),
    };
    let table = [
        (
            json!({"exp": NOW + 1, "iss": "https://id", "aud": "api"}),
            None,
        ),
        (
            json!({"exp": NOW - 59, "iss": "https://id", "aud": ["x", "api"]}),
            None,
        ),
        (
            json!({"exp": 1_800_000_001.5, "nbf": NOW + 60, "iss": "https://id", "aud": "api"}),
            None,
        ),
        (
            json!({"exp": NOW - 60, "iss": "https://id", "aud": "api"}),
            Some(BadToken::Time),
        ),
        (
            json!({"iss": "https://id", "aud": "api"}),
            Some(BadToken::Time),
        ),
        (
            json!({"exp": NOW + 900, "nbf": NOW + 61, "iss": "https://id", "aud": "api"}),
            Some(BadToken::Time),
        ),
        (
            json!({"exp": "soon", "iss": "https://id", "aud": "api"}),
            Some(BadToken::Form),
        ),
        (
            json!({"exp": NOW + 1, "aud": "api"}),
            Some(BadToken::Demand),
        ),
        (
            json!({"exp": NOW + 1, "iss": "https://id", "aud": ["x"]}),
            Some(BadToken::Demand),
        ),
        (
            json!({"exp": NOW + 1, "iss": "https://id"}),
            Some(BadToken::Demand),
        ),
    ];
    for (claims, why) in table {
        let sign = |message: &[u8]| ed.sign(message).as_ref().to_vec();
        let token = token(&json!({"alg": "EdDSA", "kid": "e"}), &claims, sign);
        assert_eq!(keys.claims(&token, now(), demands).err(), why, "{claims}");
    }
}

#[test]
fn a_set_without_a_usable_key_is_none() {
    let (_, mut encrypting) = ed25519();
    encrypting["use"] = "enc".into();
    let (_, mut other) = ed25519();
    other["alg"] = "ES256".into();
    let small = json!({"kty": "RSA", "n": text([1; 128]), "e": "AQAB"});
    let symmetric = json!({"kty": "oct", "k": "AAAA"});
    for key in [encrypting, other, small, symmetric] {
        assert!(
            KeySet::parse(&json!({"keys": [key]}).to_string()).is_err(),
            "{key}"
        );
    }
    assert!(KeySet::parse("[]").is_err());
}

#[test]
fn only_texts_and_whole_numbers_are_names() {
    let claims = json!({"a": "x", "b": 7, "c": 1.5, "d": "", "e": ["x"], "f": true});
    let Value::Object(claims) = claims else {
        unreachable!("an object")
    };
    let names: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"]
        .iter()
        .filter_map(|claim| name(&claims, claim))
        .collect();
    assert_eq!(names, ["x", "7"]);
}
