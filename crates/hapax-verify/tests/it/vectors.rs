//! Every published vector: documentation, and the tests of the providers' own libraries.

use hapax_verify::{Request, Secret, Verifier, provider};
use serde_json::Value;

/// Some published secrets are as short as `12345`.
const VECTOR_SECRET_BYTES_MIN: usize = 1;

fn vectors() -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("../vectors.json")).expect("valid JSON");
    file["vectors"].as_array().expect("an array").clone()
}

fn text<'v>(vector: &'v Value, name: &str) -> &'v str {
    vector[name].as_str().unwrap_or_default()
}

#[test]
fn every_published_vector_passes() {
    let (mut passed, mut skipped) = (0, 0);
    for vector in vectors() {
        let id = text(&vector, "id");
        let name = text(&vector, "provider");
        let provider = provider::find(name).unwrap_or_else(|| panic!("{id}: no {name}"));
        if provider.scheme().is_asymmetric() && !cfg!(feature = "asymmetric") {
            skipped += 1;
            continue;
        }
        let secret = Secret::from(text(&vector, "secret"));
        let verifier = Verifier::with_secret_bytes_min(
            provider.scheme(),
            vec![secret],
            VECTOR_SECRET_BYTES_MIN,
        )
        .unwrap_or_else(|error| panic!("{id}: {error}"));
        let headers: Vec<(String, String)> = vector["headers"]
            .as_object()
            .expect("headers")
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        let request = Request {
            method: text(&vector, "method"),
            url: vector["url"].as_str(),
            headers: &headers,
            body: text(&vector, "body").as_bytes(),
            now: vector["now"].as_i64().unwrap_or(0) * 1_000_000,
        };
        let result = verifier.verify(&request);
        let want = text(&vector, "expect") == "valid";
        assert_eq!(result.is_ok(), want, "{id}: {result:?}");
        passed += 1;
    }
    assert_eq!(passed + skipped, 44);
    assert!(skipped <= 3, "only the public-key vectors may be skipped");
}
