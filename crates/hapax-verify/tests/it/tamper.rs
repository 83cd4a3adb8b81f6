//! Whatever is changed about a signed request, it is refused; and a refusal says nothing about what was right.

use hapax_verify::{
    Coverage, Refusal, SECRET_BYTES_MIN, Scheme, Secret, SecretError, Verifier, provider,
};

use crate::support::{NOW, SECOND, secret_for, signed_sample, verifier_for};

#[test]
fn every_byte_of_a_covered_body_counts() {
    for provider in provider::all() {
        let Some(verifier) = verifier_for(provider, &[1]) else {
            continue;
        };
        if provider.scheme().covers() != Coverage::Body {
            continue;
        }
        let request = signed_sample(provider, &verifier, "evt_1");
        assert!(request.verify(&verifier).is_ok(), "{}", provider.name);
        for at in 0..request.body.len() {
            // A separator of form fields that turns into another one leaves the signed content alone.
            if b"&=%+".contains(&request.body[at]) {
                continue;
            }
            let mut tampered = request.clone();
            tampered.body[at] ^= 1;
            let result = tampered.verify(&verifier);
            assert!(result.is_err(), "{}: byte {at}", provider.name);
        }
        let mut shorter = request.clone();
        shorter.body.pop();
        assert!(shorter.verify(&verifier).is_err(), "{}", provider.name);
    }
}

#[test]
fn every_byte_of_a_signature_header_counts() {
    for provider in provider::all() {
        let Some(verifier) = verifier_for(provider, &[1]) else {
            continue;
        };
        let Some(name) = provider.verify.header.as_deref() else {
            continue;
        };
        let request = signed_sample(provider, &verifier, "evt_1");
        let value = request.clone().header_mut(name).clone();
        for at in 0..value.len() {
            let mut bytes = value.clone().into_bytes();
            // Another letter of every alphabet in use, which is not the same one in the other case.
            bytes[at] = if bytes[at] == b'7' { b'3' } else { b'7' };
            let mut tampered = request.clone();
            *tampered.header_mut(name) = String::from_utf8(bytes).expect("ASCII");
            // Unpadded and padded base64 are one spelling, so that only the padding itself may change nothing.
            let padding = value.as_bytes()[at] == b'=' && at + 2 >= value.len();
            let result = tampered.verify(&verifier);
            assert!(
                result.is_err() || padding,
                "{}: byte {at} of {value}",
                provider.name
            );
        }
    }
}

#[test]
fn signed_times_and_ids_count() {
    for provider in provider::all() {
        let Some(verifier) = verifier_for(provider, &[1]) else {
            continue;
        };
        let spec = &provider.verify;
        let time = spec.timestamp.as_ref().and_then(|t| t.header.as_deref());
        let id = spec.id.as_ref().map(|id| id.header.as_str());
        for name in [time, id].into_iter().flatten() {
            let mut request = signed_sample(provider, &verifier, "evt_1");
            let value = request.header_mut(name);
            let last = value.pop().expect("not empty");
            value.push(if last == '7' { '3' } else { '7' });
            assert!(
                request.verify(&verifier).is_err(),
                "{}: {name}",
                provider.name
            );
            *request.header_mut(name) = String::new();
            assert!(
                request.verify(&verifier).is_err(),
                "{}: {name}",
                provider.name
            );
            request.headers.retain(|(have, _)| have != name);
            assert!(
                request.verify(&verifier).is_err(),
                "{}: {name}",
                provider.name
            );
        }
    }
}

#[test]
fn tolerance_is_kept_in_both_directions() {
    let cases = [
        ("stripe", 300),
        ("slack", 300),
        ("svix", 300),
        ("workos", 180),
        ("twitch", 600),
    ];
    for (name, tolerance_s) in cases {
        let provider = provider::find(name).expect("known");
        let verifier = verifier_for(provider, &[1]).expect("HMAC");
        let mut request = signed_sample(provider, &verifier, "evt_1");
        for (off_s, good) in [
            (tolerance_s, true),
            (-tolerance_s, true),
            (tolerance_s + 1, false),
            (-tolerance_s - 1, false),
        ] {
            request.now = NOW + off_s * SECOND;
            assert_eq!(request.verify(&verifier).is_ok(), good, "{name} {off_s}");
        }
        request.now = i64::MAX;
        assert!(request.verify(&verifier).is_err());
        request.now = i64::MIN;
        assert!(request.verify(&verifier).is_err());
    }
}

