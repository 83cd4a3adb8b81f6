//! `hapax echo` and `hapax health`: small commands that others lean on.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::program::{Ran, hapax};
use crate::support::client::Connection;
use crate::support::site::Site;

#[test]
fn echo_answers_and_says_what_came() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = hapax(folder.path());
    command.args(["echo", "--port", "0", "--status", "202"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("it starts");
    let mut line = String::new();
    let mut talk = BufReader::new(child.stderr.take().expect("piped"));
    talk.read_line(&mut line).expect("it says where it is");
    let address = line.trim().rsplit("http://").next().expect("an address");
    let mut connection =
        Connection::open(address.parse().expect("an address")).expect("it listens");
    let request = b"POST /book HTTP/1.1\r\nhost: a\r\nidempotency-key: book:in_1\r\ncontent-length: 3\r\n\r\nabc";
    assert_eq!(connection.ask(request).expect("an answer").status, 202);
    let mut said = String::new();
    let mut data = BufReader::new(child.stdout.take().expect("piped"));
    data.read_line(&mut said).expect("it says what came");
    assert_eq!(said, "POST /book  key book:in_1  attempt -  abc\n");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

#[test]
fn health_tells_a_server_that_commits_from_one_that_is_not_there() {
    let site = Site::sqlite();
    let server = site.start();
    let url = format!("http://{}", server.address());
    let ask = |args: &[&str]| {
        Ran::of(
            hapax(site.path())
                .arg("health")
                .args(args)
                .env("HAPAX_URL", &url),
        )
    };
    ask(&[]).expect_exit(0);
    ask(&["--alive"]).expect_exit(0);
    server.kill();
    let ran = ask(&[]).expect_exit(5);
    assert!(ran.stderr.contains("error[H0401]"), "{ran:?}");
}
