//! Every cause, planted and found.

use hapax_verify::{
    CauseKind, Refusal, SchemeSpec, Secret, SignInput, Verifier, explain, explain_with, provider,
    sign,
};

use crate::support::{NOW, Owned, SECOND, URL, signed_sample, verifier_for};

fn provider_verifier(name: &str) -> (&'static provider::Provider, Verifier) {
    let provider = provider::find(name).expect("known");
    let verifier = verifier_for(provider, &[1]).expect("not a public-key scheme");
    (provider, verifier)
}

fn sample(name: &str) -> (Owned, Verifier) {
    let (provider, verifier) = provider_verifier(name);
    (signed_sample(provider, &verifier, "evt_1"), verifier)
}

fn custom(spec: &str, secret: &str) -> Verifier {
    let spec: SchemeSpec = toml::from_str(spec).expect("a spec");
    let scheme = spec.resolve().expect("valid");
    Verifier::new(scheme, vec![Secret::from(secret)]).expect("a secret")
}

fn signed(verifier: &Verifier, body: &str) -> Owned {
    let input = SignInput {
        method: "POST",
        url: Some(URL),
        headers: &[],
        body: body.as_bytes(),
        id: "msg_1",
        now: NOW,
    };
    let signed = sign(verifier, &input).expect("signed");
    Owned {
        method: "POST".to_owned(),
        url: Some(URL.to_owned()),
        headers: signed.headers,
        body: body.as_bytes().to_vec(),
        now: NOW,
    }
}

#[track_caller]
fn assert_cause(verifier: &Verifier, request: &Owned, kind: CauseKind) -> String {
    let explanation = explain(verifier, &request.request());
    assert!(explanation.verdict.is_err(), "it verifies");
    let first = explanation.causes.first().expect("a cause");
    assert_eq!(first.kind, kind, "{first:?} of {:?}", explanation.verdict);
    assert!(!first.evidence.is_empty() && !first.remedy.is_empty());
    first.evidence.clone()
}

#[test]
fn a_request_that_verifies_needs_no_cause() {
    let (request, verifier) = sample("stripe");
    let explanation = explain(&verifier, &request.request());
    assert!(explanation.verdict.is_ok() && explanation.causes.is_empty());
}

#[test]
fn other_secret() {
    for name in [
        "stripe",
        "github",
        "svix",
        "twilio",
        "adyen",
        "gitlab",
        "vonage",
        "chargebee",
    ] {
        let (request, _) = sample(name);
        let provider = provider::find(name).expect("known");
        let other = verifier_for(provider, &[9]).expect("not a public-key scheme");
        assert_cause(&other, &request, CauseKind::OtherSecret);
    }
}

#[test]
fn the_secret_of_another_source_is_named() {
    let (request, _) = sample("stripe");
    let other = verifier_for(provider::find("stripe").expect("known"), &[9]).expect("HMAC");
    let right = crate::support::secret_for(provider::find("stripe").expect("known"), 1);
    let explanation = explain_with(&other, &request.request(), &[("billing-test", &right)]);
    assert_eq!(explanation.causes[0].kind, CauseKind::OtherSecret);
    assert!(explanation.causes[0].evidence.contains("billing-test"));
}

#[test]
fn white_space_around_the_secret() {
    let spec = "scheme = 'hmac'\nheader = 'x-signature'";
    let request = signed(&custom(spec, "secret-secret"), "{}");
    let verifier = custom(spec, "secret-secret\n");
    assert_cause(&verifier, &request, CauseKind::SecretWhitespace);
}

#[test]
fn secret_read_in_another_form() {
    let (request, _) = sample("svix");
    let mut spec = provider::find("svix").expect("known").verify.clone();
    spec.key = None;
    let secret = crate::support::secret_for(provider::find("svix").expect("known"), 1);
    let verifier = Verifier::new(spec.resolve().expect("valid"), vec![secret]).expect("text");
    let evidence = assert_cause(&verifier, &request, CauseKind::SecretForm);
    assert!(evidence.contains("whsec"), "{evidence}");
}

