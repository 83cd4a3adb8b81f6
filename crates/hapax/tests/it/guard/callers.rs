//! Who calls, by header, token, certificate or another service's word.

use std::io::{Read, Write};
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use serde_json::json;

use super::scene::{Scene, answered, charge, counting, refused, request, site};
use crate::effects::scene::{SQLITE, on_each_store};
use crate::program::run;
use crate::support::clock::now_micros;
use crate::support::world::{Act, World};

fn charge_as(user: &str, key: &str) -> Vec<u8> {
    let head = format!("{user}idempotency-key: {key}\r\n");
    request("POST", "/charges", &head, "{\"amount\":1}")
}

/// H3: an answer is given again only to the same caller.
#[test]
fn two_callers_with_one_key_do_not_meet() {
    on_each_store(|store| {
        let world = counting();
        let scene = Scene::new(store, &world.url(""), "");
        answered(&scene.ask(&charge_as("x-user: ada\r\n", "k1")), 1, false);
        answered(&scene.ask(&charge_as("x-user: bob\r\n", "k1")), 2, false);
        answered(&scene.ask(&charge_as("x-user: ada\r\n", "k1")), 1, true);
        let nobody = scene.ask(&charge_as("", "k1"));
        assert_eq!(nobody.status, 401, "{nobody:?}");
        assert_eq!(world.seen().len(), 2);
    });
}

/// H3: an upstream of several hosts has users of each, and its answers are theirs.
#[test]
fn two_hosts_of_one_upstream_do_not_meet() {
    on_each_store(|store| {
        let world = counting();
        let scene = Scene::new(store, &world.url(""), "");
        let at = |scene: &Scene, host: &str| {
            let head = format!("POST /charges HTTP/1.1\r\nhost: {host}\r\nx-user: 7\r\n");
            scene.ask(format!("{head}idempotency-key: k1\r\ncontent-length: 0\r\n\r\n").as_bytes())
        };
        answered(&at(&scene, "a.test"), 1, false);
        answered(&at(&scene, "b.test"), 2, false);
        answered(&at(&scene, "A.test:80"), 1, true);
        answered(&at(&scene, "b.test"), 2, true);
        let lines = "tenant = \"one\"\nhost = \"upstream\"";
        let scene = Scene::new(store, &world.url(""), lines);
        answered(&at(&scene, "a.test"), 3, false);
        answered(&at(&scene, "b.test"), 3, true);
    });
}

/// What a caller says was forwarded is a caller's word, unless the operator says that it is a proxy's.
#[test]
fn a_caller_does_not_steer_who_decides() {
    let forged = "x-forwarded-host: admin.test\r\nx-forwarded-proto: https\r\nx-forwarded-for: 10.0.0.1\r\n\
                  x-forwarded-user: root\r\nforwarded: for=10.0.0.1\r\n";
    let asked = |more: &str| {
        let (world, auth) = (counting(), World::well());
        let lines = format!(
            "shared_scope = true\nforward_auth = \"{}\"\n{more}",
            auth.url("/may")
        );
        let scene = Scene::with(SQLITE, &world.url(""), &lines);
        answered(&scene.ask(&charge_as(forged, "k1")), 1, false);
        (
            auth.seen().remove(0).headers,
            world.seen().remove(0).headers,
        )
    };
    let (auth, upstream) = asked("");
    assert_eq!(auth.get("x-forwarded-user"), None, "{auth:?}");
    assert_eq!(auth["x-forwarded-for"], "127.0.0.1");
    assert!(!auth["forwarded"].contains("10.0.0.1"), "{auth:?}");
    for told in [&auth, &upstream] {
        assert_eq!(told["x-forwarded-host"], "api.test");
        assert_eq!(told["x-forwarded-proto"], "http");
    }
    let (auth, upstream) = asked("trust_forwarded = true");
    assert_eq!(auth["x-forwarded-user"], "root");
    for told in [&auth, &upstream] {
        assert_eq!(told["x-forwarded-host"], "admin.test");
        assert_eq!(told["x-forwarded-for"], "10.0.0.1, 127.0.0.1");
    }
}

