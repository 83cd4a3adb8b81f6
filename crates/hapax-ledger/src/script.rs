//! The script language in which the ledger's stories are told.
//!
//! ```text
//! at 0s    claim   k1 body=A          -> fresh   fence=1
//! at 31s   claim   k1 body=A          -> fresh   fence=2     # lease 1 ran out
//! ```
//!
//! A line is a time, a verb, its words and named arguments, and what is expected. The same scripts run on the pure
//! functions, on the model and on every store: whoever can perform a line can play a script. A store that needs to
//! wait parses with [`parse`], performs each line in its own way, and asks [`Line::check`].

use std::str::FromStr;

use crate::time::{Span, Time};

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, from 1.
    pub number: usize,
    /// When it happens; the script begins at the epoch.
    pub at: Time,
    /// What happens.
    pub verb: String,
    /// To what, in order.
    words: Vec<String>,
    /// With which arguments.
    named: Vec<(String, String)>,
    /// What should come of it.
    expected: String,
}

/// What went wrong, with the line it went wrong on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {what}")]
pub struct ScriptError {
    number: usize,
    what: String,
}

impl Line {
    /// The word at a place.
    pub fn word(&self, place: usize) -> Result<&str, ScriptError> {
        let word = self.words.get(place).map(String::as_str);
        word.ok_or_else(|| self.error(format!("`{}` needs a word at place {place}", self.verb)))
    }

    /// The text of a named argument, if it is there.
    pub fn named(&self, name: &str) -> Option<&str> {
        self.named
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    /// A named argument, read as what it should be; `otherwise` if it is not there.
    pub fn arg<T: FromStr>(&self, name: &str, otherwise: T) -> Result<T, ScriptError> {
        match self.named(name) {
            None => Ok(otherwise),
            Some(text) => text
                .parse()
                .map_err(|_| self.error(format!("cannot read {name}={text}"))),
        }
    }

    /// An error on this line.
    pub fn error(&self, what: impl Into<String>) -> ScriptError {
        ScriptError {
            number: self.number,
            what: what.into(),
        }
    }

    /// Is what happened what was expected? Blanks between words do not count.
    pub fn check(&self, happened: &str) -> Result<(), ScriptError> {
        let happened = squeezed(happened);
        if happened == self.expected {
            return Ok(());
        }
        Err(self.error(format!("expected `{}`, got `{happened}`", self.expected)))
    }
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads a script. Empty lines and comments (`# ...`) are passed over.
pub fn parse(text: &str) -> Result<Vec<Line>, ScriptError> {
    let numbered = text
        .lines()
        .enumerate()
        .map(|(place, line)| (place + 1, line));
    let meant = numbered.map(|(number, line)| (number, uncommented(line)));
    meant
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| parse_line(number, line))
        .collect()
}

/// A comment begins at a `#` with a blank before it, so that `k1#2` is a word.
fn uncommented(line: &str) -> &str {
    let begins = |place: &usize| {
        line[..*place]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace)
    };
    let comment = line.match_indices('#').map(|(place, _)| place).find(begins);
    &line[..comment.unwrap_or(line.len())]
}

fn parse_line(number: usize, line: &str) -> Result<Line, ScriptError> {
    let error = |what: &str| ScriptError {
        number,
        what: what.to_owned(),
    };
    let (told, expected) = line.split_once("->").ok_or_else(|| error("no `->`"))?;
    let mut parts = told.split_whitespace();
    if parts.next() != Some("at") {
        return Err(error("does not begin with `at`"));
    }
    let since = parts.next().and_then(|text| text.parse::<Span>().ok());
    let since = since.ok_or_else(|| error("no time after `at`"))?;
    let verb = parts.next().ok_or_else(|| error("no verb"))?.to_owned();
    let (mut words, mut named) = (Vec::new(), Vec::new());
    for part in parts {
        match part.split_once('=') {
            Some((name, value)) => named.push((name.to_owned(), value.to_owned())),
            None => words.push(part.to_owned()),
        }
    }
    let at = Time::from_micros(0) + since;
    Ok(Line {
        number,
        at,
        verb,
        words,
        named,
        expected: squeezed(expected),
    })
}

/// Plays a script: performs each line in order and compares. All lines that went wrong are reported, not only the first.
pub fn play(
    text: &str,
    mut perform: impl FnMut(&Line) -> Result<String, ScriptError>,
) -> Result<(), Vec<ScriptError>> {
    let lines = parse(text).map_err(|error| vec![error])?;
    let wrong: Vec<ScriptError> = lines
        .iter()
        .filter_map(|line| {
            perform(line)
                .and_then(|happened| line.check(&happened))
                .err()
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_time_a_verb_words_arguments_and_an_expectation() {
        let text = "\n# a story\nat 31s  claim k1#2  body=A fence=7 -> fresh   fence=2  # again\n";
        let lines = parse(text).expect("a script");
        let [line] = lines.as_slice() else {
            panic!("one line")
        };
        assert_eq!(
            (line.number, line.at, line.verb.as_str()),
            (3, Time::from_secs(31), "claim")
        );
        assert_eq!(line.word(0), Ok("k1#2"));
        assert_eq!(line.named("body"), Some("A"));
        assert_eq!(line.arg("fence", 0u64), Ok(7));
        assert_eq!(line.arg("lease", Span::ZERO), Ok(Span::ZERO));
        assert!(line.word(1).is_err() && line.arg::<u64>("body", 0).is_err());
        assert_eq!(line.check("fresh fence=2"), Ok(()));
        let wrong = line.check("stale").expect_err("not what was expected");
        assert_eq!(
            wrong.to_string(),
            "line 3: expected `fresh fence=2`, got `stale`"
        );
    }

    #[test]
    fn lines_that_say_nothing_clear_are_errors() {
        for text in [
            "claim k1 -> x",
            "at claim -> x",
            "at 1s -> x",
            "at 1s claim k1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_wrong_line_is_reported() {
        let wrong = play("at 0s a -> x\nat 0s b -> y\nat 0s c -> y", |_| {
            Ok("y".into())
        });
        assert_eq!(wrong.expect_err("one is wrong").len(), 1);
    }
}
