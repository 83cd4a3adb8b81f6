//! The config: what is said about each mistake in effects and order.

use crate::config::source;
use crate::config_problems::says;

/// An effect of the source `a`, which ends in line 5; the effect's `more` starts in line 10.
fn effect(more: &str) -> String {
    let head = "[[effect]]\nname = \"x\"\nsource = \"a\"\nurl = \"http://b/\"\n";
    format!("{}{head}{more}\n", source(""))
}

const EFFECT: &[(&str, &str)] = &[
    (
        "when = \"a ==\"",
        "H0128 10:8 `when` is not a condition: Syntax error",
    ),
    (
        "when = \"data.id.startWith('x')\"",
        "H0128 10:8 `when` is not a condition: there is no function `startWith` | write one such as",
    ),
    (
        "when = \"a.all(x, b.all(y, c.all(z, z)))\"",
        "H0128 10:8 `when` is not a condition: more than 2 loops stand within each other | make it simpler",
    ),
    (
        "when = \"header['x'].contains('y')\"",
        "H0128 10:8 `when` is not a condition: a condition that reads a header has to be a plain",
    ),
    (
        "when = \"file:two.txt\"",
        "H0128 10:8 `when` is not a condition: see character",
    ),
    (
        "key = \"constant\"",
        "H0129 10:7 `constant` cannot be a key: a key template needs at least one {field}",
    ),
    (
        "key = \"{a}{b}\"",
        "H0129 10:7 `{a}{b}` cannot be a key: put a separator",
    ),
    (
        "repeat = \"converge\"",
        "H0134 10:10 `converge` is not a value of `repeat` | did you mean `converges`?",
    ),
    (
        "body = \"json\"",
        "H0134 10:8 `json` is not a value of `body` | write one of: raw, envelope",
    ),
    (
        "order = \"on\"",
        "H0134 10:9 `on` is not a value of `order`",
    ),
    (
        "order = 5",
        "H0103 10:9 `order` is an integer; it has to be a word or a table",
    ),
    (
        "order = { seral = true }",
        "H0102 10:11 unknown field `seral` in order | did you mean `serial`?",
    ),
    (
        "order = { serial = \"yes\" }",
        "H0103 10:20 `serial` is a string; it has to be true or false",
    ),
    (
        "timeout = \"10\"",
        "H0104 10:11 `10` is not a length of time",
    ),
    (
        "timeout = \"500ms\"",
        "H0135 10:11 a `timeout` of 500ms is out of range | write 1s to 5m",
    ),
    ("timeout = \"6m\"", "H0135 10:11"),
    (
        "retry = []",
        "H0135 10:9 a retry schedule needs at least one entry",
    ),
    ("retry = [\"0s\", \"soon\"]", "H0104 10:16 `soon`"),
    ("retry = [\"31d\"]", "H0135 10:9 a retry schedule waits"),
    (
        "concurrency = 0",
        "H0135 10:15 a `concurrency` of 0 is out of range | write 1 to 1024",
    ),
    ("concurrency = 1025", "H0135 10:15"),
    ("rate = -1", "H0135 10:8 a `rate` of -1 is out of range"),
    (
        "rate = 0.5",
        "H0103 10:8 `rate` is a number with a point; it has to be a whole number",
    ),
    (
        "probe = \"http://b/applied\"",
        "H0130 10:9 `probe` does not say where the key goes",
    ),
    (
        "probe = \"http://b/{data.id}\"",
        "H0130 10:9 `probe` has a place for something else",
    ),
    (
        "probe = \"http://{key}/\"",
        "H0130 10:9 `probe` cannot be called: `{key}` stands in the host",
    ),
    (
        "headers = { Hapax-Event-Id = \"x\" }",
        "H0131 10:13 `Hapax-Event-Id` is a header that Hapax sets itself",
    ),
    ("headers = { webhook-id = \"x\" }", "H0131 10:13"),
    ("headers = { \"idempotency-key\" = \"x\" }", "H0131 10:13"),
    (
        "headers = { \"a b\" = \"x\" }",
        "H0131 10:13 `a b` is not the name of a header",
    ),
    (
        "headers = { x-a = \"1\\n2\" }",
        "H0131 10:19 no header can carry the value of `x-a`",
    ),
    (
        "headers = { x-a = \"1\", X-A = \"2\" }",
        "H0131 10:13 the header `x-a` is set twice",
    ),
    ("headers = { x-a = \"env:NOPE\" }", "H0106 10:19"),
    (
        "secret = \"short\"",
        "H0113 10:10 the signing secret is shorter than 24 bytes",
    ),
    (
        "secret = \"whsec_c2hvcnQ=\"",
        "H0113 10:10 the signing secret is shorter than 24 bytes",
    ),
    (
        "secret = \"whsec_not base64 at all, not at all\"",
        "H0113 10:10 the signing secret is not base64",
    ),
    (
        "after = [\"y\"]",
        "H0132 10:9 effect `x` comes after `y`, and this source has no such effect",
    ),
    (
        "after = \"x\"",
        "H0132 10:9 these effects wait for each other: x → x",
    ),
    (
        "tipes = []",
        "H0102 10:1 unknown field `tipes` in [[effect]] | did you mean `types`?",
    ),
    ("types = 5", "H0103 10:9"),
];

#[test]
fn an_effect_s_settings() {
    for (more, want) in EFFECT {
        says(&effect(more), &[want]);
    }
}

