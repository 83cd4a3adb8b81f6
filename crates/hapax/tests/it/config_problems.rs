//! The config: what is said about each mistake in it.

use hapax::config::parse;

use crate::config::{given, load, said, source};

#[test]
fn one_problem_in_full() {
    let text = "listen = \"127.0.0.1:8080\"\n\n[[source]]\nname = \"a\"\nprovider = \"strpe\"\nsecrets = \"env:SECRET\"\n";
    let problems = load(text).expect_err("wrong");
    assert_eq!(
        problems.to_string(),
        "\
error[H0112]: there is no preset for `strpe`
 --> hapax.toml:5:12
  |
5 | provider = \"strpe\"
  |            ^^^^^^^
  = help: did you mean `stripe`? `hapax explain H0112` says how to describe another one
  = more: hapax explain H0112"
    );
}

#[track_caller]
pub(crate) fn says(text: &str, want: &[&str]) {
    let said: Vec<String> = said(text);
    let starts = said.len() == want.len()
        && said
            .iter()
            .zip(want)
            .all(|(said, want)| said.starts_with(want));
    assert!(starts, "{text}\nsaid: {said:#?}\nwant: {want:#?}");
}

const SOURCE: &[(&str, &str)] = &[
    (
        "key = \"a..b\"",
        "H0116 5:7 `a..b` does not name a field: it has an empty part",
    ),
    (
        "key = [\"type\", \"header.a b\"]",
        "H0116 5:16 `header.a b` does not name a field: what follows `header.`",
    ),
    (
        "key = \"header.x-id\"",
        "H0124 5:7 the signature does not cover `header.x-id`, which is part of the key",
    ),
    ("entity = \"\"", "H0116 5:10"),
    ("type = 5", "H0103 5:8"),
    ("id = \".\"", "H0116 5:6"),
    ("volatile = [\"a.\"]", "H0116 5:13"),
    (
        "trust_unsigned_id = \"yes\"",
        "H0103 5:21 `trust_unsigned_id` is a string; it has to be true or false",
    ),
    (
        "retry_window = \"3 days\"",
        "H0104 5:16 `3 days` is not a length of time",
    ),
    (
        "retain = { payload = \"env:WRONG\" }",
        "H0104 5:22 the value of `env:WRONG` is not a length of time",
    ),
    (
        "retain = { paylod = \"1d\" }",
        "H0102 5:12 unknown field `paylod` in retain | did you mean `payload`?",
    ),
    (
        "retain = { identity = \"1d\" }",
        "H0115 5:23 identities are forgotten after 1d, but the provider may send an event again for",
    ),
    (
        "retain = { payload = \"91d\", identity = \"90d\" }",
        "H0115 5:40 identities are forgotten after 90d, before their payloads (91d)",
    ),
    (
        "[source.verify]\nscheme = \"hmac\"",
        "H0117 5:1 [source.verify] is for provider = \"custom\" only",
    ),
];

#[test]
fn a_source_s_settings() {
    for (more, want) in SOURCE {
        says(&source(more), &[want]);
    }
    says(
        &source(&source("")),
        &["H0111 6:8 two sources are named `a`"],
    );
    says(
        "[[source]]\n",
        &[
            "H0109 1:1 this [[source]] has no `name`",
            "H0109 1:1 this [[source]] has no `provider`",
        ],
    );
}

#[test]
fn names_providers_and_secrets() {
    let named = |name: &str| {
        format!("[[source]]\nname = \"{name}\"\nprovider = \"stripe\"\nsecrets = \"env:SECRET\"")
    };
    for name in ["", "Billing", "a/b", "a b", "ä", &"a".repeat(65)] {
        says(&named(name), &["H0110 2:8"]);
    }
    says(&named(&"a".repeat(64)), &[]);
    let provided = |provider: &str, more: &str| {
        format!("[[source]]\nname = \"a\"\nprovider = \"{provider}\"\n{more}")
    };
    let secret = "secrets = \"env:SECRET\"";
    for (provider, more, want) in [
        (
            "githup",
            secret,
            "H0112 3:12 there is no preset for `githup` | did you mean `github`?",
        ),
        (
            "zzz",
            secret,
            "H0112 3:12 there is no preset for `zzz` | use \"custom\"",
        ),
        ("stripe", "", "H0113 3:12 no secret is given | Stripe:"),
        ("stripe", "secrets = []", "H0113 4:11 no secret is given"),
        (
            "stripe",
            "secrets = [\"env:SECRET\", \"short\"]",
            "H0113 4:26 secrets[1] is shorter than 8 bytes",
        ),
        ("stripe", "secrets = \"\"", "H0113 4:11 secrets[0] is empty"),
        (
            "stripe",
            "secrets = \"env:NOPE\"",
            "H0106 4:11 the environment variable `NOPE` is not set",
        ),
        (
            "stripe",
            "secrets = \"file:nope.txt\"",
            "H0107 4:11 the file `nope.txt` cannot be read",
        ),
        (
            "stripe",
            "secrets = [5]",
            "H0103 4:12 `secrets` is an integer; it has to be a string",
        ),
        (
            "unverified",
            "",
            "H0114 3:12 anybody who knows the URL can make events here",
        ),
        (
            "custom",
            secret,
            "H0117 3:12 a custom provider needs [source.verify]",
        ),
        (
            "twilio",
            secret,
            "H0118 3:12 this provider signs the URL that it calls, and `public_url` is not set",
        ),
    ] {
        says(&provided(provider, more), &[want]);
    }
    says(
        &provided("unverified", secret),
        &[
            "H0114 3:12",
            "H0113 4:11 `secrets` verify nothing here, because the source is unverified",
        ],
    );
}

