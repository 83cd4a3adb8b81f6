//! `cargo xt ci`: what must be green before a change goes in. `./test` is this, after installing packages.

use std::process::ExitCode;

use crate::postgres::ThrowAway;
use crate::schema::Thoroughness;
use crate::steps::Steps;
use crate::{check, pages, schema, sdk, test};

/// What `cargo xt ci` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only the tests, without `cargo xt check`, and fewer generated requests.
    #[arg(long)]
    quick: bool,
    /// Handed on to the test runner: parts of test names.
    #[arg(last = true)]
    filters: Vec<String>,
}

/// Runs `cargo xt ci`. Unlike `cargo xt test` it insists on PostgreSQL.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut steps = Steps::start();
    if !args.quick {
        check::all(&mut steps);
    }
    let server = steps.attempt("start PostgreSQL", ThrowAway::start);
    let url = server.as_ref().map(ThrowAway::url);
    test::all(&mut steps, &args.filters, url);
    if let Some(server) = server {
        steps.run("stop PostgreSQL", || {
            drop(server);
            Ok(())
        });
    }
    if args.filters.is_empty() {
        let thoroughness = match args.quick {
            true => Thoroughness::Quick,
            false => Thoroughness::Full,
        };
        schema::all(&mut steps, thoroughness);
        sdk::all(&mut steps);
        pages::all(&mut steps);
    }
    Ok(steps.finish())
}
