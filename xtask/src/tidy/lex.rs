//! Rust source, cut into code, comments and string literals: just enough for the checks.

use std::ops::Range;

/// A source file in its parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    /// The text with comments and the contents of literals blanked out; lines stay where they are.
    pub(super) code: String,
    /// String literals: line of the opening quote, and content as written.
    pub(super) strings: Vec<(usize, String)>,
    /// Comments, documentation included: line of the start, and text.
    pub(super) comments: Vec<(usize, String)>,
    /// Lines inside of `#[cfg(test)] mod ... { }`.
    test_lines: Vec<Range<usize>>,
}

impl Source {
    /// Cuts `text`.
    pub(super) fn read(text: &str) -> Source {
        let mut reader = Reader {
            rest: text,
            line: 1,
            source: Source::default(),
        };
        while !reader.rest.is_empty() {
            reader.part();
        }
        let mut source = reader.source;
        source.test_lines = test_lines(&source.code);
        source
    }

    /// Is `line` in a test module of this file?
    pub(super) fn in_test(&self, line: usize) -> bool {
        self.test_lines.iter().any(|range| range.contains(&line))
    }

    /// Lines of code with `pattern` in it, not as part of a longer name.
    pub(super) fn lines_with<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = usize> + 'a {
        (1..)
            .zip(self.code.lines())
            .filter_map(move |(line, code)| {
                let mut ends = code.match_indices(pattern).filter(|(start, _)| {
                    let before = code[..*start].chars().next_back();
                    let after = code[start + pattern.len()..].chars().next();
                    !before.is_some_and(in_name) && !continues(pattern, after)
                });
                ends.next().map(|_| line)
            })
    }
}

/// A pattern that ends in punctuation ends there; one that ends in a name must not be part of a longer one.
fn continues(pattern: &str, after: Option<char>) -> bool {
    pattern.ends_with(in_name) && after.is_some_and(in_name)
}

/// May `c` be part of a name?
pub(super) fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    source: Source,
}

impl Reader<'_> {
    /// Takes the next comment, literal or character.
    fn part(&mut self) {
        let rest = self.rest;
        let after_name = self.source.code.chars().next_back().is_some_and(in_name);
        if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            self.comment(length);
        } else if rest.starts_with("/*") {
            self.comment(block_comment(rest));
        } else if let Some(content) = rest.strip_prefix('"') {
            self.string(1, plain_string(content), 1);
        } else if let Some((open, hashes)) = raw_string(rest).filter(|_| !after_name) {
            let close = format!("\"{}", "#".repeat(hashes));
            let content = &rest[open..];
            let length = content.find(&close).unwrap_or(content.len());
            self.string(open, length, close.len());
        } else if let Some(length) = character(rest) {
            self.blank(length);
        } else {
            let length = rest.chars().next().map_or(0, char::len_utf8);
            self.source.code.push_str(&rest[..length]);
            self.advance(length);
        }
    }

    fn comment(&mut self, length: usize) {
        let text = self.rest[..length].to_owned();
        self.source.comments.push((self.line, text));
        self.blank(length);
    }

    fn string(&mut self, open: usize, content: usize, close: usize) {
        let text = self.rest[open..open + content].to_owned();
        self.source.strings.push((self.line, text));
        self.source.code.push('"');
        self.blank((open + content + close).min(self.rest.len()));
        self.source.code.push('"');
    }

    /// Takes `length` bytes of which only the line ends stay.
    fn blank(&mut self, length: usize) {
        let line_ends = self.rest[..length].chars().filter(|c| *c == '\n');
        self.source.code.extend(line_ends);
        self.advance(length);
    }

    fn advance(&mut self, length: usize) {
        self.line += self.rest[..length].matches('\n').count();
        self.rest = &self.rest[length..];
    }
}

/// Length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of a string's content, up to the closing quote.
fn plain_string(content: &str) -> usize {
    let mut escaped = false;
    for (at, c) in content.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    content.len()
}

/// If a raw string starts here: the length of its opening, and the number of its hashes.
fn raw_string(text: &str) -> Option<(usize, usize)> {
    let after = ["r", "br", "cr"]
        .iter()
        .find_map(|open| text.strip_prefix(open))?;
    let content = after.trim_start_matches('#').strip_prefix('"')?;
    let hashes = after.len() - content.len() - 1;
    Some((text.len() - content.len(), hashes))
}

/// Length of a character literal; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let content = text.strip_prefix('\'')?;
    if let Some(escape) = content.strip_prefix('\\') {
        // The character after the backslash may be a quote itself.
        let close = escape.get(1..)?.find('\'')?;
        return Some(close + 4);
    }
    let c = content.chars().next()?;
    content[c.len_utf8()..]
        .starts_with('\'')
        .then_some(c.len_utf8() + 2)
}

/// Lines from `#[cfg(test)]` to the end of the block that follows it.
fn test_lines(code: &str) -> Vec<Range<usize>> {
    let line_at = |at: usize| 1 + code[..at].matches('\n').count();
    let starts = code.match_indices("#[cfg(test)]");
    let ranges = starts.filter_map(|(start, _)| {
        let open = start + code[start..].find(['{', ';'])?;
        let mut depth = 0;
        let close = code[open..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0
        });
        let (length, _) = close?;
        Some(line_at(start)..line_at(open + length) + 1)
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_code_are_told_apart() {
        let text = r###"let a = "x // \" y"; // one "two"
/* three /* "four" */ five */ let b = r#"raw " text"#;
let c = '"'; let d: &'static str = "é"; let e = '\''; let f = br#"si"x"#; // seven
for "unfinished
"###;
        let source = Source::read(text);
        let strings: Vec<_> = source
            .strings
            .iter()
            .map(|(l, s)| (*l, s.as_str()))
            .collect();
        let expected = [
            (1, "x // \\\" y"),
            (2, "raw \" text"),
            (3, "é"),
            (3, "si\"x"),
            (4, "unfinished\n"),
        ];
        assert_eq!(strings, expected);
        let comments: Vec<_> = source
            .comments
            .iter()
            .map(|(l, c)| (*l, c.as_str()))
            .collect();
        let expected = [
            (1, "// one \"two\""),
            (2, "/* three /* \"four\" */ five */"),
            (3, "// seven"),
        ];
        assert_eq!(comments, expected);
        assert!(source.code.contains("&'static str"));
        let line_ends = |text: &str| text.matches('\n').count();
        assert_eq!(line_ends(&source.code), line_ends(text));
    }

    #[test]
    fn names_are_found_whole() {
        let source = Source::read("MyInstant::now()\nInstant::nowhere()\nx(Instant::now)\n");
        assert_eq!(source.lines_with("Instant::now").collect::<Vec<_>>(), [3]);
        let source = Source::read("a.sleep(\nasleep(1)\n");
        assert_eq!(source.lines_with("sleep(").collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn test_modules_are_known() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n";
        let source = Source::read(text);
        let lines: Vec<_> = (1..=6).filter(|line| source.in_test(*line)).collect();
        assert_eq!(lines, [2, 3, 4, 5]);
    }
}
