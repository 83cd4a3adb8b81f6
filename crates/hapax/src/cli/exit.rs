//! Exit codes, and failures in words: what happened, what to do next, and where to read more.

use std::fmt;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use crate::config::{Place, Problem, Problems, Severity};

/// How a command ended. The numbers are part of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what it was asked.
    Ok = 0,
    /// It did not.
    Failed = 1,
    /// It was asked wrongly.
    Usage = 2,
    /// The verdict on an event or effect forbids it.
    Refused = 3,
    /// What it was asked about is not there.
    NotFound = 4,
    /// The server does not answer.
    Unreachable = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The config cannot be used.
    Config(Problems),
    /// Something else.
    Said(Said),
}

/// A failure in words.
#[derive(Debug)]
pub struct Said {
    exit: Exit,
    code: &'static str,
    text: String,
    help: String,
}

impl Failure {
    /// A failure with a page of its own.
    pub(super) fn new(
        exit: Exit,
        code: &'static str,
        text: impl Into<String>,
        help: impl Into<String>,
    ) -> Failure {
        Failure::Said(Said {
            exit,
            code,
            text: text.into(),
            help: help.into(),
        })
    }

    /// The same, with how far it went before.
    pub(super) fn after(self, so_far: &str) -> Failure {
        match self {
            Failure::Said(said) => Failure::Said(Said {
                text: format!("{so_far}{}", said.text),
                ..said
            }),
            config => config,
        }
    }

    /// The code of a failure in words.
    pub(super) fn code(&self) -> Option<&'static str> {
        match self {
            Failure::Config(_) => None,
            Failure::Said(said) => Some(said.code),
        }
    }

    /// How the command ends.
    pub fn exit(&self) -> Exit {
        match self {
            Failure::Config(Problems(problems)) => match problems.iter().all(is_of_a_flag) {
                true => Exit::Usage,
                false => Exit::Failed,
            },
            Failure::Said(said) => said.exit,
        }
    }

    /// The failure in colour, for a terminal.
    pub(super) fn painted(&self) -> String {
        match self {
            Failure::Config(Problems(problems)) => {
                let painted = problems.iter().map(|problem| problem.painted().to_string());
                painted.collect::<Vec<_>>().join("\n\n")
            }
            Failure::Said(said) => said.render(AnsiColor::Red.on_default().bold()),
        }
    }
}

/// Is it about how the command was called, or at least no error in the file?
fn is_of_a_flag(problem: &Problem) -> bool {
    let flag = matches!(&problem.place, Place::Named(name) if name.starts_with("--"));
    flag || problem.severity == Severity::Warning
}

impl Said {
    fn render(&self, style: Style) -> String {
        let Said {
            code, text, help, ..
        } = self;
        format!(
            "{style}error[{code}]{style:#}: {text}\n  = help: {help}\n  = more: hapax explain {code}"
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Config(problems) => problems.fmt(f),
            Failure::Said(said) => f.write_str(&said.render(Style::new())),
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure::Config(problems)
    }
}
