//! The walk over a configuration: what it finds on the way, and what must not be shown.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

use super::environment::{Environment, Variable};
use super::excerpt;
use super::problem::{Place, Problem, Severity};

/// The longest value that a message quotes.
const QUOTED_CHARS_MAX: usize = 60;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// This part of the file.
    Span(Range<usize>),
    /// A flag, an environment variable or the file as a whole.
    Named(String),
    /// Nothing that could be named: there is no file.
    Nowhere,
}

/// A text with its `env:` or `file:` followed.
#[derive(Clone, Debug)]
pub(super) struct Text {
    /// The text.
    pub(super) value: String,
    /// Where it stands.
    pub(super) at: At,
    /// `env:NAME` or `file:PATH`, if it came by that way.
    indirect: Option<String>,
}

impl Text {
    /// The text for a message. What came from elsewhere may be a secret in the wrong place, so only its way is told.
    pub(super) fn shown(&self) -> String {
        match &self.indirect {
            Some(way) => format!("the value of `{way}`"),
            None => quoted(&self.value),
        }
    }

    /// A part of it, which stands where it stands.
    pub(super) fn part(&self, value: &str) -> Text {
        Text {
            value: value.to_owned(),
            ..self.clone()
        }
    }

    /// Is it written in the file itself?
    pub(super) fn is_literal(&self) -> bool {
        self.indirect.is_none()
    }
}

/// A value in backticks, cut if it is long.
fn quoted(value: &str) -> String {
    match value.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((cut, _)) => format!("`{}...`", &value[..cut]),
        None => format!("`{value}`"),
    }
}

struct Finding {
    code: &'static str,
    severity: Severity,
    at: At,
    text: String,
    remedy: String,
}

/// One walk over one file.
pub(super) struct Scan<'e> {
    file: &'e str,
    text: &'e str,
    environment: &'e dyn Environment,
    findings: RefCell<Vec<Finding>>,
    hidden: RefCell<Vec<Range<usize>>>,
}

impl<'e> Scan<'e> {
    pub(super) fn new(file: &'e str, text: &'e str, environment: &'e dyn Environment) -> Scan<'e> {
        Scan {
            file,
            text,
            environment,
            findings: RefCell::default(),
            hidden: RefCell::default(),
        }
    }

    pub(super) fn error(
        &self,
        code: &'static str,
        at: &At,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(code, Severity::Error, at, text.into(), remedy.into());
    }

    pub(super) fn warn(
        &self,
        code: &'static str,
        at: &At,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(code, Severity::Warning, at, text.into(), remedy.into());
    }

    fn add(&self, code: &'static str, severity: Severity, at: &At, text: String, remedy: String) {
        self.findings.borrow_mut().push(Finding {
            code,
            severity,
            at: at.clone(),
            text,
            remedy,
        });
    }

    /// Never shows this part of the file.
    pub(super) fn hide(&self, span: Range<usize>) {
        self.hidden.borrow_mut().push(span);
    }

    /// Follows `env:NAME` and `file:PATH`.
    pub(super) fn follow(&self, literal: String, at: At) -> Option<Text> {
        let value = match literal.split_once(':') {
            Some(("env", name)) => self.variable(name, &at)?,
            Some(("file", path)) => self.file(path, &at)?,
            _ => {
                return Some(Text {
                    value: literal,
                    at,
                    indirect: None,
                });
            }
        };
        Some(Text {
            value,
            at,
            indirect: Some(literal),
        })
    }

    /// The variable that a text names, if it names one that is not set.
    pub(super) fn unset(&self, literal: &str) -> Option<String> {
        let name = literal.strip_prefix("env:")?;
        (self.environment.variable(name) == Variable::Unset).then(|| name.to_owned())
    }

    fn variable(&self, name: &str, at: &At) -> Option<String> {
        let wrong = match self.environment.variable(name) {
            Variable::Set(value) => return Some(value),
            Variable::Unset => "is not set",
            Variable::NotText => "is not UTF-8 text",
        };
        let text = format!("the environment variable `{name}` {wrong}");
        let remedy = format!("set `{name}` for the process that reads this file");
        self.error("H0106", at, text, remedy);
        None
    }

    fn file(&self, path: &str, at: &At) -> Option<String> {
        match self.environment.file(Path::new(path)) {
            Ok(mut text) => {
                // One newline, as editors and `echo` leave it; more is part of the value.
                if text.ends_with('\n') {
                    text.pop();
                    if text.ends_with('\r') {
                        text.pop();
                    }
                }
                Some(text)
            }
            Err(error) => self.unreadable(path, at, &error),
        }
    }

    /// The bytes of a file.
    pub(super) fn bytes(&self, path: &str, at: &At) -> Option<Vec<u8>> {
        match self.environment.bytes(Path::new(path)) {
            Ok(bytes) => Some(bytes),
            Err(error) => self.unreadable(path, at, &error),
        }
    }

    fn unreadable<T>(&self, path: &str, at: &At, error: &std::io::Error) -> Option<T> {
        let text = format!("the file `{path}` cannot be read: {error}");
        let remedy = "a relative path starts at the folder of the config file";
        self.error("H0107", at, text, remedy);
        None
    }

    /// Everything that was found, in the order of the file.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        let hidden = self.hidden.into_inner();
        let mut findings = self.findings.into_inner();
        findings.sort_by_key(|finding| match &finding.at {
            At::Span(span) => (span.start, finding.severity),
            At::Named(_) | At::Nowhere => (usize::MAX, finding.severity),
        });
        let problem = |finding: Finding| Problem {
            code: finding.code,
            severity: finding.severity,
            place: match finding.at {
                At::Span(span) => excerpt::place(self.file, self.text, &span, &hidden),
                At::Named(name) => Place::Named(name),
                At::Nowhere => Place::Nowhere,
            },
            text: finding.text,
            remedy: finding.remedy,
        };
        findings.into_iter().map(problem).collect()
    }
}
