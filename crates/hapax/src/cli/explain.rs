//! `hapax explain`: the page of an error code.

use serde_json::json;

use super::exit::{Exit, Failure};
use super::output;
use super::pages::{self, Page};
use crate::config::nearest;

/// Show the page of an error code
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The code, e.g. H0204; without it, all codes are listed
    code: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let Some(code) = &args.code else {
        list(args.json)?;
        return Ok(Exit::Ok);
    };
    let code = full(code);
    let page = pages::find(&code).ok_or_else(|| unknown(&code))?;
    match args.json {
        true => {
            output::json(&json!({"code": page.code, "title": page.title(), "text": page.text}))?
        }
        false => output::data(page.text.trim_end())?,
    }
    Ok(Exit::Ok)
}

/// `h206` and `206` mean `H0206`.
fn full(code: &str) -> String {
    let code = code.to_uppercase();
    match code.strip_prefix('H').unwrap_or(&code).parse::<u16>() {
        Ok(number) => format!("H{number:04}"),
        Err(_) => code,
    }
}

fn list(as_json: bool) -> Result<(), Failure> {
    let line = |page: &Page| format!("{}  {}", page.code, page.title());
    if as_json {
        let pages = pages::all().iter();
        let pages: Vec<_> = pages
            .map(|page| json!({"code": page.code, "title": page.title()}))
            .collect();
        return output::json(&pages.into());
    }
    let lines: Vec<String> = pages::all().iter().map(line).collect();
    output::data(&lines.join("\n"))
}

fn unknown(code: &str) -> Failure {
    let help = match nearest(code, pages::all().iter().map(|page| page.code)) {
        Some(near) => format!("the nearest is {near}; `hapax explain` without a code lists all"),
        None => "`hapax explain` without a code lists all".to_owned(),
    };
    Failure::new(
        Exit::NotFound,
        "H0409",
        format!("there is no error code `{code}`"),
        help,
    )
}
