//! The way into the configuration: find the file, read it, lay environment and flags over it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::environment::{Environment, System, Variable, read_text};
use super::excerpt;
use super::problem::{Place, Problem, Problems, Severity};
use super::raw::{self, Scope};
use super::resolve::{self, Overlay};
use super::resolved::Config;
use super::scan::{At, Scan, Text};

/// The config file, if none is named.
pub const FILE_DEFAULT: &str = "hapax.toml";
/// The largest config file: thousands of sources fit, a mistaken database does not.
const CONFIG_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Values that beat both the environment and the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--listen`.
    pub listen: Option<String>,
    /// `--store`.
    pub store: Option<String>,
}

/// A configuration that can be used.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What somebody should know about it.
    pub warnings: Vec<Problem>,
    /// The names of all sources in the file, even if only one was asked for.
    pub source_names: Vec<String>,
    /// The file that was read, if there is one.
    pub file: Option<PathBuf>,
}

/// Reads the configuration: the file that is named, else `HAPAX_CONFIG`, else `hapax.toml` if there is one, else the
/// defaults.
///
/// # Errors
/// Every problem that makes it unusable.
pub fn load(path: Option<&Path>, overrides: &Overrides) -> Result<Loaded, Problems> {
    match Written::find(path)? {
        Some(written) => written.parse(overrides, Scope::Whole),
        None => parse_scope("", "", &System::default(), overrides, Scope::Whole),
    }
}

/// Reads the configuration of a file, which has to be there.
///
/// # Errors
/// Every problem that makes it unusable.
pub fn load_file(path: Option<&Path>) -> Result<Loaded, Problems> {
    let written = Written::find(path)?.ok_or_else(no_file)?;
    written.parse(&Overrides::default(), Scope::Whole)
}

/// Reads one source of the configuration and what it needs. No other source's secrets have to be there. If the file
/// has no such source, `config.sources` is empty.
///
/// # Errors
/// Every problem that makes it unusable.
pub fn load_source(path: Option<&Path>, name: &str) -> Result<Loaded, Problems> {
    let written = Written::find(path)?.ok_or_else(no_file)?;
    written.parse(&Overrides::default(), Scope::Source(name))
}

/// Reads a configuration from text; `file` is its name in messages.
///
/// # Errors
/// Every problem that makes it unusable.
pub fn parse(text: &str, file: &str, environment: &dyn Environment) -> Result<Loaded, Problems> {
    parse_scope(text, file, environment, &Overrides::default(), Scope::Whole)
}

/// A config file as it is written.
struct Written {
    path: PathBuf,
    text: String,
}

impl Written {
    /// The file that is named, or the default one; nothing if none is named and the default one is not there.
    fn find(path: Option<&Path>) -> Result<Option<Written>, Problems> {
        let named = path.map(Path::to_owned);
        let named = named.or_else(|| variable_path("HAPAX_CONFIG"));
        let path = named.clone().unwrap_or_else(|| FILE_DEFAULT.into());
        match File::open(&path).and_then(|file| read_text(file, CONFIG_BYTES_MAX)) {
            Ok(text) => Ok(Some(Written { path, text })),
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => Ok(None),
            Err(error) => Err(unreadable(&path, &error)),
        }
    }

    fn parse(self, overrides: &Overrides, scope: Scope<'_>) -> Result<Loaded, Problems> {
        let file = self.path.display().to_string();
        let environment = System::beside(&self.path);
        let loaded = parse_scope(&self.text, &file, &environment, overrides, scope)?;
        Ok(Loaded {
            file: Some(self.path),
            ..loaded
        })
    }
}

/// A path from the environment; an empty variable is none.
fn variable_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os(name).filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

fn no_file() -> Problems {
    Problems(vec![Problem {
        code: "H0108",
        severity: Severity::Error,
        place: Place::Nowhere,
        text: format!("there is no {FILE_DEFAULT} in this folder"),
        remedy: "name one with --config, or run `hapax init`".to_owned(),
    }])
}

fn unreadable(path: &Path, error: &io::Error) -> Problems {
    Problems(vec![Problem {
        code: "H0108",
        severity: Severity::Error,
        place: Place::Named(path.display().to_string()),
        text: format!("the config file cannot be read: {error}"),
        remedy: "name another with --config, or write one with `hapax init`".to_owned(),
    }])
}

/// Without a file, its text and its name are empty.
fn parse_scope(
    text: &str,
    file: &str,
    environment: &dyn Environment,
    overrides: &Overrides,
    scope: Scope<'_>,
) -> Result<Loaded, Problems> {
    let scan = Scan::new(file, text, environment);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // What was recovered is not looked at: half a file would give problems that are none.
        excerpt::suspicious(text)
            .into_iter()
            .for_each(|span| scan.hide(span));
        for error in errors {
            let at = At::Span(error.span().unwrap_or(0..0));
            let remedy =
                "texts stand in quotes, tables in [brackets]; https://toml.io has the rules";
            scan.error(
                "H0101",
                &at,
                format!("this is not TOML: {}", error.message()),
                remedy,
            );
        }
        return Err(Problems(scan.into_problems()));
    }
    let mut raw = raw::read(&scan, table.into_inner(), scope);
    let source_names = std::mem::take(&mut raw.source_names);
    let has_sources = !source_names.is_empty() || !raw.sources.is_empty();
    if !has_sources && scope == Scope::Whole {
        let at = match file {
            "" => At::Nowhere,
            file => At::Named(file.to_owned()),
        };
        let text = "no source is configured: every webhook is refused";
        scan.warn(
            "H0125",
            &at,
            text,
            "`hapax init` writes a config with one working source",
        );
    }
    let config = resolve::config(&scan, raw, overlay(&scan, environment, overrides));
    let problems = scan.into_problems();
    let broken = problems
        .iter()
        .any(|problem| problem.severity == Severity::Error);
    match config {
        Some(config) if !broken => Ok(Loaded {
            config,
            warnings: problems,
            source_names,
            file: None,
        }),
        _ => Err(Problems(problems)),
    }
}

/// Flags beat the environment, the environment beats the file.
fn overlay(scan: &Scan<'_>, environment: &dyn Environment, overrides: &Overrides) -> Overlay {
    let pick = |flag: Option<(&str, &String)>, variable: &str| -> Option<Text> {
        if let Some((flag, value)) = flag {
            return scan.follow(value.clone(), At::Named(flag.to_owned()));
        }
        match environment.variable(variable) {
            Variable::Set(value) if value.is_empty() => None,
            Variable::Set(value) => scan.follow(value, At::Named(variable.to_owned())),
            Variable::Unset => None,
            Variable::NotText => {
                let text = format!("the environment variable `{variable}` is not UTF-8 text");
                let remedy = format!("set `{variable}` to text, or unset it");
                scan.error("H0106", &At::Named(variable.to_owned()), text, remedy);
                None
            }
        }
    };
    Overlay {
        listen: pick(
            overrides.listen.as_ref().map(|value| ("--listen", value)),
            "HAPAX_LISTEN",
        ),
        store: pick(
            overrides.store.as_ref().map(|value| ("--store", value)),
            "HAPAX_STORE",
        ),
        admin_token: pick(None, "HAPAX_ADMIN_TOKEN"),
        vault_key: pick(None, "HAPAX_VAULT_KEY"),
    }
}
