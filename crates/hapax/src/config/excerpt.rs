//! From a place in the text to a line that can be shown: secrets are blacked out, the caret still fits.

use std::ops::Range;

use super::problem::{Excerpt, Place};

/// What stands for a hidden value, however long it is.
const MASK: &str = "\"***\"";

/// Words that mark a line of a file that does not parse as one with a secret in it.
const SECRET_WORDS: [&str; 6] = [
    "secret",
    "token",
    "password",
    "authorization",
    "whsec",
    "key",
];

/// The place of a span, with the line around it.
pub(super) fn place(file: &str, text: &str, span: &Range<usize>, hidden: &[Range<usize>]) -> Place {
    let start = floor(text, span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    Place::File {
        file: file.to_owned(),
        line: text[..line_start].matches('\n').count() + 1,
        column: text[line_start..start].chars().count() + 1,
        excerpt: excerpt(
            text,
            line_start..line_end,
            &(start..span.end.max(start)),
            hidden,
        ),
    }
}

fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

fn excerpt(
    text: &str,
    line: Range<usize>,
    span: &Range<usize>,
    hidden: &[Range<usize>],
) -> Excerpt {
    let mut shown = String::new();
    let mut chars = 0;
    let (mut from, mut to) = (None, 0);
    let mut at = line.start;
    while at < line.end {
        let cover = hidden.iter().find(|hidden| hidden.contains(&at));
        let next = match cover {
            Some(cover) => cover.end.min(line.end),
            None => at + text[at..].chars().next().map_or(1, char::len_utf8),
        };
        if from.is_none() && span.start < next {
            from = Some(chars);
        }
        match cover {
            Some(_) => shown.push_str(MASK),
            None => shown.extend(
                text[at..next]
                    .chars()
                    .map(|c| if c.is_control() { ' ' } else { c }),
            ),
        }
        chars = shown.chars().count();
        if span.end > at {
            to = chars;
        }
        at = next;
    }
    let caret_from = from.unwrap_or(chars);
    Excerpt {
        line: shown,
        caret_from,
        caret_chars: to.saturating_sub(caret_from).max(1),
    }
}

/// What to hide in a text that does not parse, so that nobody knows which of its values are secrets: the value on a
/// line that speaks of secrets, and all of a line that has no plain `key = value` form.
pub(super) fn suspicious(text: &str) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        let plain_key = |key: &str| {
            let letter = |c: char| c.is_ascii_alphanumeric() || "_-. ".contains(c);
            !key.trim().is_empty() && key.chars().all(letter)
        };
        let lower = line.to_lowercase();
        let indent = line.len() - line.trim_start().len();
        let end = start + line.trim_end().len();
        match line.find('=') {
            Some(at) if plain_key(&line[..at]) => {
                if SECRET_WORDS.iter().any(|word| lower.contains(word)) {
                    let value = &line[at + 1..];
                    hidden.push(end - value.trim().len()..end);
                }
            }
            _ if line.trim_start().starts_with(['[', '#']) => {}
            _ => hidden.push(start + indent..end),
        }
        start += line.len() + 1;
    }
    hidden.retain(|hidden| !hidden.is_empty());
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Range<usize>, hidden: &[Range<usize>]) -> String {
        match place("f", text, &span, hidden) {
            Place::File {
                line,
                column,
                excerpt,
                ..
            } => format!(
                "{line}:{column} {} {}+{}",
                excerpt.line, excerpt.caret_from, excerpt.caret_chars
            ),
            Place::Named(_) | Place::Nowhere => String::new(),
        }
    }

    #[test]
    fn the_caret_fits_around_hidden_values_and_wide_letters() {
        let text = "a = 1\nä = [\"hush hush\", 2]\n";
        let secret = text.find('"').expect("there")..text.rfind('"').expect("there") + 1;
        let two = text.rfind('2').expect("there");
        assert_eq!(shown(text, 0..1, &[]), "1:1 a = 1 0+1");
        let hidden = [secret.clone()];
        assert_eq!(
            shown(text, two..two + 1, &hidden),
            "2:19 ä = [\"***\", 2] 12+1"
        );
        assert_eq!(shown(text, secret, &hidden), "2:6 ä = [\"***\", 2] 5+5");
        assert_eq!(shown(text, text.len()..text.len(), &[]), "3:1  0+1");
    }

    #[test]
    fn a_text_that_does_not_parse_shows_no_secret() {
        let text =
            "listen = x\ntoken = hush\nsecrets = [\n  \"hush==\",\n]\n[[source]\n{ a = \"hush\" }";
        let hidden = suspicious(text);
        for at in 0..text.len() {
            let shown = shown(text, at..at + 1, &hidden);
            assert!(!shown.contains("hush"), "{shown}");
        }
        assert!(shown(text, 0..1, &hidden).contains("listen = x"));
        assert!(shown(text, 46..47, &hidden).contains("***"));
    }
}