#[test]
fn one_mistake_hides_no_other_and_is_said_once() {
    let with = |name: &str, provider: &str, more: &str| {
        format!("[[source]]\n{name}\nprovider = \"{provider}\"\n{more}\n")
    };
    let (name, fine) = ("name = \"a\"", "secrets = \"env:SECRET\"");
    says(
        &with(
            name,
            "stripe",
            "secrets = [\"\", \"env:SECRET\", \"short\", \"env:NOPE\"]",
        ),
        &[
            "H0113 4:12 secrets[0] is empty",
            "H0113 4:30 secrets[2] is shorter",
            "H0106 4:39",
        ],
    );
    // What can be judged without the provider is.
    says(
        &with(
            name,
            "strpe",
            "secrets = [\"env:NOPE\", \"short\"]\nretain = { payload = \"9d\", identity = \"8d\" }",
        ),
        &[
            "H0112 3:12",
            "H0106 4:12",
            "H0113 4:24 secrets[1] is shorter than 8 bytes",
            "H0115 5:39 identities are forgotten after 8d, before their payloads (9d)",
        ],
    );
    says(
        &with(
            name,
            "strpe",
            &format!("{fine}\nretain = {{ payload = \"1h\", identity = \"1h\" }}"),
        ),
        &["H0112 3:12"],
    );
    says(
        &with(
            name,
            "custom",
            "secrets = \"short\"\n[source.verify]\nscheme = \"md5\"",
        ),
        &["H0113 4:11 secrets[0]", "H0117 6:10"],
    );
    // What is there, wrong or misspelt, is not missing.
    for (text, want) in [
        (
            with("name = 5", "stripe", fine),
            "H0103 2:8 `name` is an integer",
        ),
        (
            with("nme = \"a\"", "stripe", fine),
            "H0102 2:1 unknown field `nme` in [[source]] | did you mean `name`?",
        ),
        (
            with(name, "stripe", "secret = \"env:SECRET\""),
            "H0102 4:1 unknown field `secret` in [[source]] | did you mean `secrets`?",
        ),
        (
            with(
                name,
                "custom",
                &format!("{fine}\n[source.verfy]\nscheme = \"hmac\""),
            ),
            "H0102 5:9 unknown field `verfy` in [[source]] | did you mean `verify`?",
        ),
    ] {
        says(&text, &[want]);
    }
}

#[test]
fn a_custom_scheme() {
    let custom = |verify: &str| {
        format!(
            "[[source]]\nname = \"a\"\nprovider = \"custom\"\nsecrets = \"env:SECRET\"\n[source.verify]\n{verify}"
        )
    };
    for (verify, want) in [
        (
            "scheme = \"hmac\"",
            "H0117 5:1 `header` in [source.verify]: the place of the signature is missing",
        ),
        (
            "header = \"s\"",
            "H0117 5:1 [source.verify] has no `scheme`",
        ),
        (
            "scheme = \"md5\"",
            "H0117 6:10 `md5` is not a `scheme` for [source.verify] | write one of: hmac, token, basic, ed25519, ecdsa-p256, rsa, jwt",
        ),
        (
            "scheme = \"env:WRONG\"",
            "H0117 6:10 the value of `env:WRONG` is not a `scheme`",
        ),
        (
            "scheme = \"hmac\"\nheader = \"s\"\nalgorithm = \"md5\"",
            "H0117 8:13 `algorithm` in [source.verify]: `md5`",
        ),
        (
            "scheme = \"hmac\"\nheader = 5",
            "H0117 7:10 `header` in [source.verify]: invalid type",
        ),
        (
            "scheme = \"basic\"\nheader = \"s\"",
            "H0117 7:10 `header` in [source.verify]: has no meaning",
        ),
        (
            "scheme = \"hmac\"\nheader = \"s\"\nsigned = \"{nope}\"",
            "H0117 8:10 `signed` in [source.verify]",
        ),
        ("scheme = \"hmac\"\nheader = \"env:NOPE\"", "H0106 7:10"),
    ] {
        says(&custom(verify), &[want]);
    }
    says(
        &custom("scheme = \"hmac\"\nheadr = \"s\"\ntimestamp = { heder = \"t\", unit = \"q\" }"),
        &[
            "H0102 7:1 unknown field `headr` in [source.verify] | did you mean `header`?",
            "H0102 8:15 unknown field `heder` in [source.verify] | did you mean `header`?",
            "H0117 8:35 `q` is not a `unit` for [source.verify]",
        ],
    );
}

#[test]
fn all_problems_are_said_at_once_and_in_order() {
    let text = "listen = \"x\"\nstore = \"y\"\n[[source]]\nname = \"A\"\nprovider = \"nope\"\nkey = \"..\"\n";
    says(
        text,
        &["H0119 1:", "H0120 2:", "H0110 4:", "H0112 5:", "H0116 6:"],
    );
}

#[test]
fn one_newline_at_the_end_of_a_file_is_not_part_of_the_value() {
    let text = "[[source]]\nname = \"file:two.txt\"\nprovider = \"unverified\"";
    says(
        text,
        &[
            "H0110 2:8 the value of `file:two.txt` cannot be the name of a source",
            "H0114",
        ],
    );
    let mut given = given();
    given.files.insert("name.txt", "billing\n");
    let text = "[[source]]\nname = \"file:name.txt\"\nprovider = \"unverified\"";
    let loaded = parse(text, "hapax.toml", &given).expect("fine");
    assert_eq!(&*loaded.config.sources[0].name, "billing");
}
