//! A PostgreSQL server that lives as long as a value of ours: own folder, own port, loopback only.
//!
//! Whatever ends this process, the server goes with it. A small shell process (the *undertaker*) waits on a pipe that
//! only we hold open; when the pipe closes, by `drop`, by Ctrl-C or by SIGKILL, it stops the server that its pid file
//! names and removes the folder. There is no second way to stop it that could be forgotten.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use crate::loopback;

/// The variable in which tests look for a PostgreSQL server. Unset: they say that they were skipped.
pub(crate) const URL_VARIABLE: &str = "HAPAX_TEST_POSTGRES";

/// Where Debian and its relatives put the server's programs, one folder per version.
const DEBIAN_VERSIONS: &str = "/usr/lib/postgresql";

/// The account that a server started by root runs as: the server refuses to be root.
const SERVICE_ACCOUNT: &str = "postgres";

/// A free port can be taken by another before the server binds it; five times in a row it is something else.
const START_ATTEMPTS_MAX: u32 = 5;

/// Durable like a real server, because commits and crashes are what is tested; the rest is the default.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
fsync = on
synchronous_commit = on
full_page_writes = on
max_connections = 200
log_min_messages = warning
";

const UNDERTAKER: &str = r#"
cat > /dev/null
"$1/pg_ctl" stop --pgdata "$2/data" --mode immediate --wait --timeout 20 > /dev/null 2>&1
rm -rf "$2"
"#;

/// A running server. Dropping it stops the server and removes its folder.
#[derive(Debug)]
pub(crate) struct ThrowAway {
    url: String,
    undertaker: Child,
}

impl ThrowAway {
    /// Are the server's programs on this machine?
    pub(crate) fn installed() -> bool {
        programs().is_some()
    }

    /// Creates and starts a server; returns once it answers.
    pub(crate) fn start() -> anyhow::Result<ThrowAway> {
        let programs = programs().with_context(|| {
            format!(
                "PostgreSQL is not installed: no initdb under {DEBIAN_VERSIONS}/*/bin or in PATH"
            )
        })?;
        let account = Account::for_server()?;
        let folder = new_folder(&account)?;
        // First of all, so that a failure in any later line cleans up too.
        let undertaker = undertaker(&programs, &folder, &account)?;
        let mut server = ThrowAway {
            url: String::new(),
            undertaker,
        };
        initialise(&programs, &folder, &account)?;
        let address = start_on_free_port(&programs, &folder, &account)?;
        server.url = format!("postgres://postgres@{address}/postgres");
        Ok(server)
    }

    /// Where it listens, as tests and drivers want it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for ThrowAway {
    fn drop(&mut self) {
        drop(self.undertaker.stdin.take());
        // Its exit status says nothing that could still be acted on.
        let _ = self.undertaker.wait();
    }
}

/// Who runs the server's programs: ourselves, or another account if we are root.
struct Account {
    switch_to: Option<(u32, u32)>,
}

impl Account {
    fn for_server() -> anyhow::Result<Account> {
        let own = fs::metadata("/proc/self").context("no /proc on this machine")?;
        if own.uid() != 0 {
            return Ok(Account { switch_to: None });
        }
        let passwd = fs::read_to_string("/etc/passwd").context("could not read /etc/passwd")?;
        let ids = account_ids(&passwd, SERVICE_ACCOUNT).with_context(|| {
            format!("PostgreSQL refuses to run as root, and there is no account {SERVICE_ACCOUNT}")
        })?;
        Ok(Account {
            switch_to: Some(ids),
        })
    }

    /// `program`, to be run by this account in `folder`: the account need not be able to read ours.
    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder);
        if let Some((user, group)) = self.switch_to {
            command.uid(user).gid(group);
        }
        command
    }
}

/// User and group id of `name` in a passwd file.
fn account_ids(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let user = fields.nth(1)?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some((user, group))
    })
}

/// The folder with `initdb` and `pg_ctl`: the newest of Debian's versions, else the first in PATH.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN_VERSIONS)
        .into_iter()
        .flatten()
        .flatten();
    let newest = versions
        .filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .filter(|(_, bin)| bin.join("initdb").is_file())
        .max();
    if let Some((_, bin)) = newest {
        return Some(bin);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|bin| bin.join("initdb").is_file())
}

