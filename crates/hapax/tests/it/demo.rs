//! `hapax demo` as a newcomer runs it: it ends well, it finds a repeat that was planted, it says what is in its way, it cleans up, and it
//! goes on after a `kill -9`.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::program::{Ran, hapax};
use crate::support::clock::{TOO_LONG, until};

/// The demo in a folder for temporary files of its own, on any port that is free.
fn demo(temporary: &Path, args: &[&str]) -> Command {
    let mut command = hapax(temporary);
    command.env("TMPDIR", temporary).arg("demo").args(args);
    if !args.contains(&"--port") {
        command.args(["--port", "0"]);
    }
    command
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder)
        .expect("a folder")
        .next()
        .is_none()
}

#[test]
fn it_ends_by_itself_and_the_world_agrees_with_the_ledger() {
    let folder = tempfile::tempdir().expect("a folder");
    // What is set for a real server is not the demo's to touch.
    let mut command = demo(folder.path(), &["--for", "3s", "--seed", "7"]);
    command
        .env("HAPAX_STORE", "postgres://nobody@127.0.0.1:1/none")
        .env("HAPAX_LISTEN", "192.0.2.1:80")
        .env("HAPAX_ADMIN_TOKEN", "of-a-real-server-0123456789abcdef");
    let ran = Ran::of(&mut command).expect_exit(0);
    for words in [
        "dashboard  http://127.0.0.1:",
        "token      hpx_",
        "config     /",
        "kill -9 ",
        "events retry evt_",
        "endpoints rotate acme portal",
        "a forged invoice: refused (401)",
        "a request captured yesterday: refused (401)",
        "effects done",
        "effects dead     1",
        "repeats: 0",
        "the world's own log agrees with the ledger",
    ] {
        assert!(ran.stdout.contains(words), "`{words}` is missing: {ran:#?}");
    }
    assert!(!ran.stdout.contains('\u{1b}'), "no colour in a pipe");
    assert!(is_empty(folder.path()), "the temporary folder is gone");
}

/// The judge is worth nothing if it finds nothing.
#[test]
fn a_planted_repeat_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = Ran::of(&mut demo(folder.path(), &["--for", "1s", "--plant-repeat"])).expect_exit(1);
    assert!(ran.stdout.contains("repeats: 1"), "{ran:#?}");
    assert!(
        ran.stdout
            .contains("differs: send-welcome-email happened 2 times"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("error[H0416]"), "{ran:#?}");
}

#[test]
fn what_is_in_its_way_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let ran = Ran::of(&mut demo(folder.path(), &["--port", &port])).expect_exit(1);
    let words = format!("port {port} is taken by another process");
    assert!(ran.stderr.contains(&words), "{ran:#?}");
    assert!(ran.stderr.contains("--port 0"), "{ran:#?}");
    assert!(is_empty(folder.path()), "nothing is left");

    std::fs::write(folder.path().join("file"), "").expect("written");
    let ran = Ran::of(&mut demo(folder.path(), &["--dir", "file/demo"])).expect_exit(1);
    assert!(ran.stderr.contains("error[H0406]"), "{ran:#?}");
    let ran = Ran::of(&mut demo(folder.path(), &["--for", "soon"])).expect_exit(2);
    assert!(ran.stderr.contains("such as 20s"), "{ran:#?}");
}

/// A disk without space, wherever it ends: in the first file, in the ledger, or in the middle of the play. Root is not excepted from
/// limits, as it is from permissions.
#[test]
fn a_disk_without_space_is_said() {
    for blocks in [0, 16, 256, 2_048] {
        let folder = tempfile::tempdir().expect("a folder");
        let demo = demo(folder.path(), &["--for", "5s"]);
        // A write beyond the limit is an error for whoever ignores the signal, as a full disk's is.
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"",
                "sh",
            ])
            .arg(blocks.to_string())
            .arg(demo.get_program())
            .args(demo.get_args())
            .env("TMPDIR", folder.path())
            .current_dir(folder.path());
        let ran = Ran::of(&mut command).expect_exit(1);
        let said = [
            "error[H0406]",
            "error[H0407]",
            "error[H0410]",
            "error[H0417]",
        ];
        let said = said.iter().any(|code| ran.stderr.contains(code));
        assert!(said, "{blocks} blocks: {ran:#?}");
        assert!(ran.stderr.contains("space"), "{blocks} blocks: {ran:#?}");
        assert!(
            !ran.stderr.contains("panicked"),
            "{blocks} blocks: {ran:#?}"
        );
        assert!(is_empty(folder.path()), "{blocks} blocks: nothing is left");
    }
}

/// A demo that runs, and what it says.
struct Running {
    child: Child,
    said: std::io::Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(command: &mut Command) -> Running {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("it starts");
        let said = BufReader::new(child.stdout.take().expect("piped")).lines();
        Running { child, said }
    }

    /// Reads on until a line has these words.
    #[track_caller]
    fn until(&mut self, words: &str) -> String {
        let mut lines = self.said.by_ref().map_while(Result::ok);
        let found = lines.find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("it never said `{words}`"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_interrupt_ends_it_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut running = Running::start(&mut demo(folder.path(), &[]));
    running.until("invoice in_2");
    let pid = running.child.id().to_string();
    let sent = Command::new("sh")
        .args(["-c", "kill -s INT \"$1\"", "sh", &pid])
        .status();
    assert!(sent.expect("a shell").success());
    running.until("the temporary folder is removed");
    let ended = running.child.wait().expect("it ends");
    assert_eq!(ended.code(), Some(0), "{ended}");
    assert!(is_empty(folder.path()), "the temporary folder is gone");
}

/// The second thing to try: only the rest is done.
#[test]
fn what_is_half_done_can_be_retried() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut running = Running::start(&mut demo(folder.path(), &[]));
    let url = running.until("export HAPAX_URL=");
    let exports = url
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    let exports: Vec<(String, String)> = exports
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let said = running.until("events retry evt_");
    let id = said
        .split_whitespace()
        .find(|word| word.starts_with("evt_"));
    let id = id.expect("an event").to_owned();
    let ask = |args: &[&str]| {
        let mut command = hapax(folder.path());
        command.args(args).envs(exports.iter().cloned());
        Ran::of(&mut command).expect_exit(0)
    };
    let verdict = ask(&[
        "events",
        "retry",
        &id,
        "--reason",
        "the tasks are back",
        "--yes",
    ]);
    assert!(
        verdict.stdout.contains("1 of 5 would be sent"),
        "{verdict:#?}"
    );
    until(TOO_LONG, "the rest is done", || {
        let event = ask(&["events", "show", &id, "--json"]).json();
        (event["status"] == "completed").then_some(())
    });
}

#[test]
fn after_kill_9_it_goes_on_in_the_same_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut running = Running::start(&mut demo(folder.path(), &["--dir", "kept", "--seed", "11"]));
    running.until("invoice in_4");
    running.child.kill().expect("it can be killed");
    let ended = running.child.wait().expect("it ends");
    assert_eq!(ended.signal(), Some(9), "it was killed: {ended}");
    let again = &mut demo(folder.path(), &["--dir", "kept", "--for", "1s"]);
    let ran = Ran::of(again).expect_exit(0);
    // It goes on after the customers of the first life, with their seed, and judges both lives.
    assert!(!ran.stdout.contains("invoice in_1 "), "{ran:#?}");
    assert!(ran.stdout.contains("seed 11"), "{ran:#?}");
    assert!(ran.stdout.contains("repeats: 0"), "{ran:#?}");
    assert!(folder.path().join("kept/hapax.db").exists(), "it is kept");
}
