//! `hapax init`: a config that works at once.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::exit::{Exit, Failure};
use super::output;
use crate::config::FILE_DEFAULT;
use crate::entropy;

/// The file of the demo source's secret; the config names it.
const SECRET_FILE: &str = "hapax-demo.secret";
/// What is written.
const TEMPLATE: &str = include_str!("init.toml");
/// A secret is for its owner only.
const SECRET_MODE: u32 = 0o600;
const CONFIG_MODE: u32 = 0o644;

/// Write a commented hapax.toml with one working source and effect
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder to write to; it is made if need be [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let dir = args.dir.clone().unwrap_or_default();
    let (config, secret) = (dir.join(FILE_DEFAULT), dir.join(SECRET_FILE));
    if args.dir.is_some() {
        std::fs::create_dir_all(&dir).map_err(|error| unwritable(&dir, &error))?;
    }
    for path in [&config, &secret] {
        if path.exists() {
            return Err(exists(path));
        }
    }
    let text = format!("whsec_{}\n", hex::encode(entropy::bytes::<24>()));
    write(&secret, SECRET_MODE, &text)?;
    write(&config, CONFIG_MODE, TEMPLATE)?;
    let folder = match &args.dir {
        None => String::new(),
        Some(dir) => format!("cd {} && ", dir.display()),
    };
    output::talk(&format!(
        "wrote {} and {}\n\nnext:\n  {folder}hapax echo      (on port 9000, for want of your own service: it says what it gets)\n  {folder}hapax serve\n  {folder}hapax send demo --type invoice.paid --times 3\n  {folder}HAPAX_TOKEN=… hapax events list     (the token that `hapax serve` printed)",
        config.display(),
        secret.display()
    ));
    Ok(Exit::Ok)
}

/// Writes a new file; one that is there already stays as it is.
fn write(path: &Path, mode: u32, text: &str) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => unwritable(path, &error),
    })
}

fn exists(path: &Path) -> Failure {
    let text = format!("{} exists already, and nothing was written", path.display());
    Failure::new(
        Exit::Failed,
        "H0405",
        text,
        "name another folder with --dir, or move the file away",
    )
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let text = format!("{} cannot be written: {error}", path.display());
    Failure::new(
        Exit::Failed,
        "H0406",
        text,
        "name a folder that you may write to with --dir",
    )
}