#[test]
fn a_body_that_was_written_again() {
    let bodies = [
        (r#"{"a": 1, "b": "x"}"#, r#"{"a":1,"b":"x"}"#),
        (r#"{"a":1,"b":"x"}"#, "{\n  \"a\": 1,\n  \"b\": \"x\"\n}"),
        ("{\"a\":1}\r\n", "{\"a\":1}"),
        ("{\"a\":1}", "{\"a\":1}\n"),
        (r#"{"a":"\u00e9"}"#, r#"{"a":"é"}"#),
        (r#"{"a":"x\/y"}"#, r#"{"a":"x/y"}"#),
        ("a=b+c", "a=b%20c"),
    ];
    for (sent, arrived) in bodies {
        for name in ["github", "stripe", "standard-webhooks"] {
            let (_, verifier) = provider_verifier(name);
            let mut request = signed(&verifier, sent);
            request.body = arrived.as_bytes().to_vec();
            assert_cause(&verifier, &request, CauseKind::BodyChanged);
        }
    }
}

#[test]
fn a_clock_that_is_off() {
    let (mut request, verifier) = sample("stripe");
    request.now = NOW + 3_600 * SECOND;
    let evidence = assert_cause(&verifier, &request, CauseKind::Clock);
    assert!(evidence.contains("3600 s ago"), "{evidence}");
    request.now = NOW - 3_600 * SECOND;
    let evidence = assert_cause(&verifier, &request, CauseKind::Clock);
    assert!(evidence.contains("in the future"), "{evidence}");
}

#[test]
fn a_clock_is_not_blamed_for_a_forgery() {
    let (mut request, verifier) = sample("stripe");
    request.now = NOW + 3_600 * SECOND;
    request.body = b"{}".to_vec();
    assert_eq!(request.verify(&verifier), Err(Refusal::Mismatch));
}

#[test]
fn wrong_encoding_or_prefix() {
    let sent = custom(
        "scheme = 'hmac'\nheader = 'x-s'\nencoding = 'base64'",
        "secret-secret",
    );
    let request = signed(&sent, "{}");
    let hex = custom("scheme = 'hmac'\nheader = 'x-s'", "secret-secret");
    let evidence = assert_cause(&hex, &request, CauseKind::WrongEncoding);
    assert!(evidence.contains("base64"), "{evidence}");
    let prefixed = custom(
        "scheme = 'hmac'\nheader = 'x-s'\nprefix = 'sha256='",
        "secret-secret",
    );
    let request = signed(&prefixed, "{}");
    assert_cause(&hex, &request, CauseKind::WrongEncoding);
}

#[test]
fn wrong_scheme() {
    let body_only = custom("scheme = 'hmac'\nheader = 'x-s'", "secret-secret");
    for spec in [
        "scheme = 'hmac'\nheader = 'x-s'\nalgorithm = 'sha1'",
        "scheme = 'hmac'\nheader = 'x-s'\nalgorithm = 'sha512'\nencoding = 'base64'",
        "scheme = 'hmac'\nheader = 'x-s'\nsigned = '{url}{body}'",
        "scheme = 'hmac'\nheader = 'x-s'\nsigned = '{timestamp}.{body}'\ntimestamp = { header = 'webhook-timestamp' }",
        "scheme = 'hmac'\nheader = 'x-s'\nform = 'pairs'\nsignature_key = 'v1'\nsigned = '{timestamp}.{body}'\ntimestamp = { pair = 't' }",
    ] {
        let request = signed(&custom(spec, "secret-secret"), "{}");
        assert_cause(&body_only, &request, CauseKind::WrongScheme);
    }
}

#[test]
fn another_provider_is_recognised() {
    let (request, _) = sample("github");
    let (_, verifier) = provider_verifier("stripe");
    let evidence = assert_cause(&verifier, &request, CauseKind::WrongScheme);
    assert!(evidence.contains("GitHub"), "{evidence}");
}

#[test]
fn wrong_unit_of_the_timestamp() {
    let (mut request, verifier) = sample("slack");
    let header = request.header_mut("x-slack-request-timestamp");
    *header = "2025-06-25T14:20:10Z".to_owned();
    let evidence = assert_cause(&verifier, &request, CauseKind::WrongScheme);
    assert!(evidence.contains("rfc3339"), "{evidence}");
}

#[test]
fn an_id_that_moved() {
    let (mut request, verifier) = sample("standard-webhooks");
    let signed = std::mem::replace(request.header_mut("webhook-id"), "rewritten".to_owned());
    request.headers.push(("x-request-id".to_owned(), signed));
    let evidence = assert_cause(&verifier, &request, CauseKind::IdMoved);
    assert!(evidence.contains("x-request-id"), "{evidence}");
}

#[test]
fn another_public_url() {
    for name in ["square", "trello", "hubspot"] {
        let (mut request, verifier) = sample(name);
        request.url = Some(URL.replace("https://", "http://"));
        let evidence = assert_cause(&verifier, &request, CauseKind::UrlDiffers);
        assert!(evidence.contains(URL), "{evidence}");
        request.url = None;
        assert_cause(&verifier, &request, CauseKind::UrlDiffers);
    }
}

#[test]
fn headers_that_are_missing_or_doubled() {
    let (mut request, verifier) = sample("slack");
    let headers = std::mem::take(&mut request.headers);
    let evidence = assert_cause(&verifier, &request, CauseKind::HeaderMissing);
    assert!(evidence.contains("x-slack-signature"), "{evidence}");
    request.headers = [headers.clone(), headers].concat();
    assert_cause(&verifier, &request, CauseKind::HeaderRepeated);
}

#[test]
fn tokens_say_what_is_wrong_with_them() {
    let (mut request, verifier) = sample("messagebird");
    request.url = Some("https://elsewhere.example.com/".to_owned());
    assert_cause(&verifier, &request, CauseKind::TokenClaims);
    let (mut request, verifier) = sample("messagebird");
    request.body.push(b' ');
    assert_cause(&verifier, &request, CauseKind::BodyChanged);
}