#[test]
fn a_caller_who_is_known_by_a_secret_is_kept_as_its_hash() {
    let world = counting();
    let scene = Scene::with(
        SQLITE,
        &world.url(""),
        "principal = \"header.authorization\"",
    );
    let head = "authorization: Bearer hush-hush\r\n";
    answered(&scene.ask(&charge_as(head, "k1")), 1, false);
    let keys = scene.keys("");
    let principal = keys[0]["principal"].as_str().expect("text");
    assert!(principal.starts_with("sha256:"), "{keys:?}");
    assert!(!keys[0].to_string().contains("hush"), "{keys:?}");
}

#[test]
fn a_guard_that_cannot_tell_callers_apart_does_not_start() {
    let refusing = site(SQLITE, "http://127.0.0.1:1", "");
    let ran = run(refusing.path(), &["serve"]).expect_exit(1);
    assert!(ran.stderr.contains("error[H0153]"), "{ran:?}");
    let checked = run(refusing.path(), &["check"]).expect_exit(1);
    assert!(
        checked.stderr.contains("shared_scope = true")
            || checked.stdout.contains("shared_scope = true"),
        "{checked:?}"
    );
    let world = counting();
    let scene = Scene::with(SQLITE, &world.url(""), "shared_scope = true");
    answered(&scene.ask(&charge_as("x-user: ada\r\n", "k1")), 1, false);
    answered(&scene.ask(&charge_as("", "k1")), 1, true);
}

/// A key that signs tokens, and the set that verifies them.
struct Tokens {
    pair: Ed25519KeyPair,
}

impl Tokens {
    fn new() -> Tokens {
        Tokens {
            pair: Ed25519KeyPair::generate().expect("a key"),
        }
    }

    fn set(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.pair.public_key());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": x}]}).to_string()
    }

    fn token(&self, user: &str, lives_s: i64) -> String {
        let text = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let now = now_micros() / 1_000_000;
        let claims = json!({"sub": user, "exp": now + lives_s, "aud": "charges", "jti": now});
        let signed = format!(
            "{}.{}",
            text(json!({"alg": "EdDSA", "kid": "1"})),
            text(claims)
        );
        let signature = URL_SAFE_NO_PAD.encode(self.pair.sign(signed.as_bytes()));
        format!("authorization: Bearer {signed}.{signature}\r\n")
    }
}

#[test]
fn a_token_names_its_caller_if_its_signature_verifies() {
    on_each_store(|store| {
        let (world, tokens) = (counting(), Tokens::new());
        let lines = "principal = \"jwt.sub\"\njwks = \"file:jwks.json\"\naudience = \"charges\"";
        let site = site(store, &world.url(""), lines);
        std::fs::write(site.path().join("jwks.json"), tokens.set()).expect("written");
        let scene = Scene::of(site);
        answered(
            &scene.ask(&charge_as(&tokens.token("ada", 600), "k1")),
            1,
            false,
        );
        // A refreshed token is the same caller; another subject is not.
        answered(
            &scene.ask(&charge_as(&tokens.token("ada", 900), "k1")),
            1,
            true,
        );
        answered(
            &scene.ask(&charge_as(&tokens.token("bob", 600), "k1")),
            2,
            false,
        );
        let forged = Tokens::new().token("ada", 600);
        let expired = tokens.token("ada", -600);
        for bad in [
            forged.as_str(),
            expired.as_str(),
            "authorization: Bearer x\r\n",
            "",
        ] {
            let answer = scene.ask(&charge_as(bad, "k1"));
            refused(&answer, 401, "caller-unknown");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
        assert_eq!(world.seen().len(), 2);
        assert_eq!(scene.keys("?principal=ada").len(), 1);
    });
}

#[test]
fn another_service_decides_on_every_request_and_replay() {
    let world = counting();
    let auth = World::new(|seen| {
        let asked = seen.headers.get("authorization").map(String::as_str);
        match (asked, seen.before) {
            (Some("ada"), _) => Act::AnswerWith(200, "x-name: Ada\r\n", String::new()),
            (Some("bob"), _) => Act::AnswerWith(200, "x-name: Bob\r\n", String::new()),
            (Some("ivy"), _) => Act::HangUp,
            _ => Act::AnswerWith(403, "www-authenticate: Custom\r\n", "not you".to_owned()),
        }
    });
    let lines = format!(
        "principal = \"auth.x-name\"\nforward_auth = \"{}\"",
        auth.url("/may")
    );
    let scene = Scene::with(SQLITE, &world.url(""), &lines);
    answered(
        &scene.ask(&charge_as("authorization: ada\r\n", "k1")),
        1,
        false,
    );
    answered(
        &scene.ask(&charge_as("authorization: ada\r\n", "k1")),
        1,
        true,
    );
    answered(
        &scene.ask(&charge_as("authorization: bob\r\n", "k1")),
        2,
        false,
    );
    let no = scene.ask(&charge_as("authorization: eve\r\n", "k1"));
    assert_eq!((no.status, no.body()), (403, &b"not you"[..]), "{no:?}");
    assert_eq!(no.header("www-authenticate"), Some("Custom"));
    let asked = auth.seen();
    assert_eq!(asked.len(), 4, "replays too");
    let told = |name: &str| asked[0].headers.get(name).map(String::as_str);
    assert_eq!(told("x-forwarded-method"), Some("POST"));
    assert_eq!(told("x-forwarded-uri"), Some("/charges"));
    assert_eq!(told("x-forwarded-for"), Some("127.0.0.1"));
    assert!(asked[0].body.is_empty());
    let away = scene.ask(&charge_as("authorization: ivy\r\n", "k1"));
    refused(&away, 503, "authorization-unavailable");
    assert_eq!(world.seen().len(), 2);
}

/// Bytes as a PEM file has them.
fn pem(kind: &str, bytes: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> = (0..text.len())
        .step_by(64)
        .map(|at| &text[at..text.len().min(at + 64)])
        .collect();
    format!(
        "-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n",
        lines.join("\n")
    )
}

/// A certificate authority, and what it signs.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        let pem = pem("CERTIFICATE", certificate.der());
        Authority {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate, key)
    }
}