#[test]
fn names_sources_and_urls() {
    let with = |name: &str, source: &str, url: &str| {
        format!("[[effect]]\nname = \"{name}\"\nsource = \"{source}\"\nurl = \"{url}\"\n")
    };
    let say = |effects: &str, want: &[&str]| says(&format!("{}{effects}", source("")), want);
    for name in ["", "a b", "a/b", "ä", "ep_1", &"a".repeat(65)] {
        say(&with(name, "a", "http://b"), &["H0126 7:8"]);
    }
    say(&with("A-z_0.9", "a", "https://b/c?d=e"), &[]);
    for (url, why) in [
        ("b/c", "it is not an http or https URL"),
        ("ftp://b", "it is not an http or https URL"),
        ("http://u:p@b", "it holds a user or a password"),
        ("http://b/#c", "it has a fragment"),
    ] {
        let want = format!("H0130 9:7 `url` cannot be called: {why}");
        say(&with("x", "a", url), &[&want]);
    }
    say(
        &with("x", "b", "http://b"),
        &["H0127 8:10 there is no source named `b` | the sources are: a"],
    );
    let two = with("x", "a", "http://b").repeat(2);
    say(&two, &["H0126 11:8 two effects are named `x`"]);
    say(
        "[[effect]]\n",
        &[
            "H0109 6:1 this [[effect]] has no `source`",
            "H0109 6:1 this [[effect]] has no `name`",
            "H0109 6:1 this [[effect]] has no `url`",
        ],
    );
    says(
        "[[effect]]\nname = \"x\"\nsource = \"a\"\nurl = \"http://b\"\n",
        &[
            "H0127 3:10 there is no source named `a` | add a [[source]]",
            "H0125",
        ],
    );
}

#[test]
fn a_wrong_source_is_said_once_and_hides_no_effect() {
    let text = effect("repeat = \"twice\"\norder = { serial = true }").replace("stripe", "strpe");
    says(&text, &["H0112 3:12", "H0134 10:10"]);
    let nameless = effect("").replacen("name = \"a\"", "nme = \"a\"", 1);
    says(&nameless, &["H0102 2:1"]);
}

#[test]
fn effects_wait_for_each_other_within_a_source() {
    let one = |name: &str, after: &str| {
        format!(
            "[[effect]]\nname = \"{name}\"\nsource = \"a\"\nurl = \"http://b\"\nafter = {after}\n"
        )
    };
    let say = |effects: &[String], want: &[&str]| {
        says(&format!("{}{}", source(""), effects.concat()), want);
    };
    say(&[one("x", "[]"), one("y", "[\"x\", \"x\"]")], &[]);
    say(
        &[one("x", "[\"y\"]"), one("y", "[\"x\"]")],
        &["H0132 10:9 these effects wait for each other: x → y → x"],
    );
    say(
        &[one("x", "[\"n\"]"), one("y", "[\"m\", \"n\"]")],
        &["H0132 10:9", "H0132 15:9", "H0132 15:9"],
    );
}

/// The source's `more` starts in line 5. Stripe's events have an entity; a custom source may have none.
const SOURCE: &[(&str, &str)] = &[
    ("order = { }", "H0133 5:9 this order declares nothing"),
    (
        "order = { serial = false }",
        "H0133 5:9 this order declares nothing",
    ),
    (
        "order = \"off\"",
        "H0103 5:9 `order` is a string; it has to be a table",
    ),
    (
        "order = { version = \"a..b\" }",
        "H0116 5:21 `a..b` does not name a field",
    ),
    (
        "order = { version = \"a\", serial = false }",
        "H0133 5:9 `version` implies `serial`, and `serial` is false",
    ),
    (
        "order = { serial = true, reopen = [\"a\"] }",
        "H0133 5:9 `reopen` has no meaning without `terminal`",
    ),
    (
        "order = { snapshot = true }",
        "H0133 5:9 `snapshot` asks for the current state, and the source does not say where | set reconcile",
    ),
    (
        "order = { review = \"snapshot.status == 'void'\" }",
        "H0133 5:9 `review` speaks of the snapshot, and none is taken | set snapshot = true",
    ),
    (
        "order = { review = \"a b\" }",
        "H0128 5:20 `review` is not a condition",
    ),
    ("reconcile = { }", "H0109 5:13 `reconcile` has no `url`"),
    (
        "reconcile = { url = \"http://b/{data..id}\" }",
        "H0116 5:21 `data..id` does not name a field: it has an empty part",
    ),
    (
        "reconcile = { url = \"http://b/{header.x}\" }",
        "H0130 5:21 `reconcile` needs `header.x`, and headers are not kept",
    ),
    (
        "reconcile = { url = \"http://{data.host}/\" }",
        "H0130 5:21 `reconcile` cannot be called: `{data.host}` stands in the host",
    ),
    (
        "reconcile = { url = \"http://b\", headers = { host = \"c\" } }",
        "H0131 5:45 `host` is a header that Hapax sets itself",
    ),
    (
        "on_duplicate_of_failed = \"retr\"",
        "H0134 5:26 `retr` is not a value of `on_duplicate_of_failed` | did you mean `retry`?",
    ),
];

#[test]
fn a_source_s_order_and_source_of_truth() {
    for (more, want) in SOURCE {
        says(&source(more), &[want]);
    }
    let custom = |entity: &str| {
        format!(
            "[[source]]\nname = \"a\"\nprovider = \"custom\"\nsecrets = \"env:SECRET\"\n{entity}order = {{ serial = true }}\n[source.verify]\nscheme = \"token\"\nheader = \"t\"\n"
        )
    };
    says(
        &custom(""),
        &["H0133 5:9 order is about an entity, and the source names none | set `entity`"],
    );
    says(&custom("entity = \"id\"\n"), &[]);
    // What is wrong with the entity is said once.
    says(&custom("entity = \"\"\n"), &["H0116 5:10"]);
}
