//! `hapax conform` against guards, against the layer, and against an API that does not conform.

use hapax_ledger::guard::Preset;
use serde_json::Value;

use super::layer::behind_the_layer;
use super::scene::{Scene, counting};
use crate::effects::scene::{SQLITE, on_each_store};
use crate::program::{Ran, run};
use crate::support::world::{Act, World};

pub(super) const CALLERS: [&str; 4] = ["--header", "x-user: ada", "--other-header", "x-user: bob"];

pub(super) fn conform(url: &str, more: &[&str]) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let mut args = vec!["conform", url];
    args.extend(more);
    run(folder.path(), &args)
}

pub(super) fn outcomes(ran: &Ran) -> Vec<(String, String)> {
    let json = ran.json();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let checks = json["checks"].as_array().expect("a list").iter();
    checks
        .map(|check| (text(&check["check"]), text(&check["outcome"])))
        .collect()
}

/// Every check passes. Those of keys in quotes are for one preset only: the other one skips them.
#[track_caller]
fn expect_all_passed(url: &str, preset: &str) {
    let quotes = match preset {
        "stripe" => "skipped",
        _ => "pass",
    };
    let mut args = vec!["--preset", preset, "--required", "--race", "20", "--json"];
    args.extend(CALLERS);
    let ran = conform(url, &args).expect_exit(0);
    let outcomes = outcomes(&ran);
    assert!(!outcomes.is_empty(), "{preset}: {}", ran.stdout);
    for (check, outcome) in outcomes {
        let want = match check.as_str() {
            "quoted key" | "open quote" => quotes,
            _ => "pass",
        };
        assert_eq!(outcome, want, "{preset}, {check}: {}", ran.stdout);
    }
}

#[test]
fn our_guards_conform_in_both_presets() {
    on_each_store(|store| {
        for preset in ["ietf", "stripe"] {
            let world = counting();
            let lines = format!("tenant = \"{preset}\"\npreset = \"{preset}\"\nrequired = true");
            let scene = Scene::new(store, &world.url(""), &lines);
            expect_all_passed(&scene.url("/charges"), preset);
        }
    });
}

#[test]
fn our_layer_conforms_in_both_presets() {
    on_each_store(|store| {
        for preset in [Preset::Ietf, Preset::Stripe] {
            let name = preset.to_string();
            let charges = behind_the_layer(store, preset, |url| expect_all_passed(url, &name));
            // The service's own count: three keys, the other body's, the one that was raced for, and the other caller's.
            assert_eq!(charges, 6, "{name}");
        }
    });
}

#[test]
fn an_api_that_ignores_keys_fails_and_the_table_says_why() {
    let world = counting();
    let mut args = vec!["--required"];
    args.extend(CALLERS);
    let ran = conform(&world.url("/charges"), &args).expect_exit(1);
    for line in [
        "replay",
        "mismatch",
        "race",
        "key too long",
        "two keys",
        "missing key",
    ] {
        let row = ran.stdout.lines().find(|row| row.starts_with(line));
        let row = row.unwrap_or_else(|| panic!("no {line} in {}", ran.stdout));
        assert!(row.contains("FAIL"), "{row}");
    }
    assert!(
        ran.stdout.contains("10 at a time: 10 executions"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("failed"), "{}", ran.stderr);
}

/// Behind a guard its marks show what the answers do not; without them nothing does.
#[test]
fn an_api_whose_answers_do_not_differ_is_told_so() {
    let world = World::new(|_| Act::AnswerWith(200, "", "ok".to_owned()));
    let scene = Scene::new(SQLITE, &world.url(""), "");
    let args = ["--header", "x-user: ada"];
    let row = |ran: &Ran, name: &str| {
        let row = ran.stdout.lines().find(|row| row.starts_with(name));
        row.unwrap_or_else(|| panic!("no {name} in {}", ran.stdout))
            .to_owned()
    };
    let guarded = conform(&scene.url("/charges"), &args).expect_exit(0);
    assert!(row(&guarded, "executions differ").contains("they cannot be counted"));
    assert!(row(&guarded, "replay").contains("marked as a replay"));
    assert!(row(&guarded, "race").contains("one execution"));
    assert!(row(&guarded, "scope").contains("--other-header"));
    assert!(!guarded.stderr.contains("UNPROVEN"), "{}", guarded.stderr);

    let bare = conform(&world.url("/charges"), &args).expect_exit(1);
    for name in ["replay", "race", "after the race"] {
        assert!(row(&bare, name).contains("UNPROVEN"), "{}", bare.stdout);
    }
    assert!(bare.stderr.contains("4 failed, 3 unproven"), "{bare:?}");
    assert!(bare.stderr.contains("--id-header"), "{}", bare.stderr);
}

#[test]
fn an_api_that_is_not_there_is_unreachable() {
    let gone = counting().url("/charges");
    conform(&gone, &[]).expect_exit(5);
    conform("charges", &[]).expect_exit(2);
}
