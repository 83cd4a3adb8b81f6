//! Usage errors, and what the client commands say when there is nobody to ask.

use tokio::net::TcpSocket;

use crate::program::{Ran, folder, hapax, run};

#[test]
fn wrong_usage_exits_with_2() {
    let dir = folder(&[]);
    for args in [
        &["bogus"][..],
        &[],
        &["send"],
        &["send", "demo", "--times", "0"],
        &["send", "demo", "--forge", "--late"],
        &["events", "list", "--limit", "0"],
        &["events", "list", "--since", "yesterday"],
        &["verify", "demo"],
    ] {
        let ran = run(dir.path(), args).expect_exit(2);
        assert_eq!(ran.stdout, "", "{args:?}");
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
    let ran = Ran::of(
        hapax(dir.path())
            .args(["events", "list"])
            .env("HAPAX_URL", "localhost:8080"),
    );
    assert!(ran.expect_exit(2).stderr.contains("error[H0402]"));
    let ran = Ran::of(
        hapax(dir.path())
            .arg("serve")
            .env("HAPAX_LOG", "hapax=noisy"),
    );
    assert!(ran.expect_exit(2).stderr.contains("error[H0408]"));
}

#[test]
fn help_and_version_go_to_stdout() {
    let dir = folder(&[]);
    for args in [&["--help"][..], &["--version"], &["send", "--help"]] {
        let ran = run(dir.path(), args).expect_exit(0);
        assert!(ran.stdout.contains("hapax"), "{args:?}");
        assert_eq!(ran.stderr, "", "{args:?}");
    }
}

#[test]
fn a_flag_beats_the_environment() {
    let dir = folder(&[]);
    let mut command = hapax(dir.path());
    command
        .args(["serve", "--listen", "nowhere"])
        .env("HAPAX_LISTEN", "127.0.0.1:0");
    let ran = Ran::of(&mut command).expect_exit(1);
    assert!(ran.stderr.contains(" --> --listen\n"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("error[H0119]: `nowhere`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn nobody_there_exits_with_5() {
    // A port that is taken, so that no other test gets it, and at which nobody listens.
    let taken = TcpSocket::new_v4().expect("a socket");
    taken
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a port");
    let url = format!("http://{}", taken.local_addr().expect("an address"));
    let dir = folder(&[]);
    run(dir.path(), &["init"]).expect_exit(0);
    for args in [
        &["events", "list"][..],
        &["events", "show", "evt_1"],
        &["send", "demo"],
    ] {
        let ran = Ran::of(hapax(dir.path()).args(args).env("HAPAX_URL", &url)).expect_exit(5);
        let want = format!("error[H0401]: could not reach {url} (connection refused)");
        assert!(ran.stderr.starts_with(&want), "{}", ran.stderr);
    }
}

#[test]
fn what_cannot_be_sent_is_said_before_anything_is_sent() {
    let config = "[[source]]\nname = \"gh\"\nprovider = \"github\"\nsecrets = \"0123456789abcdef\"\n\n[[source]]\nname = \"open\"\nprovider = \"unverified\"\n";
    let dir = folder(&[("hapax.toml", config)]);
    for (args, want) in [
        (
            &["send", "gh", "--late"][..],
            "nothing can be late at `gh`: its scheme checks no time",
        ),
        (
            &["send", "open", "--forge"],
            "nothing can be forged at `open`: it is unverified",
        ),
    ] {
        let ran = run(dir.path(), args).expect_exit(2);
        assert!(ran.stderr.contains(want), "{}", ran.stderr);
    }
    let ran = run(dir.path(), &["send", "hg"]).expect_exit(4);
    assert!(ran.stderr.contains("error[H0403]"), "{}", ran.stderr);
}
