//! `hapax verify`: offline.

use hapax_verify::{Secret, SignInput, Verifier, provider, sign};

use crate::program::{folder, run};

const CONFIG: &str = "[[source]]\nname = \"billing\"\nprovider = \"stripe\"\nsecrets = [\"whsec_old_secret\", \"whsec_the_secret\"]\n\n[[source]]\nname = \"other\"\nprovider = \"github\"\nsecrets = \"env:NOT_SET\"\n";
const BODY: &str = "{\"id\": \"evt_1\",  \"type\": \"invoice.paid\"}";
/// 2026-01-31T12:00:00Z.
const SIGNED_AT: i64 = 1_769_860_800_000_000;
const AT: &str = "2026-01-31T12:00:10Z";

fn headers(secret: &str) -> String {
    let scheme = provider::find("stripe").expect("a preset").scheme();
    let verifier = Verifier::new(scheme, vec![Secret::from(secret)]).expect("a good secret");
    let input = SignInput {
        method: "POST",
        url: None,
        headers: &[],
        body: BODY.as_bytes(),
        id: "evt_1",
        now: SIGNED_AT,
    };
    let signed = sign(&verifier, &input).expect("signed");
    let lines = signed
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    format!(
        "POST /in/billing HTTP/1.1\r\nHost: a.example\r\n{}\r\n",
        lines.collect::<String>()
    )
}

fn verify(headers: &str, body: &str, more: &[&str]) -> crate::program::Ran {
    let dir = folder(&[
        ("hapax.toml", CONFIG),
        ("head.txt", headers),
        ("body.json", body),
    ]);
    let args = [
        "verify",
        "billing",
        "--headers",
        "head.txt",
        "--body",
        "body.json",
    ];
    run(dir.path(), &[&args[..], more].concat())
}

#[test]
fn a_good_request_verifies_without_the_secrets_of_other_sources() {
    let ran = verify(&headers("whsec_the_secret"), BODY, &["--at", AT]).expect_exit(0);
    assert_eq!(
        ran.stdout,
        "verifies: stripe by hmac-sha256, secrets[1], signed at 2026-01-31T12:00:00Z; covers: body\n"
    );
    let json = verify(&headers("whsec_the_secret"), BODY, &["--at", AT, "--json"])
        .expect_exit(0)
        .json();
    assert_eq!(
        (&json["verifies"], &json["secretIndex"]),
        (&true.into(), &1.into())
    );
    assert_eq!(json["signedAt"], "2026-01-31T12:00:00Z");
    let ran = verify(&headers("whsec_the_secret"), BODY, &["--at", "monday"]).expect_exit(2);
    assert!(
        ran.stderr.contains("--at `monday` is neither a time"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("write 2026-01-31T12:00:00Z"));
}

#[test]
fn the_cause_of_a_refusal_is_named() {
    let good = headers("whsec_the_secret");
    let parsed = "{\"id\":\"evt_1\",\"type\":\"invoice.paid\"}";
    for (headers, body, at, cause) in [
        (headers("whsec_another_one"), BODY, AT, "other_secret"),
        (good.clone(), BODY, "2026-01-31T13:00:00Z", "clock"),
        (
            good.replace("stripe-signature", "x-other"),
            BODY,
            AT,
            "header_missing",
        ),
        (good.clone(), &format!("{BODY}\n"), AT, "body_changed"),
    ] {
        let json = verify(&headers, body, &["--at", at, "--json"])
            .expect_exit(1)
            .json();
        assert_eq!(json["causes"][0]["kind"], cause, "{json:#}");
    }
    let ran = verify(&good, parsed, &["--at", AT]).expect_exit(1);
    assert!(
        ran.stdout.starts_with("does not verify: "),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("remedy: "), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_read_is_said() {
    let dir = folder(&[
        ("hapax.toml", CONFIG),
        ("head.txt", "no colon\n"),
        ("body.json", ""),
    ]);
    let ran = run(
        dir.path(),
        &[
            "verify",
            "billing",
            "--headers",
            "head.txt",
            "--body",
            "body.json",
        ],
    );
    let ran = ran.expect_exit(2);
    assert!(
        ran.stderr.contains("line 1 of head.txt is not a header"),
        "{}",
        ran.stderr
    );
    let ran = run(
        dir.path(),
        &[
            "verify",
            "billing",
            "--headers",
            "nope",
            "--body",
            "body.json",
        ],
    );
    assert!(ran.expect_exit(1).stderr.contains("error[H0406]"));
    let ran = run(
        dir.path(),
        &[
            "verify",
            "biling",
            "--headers",
            "head.txt",
            "--body",
            "body.json",
        ],
    );
    let ran = ran.expect_exit(4);
    assert!(
        ran.stderr.contains("did you mean `billing`?"),
        "{}",
        ran.stderr
    );
}