#[test]
fn a_repeated_header_is_refused_even_if_both_are_right() {
    for provider in provider::all() {
        let (Some(verifier), Some(name)) = (
            verifier_for(provider, &[1]),
            provider.verify.header.as_deref(),
        ) else {
            continue;
        };
        let mut request = signed_sample(provider, &verifier, "evt_1");
        let value = request.header_mut(name).clone();
        request.headers.push((name.to_ascii_uppercase(), value));
        let result = request.verify(&verifier);
        assert_eq!(result, Err(Refusal::RepeatedHeader), "{}", provider.name);
    }
}

#[test]
fn a_missing_signature_is_refused() {
    for provider in provider::all() {
        let Some(verifier) = verifier_for(provider, &[1]) else {
            continue;
        };
        if *verifier.scheme() == Scheme::Unverified {
            continue;
        }
        let mut request = signed_sample(provider, &verifier, "evt_1");
        request.headers.clear();
        request.url = request
            .url
            .map(|url| url.split('?').next().unwrap_or("").to_owned());
        if provider.verify.field.is_some() {
            request.body = b"{}".to_vec();
        }
        assert!(request.verify(&verifier).is_err(), "{}", provider.name);
    }
}

#[test]
fn an_adyen_batch_needs_every_item_signed() {
    let provider = provider::find("adyen").expect("known");
    let verifier = verifier_for(provider, &[1]).expect("HMAC");
    let request = signed_sample(provider, &verifier, "psp_1");
    let mut batch: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
    let mut forged = batch["notificationItems"][0].clone();
    forged["NotificationRequestItem"]["pspReference"] = "psp_2".into();
    let items = batch["notificationItems"].as_array_mut().expect("an array");
    items.push(forged);
    let mut tampered = request.clone();
    tampered.body = batch.to_string().into_bytes();
    assert_eq!(tampered.verify(&verifier), Err(Refusal::Mismatch));
    // An element without a signed item would be an event that nobody vouches for.
    let mut ragged: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
    let items = ragged["notificationItems"]
        .as_array_mut()
        .expect("an array");
    items.push(serde_json::json!({"Other": {"pspReference": "psp_3"}}));
    tampered.body = ragged.to_string().into_bytes();
    assert_eq!(tampered.verify(&verifier), Err(Refusal::MalformedBody));
    // A doubled field would be read one way here and another way elsewhere.
    let text = String::from_utf8(request.body.clone()).expect("text");
    let doubled = text.replace(
        "\"pspReference\"",
        "\"pspReference\":\"psp_9\",\"pspReference\"",
    );
    tampered.body = doubled.into_bytes();
    assert_eq!(tampered.verify(&verifier), Err(Refusal::MalformedBody));
    tampered.body = br#"{"notificationItems":[]}"#.to_vec();
    assert!(
        tampered.verify(&verifier).is_err(),
        "an empty batch proves nothing"
    );
}

