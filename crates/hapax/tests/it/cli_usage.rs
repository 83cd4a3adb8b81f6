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
        &["events", "list", "--since", "1h", "--until", "2h"],
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
    let ran = Ran::of(&mut command).expect_exit(2);
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
fn why_nobody_can_be_reached_is_said() {
    // It takes the client's first words for an HTTP request, and says in plain text what it thinks of them.
    let plain = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = plain.local_addr().expect("an address");
    let plain = std::thread::spawn(move || {
        let (mut stream, _) = plain.accept().expect("a client");
        let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        std::io::Write::write_all(&mut stream, answer).expect("written");
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
    });
    let dir = folder(&[]);
    for (url, want) in [
        (
            "http://no.such.host.invalid:8080".to_owned(),
            "(the name no.such.host.invalid cannot be resolved)",
        ),
        (
            format!("https://{address}"),
            "(TLS failed; does this port speak plain http?)",
        ),
    ] {
        let mut command = hapax(dir.path());
        command.args(["events", "list"]).env("HAPAX_URL", &url);
        let ran = Ran::of(&mut command).expect_exit(5);
        assert!(ran.stderr.contains(want), "{}", ran.stderr);
    }
    plain.join().expect("it ends");
}

#[test]
fn a_server_that_cannot_start_says_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    let closed = TcpSocket::new_v4().expect("a socket");
    let free = "127.0.0.1:0".parse().expect("an address");
    closed.bind(free).expect("a port");
    let postgres = closed.local_addr().expect("an address");
    let url = format!("postgres://user:hush@{postgres}/db");
    let text = "This is a text, and long enough to be something else than an empty database. ";
    let dir = folder(&[("text.db", &text.repeat(20))]);
    for (args, wants) in [
        (
            ["--listen", &taken, "--store", "sqlite:a.db"],
            ["could not start: ", "another process listens there"],
        ),
        (
            ["--listen", "127.0.0.1:0", "--store", "sqlite:text.db"],
            ["not a database", "text.db is something else"],
        ),
        (
            ["--listen", "127.0.0.1:0", "--store", "sqlite:nope/a.db"],
            ["could not start: ", "make nope first"],
        ),
        (
            ["--listen", "127.0.0.1:0", "--store", &url],
            [
                &format!("could not start: PostgreSQL at {postgres}: "),
                "look whether it runs there",
            ],
        ),
    ] {
        let ran = run(dir.path(), &[&["serve"], &args[..]].concat()).expect_exit(1);
        for want in wants {
            assert!(ran.stderr.contains(want), "{want}: {}", ran.stderr);
        }
        assert!(ran.stderr.contains("error[H0407]"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("hush"), "{}", ran.stderr);
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
    let data = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("written");
    };
    data("form", "a=b");
    let ran = run(
        dir.path(),
        &["send", "open", "--data", "form", "--type", "t"],
    )
    .expect_exit(2);
    let want = "--type cannot be set for `open`: nothing says where the type stands";
    assert!(ran.stderr.contains(want), "{}", ran.stderr);
    let ran = run(dir.path(), &["send", "hg"]).expect_exit(4);
    assert!(ran.stderr.contains("error[H0403]"), "{}", ran.stderr);
}
