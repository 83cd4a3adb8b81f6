//! Keys that sign deliveries: changed without a gap, and public where they can be.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::scene::{Scene, message, on_each_store};
use crate::support::world::{Seen, World};

/// Public keys that everybody can ask for, as base64 of their bytes.
fn public_keys(scene: &Scene, endpoint: &str) -> Vec<String> {
    let head = format!("GET /jwks/{endpoint} HTTP/1.1\r\nhost: hapax\r\n\r\n");
    let answer = scene.server.ask(head.as_bytes());
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(
        answer
            .header("cache-control")
            .is_some_and(|kept| kept.contains("max-age"))
    );
    let told = answer.json();
    let keys = told["keys"].as_array().expect("a list").iter();
    let plain = |key: &Value| {
        assert_eq!(
            (&key["kty"], &key["crv"]),
            (&json!("OKP"), &json!("Ed25519"))
        );
        let x = key["x"].as_str().expect("a key");
        STANDARD.encode(URL_SAFE_NO_PAD.decode(x).expect("base64"))
    };
    keys.map(plain).collect()
}

/// Does one of a delivery's signatures verify with this public key?
fn verifies(seen: &Seen, key: &str) -> bool {
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
    let header = |name: &str| seen.headers[name].as_str();
    let mut signed =
        format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).into_bytes();
    signed.extend_from_slice(&seen.body);
    let key = STANDARD.decode(key).expect("base64");
    let key = UnparsedPublicKey::new(&ED25519, key);
    header("webhook-signature").split(' ').any(|signature| {
        let signature = signature.strip_prefix("v1a,").expect("of a key pair");
        let signature = STANDARD.decode(signature).expect("base64");
        key.verify(&signed, &signature).is_ok()
    })
}

/// G4: while a key pair is changed, deliveries verify with the old public key and with the new one, and both are public.
#[test]
fn public_keys_are_open_and_the_current_one_comes_first() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        let pair = json!({"signatureScheme": "ed25519"});
        let id = scene.endpoint("acme", "pair", &world, pair);
        let shared = scene.endpoint("acme", "shared", &world, json!({"disabled": true}));
        let secret = "/app/acme/endpoint/pair/secret";
        let told = |key: &Value| {
            let key = key["key"].as_str().expect("a key");
            key.strip_prefix("whpk_").expect("a public key").to_owned()
        };
        let old = told(&scene.told(200, "GET", secret, &Value::Null));
        assert_eq!(public_keys(&scene, &id), [old.as_str()]);
        let rotate = format!("{secret}/rotate");
        let new = told(&scene.told(200, "POST", &rotate, &json!({})));
        assert_ne!(new, old);
        assert_eq!(told(&scene.told(200, "GET", secret, &Value::Null)), new);
        assert_eq!(public_keys(&scene, &id), [new.as_str(), old.as_str()]);
        scene.publish("acme", &message(1));
        let seen = world.wait_for("the message", |seen| seen.len() == 1);
        assert!(verifies(&seen[0], &old) && verifies(&seen[0], &new));
        for nobody in [shared.as_str(), "ep_nobody", "acme"] {
            assert!(public_keys(&scene, nobody).is_empty(), "{nobody}");
        }
    });
}

/// An endpoint's secret is in no log line and in no answer that is not about it, whatever goes wrong.
#[test]
fn secrets_of_endpoints_are_never_said() {
    on_each_store(|scene| {
        let world = World::new(|_| crate::support::world::Act::Answer(500));
        scene.app("acme");
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let header = "a-value-that-nobody-guesses";
        let more =
            json!({"secret": secret, "headers": {"authorization": header}, "retrySchedule": [0]});
        scene.endpoint("acme", "one", &world, more);
        scene.publish("acme", &message(1));
        world.wait_for("the message", |seen| seen.len() == 1);
        let wrong = json!({"url": "http://10.0.0.1/", "secret": secret});
        assert_eq!(scene.post("/app/acme/endpoint", &wrong).status, 422);
        let bad = json!({"url": world.url("/x"), "secret": "whsec_not-base64-but-secret"});
        let refused = scene.post("/app/acme/endpoint", &bad);
        assert_eq!(refused.status, 422);
        assert!(!refused.json().to_string().contains("not-base64-but-secret"));
        let shown = ["/app/acme/endpoint", "/audit", "/effect", "/event"];
        let shown = shown
            .map(|path| scene.get(path).json().to_string())
            .concat();
        let said = scene.server.said().lock().expect("whole").clone();
        for text in [shown, said] {
            assert!(!text.contains(header) && !text.contains(&secret[6..]), "J2");
        }
    });
}
