//! The folder of a demo: its config, its secrets, its ledger, and the world's log. It is temporary unless the user names one.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::super::exit::{Exit, Failure};
use crate::config::{self, Environment, Loaded, Problems, System, Variable};
use crate::entropy;

/// What the config is made from.
const TEMPLATE: &str = include_str!("demo.toml");
/// Files that hold secrets are for their owner only, and so is a folder that holds them.
const SECRET_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// A folder; a temporary one goes with its last owner.
#[derive(Debug)]
pub(super) struct Site {
    path: PathBuf,
    temporary: bool,
}

impl Site {
    /// The user's folder, or a new one.
    pub(super) fn open(dir: Option<&Path>) -> Result<Site, Failure> {
        let (path, temporary) = match dir {
            Some(dir) => (dir.to_owned(), false),
            None => {
                let name = format!("hapax-demo-{}", hex::encode(entropy::bytes::<6>()));
                (std::env::temp_dir().join(name), true)
            }
        };
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(FOLDER_MODE).create(&path);
        made.map_err(|error| unwritable(&path, &error))?;
        // From here on the folder goes with the value.
        let mut site = Site { path, temporary };
        let whole = site.path.canonicalize();
        site.path = whole.map_err(|error| unwritable(&site.path, &error))?;
        Ok(site)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// The config's file.
    pub(super) fn config(&self) -> PathBuf {
        self.path.join("hapax.toml")
    }

    /// Writes the config. Secrets that are there from an earlier start stay, since the ledger's other half knows them.
    pub(super) fn configure(&self, port: u16, world: SocketAddr) -> Result<(), Failure> {
        self.secret("billing.secret", "whsec_")?;
        let store = format!("sqlite:{}", self.path.join("hapax.db").display());
        let text = TEMPLATE
            .replace("{port}", &port.to_string())
            .replace("{world}", &world.to_string())
            .replace("{store}", &toml::Value::String(store).to_string());
        let path = self.config();
        fs::write(&path, text).map_err(|error| unwritable(&path, &error))
    }

    /// Reads the config that was written.
    pub(super) fn load(&self) -> Result<Loaded, Problems> {
        let path = self.config();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let alone = Alone(System::beside(&path));
        config::parse(&text, &path.display().to_string(), &alone)
    }

    /// The token of the API.
    pub(super) fn token(&self) -> Result<String, Failure> {
        self.secret("admin.token", "hpx_")
    }

    /// The secret in this file; made if there is none.
    fn secret(&self, name: &str, prefix: &str) -> Result<String, Failure> {
        let path = self.path.join(name);
        match fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(&path, &error)),
        }
        let secret = format!("{prefix}{}", hex::encode(entropy::bytes::<24>()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let opened = options.mode(SECRET_MODE).open(&path);
        let written = opened.and_then(|mut file| file.write_all(secret.as_bytes()));
        written.map_err(|error| unwritable(&path, &error))?;
        Ok(secret)
    }
}

/// The files of the folder, and no environment variables: what a user has set for a real server, its store above all, is not the demo's
/// to touch.
struct Alone(System);

impl Environment for Alone {
    fn variable(&self, _: &str) -> Variable {
        Variable::Unset
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        self.0.file(path)
    }

    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.bytes(path)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if self.temporary {
            // Nobody is left to tell; what stays is in the machine's folder for such things.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// What is said where the demo cannot write.
pub(super) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let text = format!("{} cannot be written: {error}", path.display());
    let help = "the demo keeps its ledger there; name a folder with space that you may write to with --dir";
    Failure::new(Exit::Failed, "H0406", text, help)
}
