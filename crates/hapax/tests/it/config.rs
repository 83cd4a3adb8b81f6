//! The config: what it means.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use hapax::config::{
    Config, Environment, Loaded, Place, Problem, Problems, StoreTarget, Variable, parse,
};
use hapax_ledger::time::Span;
use hapax_verify::provider;

/// Variables and files of a test's own.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) variables: HashMap<&'static str, &'static str>,
    pub(crate) files: HashMap<&'static str, &'static str>,
}

impl Environment for Given {
    fn variable(&self, name: &str) -> Variable {
        match self.variables.get(name) {
            Some(value) => Variable::Set((*value).to_owned()),
            None => Variable::Unset,
        }
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        let text = self.files.get(path.to_str().expect("text"));
        text.map(|text| (*text).to_owned())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.file(path).map(String::into_bytes)
    }
}

pub(crate) fn given() -> Given {
    Given {
        variables: [
            ("SECRET", "a-long-enough-secret"),
            ("WRONG", "not-to-be-shown"),
        ]
        .into(),
        files: [
            ("secret.txt", "from-a-secret-file\n"),
            ("two.txt", "two newlines\r\n\n"),
            ("logo.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
            ("fake.png", "<svg/>"),
        ]
        .into(),
    }
}

pub(crate) fn load(text: &str) -> Result<Loaded, Problems> {
    parse(text, "hapax.toml", &given())
}

pub(crate) fn good(text: &str) -> Config {
    match load(text) {
        Ok(loaded) => loaded.config,
        Err(problems) => panic!("{text}\n{problems}"),
    }
}

/// Everything that is said, errors and warnings, in one line each.
pub(crate) fn said(text: &str) -> Vec<String> {
    let problems = match load(text) {
        Ok(loaded) => loaded.warnings,
        Err(Problems(problems)) => problems,
    };
    problems.iter().map(brief).collect()
}

pub(crate) fn brief(problem: &Problem) -> String {
    let place = match &problem.place {
        Place::File { line, column, .. } => format!("{line}:{column}"),
        Place::Named(name) => name.clone(),
        Place::Nowhere => "nowhere".to_owned(),
    };
    format!(
        "{} {place} {} | {}",
        problem.code, problem.text, problem.remedy
    )
}

/// A source to which a test adds what it is about.
pub(crate) fn source(more: &str) -> String {
    format!("[[source]]\nname = \"a\"\nprovider = \"stripe\"\nsecrets = \"env:SECRET\"\n{more}\n")
}

#[test]
fn an_empty_file_has_the_defaults() {
    let config = good("");
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.store, StoreTarget::Sqlite("hapax.db".into()));
    assert_eq!(config.limits, hapax::config::Limits::default());
    assert!(
        config.public_url.is_none() && config.admin_token.is_none() && config.sources.is_empty()
    );
    assert_eq!(
        said(""),
        [
            "H0125 hapax.toml no source is configured: every webhook is refused | `hapax init` writes a config with one working source"
        ]
    );
}

const EVERYTHING: &str = r#"
listen     = "0.0.0.0:9000"
store      = "postgres://user@host/db"
public_url = "https://hooks.example.com/base/"

[admin]
token = "file:secret.txt"

[limits]
body_size = "2MiB"
connections = 10
inflight = "8MiB"
header_timeout = "500ms"
body_timeout = "1m"

[[source]]
name = "billing"
provider = "stripe"
secrets = ["env:SECRET", "file:secret.txt"]
key = ["type", "data.object.id"]
type = "kind"
id = "event.id"
entity = "data.object.customer"
retain = { payload = "10d", identity = "200d" }
retry_window = "100d"
volatile = ["a", "b"]
trust_unsigned_id = true

[[source]]
name = "partner"
provider = "custom"
secrets = "env:SECRET"
key = "order.id"
[source.verify]
scheme = "hmac"
header = "x-signature"
timestamp = { header = "x-timestamp" }
signed = "{timestamp}.{body}"
"#;

