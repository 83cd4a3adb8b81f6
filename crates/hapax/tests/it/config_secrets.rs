//! No secret leaves the config: not by a message, not by an excerpt, not by `Debug`.

use hapax::config::{Problems, parse};

use crate::config::Given;

/// Stands in every place where somebody may put a secret.
const HUSH: &str = "hush-this-is-secret";

fn everything_said(text: &str) -> String {
    let given = Given {
        variables: [("HUSH", HUSH)].into(),
        files: [("hush.txt", HUSH)].into(),
    };
    match parse(text, "hapax.toml", &given) {
        Ok(loaded) => format!("{loaded:?}"),
        Err(Problems(problems)) => {
            assert!(!problems.is_empty());
            let painted: String = problems
                .iter()
                .map(|problem| problem.painted().to_string())
                .collect();
            format!("{} {painted} {problems:?}", Problems(problems.clone()))
        }
    }
}

#[test]
fn secrets_are_never_shown() {
    let fine = format!("[[source]]\nname = \"a\"\nprovider = \"stripe\"\nsecrets = [\"{HUSH}\"]\n");
    let texts = [
        fine.clone(),
        format!("store = \"postgres://user:{HUSH}@host/db\"\n"),
        format!("store = \"postgre://user:{HUSH}@host/db\"\n"),
        format!("[admin]\ntoken = \"{HUSH}\"\n"),
        format!("[admin]\ntoken = [\"{HUSH}\"]\n"),
        format!("[admin]\ntokn = \"{HUSH}\"\n"),
        format!("stor = \"postgres://user:{HUSH}@host/db\"\n"),
        format!("store = \"postgre:host?password={HUSH}\"\n"),
        format!("api_key = \"{HUSH}\"\n"),
        format!("x = {{ y = [{{ password = \"{HUSH}\" }}] }}\n"),
        format!("effect = [{{ name = \"x\", secret = \"{HUSH}\" }}]\n"),
        format!("admin = \"{HUSH}\"\n"),
        format!("[alerts]\nurl = \"http://u:{HUSH}@b/\"\nsecret = \"{HUSH}-{HUSH}\"\n"),
        format!("[alerts]\nurl = \"http://b/?t={HUSH}\"\nsecret = \"{HUSH}-{HUSH}\"\n"),
        format!("admin = {{ token = \"{HUSH}\", x = 1 }}\n"),
        // A problem on the same line, and a secret in another field or under another name.
        format!("source = [{{ name = \"A\", provider = \"nope\", secrets = [\"{HUSH}\"] }}]\n"),
        format!("[[source]]\nsecret = \"{HUSH}\"\n"),
        format!(
            "[[source]]\nname = \"a\"\nprovider = \"custom\"\nsecrets = \"{HUSH}\"\n[source.verify]\nsecret = \"{HUSH}\"\n"
        ),
        format!("[[effect]]\nname = \"x\"\nsecret = \"{HUSH}\"\n"),
        format!("{fine}[[effect]]\nname = \"x\"\nsource = \"a\"\nurl = \"http://u:{HUSH}@b/\"\n"),
        format!(
            "{fine}[[effect]]\nname = \"x\"\nsource = \"a\"\nurl = \"http://b/?token={HUSH}\"\nbody = \"no\"\n"
        ),
        format!(
            "{fine}[[effect]]\nname = \"x\"\nsource = \"a\"\nurl = \"http://b/?t={HUSH}\"\nsecret = \"{HUSH}-{HUSH}\"\nheaders = {{ x-a = \"{HUSH}\" }}\nprobe = \"http://b/{HUSH}/{{key}}\"\n"
        ),
        format!(
            "{fine}[[effect]]\nheaders = {{ x-a = \"{HUSH}\\n\", host = \"{HUSH}\" }}\nsecret = \"whsec_{HUSH}\"\n"
        ),
        format!("{fine}[[effect]]\nheaders = \"{HUSH}\"\nprobe = \"http://u:{HUSH}@b/\"\n"),
        format!(
            "{fine}reconcile = {{ url = \"http://b/{HUSH}?token=x\", headers = {{ x-a = \"{HUSH}\" }} }}\n"
        ),
        format!(
            "{fine}reconcile = {{ url = \"ftp://u:{HUSH}@b\", headers = {{ x-a = [\"{HUSH}\"] }} }}\n"
        ),
        // Files that do not parse.
        format!("[admin]\ntoken = {HUSH}\n"),
        format!("[admin]\ntoken = \"{HUSH}\n"),
        format!("[[source]]\nsecrets = [\n  \"{HUSH}\"\n  \"{HUSH}\"\n]\n"),
        format!("[[source]]\nsecrets = [\n  {HUSH}\n]\n"),
    ];
    for text in texts {
        let said = everything_said(&text);
        assert!(!said.contains(HUSH), "{text}\n{said}");
    }
}

#[test]
fn what_is_no_secret_is_shown() {
    for text in [
        "lisen = \"127.0.0.1:80\"",
        "store = \"hapax.db\"",
        "zebra = 5",
    ] {
        let said = everything_said(&format!("{text}\n"));
        assert!(said.contains(&format!("1 | {text}\n")), "{said}");
    }
}

#[test]
fn what_a_variable_or_file_holds_is_never_shown() {
    for way in ["env:HUSH", "file:hush.txt"] {
        let texts = [
            format!("listen = \"{way}\"\n"),
            format!("store = \"{way}\"\n"),
            format!("public_url = \"{way}\"\n"),
            format!("[admin]\ntoken = \"{way}\"\n"),
            format!("[limits]\nbody_size = \"{way}\"\nbody_timeout = \"{way}\"\n"),
            format!(
                "[[source]]\nname = \"Not {way}\"\nprovider = \"{way}\"\nkey = \"{way}..\"\nretry_window = \"{way}\"\n"
            ),
            format!(
                "[[effect]]\nname = \"{way}\"\nsource = \"{way}\"\nurl = \"{way}\"\nwhen = \"{way}\"\nkey = \"{way}\"\nrepeat = \"{way}\"\nbody = \"{way}\"\norder = \"{way}\"\ntimeout = \"{way}\"\nretry = [\"{way}\"]\nprobe = \"{way}\"\nsecret = \"{way}\"\nafter = [\"{way}\"]\n"
            ),
            format!(
                "[[source]]\norder = {{ version = \"{way}\", review = \"{way}\" }}\nreconcile = {{ url = \"{way}\" }}\n"
            ),
            format!("[[source]]\nprovider = \"custom\"\n[source.verify]\nscheme = \"{way}\"\n"),
            format!(
                "[[source]]\nprovider = \"custom\"\n[source.verify]\nscheme = \"hmac\"\nheader = \"x\"\nalgorithm = \"{way}\"\n"
            ),
            format!(
                "[[source]]\nprovider = \"custom\"\n[source.verify]\nscheme = \"hmac\"\nheader = \"x\"\nsigned = \"{way}\"\n"
            ),
        ];
        for text in texts {
            let said = everything_said(&text);
            assert!(!said.contains(HUSH), "{text}\n{said}");
        }
    }
}
