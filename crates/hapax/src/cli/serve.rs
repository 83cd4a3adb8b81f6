//! `hapax serve`: the server.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use tracing_subscriber::EnvFilter;

use super::exit::{Exit, Failure};
use super::output;
use crate::config::{self, Loaded, Overrides, Problems};

/// What is logged unless told: the key index speaks of its own upkeep in a voice as loud as ours.
const LOG_DEFAULT: &str = "info,fjall=warn,lsm_tree=warn";

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
    let reload = move || reload(path.as_deref(), &overrides);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error.into()))?;
    match runtime.block_on(crate::http::run(loaded.config, Box::new(reload))) {
        Ok(()) => Ok(Exit::Ok),
        Err(error) => Err(failed(&error)),
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
            false => tracing::warn!(code = warning.code, %warning, "config"),
        }
    }
}

fn failed(error: &anyhow::Error) -> Failure {
    let help = "the address may be taken or the store in use by another process; HAPAX_LOG=debug says more";
    Failure::new(
        Exit::Failed,
        "H0407",
        format!("the server stopped: {error:#}"),
        help,
    )
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
