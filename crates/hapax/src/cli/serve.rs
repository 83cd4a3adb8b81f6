//! `hapax serve`: the server.

use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

use hapax_store::StoreError;
use tracing_subscriber::EnvFilter;

use super::exit::{Exit, Failure};
use super::output;
use crate::config::{self, Loaded, Overrides, Place, Problems, StoreTarget};
use crate::secrets::Unusable;

/// What is logged unless told: the key index speaks of its own upkeep in a voice as loud as ours.
const LOG_DEFAULT: &str = "info,fjall=warn,lsm_tree=warn";

/// Where there is nothing better to say.
const HELP_DEFAULT: &str = "HAPAX_LOG=debug says more";

/// Run the server
///
/// SIGHUP reads the config again; a bad one is refused and the running one stays. SIGINT and SIGTERM stop the server
/// after what it has taken is stored. HAPAX_LOG sets what is logged (default: info).
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The config file [default: $HAPAX_CONFIG, then hapax.toml if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen, e.g. 0.0.0.0:8080 [default: $HAPAX_LISTEN, then the config's]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Where the ledger is kept, e.g. sqlite:hapax.db [default: $HAPAX_STORE, then the config's]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let overrides = Overrides {
        listen: args.listen.clone(),
        store: args.store.clone(),
    };
    let path = args.config.clone();
    let loaded = config::load(path.as_deref(), &overrides)?;
    log()?;
    tell(&loaded);
    // A server that began with a file goes on with that file: one that is missing for a moment is a bad one.
    let path = path.or_else(|| loaded.file.clone());
    let reload = move || reload(path.as_deref(), &overrides);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error.into(), &loaded.config.store))?;
    let store = loaded.config.store.clone();
    match runtime.block_on(crate::http::run(loaded.config, Box::new(reload))) {
        Ok(()) => Ok(Exit::Ok),
        Err(error) => Err(failed(&error, &store)),
    }
}

fn reload(path: Option<&Path>, overrides: &Overrides) -> Result<config::Config, Problems> {
    let loaded = config::load(path, overrides)?;
    tell(&loaded);
    Ok(loaded.config)
}

/// Warnings to a person as they are read best, to a machine as log lines.
fn tell(loaded: &Loaded) {
    for warning in &loaded.warnings {
        match std::io::stderr().is_terminal() {
            true => output::talk(&format!("{}\n", warning.painted())),
            false => match warning.place {
                Place::Nowhere => {
                    tracing::warn!(
                        code = warning.code,
                        help = warning.remedy,
                        "{}",
                        warning.text
                    );
                }
                _ => tracing::warn!(code = warning.code, %warning, "config"),
            },
        }
    }
}

/// What happened, and what to do about this cause.
fn failed(error: &anyhow::Error, store: &StoreTarget) -> Failure {
    let text = match store {
        StoreTarget::Postgres(url) if error.is::<StoreError>() => {
            let server = server_of(url);
            format!("could not start: PostgreSQL at {server}: {error:#}")
        }
        _ => format!("could not start: {error:#}"),
    };
    if let Some(unusable) = error.downcast_ref::<Unusable>()
        && !matches!(unusable, Unusable::Store(_))
    {
        return Failure::new(Exit::Failed, "H0413", text, help_of_keys(store));
    }
    let help = match error.root_cause().downcast_ref::<std::io::Error>() {
        Some(io) => help_of_listening(io.kind()).to_owned(),
        None => help_of_store(&text, store),
    };
    Failure::new(Exit::Failed, "H0407", text, help)
}

/// Which key it has to be, and where it is looked for.
fn help_of_keys(store: &StoreTarget) -> String {
    match store {
        StoreTarget::Sqlite(path) => format!(
            "bring back {}.key, or set `vault_key` or HAPAX_VAULT_KEY to the key that this store began with",
            path.display()
        ),
        StoreTarget::Postgres(_) => {
            "set `vault_key` or HAPAX_VAULT_KEY to the key that the other nodes have".to_owned()
        }
    }
}

fn help_of_listening(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::AddrInUse => {
            "another process listens there; stop it, or choose another address with --listen"
        }
        ErrorKind::PermissionDenied => {
            "this user may not take that port; choose one from 1024 on with --listen"
        }
        ErrorKind::AddrNotAvailable => {
            "this machine does not have that address; choose another with --listen"
        }
        _ => HELP_DEFAULT,
    }
}

/// A store says in words what is wrong; its kinds tell a server only what it may conclude.
fn help_of_store(text: &str, store: &StoreTarget) -> String {
    let path = match store {
        StoreTarget::Sqlite(path) => path,
        StoreTarget::Postgres(_) => {
            return "look whether it runs there, and at user, password and database in `store`"
                .to_owned();
        }
    };
    let has = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.display().to_string(),
        _ => "this folder".to_owned(),
    };
    if has(&["in use by another process"]) {
        return "one process holds a store; stop it, or name another file with --store".to_owned();
    }
    if has(&["not a database"]) {
        let file = path.display();
        return format!("{file} is something else; name another file with --store sqlite:FILE");
    }
    if has(&["Permission denied", "readonly", "unable to open"]) {
        return format!(
            "this user has to be able to write to {folder} and to the files of the store there; or name another with --store"
        );
    }
    if has(&["No such file"]) {
        return format!("make {folder} first, or name another file with --store");
    }
    HELP_DEFAULT.to_owned()
}

/// Host and port of a database URL, without who logs in and how.
fn server_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    // A password may stand before the `@` or in the query.
    let rest = rest.split('?').next().unwrap_or_default();
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

/// Logs to stderr: lines for people on a terminal, JSON otherwise.
fn log() -> Result<(), Failure> {
    let wanted = std::env::var("HAPAX_LOG").unwrap_or_else(|_| LOG_DEFAULT.to_owned());
    let filter = EnvFilter::try_new(&wanted).map_err(|error| {
        let text = format!("HAPAX_LOG=`{wanted}` is not a log filter: {error}");
        Failure::new(
            Exit::Usage,
            "H0408",
            text,
            "write a level (info, debug) or target=level pairs",
        )
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A second subscriber in one process can only be a test's; the first one stays.
    let _ = match std::io::stderr().is_terminal() {
        true => builder.try_init(),
        false => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::server_of;

    #[test]
    fn a_database_s_server_is_named_without_its_password() {
        for (url, want) in [
            ("postgres://user:hush@host:5432/db", "host:5432"),
            ("postgres://user:hu@sh@host/db?a=b", "host"),
            ("postgresql://host?password=hu@sh", "host"),
            ("postgres://user:hush@a:1,b:2/db", "a:1,b:2"),
        ] {
            assert_eq!(server_of(url), want);
        }
    }
}