/// One charge over TLS, as whoever this certificate names. The answer's first line and body.
#[expect(
    clippy::disallowed_methods,
    reason = "tests speak to the program they started, on loopback"
)]
fn charge_over_tls(scene: &Scene, authority: &Authority, name: Option<&str>) -> Option<String> {
    let mut roots = rustls::RootCertStore::empty();
    let pem = authority.pem.as_bytes();
    let root = rustls::pki_types::pem::PemObject::from_pem_slice(pem).expect("a certificate");
    roots.add(root).expect("a root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match name {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let (certificate, key) = authority.sign(name);
            let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
            let chain = vec![certificate.der().clone()];
            builder
                .with_client_auth_cert(chain, key)
                .expect("a certificate")
        }
    };
    let server = ServerName::try_from("localhost").expect("a name");
    let mut tls = rustls::ClientConnection::new(Arc::new(config), server).expect("a client");
    let mut tcp = std::net::TcpStream::connect(scene.guard).expect("a connection");
    let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
    let mut request = String::from_utf8(charge("k1")).expect("text");
    request = request.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).expect("text");
    read.is_ok()
        .then_some(answer)
        .filter(|answer| !answer.is_empty())
}

#[test]
fn a_certificate_names_its_caller() {
    let (world, authority) = (counting(), Authority::new());
    let tls =
        "tls = { cert = \"file:cert.pem\", key = \"file:key.pem\", client_ca = \"file:ca.pem\" }";
    let site = site(
        SQLITE,
        &world.url(""),
        &format!("principal = \"mtls.subject\"\n{tls}"),
    );
    let (certificate, key) = authority.sign("guard");
    let write =
        |name: &str, text: &str| std::fs::write(site.path().join(name), text).expect("written");
    write("cert.pem", &pem("CERTIFICATE", certificate.der()));
    write("key.pem", &pem("PRIVATE KEY", &key.serialize_der()));
    write("ca.pem", &authority.pem);
    let scene = Scene::of(site);
    let ask = |name| charge_over_tls(&scene, &authority, Some(name)).expect("an answer");
    assert!(ask("ada").ends_with("{\"execution\":1}"));
    assert!(ask("bob").ends_with("{\"execution\":2}"));
    let again = ask("ada");
    assert!(
        again.contains("idempotent-replayed: true") && again.ends_with("{\"execution\":1}"),
        "{again}"
    );
    assert_eq!(charge_over_tls(&scene, &authority, None), None);
    let stranger = Authority {
        pem: authority.pem.clone(),
        ..Authority::new()
    };
    assert_eq!(charge_over_tls(&scene, &stranger, Some("ada")), None);
    assert_eq!(scene.keys("?principal=CN%3Dada").len(), 1);
    assert_eq!(world.seen()[0].headers["x-forwarded-proto"], "https");
}
