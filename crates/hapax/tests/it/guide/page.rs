//! A page: prose, files that the reader writes, and the session that they type.

/// What opens and closes a block.
const FENCE: &str = "```";
/// What stands before a command.
const PROMPT: &str = "$ ";

/// A page, line by line.
pub(super) struct Page<'a> {
    lines: Vec<Line<'a>>,
}

enum Line<'a> {
    /// Prose, and blocks that nobody runs.
    Plain(&'a str),
    /// A line of a file.
    OfFile { name: &'a str, text: &'a str },
    /// Something that the reader types.
    Command(&'a str),
    /// What the page says that the program answers.
    Output,
}

impl<'a> Page<'a> {
    pub(super) fn parse(text: &'a str) -> Page<'a> {
        let mut block: Option<&str> = None;
        let lines = text
            .lines()
            .map(|line| match (block, line.strip_prefix(FENCE)) {
                (None, Some(kind)) => {
                    block = Some(kind);
                    Line::Plain(line)
                }
                (Some(_), Some(_)) => {
                    block = None;
                    Line::Plain(line)
                }
                (None, None) => Line::Plain(line),
                (Some("console"), None) => match line.strip_prefix(PROMPT) {
                    Some(command) => Line::Command(command),
                    None => Line::Output,
                },
                (Some(kind), None) => match kind.split_once(' ') {
                    Some((_, name)) => Line::OfFile { name, text: line },
                    None => Line::Plain(line),
                },
            });
        Page {
            lines: lines.collect(),
        }
    }

    /// The files that the reader writes, by name.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let mut files: Vec<(String, String)> = Vec::new();
        for line in &self.lines {
            if let Line::OfFile { name, text } = line {
                match files.last_mut().filter(|(last, _)| last == name) {
                    Some((_, file)) => *file = format!("{file}{text}\n"),
                    None => files.push(((*name).to_owned(), format!("{text}\n"))),
                }
            }
        }
        files
    }

    /// The page with the answers that the program gives.
    pub(super) fn with_outputs(&self, mut run: impl FnMut(&str) -> String) -> String {
        let mut text = String::new();
        for line in &self.lines {
            match line {
                Line::Plain(line) | Line::OfFile { text: line, .. } => {
                    text.push_str(line);
                    text.push('\n');
                }
                Line::Command(command) => {
                    text.push_str(&format!("{PROMPT}{command}\n"));
                    text.push_str(&run(command));
                }
                Line::Output => {}
            }
        }
        text
    }
}