#[test]
fn every_notification_of_a_batch_repeats_the_token() {
    let provider = provider::find("microsoft-graph").expect("known");
    let verifier = Verifier::new(provider.scheme(), vec![Secret::from("client-state")]);
    let verifier = verifier.expect("a token");
    let mut request = signed_sample(provider, &verifier, "evt_1");
    assert!(request.verify(&verifier).is_ok());
    let right = r#"{"clientState":"client-state"}"#;
    let many = vec![right; 100].join(",");
    for (items, good) in [
        (many.as_str(), true),
        (&format!("{right},{{}}"), false),
        (&format!(r#"{right},{{"clientState":"other"}}"#), false),
        (&format!(r#"{right},{{"clientState":null}}"#), false),
        ("", false),
    ] {
        request.body = format!(r#"{{"value":[{items}]}}"#).into_bytes();
        assert_eq!(request.verify(&verifier).is_ok(), good, "{items}");
    }
}

#[test]
fn a_token_cannot_choose_its_algorithm() {
    let provider = provider::find("messagebird").expect("known");
    let verifier = verifier_for(provider, &[1]).expect("a keyed hash");
    let request = signed_sample(provider, &verifier, "evt_1");
    let token = request
        .clone()
        .header_mut("messagebird-signature-jwt")
        .clone();
    let (_, rest) = token.split_once('.').expect("a token");
    let (claims, _) = rest.split_once('.').expect("a token");
    // {"alg":"none"} and {"alg":"RS256"}
    for header in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJSUzI1NiJ9"] {
        for forged in [format!("{header}.{claims}."), format!("{header}.{rest}")] {
            let mut tampered = request.clone();
            *tampered.header_mut("messagebird-signature-jwt") = forged;
            assert_eq!(tampered.verify(&verifier), Err(Refusal::WrongAlgorithm));
        }
    }
}

#[test]
fn twilio_json_needs_its_hash_in_the_signed_url() {
    let provider = provider::find("twilio").expect("known");
    let verifier = verifier_for(provider, &[1]).expect("HMAC");
    let mut request = signed_sample(provider, &verifier, "evt_1");
    // Without the hash, a JSON body is a form of one odd field, and is signed as such or not at all.
    request.body = b"{}".to_vec();
    assert_eq!(request.verify(&verifier), Err(Refusal::Mismatch));
    let url = request.url.take().expect("a URL");
    request.url = Some(format!("{url}&bodySHA256={}", "0".repeat(64)));
    assert_eq!(request.verify(&verifier), Err(Refusal::Mismatch));
}

#[test]
fn a_contentful_time_must_be_among_the_signed_headers() {
    let provider = provider::find("contentful").expect("known");
    let verifier = verifier_for(provider, &[1]).expect("HMAC");
    let mut request = signed_sample(provider, &verifier, "evt_1");
    *request.header_mut("x-contentful-signed-headers") = "x-contentful-signed-headers".to_owned();
    assert_eq!(request.verify(&verifier), Err(Refusal::MissingTimestamp));
}

#[test]
fn secrets_that_protect_nothing_are_refused() {
    let scheme = |name| provider::find(name).expect("known").scheme();
    let new = |name, secret: &str| Verifier::new(scheme(name), vec![Secret::from(secret)]).err();
    for name in [
        "github",
        "svix",
        "gitlab",
        "adyen",
        "braintree",
        "messagebird",
    ] {
        assert_eq!(
            new(name, ""),
            Some(SecretError::Empty { index: 0 }),
            "{name}"
        );
        let none = Verifier::new(scheme(name), vec![]).err();
        assert_eq!(none, Some(SecretError::None), "{name}");
    }
    let short = Some(SecretError::TooShort {
        index: 0,
        bytes_min: SECRET_BYTES_MIN,
    });
    assert_eq!(new("github", "1234567"), short);
    assert_eq!(new("gitlab", "1234567"), short);
    assert_eq!(
        new("braintree", "1234567"),
        short,
        "its hash is long, the secret is not"
    );
    assert_eq!(new("svix", "whsec_MTIzNDU2Nw=="), short);
    assert_eq!(new("chargebee", "user:1234567"), short);
    let empty = Some(SecretError::Empty { index: 0 });
    assert_eq!(new("svix", "whsec_"), empty);
    assert!(matches!(
        new("svix", "whsec_***"),
        Some(SecretError::Malformed { .. })
    ));
    assert!(matches!(
        new("adyen", "not hex, surely"),
        Some(SecretError::Malformed { .. })
    ));
    assert!(matches!(
        new("chargebee", "no colon here"),
        Some(SecretError::Malformed { .. })
    ));
    let many = vec![Secret::from("long enough"); 17];
    assert_eq!(
        Verifier::new(scheme("github"), many).err(),
        Some(SecretError::TooMany)
    );
}

#[test]
fn secrets_do_not_print() {
    let provider = provider::find("stripe").expect("known");
    let verifier = verifier_for(provider, &[1]).expect("HMAC");
    let shown = format!("{verifier:?} {:?}", secret_for(provider, 1));
    assert!(!shown.contains("long enough"), "{shown}");
}

#[test]
fn the_decoy_refuses_everything() {
    let decoy = Verifier::decoy();
    for provider in provider::all() {
        let Some(verifier) = verifier_for(provider, &[1]) else {
            continue;
        };
        let request = signed_sample(provider, &verifier, "evt_1");
        assert_eq!(request.verify(&decoy), Err(Refusal::UnknownSource));
    }
}