#[test]
fn every_field_is_read() {
    let config = good(EVERYTHING);
    assert_eq!(config.listen.to_string(), "0.0.0.0:9000");
    assert_eq!(
        config.store,
        StoreTarget::Postgres("postgres://user@host/db".to_owned())
    );
    assert_eq!(
        config.public_url.as_deref(),
        Some("https://hooks.example.com/base")
    );
    assert!(config.admin_token.is_some());
    assert_eq!(config.limits.body_bytes_max, 2 << 20);
    assert_eq!(config.limits.header_timeout, Duration::from_millis(500));
    let [billing, partner] = &config.sources[..] else {
        panic!("two sources");
    };
    let text = |fields: &[hapax_ledger::field::Field]| {
        fields
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(text(&billing.key), "type data.object.id");
    assert_eq!(text(&billing.volatile), "a b");
    assert_eq!(
        billing.event_type.as_ref().map(|field| field.text()),
        Some("kind")
    );
    let id = billing.provider_id.as_ref().expect("an id");
    assert_eq!((id.field.text(), id.signed), ("event.id", true));
    assert!(billing.trust_unsigned_id);
    assert_eq!(billing.keep.identity, Span::from_days(200));
    assert_eq!(billing.keep.payload, Span::from_days(10));
    assert_eq!(billing.keep.retry_window, Span::from_days(100));
    assert_eq!(text(&partner.key), "order.id");
    assert_eq!(partner.keep.retry_window, Span::from_days(7));
    assert!(partner.preset.is_none());
}

#[test]
fn a_preset_fills_in_what_is_not_said() {
    let config = good(&source(""));
    let [stripe] = &config.sources[..] else {
        panic!("one source");
    };
    assert_eq!(
        stripe.event_type.as_ref().map(|field| field.text()),
        Some("type")
    );
    assert_eq!(
        stripe.provider_id.as_ref().map(|id| id.field.text()),
        Some("id")
    );
    assert!(!stripe.volatile.is_empty());
    let hours = stripe.preset.expect("a preset").retry_window_hours;
    assert_eq!(stripe.keep.retry_window, Span::from_hours(hours.into()));
}

#[test]
fn identities_outlive_retries_and_payloads_by_default() {
    let days = |more: &str| good(&source(more)).sources[0].keep.identity;
    assert_eq!(days(""), Span::from_days(90));
    assert_eq!(days("retry_window = \"120d\""), Span::from_days(120));
    assert_eq!(
        days("retain = { payload = \"1000d\" }"),
        Span::from_days(1000)
    );
}

#[test]
fn an_id_counts_as_signed_where_the_signature_covers_it() {
    let custom = |verify: &str, id: &str| {
        let text = format!(
            "[[source]]\nname = \"a\"\nprovider = \"custom\"\nsecrets = \"env:SECRET\"\nid = \"{id}\"\n[source.verify]\n{verify}"
        );
        let config = good(&text);
        config.sources[0]
            .provider_id
            .as_ref()
            .expect("an id")
            .signed
    };
    let body = "scheme = \"hmac\"\nheader = \"s\"";
    let with_header = "scheme = \"hmac\"\nheader = \"s\"\nsigned = \"{header.X-Id}.{body}\"";
    let with_id =
        "scheme = \"hmac\"\nheader = \"s\"\nid = { header = \"X-Id\" }\nsigned = \"{id}.{body}\"";
    let part = "scheme = \"hmac\"\nheader = \"s\"\nsigned = \"{body.order.id}\"";
    let token = "scheme = \"token\"\nheader = \"s\"";
    for (verify, id, signed) in [
        (body, "order.id", true),
        (body, "header.x-id", false),
        (with_header, "header.x-id", true),
        (with_header, "header.x-other", false),
        (with_id, "header.x-id", true),
        (part, "order.id", true),
        (part, "order.other", false),
        (token, "header.x-id", true),
    ] {
        assert_eq!(custom(verify, id), signed, "{verify} {id}");
    }
}

#[test]
fn every_preset_is_a_source() {
    for preset in provider::all() {
        let scheme = preset.scheme();
        let secrets = match scheme.name() {
            "unverified" => String::new(),
            "basic" => "secrets = \"user:0123456789abcdef\"".to_owned(),
            _ => format!("secrets = \"{}\"", "0123456789abcdef".repeat(4)),
        };
        let name = &preset.name;
        let text = format!(
            "public_url = \"https://a.example\"\n[[source]]\nname = \"a\"\nprovider = \"{name}\"\n{secrets}\n"
        );
        match load(&text) {
            Ok(loaded) => {
                let source = &loaded.config.sources[0];
                assert_eq!(
                    source.event_type.is_some(),
                    preset.event_type.is_some(),
                    "{name}"
                );
                assert_eq!(
                    source.provider_id.is_some(),
                    preset.event_id.is_some(),
                    "{name}"
                );
                assert_eq!(
                    source.object_id.is_some(),
                    preset.object_id.is_some(),
                    "{name}"
                );
                assert_eq!(source.entity.is_some(), preset.entity.is_some(), "{name}");
                assert_eq!(source.version.is_some(), preset.version.is_some(), "{name}");
                assert_eq!(source.composed.len(), preset.composed_key.len(), "{name}");
                assert_eq!(source.volatile.len(), preset.volatile.len(), "{name}");
            }
            // A test has no public key of every kind; all but the key was right.
            Err(Problems(problems)) => {
                assert!(scheme.is_asymmetric(), "{name}: {problems:?}");
                assert!(
                    problems.iter().all(|problem| problem.code == "H0113"),
                    "{problems:?}"
                );
            }
        }
    }
}

#[test]
fn alerts_go_nowhere_unless_told() {
    let config = good("");
    assert!(config.alerts.effect.is_none() && config.sent().is_empty());
    assert_eq!(config.alerts.every, Duration::from_secs(10));
    let config = good("[alerts]\nurl = \"https://ops.example/x\"\nevery = \"1m\"\n");
    assert_eq!(config.alerts.every, Duration::from_secs(60));
    let sent = config.sent();
    assert_eq!((&*sent[0].name, &*sent[0].source), ("~alerts", "~hapax"));
    assert!(sent[0].signer.is_none());
}

#[test]
fn the_environment_beats_the_file() {
    let mut given = given();
    given.variables.extend([
        ("HAPAX_LISTEN", "127.0.0.1:1"),
        ("HAPAX_STORE", "sqlite:other.db"),
        ("HAPAX_ADMIN_TOKEN", "0123456789abcdef"),
    ]);
    let text = "listen = \"127.0.0.1:2\"\nstore = \"sqlite:this.db\"";
    let config = parse(text, "hapax.toml", &given).expect("fine").config;
    assert_eq!(config.listen.port(), 1);
    assert_eq!(config.store, StoreTarget::Sqlite("other.db".into()));
    assert!(config.admin_token.is_some());

    given.variables.insert("HAPAX_LISTEN", "nowhere");
    let Problems(problems) = parse(text, "hapax.toml", &given).expect_err("wrong");
    assert_eq!(
        brief(&problems[0]),
        "H0119 HAPAX_LISTEN `nowhere` is not an address to listen on | write an IP address and a port, such as 127.0.0.1:8080 or [::]:8080"
    );
}

#[test]
fn the_portal_has_a_name_a_logo_and_a_colour() {
    let portal = good("").portal;
    assert_eq!(&*portal.name, "Webhooks");
    assert!(portal.logo.is_none() && portal.colour.is_none());
    let text = "[portal]\nname = \"Acme\"\nlogo = \"logo.svg\"\ncolour = \"#1F6b64\"";
    let portal = good(text).portal;
    assert_eq!(&*portal.name, "Acme");
    assert_eq!(portal.colour, Some([0x1f, 0x6b, 0x64]));
    assert_eq!(portal.logo.map(|logo| logo.kind), Some("image/svg+xml"));
}
