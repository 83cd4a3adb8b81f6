//! PgBouncer in front of a test's database, in transaction mode: it hands its sessions from one transaction to the next.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Config, NoTls};

use super::database::Database;

/// Set by whoever has installed PgBouncer: then a test without it fails. Otherwise it says that it was skipped.
const WANTED: &str = "HAPAX_TEST_PGBOUNCER";
/// PgBouncer starts much sooner unless it is broken.
const TOO_LONG: Duration = Duration::from_secs(30);

/// A pooler, reached by a socket in a folder. Dropped, it is gone.
#[derive(Debug)]
pub struct Pooler {
    process: Child,
    folder: PathBuf,
    database: String,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // Where Debian puts it, which is not in everybody's path.
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join("pgbouncer"))
        .find(|program| program.is_file())
}

fn settings(database: &Database, folder: &Path, sessions: usize) -> String {
    let server: Config = database.url().parse().expect("a valid URL");
    let host = match &server.get_hosts()[0] {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    };
    let port = server.get_ports().first().unwrap_or(&5432);
    let user = server.get_user().expect("the URL names a user");
    let password = server.get_password().map(String::from_utf8_lossy);
    let password = password.map_or(String::new(), |secret| format!(" password='{secret}'"));
    format!(
        "[databases]
         * = host={host} port={port} user={user}{password}
         [pgbouncer]
         listen_addr =
         unix_socket_dir = {}
         auth_type = any
         pool_mode = transaction
         default_pool_size = {sessions}",
        folder.display()
    )
    .lines()
    .map(|line| format!("{}\n", line.trim()))
    .collect()
}

impl Pooler {
    /// A pooler with so many sessions, in an empty folder. `None`: PgBouncer is not installed.
    pub async fn start(database: &Database, folder: &Path, sessions: usize) -> Option<Pooler> {
        let Some(program) = program() else {
            assert!(
                std::env::var_os(WANTED).is_none(),
                "PgBouncer is not installed"
            );
            eprintln!("skipped: PgBouncer is not installed");
            return None;
        };
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, settings(database, folder, sessions)).expect("the folder takes a file");
        let mut command = Command::new(program);
        command.arg("-q").arg(&file).stderr(Stdio::null());
        // It refuses to be root, and whoever it becomes needs to get into the folder.
        if fs::metadata(folder).expect("it is there").uid() == 0 {
            command.args(["-u", "nobody"]);
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777))
                .expect("the folder is ours");
        }
        let mut pooler = Pooler {
            process: command.spawn().expect("PgBouncer starts"),
            folder: folder.to_owned(),
            database: database.name().to_owned(),
        };
        timeout(TOO_LONG, pooler.until_it_answers())
            .await
            .expect("PgBouncer answers");
        Some(pooler)
    }

    async fn until_it_answers(&mut self) {
        while tokio_postgres::connect(&self.url(), NoTls).await.is_err() {
            let ended = self.process.try_wait().expect("it is our child");
            assert_eq!(ended, None, "PgBouncer runs");
            tokio::task::yield_now().await;
        }
    }

    /// The database behind it.
    pub fn url(&self) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://anybody@{folder}:6432/{}", self.database)
    }
}
