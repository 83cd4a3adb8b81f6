//! A server for clients that ask questions: with sample events, in a temporary folder, for as long as a value of ours lives.
//!
//! Whatever ends this process, the server goes with it: a small shell process waits on a pipe that only we hold open, and
//! when that closes it stops the server and removes the folder.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::clock::Stopwatch;
use crate::{loopback, workspace};

/// A server that does not listen by then is not going to.
const START_MAX: Duration = Duration::from_secs(30);
/// How often the port is tried.
const START_PAUSE: Duration = Duration::from_millis(20);

/// The admin token. The server is gone in a minute, and only loopback reaches it.
const TOKEN: &str = "hpx_for_the_schema_check_only";

/// What it seals secrets with, as nodes on PostgreSQL share it: 32 bytes. The secrets are gone in a minute, too.
const VAULT_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// How schemathesis is told what to look at.
const CONFIG: &str = include_str!("schemathesis.toml");

const UNDERTAKER: &str = r#"
"$1" serve --config "$2/hapax.toml" > "$2/server.log" 2>&1 < /dev/null &
server=$!
"$3" ceiling-server --port "$4"
kill "$server"
wait "$server"
test -f "$2/asking" && kill "$(cat "$2/asking")"
rm -rf "$2"
"#;

/// A running server. Dropping it stops the server and removes its folder.
pub(crate) struct Site {
    program: PathBuf,
    folder: PathBuf,
    address: SocketAddr,
    undertaker: Child,
}

impl Site {
    /// A server on SQLite, with more in its config.
    pub(crate) fn start(more: &str) -> anyhow::Result<Site> {
        Site::with(more, |folder| {
            format!("sqlite:{}", folder.join("hapax.db").display())
        })
    }

    /// A server on this database.
    pub(crate) fn on_postgres(url: &str, more: &str) -> anyhow::Result<Site> {
        Site::with(more, |_| url.to_owned())
    }

    /// Builds the program as tests do, starts it, and sends it some events.
    fn with(more: &str, store: impl FnOnce(&Path) -> String) -> anyhow::Result<Site> {
        // Built for the tests, with all features of all packages: any other choice would build most of it a second time.
        let build = [
            "test",
            "--quiet",
            "--no-run",
            "--workspace",
            "--all-features",
        ];
        workspace::succeed(&mut workspace::cargo(build))?;
        let program = workspace::target().join("debug/hapax");
        let folder = tempfile::Builder::new().prefix("hapax-schema-").tempdir()?;
        let address = loopback::free_address()?;
        let receiver = loopback::free_address()?;
        fs::write(
            folder.path().join("hapax.toml"),
            config(&store(folder.path()), address, receiver) + more,
        )?;
        // From here on the undertaker removes it.
        let folder = folder.keep();
        let undertaker = undertaker(&program, &folder, receiver)?;
        let site = Site {
            program,
            folder,
            address,
            undertaker,
        };
        site.wait_until_listening(address)?;
        site.wait_until_listening(receiver)?;
        site.send_samples()?;
        Ok(site)
    }

    fn wait_until_listening(&self, address: SocketAddr) -> anyhow::Result<()> {
        let watch = Stopwatch::start();
        while !loopback::is_listening(address) {
            if watch.elapsed() > START_MAX {
                let log = fs::read_to_string(self.folder.join("server.log")).unwrap_or_default();
                bail!("nobody listens on {address}; the server said:\n{log}");
            }
            thread::sleep(START_PAUSE);
        }
        Ok(())
    }

    /// Events that came once and more than once, one with effects that fail, and a request that was refused.
    fn send_samples(&self) -> anyhow::Result<()> {
        self.hapax(&["send", "demo", "--type", "contact.created", "--times", "3"])?;
        self.hapax(&["send", "demo", "--type", "contact.failed"])?;
        self.hapax(&["send", "demo", "--type", "contact.created"])?;
        // Refused, which it says with another exit code.
        let _ = self.hapax(&["send", "demo", "--forge"]);
        Ok(())
    }

    /// The program as its users call it; what it writes.
    fn hapax(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .current_dir(&self.folder)
            .env("HAPAX_URL", format!("http://{}", self.address))
            .env("HAPAX_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .output()
            .context("could not start hapax")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`hapax {}` failed: {}", arguments.join(" "), said.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The id of the latest event or effect.
    fn latest(&self, noun: &str) -> anyhow::Result<String> {
        let listed: Value = serde_json::from_str(&self.hapax(&[noun, "list", "--json"])?)?;
        let id = listed["data"][0]["id"].as_str();
        id.map(str::to_owned)
            .with_context(|| format!("there are no {noun}"))
    }

    /// Tells schemathesis where to ask, as whom, and which things there are.
    pub(super) fn configure(&self, schemathesis: &mut Command) -> anyhow::Result<()> {
        let config = self.folder.join("schemathesis.toml");
        let text = CONFIG
            .replace("EVENT", &self.latest("events")?)
            .replace("EFFECT", &self.latest("effects")?);
        fs::write(&config, text)?;
        schemathesis
            .current_dir(&self.folder)
            .env(
                "HYPOTHESIS_STORAGE_DIRECTORY",
                workspace::target().join("schemathesis/generator"),
            )
            .arg("--config-file")
            .arg(&config)
            .arg("run")
            .arg(format!("http://{}/api/v1/openapi.json", self.address))
            .args(["--header", &format!("Authorization: Bearer {TOKEN}")]);
        Ok(())
    }

    /// Tells a client where the server is, and as whom to ask.
    pub(crate) fn point(&self, client: &mut Command) {
        client
            .env("HAPAX_URL", format!("http://{}", self.address))
            .env("HAPAX_TOKEN", TOKEN);
    }

    /// Runs what asks the server. Should we end before it does, the undertaker ends it: its process id is in a file so long.
    pub(crate) fn watch(&self, client: &mut Command) -> anyhow::Result<()> {
        let mut asking = client
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("could not start {:?}", client.get_program()))?;
        let file = self.folder.join("asking");
        fs::write(&file, asking.id().to_string())?;
        let status = asking.wait()?;
        fs::remove_file(&file)?;
        if !status.success() {
            bail!("the server is not as it is expected to be: whoever asked ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.undertaker.stdin.take());
        // Its exit status says nothing that could still be acted on.
        let _ = self.undertaker.wait();
    }
}

fn undertaker(program: &Path, folder: &Path, receiver: SocketAddr) -> anyhow::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", UNDERTAKER, "undertaker"])
        .args([program, folder, &env::current_exe()?])
        .arg(receiver.port().to_string())
        // Ctrl-C goes to the whole process group; this one must outlive it.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("could not start /bin/sh")
}

/// One source, one effect that succeeds and one that cannot.
fn config(store: &str, address: SocketAddr, receiver: SocketAddr) -> String {
    format!(
        r#"
listen = "{address}"
store = "{store}"
vault_key = "{VAULT_KEY}"

[admin]
token = "{TOKEN}"

[[source]]
name = "demo"
provider = "standard-webhooks"
secrets = ["whsec_c2NoZW1hdGhlc2lzLXNhbXBsZS1zZWNyZXQ="]

[[effect]]
name = "welcome"
source = "demo"
url = "http://{receiver}/welcome"

[[effect]]
name = "refused"
source = "demo"
types = ["contact.failed"]
url = "http://{address}/healthz"
retry = ["0s"]
"#
    )
}
