//! `hapax conform`: checks how any API treats the `Idempotency-Key`, from the outside.
//!
//! - `target`: sends requests to the API
//! - `checks`: which requests, in which order
//! - `evidence`: what in an answer shows that something was carried out; pure
//! - `judge`: what the answers say; pure
//! - `check`: the lines of the table
//!
//! Executions are counted without the API's help: its answer has to contain something that differs from execution to execution, such as a
//! new id. Whether it does is the first check. Without it only the mark of a replay tells one from another execution; what then is not shown
//! is said to be unproven, and an API of which something is unproven does not conform.

mod check;
mod checks;
mod evidence;
mod judge;
mod target;

use serde_json::json;

use self::check::{Check, Outcome, Rules};
use self::checks::Wanted;
use self::target::Target;
use super::client::block_on;
use super::exit::{Exit, Failure};
use super::output;
use super::table::Table;

/// What somebody can do about answers that show nothing.
const UNPROVEN: &str = "What is UNPROVEN does not count as conforming; the table says why. Where executions cannot be told apart, let the answer \
contain an id that is new with each of them (or name the header that has one: --id-header), or mark repeated answers with Idempotent-Replayed: true.";

/// Check how an API treats the Idempotency-Key
///
/// Sends real requests to URL, about 30 of them: use a test environment. The answer to a successful request has to contain something that
/// differs from execution to execution, such as a new id; that is how executions are counted. Where it does not, and repeated answers are not marked
/// with Idempotent-Replayed either, checks are UNPROVEN, and the API does not conform (exit code 1).
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where to, with the path of one operation, e.g. https://api.example.com/charges
    url: String,
    /// The method
    #[arg(long, default_value = "POST")]
    method: String,
    /// The body
    #[arg(long, default_value = "{\"conform\":true}", value_name = "TEXT")]
    body: String,
    /// Another body, for the request that reuses a key [default: the body, changed a little]
    #[arg(long, value_name = "TEXT")]
    other_body: Option<String>,
    /// A header of all requests, e.g. 'Authorization: Bearer ...'; may be given several times
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// A header of another caller, in place of the one of that name; may be given several times
    #[arg(long = "other-header", value_name = "NAME: VALUE")]
    other_headers: Vec<String>,
    /// A header of answers that is new with each execution, e.g. X-Charge-Id; may be given several times
    #[arg(long = "id-header", value_name = "NAME")]
    id_headers: Vec<String>,
    /// What to expect: as the IETF draft has it, or as Stripe does it
    #[arg(long, value_parser = ["ietf", "stripe"])]
    preset: Option<String>,
    /// Requests without a key have to be refused
    #[arg(long)]
    required: bool,
    /// How many requests race for one key
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=200))]
    race: u32,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let target = Target::new(args)?;
    let wanted = Wanted {
        rules: match args.preset.as_deref() {
            Some("ietf") => Rules::Ietf,
            Some("stripe") => Rules::Stripe,
            _ => Rules::Any,
        },
        required: args.required,
        race: usize::try_from(args.race).unwrap_or(usize::MAX),
    };
    let checks = block_on(checks::all(&target, &wanted))?;
    let conforms = count(&checks, Outcome::Failed) + count(&checks, Outcome::Unproven) == 0;
    match args.json {
        true => output::json(&json!({
            "url": args.url,
            "conforms": conforms,
            "checks": checks.iter().map(as_json).collect::<Vec<_>>(),
        }))?,
        false => show(args, &checks)?,
    }
    match conforms {
        true => Ok(Exit::Ok),
        false => Ok(Exit::Failed),
    }
}

fn count(checks: &[Check], outcome: Outcome) -> usize {
    let counted = checks.iter().filter(|check| check.outcome == outcome);
    counted.count()
}

fn as_json(check: &Check) -> serde_json::Value {
    json!({
        "check": check.name,
        "outcome": check.outcome.word(),
        "why": check.why,
    })
}

fn show(args: &Args, checks: &[Check]) -> Result<(), Failure> {
    let mut table = Table::new(&["CHECK", "OUTCOME", "WHY"]);
    for check in checks {
        let cells = [check.name, check.outcome.word(), &check.why];
        table.rows.push(cells.map(str::to_owned).to_vec());
    }
    // Not cut: why something failed is what somebody wants to read to its end.
    output::data(&table.render(None, &[]))?;
    let (passed, failed, unproven, skipped) = (
        count(checks, Outcome::Passed),
        count(checks, Outcome::Failed),
        count(checks, Outcome::Unproven),
        count(checks, Outcome::Skipped),
    );
    output::talk(&format!(
        "{} {}: {passed} passed, {failed} failed, {unproven} unproven, {skipped} skipped",
        args.method, args.url
    ));
    if unproven > 0 {
        output::talk(UNPROVEN);
    }
    Ok(())
}
