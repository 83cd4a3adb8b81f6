//! A terminal that a test looks at: what the program shows to a person and to nobody else.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Runs a command with its stderr on a terminal; says how it ended, and what was shown.
pub(crate) fn on_terminal(command: &mut Command) -> (i32, String) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("ours");
    unlockpt(&ours).expect("unlocked");
    let name = ptsname(&ours, Vec::new()).expect("a name");
    let theirs = File::options()
        .write(true)
        .open(name.to_str().expect("text"))
        .expect("its other end");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(theirs)
        .spawn()
        .expect("the program runs");
    // The command holds the other end, too: it is open for as long as somebody has it.
    command.stderr(Stdio::null());
    let mut shown = Vec::new();
    // A terminal whose other end is closed is not at its end but broken.
    let _ = File::from(ours).read_to_end(&mut shown);
    let ended = child.wait().expect("it ends");
    let exit = ended.code().expect("it was not killed");
    (exit, String::from_utf8_lossy(&shown).into_owned())
}
