//! What is wrong with a configuration: where, what, and what to do about it.

use std::fmt;

use anstyle::{AnsiColor, Style};

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// It can be used, and somebody should know.
    Warning,
}

/// Where a problem is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    File {
        /// The file's name.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// The line itself, with every literal secret blacked out.
        excerpt: Excerpt,
    },
    /// A file as a whole, a flag (`--listen`) or an environment variable.
    Named(String),
    /// Nothing that could be named: there is no file.
    Nowhere,
}

/// One line of a file, and the part of it that a problem is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The line, with every literal secret blacked out.
    pub line: String,
    /// How many of its characters stand before the caret.
    pub caret_from: usize,
    /// How many characters the caret covers, at least 1.
    pub caret_chars: usize,
}

/// One problem, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A stable code (`hapax explain CODE`).
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub place: Place,
    /// What is wrong.
    pub text: String,
    /// What to do about it.
    pub remedy: String,
}

/// Why a configuration cannot be used: every problem that was found, warnings too, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problem {
    /// The problem in colour, for a terminal.
    pub fn painted(&self) -> impl fmt::Display + '_ {
        let word = match self.severity {
            Severity::Error => AnsiColor::Red.on_default().bold(),
            Severity::Warning => AnsiColor::Yellow.on_default().bold(),
        };
        Rendered {
            problem: self,
            word,
            gutter: AnsiColor::Blue.on_default().bold(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = Style::new();
        let rendered = Rendered {
            problem: self,
            word: plain,
            gutter: plain,
        };
        rendered.fmt(f)
    }
}

/// A problem and the colours to show it in; a plain style writes nothing.
struct Rendered<'p> {
    problem: &'p Problem,
    word: Style,
    gutter: Style,
}

impl fmt::Display for Rendered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (problem, word, gutter) = (self.problem, self.word, self.gutter);
        let severity = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let Problem {
            code, text, remedy, ..
        } = problem;
        writeln!(f, "{word}{severity}[{code}]{word:#}: {text}")?;
        let indent = match &problem.place {
            Place::Nowhere => 1,
            Place::Named(name) => {
                writeln!(f, " {gutter}-->{gutter:#} {name}")?;
                1
            }
            Place::File {
                file,
                line,
                column,
                excerpt,
            } => {
                let indent = line.to_string().len();
                let before = " ".repeat(excerpt.caret_from);
                let caret = "^".repeat(excerpt.caret_chars);
                let shown = excerpt.line.trim_end();
                writeln!(
                    f,
                    "{:indent$}{gutter}-->{gutter:#} {file}:{line}:{column}",
                    ""
                )?;
                writeln!(f, "{:indent$} {gutter}|{gutter:#}", "")?;
                writeln!(f, "{gutter}{line} |{gutter:#} {shown}")?;
                writeln!(
                    f,
                    "{:indent$} {gutter}|{gutter:#} {before}{word}{caret}{word:#}",
                    ""
                )?;
                indent
            }
        };
        writeln!(f, "{:indent$} {gutter}={gutter:#} help: {remedy}", "")?;
        write!(
            f,
            "{:indent$} {gutter}={gutter:#} more: hapax explain {code}",
            ""
        )
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
