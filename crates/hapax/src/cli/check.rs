//! `hapax check`: every problem of the config, with file, line and remedy.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::exit::{Exit, Failure};
use super::output;
use crate::config::{self, Loaded, Place, Problem, Problems, Severity};

/// Read the config and say every problem with file, line and remedy
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The config file [default: $HAPAX_CONFIG, then hapax.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let loaded = config::load_file(args.config.as_deref());
    let (problems, summary) = match &loaded {
        Ok(loaded) => (&loaded.warnings, summary(loaded)),
        Err(Problems(problems)) => (problems, counted(problems)),
    };
    if args.json {
        let problems: Vec<Value> = problems.iter().map(to_json).collect();
        output::json(&json!({
            "ok": loaded.is_ok(),
            "problems": problems,
            "sources": loaded.as_ref().map_or(Vec::new(), sources),
            "effects": loaded.as_ref().map_or(Vec::new(), effects),
            "alertsHost": loaded.as_ref().ok().and_then(alerts_host),
        }))?;
    } else {
        for problem in problems {
            output::data(&format!("{}\n", problem.painted()))?;
        }
        output::data(&summary)?;
        if let Ok(loaded) = &loaded {
            notes(loaded);
        }
    }
    Ok(match loaded {
        Ok(_) => Exit::Ok,
        Err(_) => Exit::Failed,
    })
}

fn summary(loaded: &Loaded) -> String {
    let sources = loaded.config.sources.iter();
    let sources = sources.map(|source| format!("{} ({})", source.name, source.provider));
    let effects = loaded.config.effects.iter();
    let effects = effects.map(|effect| format!("{} ({})", effect.name, effect.rule.repeat));
    let parts = [
        Some(listed("source", &sources.collect::<Vec<_>>())),
        Some(listed("effect", &effects.collect::<Vec<_>>()))
            .filter(|_| !loaded.config.effects.is_empty()),
        alerts_host(loaded).map(|host| format!("alerts to {host}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("ok: {}", parts.join("; "))
}

/// Where alerts go; the host only, since paths and queries may hold tokens.
fn alerts_host(loaded: &Loaded) -> Option<&str> {
    let effect = loaded.config.alerts.effect.as_ref()?;
    effect.url.uri().host()
}

fn listed(noun: &str, named: &[String]) -> String {
    let count = count(named.len(), noun);
    match named.is_empty() {
        true => count,
        false => format!("{count}: {}", named.join(", ")),
    }
}

fn counted(problems: &[Problem]) -> String {
    let of = |severity| {
        problems
            .iter()
            .filter(|problem| problem.severity == severity)
            .count()
    };
    let errors = count(of(Severity::Error), "error");
    match of(Severity::Warning) {
        0 => errors,
        warnings => format!("{errors}, {}", count(warnings, "warning")),
    }
}

fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// What an operator should know before relying on a preset.
fn notes(loaded: &Loaded) {
    for source in &loaded.config.sources {
        let Some(preset) = source.preset else {
            continue;
        };
        if let Some(note) = &preset.note {
            output::talk(&format!("note: {} ({}): {note}", source.name, preset.title));
        }
    }
}

fn sources(loaded: &Loaded) -> Vec<Value> {
    let source = |source: &config::SourceConfig| {
        json!({
            "name": *source.name,
            "provider": *source.provider,
            "scheme": source.verifier.scheme().name(),
            "covers": source.verifier.covers().as_str(),
        })
    };
    loaded.config.sources.iter().map(source).collect()
}

fn effects(loaded: &Loaded) -> Vec<Value> {
    let effect = |effect: &Arc<config::EffectConfig>| {
        json!({
            "name": *effect.name,
            "source": *effect.source,
            "repeat": effect.rule.repeat.to_string(),
            "after": effect.rule.after,
        })
    };
    loaded.config.effects.iter().map(effect).collect()
}

fn to_json(problem: &Problem) -> Value {
    let (file, line, column) = match &problem.place {
        Place::File {
            file, line, column, ..
        } => (Some(file), Some(*line), Some(*column)),
        Place::Named(name) => (Some(name), None, None),
        Place::Nowhere => (None, None, None),
    };
    json!({
        "code": problem.code,
        "severity": match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "file": file,
        "line": line,
        "column": column,
        "text": problem.text,
        "remedy": problem.remedy,
    })
}
