//! The command line: one file per command.
//!
//! - `exit`: exit codes, and failures in words
//! - `output`, `table`: data on stdout, talk on stderr, tables that fit
//! - `client`: the HTTP client of the commands that ask a running server
//! - `act`: decisions: what would happen is shown, and somebody says yes
//! - `live`: a stream of events, as it comes
//! - `outgoing`: what `apps`, `endpoints` and `messages` have in common
//! - `list`, `rows`: what commands that show the ledger have in common: pages, filters, rows of JSON as tables
//!
//! **Invariant**: data goes to stdout and talk to stderr; an exit code means the same for every command; what a
//! command can do to a running server, the HTTP API can do too.

mod act;
mod answer;
mod apps;
mod audit;
mod audit_chain;
mod check;
mod client;
mod conform;
mod demo;
mod echo;
mod effects;
mod effects_meaning;
mod effects_table;
mod endpoints;
mod erase;
mod events;
mod events_table;
mod exit;
mod explain;
mod guard_keys;
mod headers;
mod health;
mod init;
mod keys;
mod list;
mod listen;
mod live;
mod messages;
mod outgoing;
mod output;
mod pages;
mod progress;
mod replay;
mod replay_watch;
mod review;
mod rows;
mod sample;
mod secrets;
mod send;
mod serve;
mod store;
mod store_direct;
mod table;
mod token;
mod verdict_table;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use exit::{Exit, Failure};

/// Webhooks and API calls arrive more than once. With Hapax they take effect once, and it can prove it.
#[derive(Debug, Parser)]
#[command(name = "hapax", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 ok, 1 failed, 2 usage, 3 refused by verdict, 4 not found, 5 server unreachable.
HAPAX_URL (default http://127.0.0.1:8080) and HAPAX_TOKEN point the client commands.";

#[derive(Debug, Subcommand)]
enum Command {
    /// See it work: a server, and a world that misbehaves
    Demo(demo::Args),
    /// Write a commented hapax.toml with one working source
    Init(init::Args),
    /// Read the config and say every problem with file, line and remedy
    Check(check::Args),
    /// Run the server
    Serve(serve::Args),
    /// Answer every request and say what came: a service to try effects out with
    Echo(echo::Args),
    /// Ask whether the server can commit
    Health(health::Args),
    /// Sign and send a sample event as the source's provider would
    Send(send::Args),
    /// Say whether a captured request verifies, and if not, why
    Verify(verify::Args),
    /// Look at events and decide about them
    #[command(subcommand)]
    Events(events::Command),
    /// Look at effects and settle them by hand
    #[command(subcommand)]
    Effects(effects::Command),
    /// Replay many events by filter
    #[command(subcommand)]
    Replay(replay::Command),
    /// Applications that messages are sent for
    #[command(subcommand)]
    Apps(apps::Command),
    /// Where messages of an application go
    #[command(subcommand)]
    Endpoints(endpoints::Command),
    /// What is published, and what became of it
    #[command(subcommand)]
    Messages(messages::Command),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Read and verify the audit log
    #[command(subcommand)]
    Audit(audit::Command),
    /// Upkeep of the store: migrate, back up, prune, stats
    #[command(subcommand)]
    Store(store::Command),
    /// Secrets that providers choose: expect, list and drop them
    #[command(subcommand)]
    Secrets(secrets::Command),
    /// Keys of sources (duplicate forensics) and of guarded requests
    #[command(subcommand)]
    Keys(keys::Command),
    /// Check how an API treats the Idempotency-Key
    Conform(conform::Args),
    /// Forward live events to a local URL
    Listen(listen::Args),
    /// Show the page of an error code
    Explain(explain::Args),
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are errors to clap; they go to stdout and are fine.
            let _ = error.print();
            return match error.use_stderr() {
                true => Exit::Usage.into(),
                false => Exit::Ok.into(),
            };
        }
    };
    let result = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Echo(args) => echo::run(&args),
        Command::Health(args) => health::run(&args),
        Command::Send(args) => send::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Events(command) => events::run(&command),
        Command::Effects(command) => effects::run(&command),
        Command::Replay(command) => replay::run(&command),
        Command::Apps(command) => apps::run(&command),
        Command::Endpoints(command) => endpoints::run(&command),
        Command::Messages(command) => messages::run(&command),
        Command::Token(command) => token::run(&command),
        Command::Audit(command) => audit::run(&command),
        Command::Store(command) => store::run(&command),
        Command::Secrets(command) => secrets::run(&command),
        Command::Keys(command) => keys::run(&command),
        Command::Conform(args) => conform::run(&args),
        Command::Listen(args) => listen::run(&args),
        Command::Explain(args) => explain::run(&args),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::talk(&failure.painted().to_string());
            failure.exit().into()
        }
    }
}
