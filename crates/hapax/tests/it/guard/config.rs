//! What is said about mistakes in `[[guard]]`.

use std::time::Duration;

use hapax::config::{CallerConfig, GuardConfig, HostRule};
use hapax_ledger::guard::OnUnknown;
use hapax_ledger::time::Span;

use crate::config::{load, source};
use crate::config_problems::says;

const GOOD: &str =
    "[[guard]]\nname = \"a\"\nlisten = \"127.0.0.1:8081\"\nupstream = \"http://127.0.0.1:3000\"\n";
/// Lines of `GOOD`, and of the source before it.
const BEFORE: usize = 9;

fn guard(lines: &str) -> String {
    format!("{}{GOOD}{lines}\n", source(""))
}

fn loaded(lines: &str) -> std::sync::Arc<GuardConfig> {
    let loaded = load(&guard(lines)).unwrap_or_else(|problems| panic!("{problems}"));
    loaded.config.guards[0].clone()
}

#[test]
fn a_guard_has_defaults_and_presets_that_its_own_lines_override() {
    let plain = loaded("principal = \"header.X-User\"");
    assert!(matches!(&plain.caller, CallerConfig::Header(name) if name == "x-user"));
    assert_eq!(plain.policy.ttl, Span::from_hours(72));
    assert_eq!(
        (plain.policy.on_unknown, plain.policy.mismatch_status),
        (OnUnknown::Hold, 409)
    );
    assert_eq!(
        plain.methods.as_ref(),
        [http::Method::POST, http::Method::PATCH]
    );
    assert_eq!(
        (plain.timeout, plain.host),
        (Duration::from_secs(30), HostRule::Keep)
    );
    let stripe = loaded(
        "shared_scope = true\npreset = \"stripe\"\nmismatch_status = 422\ntenant = \"shop\"",
    );
    assert_eq!(
        (stripe.policy.ttl, stripe.policy.store_5xx),
        (Span::from_hours(24), true)
    );
    assert_eq!(stripe.policy.mismatch_status, 422);
    assert_eq!(&*stripe.scope(), "shop/a");
    assert!(
        !stripe.publish_expiry && loaded("shared_scope = true\npreset = \"ietf\"").publish_expiry
    );
    let own = loaded(
        "shared_scope = true\nnot_executed = [401, 503]\non_unknown = \"keyed\"\nttl = \"1h\"\nforce_short_ttl = true",
    );
    assert_eq!(own.policy.not_executed, [401, 503]);
    assert_eq!(
        (own.policy.ttl, own.policy.on_unknown),
        (Span::from_hours(1), OnUnknown::Keyed)
    );
}

/// Lines of a guard, and what is said of them first. `@` is their first line, `+` their second.
const MISTAKES: &[(&str, &str)] = &[
    ("", "H0153 6:1 this [[guard]] has no `principal`"),
    (
        "principal = \"cookie\"",
        "H0153 @:13 `cookie` is not a way to tell callers apart",
    ),
    (
        "principal = \"header.x y\"",
        "H0153 @:13 `header.x y` names no header",
    ),
    (
        "principal = \"jwt.sub\"",
        "H0109 6:1 this [[guard]] has no `jwks`",
    ),
    (
        "principal = \"mtls.subject\"",
        "H0153 @:13 the principal is the subject of a client's certificate",
    ),
    (
        "principal = \"auth.x\"",
        "H0153 @:13 the principal comes from the answer of `forward_auth`",
    ),
    (
        "shared_scope = true\nissuer = \"x\"",
        "H0153 +:10 `issuer` does nothing without principal",
    ),
    (
        "shared_scope = true\nprincipal = \"header.x\"",
        "H0153 +:13 a guard with a `principal` does not share",
    ),
    (
        "principal = \"jwt.sub\"\njwks = \"{}\"",
        "H0154 +:8 `jwks` holds no keys",
    ),
    (
        "shared_scope = true\nttl = \"1h\"",
        "H0152 +:7 a guard that forgets after 1h",
    ),
    (
        "shared_scope = true\nmethods = [\"post\"]",
        "H0151 +:12 `post` is not a method",
    ),
    (
        "shared_scope = true\nmethods = [\"PUT\"]",
        "H0151 +:12 `PUT` is not guarded",
    ),
    (
        "shared_scope = true\nmethods = []",
        "H0151 +:11 `methods` is empty",
    ),
    (
        "shared_scope = true\non_unknown = \"atomic\"",
        "H0134 +:14 `atomic` is not a value of `on_unknown`",
    ),
    (
        "shared_scope = true\npreset = \"strpe\"",
        "H0134 +:10 `strpe` is not a value of `preset` | did you mean `stripe`?",
    ),
    (
        "shared_scope = true\nmismatch_status = 500",
        "H0135 +:19 a `mismatch_status` of 500 is out of range",
    ),
    (
        "shared_scope = true\nnot_executed = [200]",
        "H0135 +:17 200 in `not_executed`",
    ),
    (
        "shared_scope = true\nnot_executed = \"401\"",
        "H0103 +:16 `not_executed` is a string",
    ),
    (
        "shared_scope = true\ntimeout = \"2h\"",
        "H0135 +:11 a `timeout` of 2h is out of range",
    ),
    (
        "shared_scope = true\nanswer_max = \"1GiB\"",
        "H0135 +:14 a `answer_max` of `1GiB` is out of range",
    ),
    (
        "shared_scope = true\nprobe = \"http://a/{id}\"",
        "H0130 +:9 the `probe` of a guard has no `{id}`",
    ),
    (
        "shared_scope = true\nprobe = \"http://a/\"",
        "H0130 +:9 the `probe` asks about no key",
    ),
    (
        "shared_scope = true\ntls = { cert = \"x\", key = \"y\" }",
        "H0155",
    ),
    (
        "shared_scope = true\nheaders = [\"etag\", \"Set-Cookie\"]",
        "H0156 +:20 `Set-Cookie` is never kept",
    ),
    (
        "shared_scope = true\nheaders = [\"x y\"]",
        "H0156 +:12 `x y` names no header",
    ),
    (
        "shared_scope = true\nttll = \"72h\"",
        "H0102 +:1 unknown field `ttll` in [[guard]] | did you mean `ttl`?",
    ),
];

#[test]
fn each_mistake_has_its_place_and_remedy() {
    for (lines, want) in MISTAKES {
        let want = want
            .replace("@:", &format!("{}:", BEFORE + 1))
            .replace("+:", &format!("{}:", BEFORE + 2));
        let text = guard(lines);
        let said = crate::config::said(&text);
        assert!(
            said.first().is_some_and(|said| said.starts_with(&want)),
            "{text}\nsaid: {said:#?}\nwant: {want}"
        );
    }
}

#[test]
fn guards_differ_in_name_and_place() {
    let text = format!(
        "{}{GOOD}shared_scope = true\n{GOOD}shared_scope = true\n",
        source("")
    );
    says(
        &text,
        &[
            "H0150 12:8 two guards have the `name` `a`",
            "H0150 13:10 two guards have the `listen` `127.0.0.1:8081`",
        ],
    );
    let quiet = source("");
    says(
        &format!("{quiet}[[guard]]\n"),
        &[
            "H0109 6:1 this [[guard]] has no `name`",
            "H0109 6:1 this [[guard]] has no `listen`",
            "H0109 6:1 this [[guard]] has no `upstream`",
            "H0153 6:1 this [[guard]] has no `principal`",
        ],
    );
}