fn new_folder(account: &Account) -> anyhow::Result<PathBuf> {
    let folder = tempfile::Builder::new()
        .prefix("hapax-pg-")
        .tempdir()
        .context("could not create a temporary folder")?;
    if let Some((user, group)) = account.switch_to {
        chown(folder.path(), Some(user), Some(group))
            .context("could not hand the folder to the server's account")?;
    }
    // From here on the undertaker removes it.
    Ok(folder.keep())
}

fn undertaker(programs: &Path, folder: &Path, account: &Account) -> anyhow::Result<Child> {
    account
        .command(Path::new("/bin/sh"), Path::new("/"))
        .args(["-c", UNDERTAKER, "undertaker"])
        .args([programs, folder])
        // Ctrl-C goes to the whole process group; this one must outlive it.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("could not start /bin/sh")
}

fn initialise(programs: &Path, folder: &Path, account: &Account) -> anyhow::Result<()> {
    let mut initdb = account.command(&programs.join("initdb"), folder);
    initdb
        .args(["--auth=trust", "--username=postgres", "--encoding=UTF8"])
        .args(["--no-locale", "--no-sync", "--pgdata"])
        .arg(folder.join("data"));
    quietly(&mut initdb)?;
    let settings = folder.join("data/postgresql.conf");
    let mut text = fs::read_to_string(&settings).context("initdb left no postgresql.conf")?;
    text.push_str(SETTINGS);
    text.push_str(&format!(
        "unix_socket_directories = '{}'\n",
        folder.display()
    ));
    fs::write(&settings, text).context("could not write postgresql.conf")
}

fn start_on_free_port(
    programs: &Path,
    folder: &Path,
    account: &Account,
) -> anyhow::Result<SocketAddr> {
    let log = folder.join("server.log");
    let mut attempt = 1;
    loop {
        let address = loopback::free_address()?;
        let mut start = account.command(&programs.join("pg_ctl"), folder);
        start
            .args(["start", "--wait", "--timeout", "60", "--pgdata"])
            .arg(folder.join("data"))
            .arg("--log")
            .arg(&log)
            .arg(format!("--options=-p {}", address.port()));
        match quietly(&mut start) {
            Ok(()) => return Ok(address),
            Err(error) if attempt == START_ATTEMPTS_MAX => {
                let log = fs::read_to_string(&log).unwrap_or_default();
                return Err(error.context(format!("PostgreSQL does not start; its log: {log}")));
            }
            Err(_) => attempt += 1,
        }
    }
}

/// Runs `command` and shows what it said only if it failed.
fn quietly(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("could not start {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} ended with {}: {}", output.status, said.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_their_whole_name() {
        let passwd = "root:x:0:0::/:/bin/sh\npostgres2:x:7:8::/:\npostgres:x:101:104::/:/bin/sh\n";
        assert_eq!(account_ids(passwd, "postgres"), Some((101, 104)));
        assert_eq!(account_ids(passwd, "post"), None);
    }

    #[test]
    fn a_dropped_server_is_gone_with_its_folder() {
        if !ThrowAway::installed() {
            eprintln!("skipped: PostgreSQL is not installed");
            return;
        }
        let server = ThrowAway::start().expect("it starts");
        let address: SocketAddr = server
            .url()
            .split(['@', '/'])
            .find_map(|part| part.parse().ok())
            .expect("the URL holds an address");
        let folder = folder_of(&server);
        assert!(loopback::is_listening(address));
        assert!(folder.join("data/postmaster.pid").exists());
        drop(server);
        assert!(!loopback::is_listening(address), "stopped");
        assert!(!folder.exists(), "removed");
    }

    fn folder_of(server: &ThrowAway) -> PathBuf {
        let command_line = format!("/proc/{}/cmdline", server.undertaker.id());
        let arguments = fs::read_to_string(command_line).expect("it is running");
        let last = arguments.trim_end_matches('\0').rsplit('\0').next();
        PathBuf::from(last.expect("it has arguments"))
    }
}
