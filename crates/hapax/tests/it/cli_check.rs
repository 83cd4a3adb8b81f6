//! `hapax check`.

use crate::program::{Ran, folder, hapax, run};

#[test]
fn a_good_config_is_ok() {
    let dir = folder(&[
        (
            "hapax.toml",
            "[[source]]\nname = \"a\"\nprovider = \"github\"\nsecrets = \"file:s\"\n",
        ),
        ("s", "a-long-enough-secret\n"),
    ]);
    let ran = run(dir.path(), &["check"]).expect_exit(0);
    assert_eq!(ran.stdout, "ok: 1 source: a (github)\n");
    let json = run(dir.path(), &["check", "--json"]).expect_exit(0).json();
    assert_eq!(json["ok"], true);
    assert_eq!(json["sources"][0]["scheme"], "hmac-sha256");
    assert_eq!(json["problems"], serde_json::json!([]));
    assert_eq!(json["effects"], serde_json::json!([]));
}

#[test]
fn effects_are_part_of_the_summary() {
    let source =
        "[[source]]\nname = \"a\"\nprovider = \"github\"\nsecrets = \"a-long-enough-secret\"\n";
    let effect = |name: &str, more: &str| {
        format!(
            "[[effect]]\nname = \"{name}\"\nsource = \"a\"\nurl = \"http://b/?token=hush\"\n{more}\n"
        )
    };
    let more = "repeat = \"once\"\nafter = \"x\"";
    let text = format!("{source}{}{}", effect("x", ""), effect("y", more));
    let dir = folder(&[("hapax.toml", &text)]);
    let ran = run(dir.path(), &["check"]).expect_exit(0);
    assert_eq!(
        ran.stdout,
        "ok: 1 source: a (github); 2 effects: x (keyed), y (once)\n"
    );
    let json = run(dir.path(), &["check", "--json"]).expect_exit(0).json();
    assert_eq!(
        json["effects"][1],
        serde_json::json!({"name": "y", "source": "a", "repeat": "once", "after": ["x"]})
    );
    assert!(!json.to_string().contains("hush"));
}

#[test]
fn a_file_beside_the_config_is_found_from_anywhere() {
    let dir = folder(&[
        (
            "hapax.toml",
            "[[source]]\nname = \"a\"\nprovider = \"github\"\nsecrets = \"file:s\"\n",
        ),
        ("s", "a-long-enough-secret\n"),
    ]);
    let elsewhere = folder(&[]);
    let path = dir.path().join("hapax.toml");
    let path = path.to_str().expect("text");
    run(elsewhere.path(), &["check", "--config", path]).expect_exit(0);
    Ran::of(
        hapax(elsewhere.path())
            .arg("check")
            .env("HAPAX_CONFIG", path),
    )
    .expect_exit(0);
}

#[test]
fn every_problem_is_said_and_the_exit_code_is_1() {
    let dir = folder(&[(
        "hapax.toml",
        "listen = \"x\"\nstor = 1\n[[source]]\nname = \"a\"\nprovider = \"unverified\"\n",
    )]);
    let ran = run(dir.path(), &["check"]).expect_exit(1);
    assert_eq!(
        ran.stdout,
        "\
error[H0119]: `x` is not an address to listen on
 --> hapax.toml:1:10
  |
1 | listen = \"x\"
  |          ^^^
  = help: write an IP address and a port, such as 127.0.0.1:8080 or [::]:8080
  = more: hapax explain H0119

error[H0102]: unknown field `stor` at the top level
 --> hapax.toml:2:1
  |
2 | stor = 1
  | ^^^^
  = help: did you mean `store`?
  = more: hapax explain H0102

warning[H0114]: anybody who knows the URL can make events here: nothing is verified
 --> hapax.toml:5:12
  |
5 | provider = \"unverified\"
  |            ^^^^^^^^^^^^
  = help: use a preset or \"custom\"; if there is no signature to check, keep strangers out by other means
  = more: hapax explain H0114

2 errors, 1 warning
"
    );
    let json = run(dir.path(), &["check", "--json"]).expect_exit(1).json();
    assert_eq!(json["ok"], false);
    assert_eq!(json["problems"][0]["code"], "H0119");
    assert_eq!(json["problems"][1]["line"], 2);
}

#[test]
fn a_file_that_is_named_has_to_be_there() {
    let dir = folder(&[]);
    let ran = run(dir.path(), &["check", "--config", "nope.toml"]).expect_exit(1);
    assert!(
        ran.stdout
            .contains("error[H0108]: the config file cannot be read"),
        "{}",
        ran.stdout
    );
    let none = "\
error[H0108]: there is no hapax.toml in this folder
  = help: name one with --config, or run `hapax init`
  = more: hapax explain H0108
";
    let ran = run(dir.path(), &["check"]).expect_exit(1);
    assert_eq!(ran.stdout, format!("{none}\n1 error\n"));
    for args in [
        &["send", "demo"][..],
        &["verify", "demo", "--headers", "h", "--body", "b"],
    ] {
        let ran = run(dir.path(), args).expect_exit(1);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", none));
    }
}
