//! `hapax verify`: whether a captured request verifies, and if not, which of the known causes fits.

use std::path::{Path, PathBuf};

use hapax_verify::{Explanation, Request, Verified, explain};
use serde_json::json;

use super::exit::{Exit, Failure};
use super::{headers, list, output};
use crate::clock;
use crate::config::{self, Loaded, SourceConfig};

/// Say whether a captured request verifies, and if not, why
///
/// Nothing is sent: the config and the two files are all that is read.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The source's name in the config
    source: String,
    /// The request's headers, a `Name: value` line each; a request line before them is welcome
    #[arg(long, value_name = "FILE")]
    headers: PathBuf,
    /// The request's body, byte for byte
    #[arg(long, value_name = "FILE")]
    body: PathBuf,
    /// Judge as if it were this time, e.g. when the request came: 2026-01-31T12:00:00Z, or 2h for two hours ago
    /// [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// The config file [default: $HAPAX_CONFIG, then hapax.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let loaded = config::load_source(args.config.as_deref(), &args.source)?;
    let source = find(&loaded, &args.source)?;
    let head = headers::parse(&read(&args.headers)?).map_err(|line| {
        let text = format!("line {line} of {} is not a header", args.headers.display());
        Failure::new(
            Exit::Usage,
            "H0408",
            text,
            "write one `Name: value` on each line",
        )
    })?;
    let body = read(&args.body)?;
    let now = clock::now();
    let at = match &args.at {
        Some(at) => list::time("at", at, now)?.as_microsecond(),
        None => now.micros(),
    };
    let target = head
        .target
        .unwrap_or_else(|| format!("/in/{}", source.name));
    let url = loaded
        .config
        .public_url
        .as_ref()
        .map(|base| format!("{base}{target}"));
    let request = Request {
        method: head.method.as_deref().unwrap_or("POST"),
        url: url.as_deref(),
        headers: &head.headers,
        body: &body,
        now: at,
    };
    let explanation = explain(&source.verifier, &request);
    match args.json {
        true => output::json(&to_json(source, &explanation))?,
        false => output::data(&words(source, &explanation))?,
    }
    Ok(match explanation.verdict {
        Ok(_) => Exit::Ok,
        Err(_) => Exit::Failed,
    })
}

/// The source of this name, or which one was probably meant.
pub(super) fn find<'l>(loaded: &'l Loaded, name: &str) -> Result<&'l SourceConfig, Failure> {
    if let Some(source) = loaded.config.sources.first() {
        return Ok(source);
    }
    let names = loaded.source_names.iter().map(String::as_str);
    let help = match (config::nearest(name, names), loaded.source_names.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "there is no source; `hapax init` writes a config with one".to_owned(),
        (None, names) => format!("the sources are: {}", names.join(", ")),
    };
    let file = match &loaded.file {
        Some(file) => file.display().to_string(),
        None => "the config".to_owned(),
    };
    let text = format!("{file} has no source `{name}`");
    Err(Failure::new(Exit::NotFound, "H0403", text, help))
}

/// A file's bytes.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        let text = format!("{} cannot be read: {error}", path.display());
        Failure::new(
            Exit::Failed,
            "H0406",
            text,
            "look at the path and at who may read it",
        )
    })
}

fn words(source: &SourceConfig, explanation: &Explanation) -> String {
    let verified = match &explanation.verdict {
        Ok(verified) => verified,
        Err(refusal) => {
            let mut text = format!("does not verify: {refusal}");
            for cause in &explanation.causes {
                let (kind, evidence, remedy) = (cause.kind, &cause.evidence, &cause.remedy);
                text.push_str(&format!(
                    "\n\ncause: {kind}\n  {evidence}\n  remedy: {remedy}"
                ));
            }
            return text;
        }
    };
    let mut text = format!("verifies: {} by {}", source.provider, verified.scheme);
    if let Some(index) = verified.secret_index {
        // The index is that of `secretIndex` in JSON: from 0.
        text.push_str(&format!(", secrets[{index}]"));
    }
    if let Some(at) = signed_at(verified) {
        text.push_str(&format!(", signed at {at}"));
    }
    text.push_str(&format!("; covers: {}", verified.covers.as_str()));
    text
}

fn signed_at(verified: &Verified) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_microsecond(verified.signed_at?).ok()
}

fn to_json(source: &SourceConfig, explanation: &Explanation) -> serde_json::Value {
    let causes = explanation.causes.iter();
    let causes: Vec<_> = causes
        .map(|cause| json!({"kind": cause.kind.code(), "evidence": cause.evidence, "remedy": cause.remedy}))
        .collect();
    let verified = explanation.verdict.as_ref().ok();
    json!({
        "source": *source.name,
        "verifies": verified.is_some(),
        "scheme": verified.map(|verified| verified.scheme),
        "secretIndex": verified.and_then(|verified| verified.secret_index),
        "signedAt": verified.and_then(signed_at).map(|at| at.to_string()),
        "covers": verified.map(|verified| verified.covers.as_str()),
        "refusal": explanation.verdict.as_ref().err().map(ToString::to_string),
        "causes": causes,
    })
}
