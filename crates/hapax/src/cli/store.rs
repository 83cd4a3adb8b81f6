//! `hapax store`: upkeep. A running server is asked through the HTTP API; with `--store` the store is opened here, and nobody else may
//! have it open.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::answer::{expect_json, text};
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::Noun;
use super::progress::Bar;
use super::{output, rows, store_direct};

pub(super) const STORE: Noun = Noun {
    one: "store",
    many: "store",
};

/// Upkeep of the store: migrate, back up, restore, prune, stats
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Bring the store to the shape that this version needs, while no server runs
    Migrate(MigrateArgs),
    /// Say that a PostgreSQL database was brought back to an earlier time, while no server runs
    Restored(RestoredArgs),
    /// Write a consistent copy of an SQLite store into a new file
    Backup(BackupArgs),
    /// Delete what has expired now instead of within a quarter of an hour
    Prune(PruneArgs),
    /// Show how full the store is, and whether any key got in twice
    Stats(StatsArgs),
}

/// Bring the store to the shape that this version needs, while no server runs
#[derive(Debug, clap::Args)]
pub(super) struct MigrateArgs {
    /// The config file that names the store [default: $HAPAX_CONFIG, then hapax.toml if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The store, e.g. sqlite:hapax.db [default: $HAPAX_STORE, then the config's]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Say that a PostgreSQL database was brought back to an earlier time, while no server runs
///
/// A database that was restored from a dump, and a copy of an SQLite store, are noticed by themselves. A snapshot of the disk and recovery to a
/// point in time are not. From then on nothing that is unfinished is trusted: it may have been sent since.
#[derive(Debug, clap::Args)]
pub(super) struct RestoredArgs {
    /// The config file that names the store [default: $HAPAX_CONFIG, then hapax.toml if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The store, e.g. postgres://localhost/hapax [default: $HAPAX_STORE, then the config's]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Write a consistent copy of an SQLite store into a new file
///
/// The key index beside the store is derived from it and not needed. The vault key is not in the copy: keep hapax.db.key, or what
/// `vault_key` names, in another place. To restore, put the copy where the store was, and start.
#[derive(Debug, clap::Args)]
pub(super) struct BackupArgs {
    /// The file to write; it must not be there
    file: PathBuf,
    /// Copy this store, e.g. sqlite:hapax.db, which no server has open [default: ask the running server]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
}

/// Delete what has expired now instead of within a quarter of an hour
#[derive(Debug, clap::Args)]
pub(super) struct PruneArgs {
    /// Only count it
    #[arg(long)]
    dry_run: bool,
    /// In this store, which no server has open [default: ask the running server]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Show how full the store is, and whether any key got in twice
#[derive(Debug, clap::Args)]
pub(super) struct StatsArgs {
    /// Of this store, which no server has open [default: ask the running server]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Migrate(args) => {
            let migrated = store_direct::migrate(args.config.as_deref(), args.store.as_deref())?;
            match args.json {
                true => output::json(&migrated)?,
                false => output::data(&store_direct::sentence(&migrated))?,
            }
        }
        Command::Restored(args) => {
            let ambiguous = store_direct::restored(args.config.as_deref(), args.store.as_deref())?;
            match args.json {
                true => output::json(&json!({ "ambiguous": ambiguous }))?,
                false => output::data(&format!(
                    "{ambiguous} unfinished effects are ambiguous from now on; those that may not be repeated wait for a person"
                ))?,
            }
        }
        Command::Backup(args) => backup(args)?,
        Command::Prune(args) => {
            let pruned = match &args.store {
                Some(store) => store_direct::prune(store, args.dry_run)?,
                None => prune(&Client::from_env()?, args.dry_run)?,
            };
            show_pruned(&pruned, args)?;
        }
        Command::Stats(args) => {
            let stats = match &args.store {
                Some(store) => store_direct::stats(store)?,
                None => {
                    let client = Client::from_env()?;
                    let answer = block_on(client.get("/api/v1/store"))?;
                    expect_json(&client, &answer, STORE, "store")?
                }
            };
            return show_stats(&stats, args.json);
        }
    }
    Ok(Exit::Ok)
}

fn backup(args: &BackupArgs) -> Result<(), Failure> {
    match &args.store {
        Some(store) => store_direct::backup(store, &args.file)?,
        None => download(&Client::from_env()?, &args.file)?,
    }
    output::data(&format!("{}", args.file.display()))?;
    output::talk(
        "the key index is derived and not needed; the vault key is not in it: keep hapax.db.key, or what vault_key names, elsewhere",
    );
    Ok(())
}

/// Made new, and its owner's alone: it holds other people's data.
fn download(client: &Client, into: &Path) -> Result<(), Failure> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(into)
        .map_err(|error| unwritable(into, &error))?;
    let bar = Bar::new("copying");
    bar.at(0, None);
    let copied = block_on(
        client.download("/api/v1/store/backup", &mut file, |done, total| {
            bar.at(done, total);
        }),
    );
    bar.end();
    let written = match copied {
        Ok(Ok(())) => file.sync_all().map_err(|error| unwritable(into, &error)),
        Ok(Err(answer)) => expect_json(client, &answer, STORE, "backup").map(drop),
        Err(failure) => Err(failure),
    };
    if written.is_err() {
        let _ = std::fs::remove_file(into);
    }
    written
}

pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let file = path.display();
    match error.kind() {
        ErrorKind::AlreadyExists => {
            let text = format!("{file} is there already, and is not written over");
            Failure::new(Exit::Failed, "H0405", text, "name another file")
        }
        _ => {
            let text = format!("{file} cannot be written: {error}");
            let help = "look at the folder, its rights, and whether there is space";
            Failure::new(Exit::Failed, "H0406", text, help)
        }
    }
}

fn prune(client: &Client, dry_run: bool) -> Result<Value, Failure> {
    let ask = |dry_run: bool| {
        let answer = block_on(client.post("/api/v1/store/prune", &json!({ "dryRun": dry_run })))?;
        expect_json(client, &answer, STORE, "store")
    };
    let due = ask(true)?;
    if dry_run {
        return Ok(due);
    }
    let bar = Bar::new("deleting");
    let mut sum = Pruned::default();
    // The server may be in the middle of a round of its own: after its end comes one that sees everything.
    let mut rounds = 0;
    while rounds < 2 {
        let step = ask(false).inspect_err(|_| bar.end())?;
        sum.add(&step);
        bar.at(sum.total(), Some(Pruned::of(&due).total()));
        rounds += u32::from(step["more"] != json!(true));
    }
    bar.end();
    Ok(sum.json())
}

/// What was deleted so far.
#[derive(Default)]
pub(super) struct Pruned([u64; 3]);

const PRUNED: [&str; 3] = ["payloads", "ledgers", "identities"];

impl Pruned {
    fn of(said: &Value) -> Pruned {
        Pruned(PRUNED.map(|name| said[name].as_u64().unwrap_or(0)))
    }

    fn add(&mut self, said: &Value) {
        let more = Pruned::of(said);
        for (sum, more) in self.0.iter_mut().zip(more.0) {
            *sum += more;
        }
    }

    fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn json(&self) -> Value {
        let [payloads, ledgers, identities] = self.0;
        json!({ "payloads": payloads, "ledgers": ledgers, "identities": identities, "more": false })
    }
}

fn show_pruned(pruned: &Value, args: &PruneArgs) -> Result<(), Failure> {
    if args.json {
        return output::json(pruned);
    }
    let [payloads, ledgers, identities] = Pruned::of(pruned).0;
    let would = if args.dry_run {
        "would be deleted"
    } else {
        "deleted"
    };
    output::data(&format!(
        "{payloads} payloads, {ledgers} ledgers and {identities} identities {would}"
    ))
}

/// A key that got in twice is a broken promise, and not a success.
fn show_stats(stats: &Value, as_json: bool) -> Result<Exit, Failure> {
    let facts = [
        ("events", "events"),
        ("with payload", "payloads"),
        ("bytes on disk", "bytes"),
        ("bytes free", "freeBytes"),
        ("effects pending", "effectsPending"),
        ("effects uncertain", "effectsUncertain"),
        ("effects dead", "effectsDead"),
        ("secrets", "secrets"),
        ("with an older key", "secretsOlderKey"),
        ("keys held twice", "keysTwice"),
    ];
    match as_json {
        true => output::json(stats)?,
        false => {
            let there = facts.into_iter().filter(|(_, name)| !stats[name].is_null());
            rows::facts(there.map(|(head, name)| (head, text(&stats[name]))))?;
        }
    }
    Ok(match stats["keysTwice"].as_u64() {
        Some(0) | None => Exit::Ok,
        Some(_) => Exit::Failed,
    })
}
