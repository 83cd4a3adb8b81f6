//! `hapax init`.

use std::os::unix::fs::PermissionsExt;

use crate::program::{folder, run};

#[test]
fn what_init_writes_is_a_config_that_works() {
    let dir = folder(&[]);
    let ran = run(dir.path(), &["init", "--dir", "new/folder"]).expect_exit(0);
    assert_eq!(ran.stdout, "");
    assert!(
        ran.stderr.contains("cd new/folder && hapax serve"),
        "{}",
        ran.stderr
    );
    let last = ran.stderr.lines().last().expect("a line");
    assert!(last.contains("HAPAX_TOKEN=… hapax events list"), "{last}");
    let made = dir.path().join("new/folder");
    let ran = run(&made, &["check"]).expect_exit(0);
    assert_eq!(
        ran.stdout,
        "ok: 1 source: demo (stripe); 1 effect: record-payment (keyed)\n"
    );
    let secret = std::fs::metadata(made.join("hapax-demo.secret")).expect("there");
    assert_eq!(secret.permissions().mode() & 0o777, 0o600);
}

#[test]
fn every_setting_that_is_commented_out_is_a_good_one() {
    let dir = folder(&[]);
    run(dir.path(), &["init"]).expect_exit(0);
    let text = std::fs::read_to_string(dir.path().join("hapax.toml")).expect("there");
    // A setting starts `# name = ` or `# [`; prose does not.
    let setting = |line: &str| {
        let word = line.split_whitespace().next().unwrap_or_default();
        line.starts_with('[') || line.split_whitespace().nth(1) == Some("=") && !word.is_empty()
    };
    let lines = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(rest) if setting(rest) => rest,
        _ => line,
    });
    let all: Vec<&str> = lines.collect();
    // A table that was commented out would swallow the plain settings after it, were they not before it.
    std::fs::write(dir.path().join("all.toml"), all.join("\n")).expect("written");
    let ran = crate::program::Ran::of(
        crate::program::hapax(dir.path())
            .args(["check", "--config", "all.toml"])
            .env("PARTNER_SECRET", "0123456789abcdef")
            .env("VERIFY_TOKEN", "0123456789abcdef")
            .env("TARGET_TOKEN", "Bearer 0123456789abcdef")
            .env("TARGET_SECRET", "0123456789abcdef0123456789abcdef")
            .env("ALERTS_SECRET", "0123456789abcdef0123456789abcdef")
            .env("HAPAX_ADMIN_TOKEN", "0123456789abcdef"),
    );
    let ran = ran.expect_exit(0);
    assert_eq!(
        ran.stdout,
        "ok: 2 sources: demo (stripe), partner (custom); 1 effect: record-payment (keyed); alerts to ops.example.com\n"
    );
}

#[test]
fn nothing_is_overwritten() {
    for name in ["hapax.toml", "hapax-demo.secret"] {
        let dir = folder(&[(name, "mine")]);
        let ran = run(dir.path(), &["init"]).expect_exit(1);
        assert!(ran.stderr.contains("error[H0405]"), "{}", ran.stderr);
        let files = std::fs::read_dir(dir.path()).expect("a folder").count();
        assert_eq!(files, 1, "nothing was written");
        assert_eq!(
            std::fs::read_to_string(dir.path().join(name)).expect("there"),
            "mine"
        );
    }
}

#[test]
fn no_two_secrets_are_the_same() {
    let secret = || {
        let dir = folder(&[]);
        run(dir.path(), &["init"]).expect_exit(0);
        std::fs::read_to_string(dir.path().join("hapax-demo.secret")).expect("there")
    };
    assert_ne!(secret(), secret());
}
