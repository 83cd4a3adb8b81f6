//! The bodies that a provider may have signed, given the one that arrived: other white space, other escapes, another
//! end. The order of fields is kept, as parsers that write again mostly keep it.

/// Larger bodies are only tried with another end: the rest would take seconds.
const RESPACED_BODY_BYTES_MAX: usize = 256 << 10;

/// How JSON is spaced.
#[derive(Clone, Copy, PartialEq)]
enum Spacing {
    AsIs,
    Compact,
    /// As Python's `json.dumps` writes it.
    Spaced,
    Indented(usize),
}

/// How characters beyond ASCII are written in strings.
#[derive(Clone, Copy)]
enum Letters {
    AsIs,
    Escaped,
    Plain,
}

/// How slashes are written in strings; PHP escapes them.
#[derive(Clone, Copy)]
enum Slashes {
    AsIs,
    Escaped,
    Plain,
}

/// The first body that fits, by what was done to get it. One at a time: all of them together would be hundreds of times
/// the body.
pub(super) fn find(body: &[u8], fits: impl Fn(&[u8]) -> bool) -> Option<String> {
    let fits = |bytes: &[u8]| bytes != body && fits(bytes);
    let ended = |body: &[u8]| {
        let end = ends(body).into_iter().find(|(_, bytes)| fits(bytes));
        end.map(|(done, _)| done)
    };
    if let Some(done) = ended(body) {
        return Some(done.to_owned());
    }
    if fits(b"") {
        return Some("without any content".to_owned());
    }
    let text = std::str::from_utf8(body).ok()?;
    let replaced = [
        ("with \\r\\n as line ends", "\n", "\r\n"),
        ("with \\n as line ends", "\r\n", "\n"),
        ("with spaces as %20 instead of +", "+", "%20"),
        ("with spaces as + instead of %20", "%20", "+"),
    ];
    for (done, from, to) in replaced {
        if fits(text.replace(from, to).as_bytes()) {
            return Some(done.to_owned());
        }
    }
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if !is_json || body.len() > RESPACED_BODY_BYTES_MAX {
        return None;
    }
    rewritten(text).find_map(|(done, json)| {
        if fits(json.as_bytes()) {
            return Some(done);
        }
        ended(json.as_bytes()).map(|end| format!("{done} and {end}"))
    })
}

fn ends(body: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let joined = |end: &[u8]| [body, end].concat();
    vec![
        ("without white space around it", body.trim_ascii().to_vec()),
        ("with a line feed at the end", joined(b"\n")),
        ("with \\r\\n at the end", joined(b"\r\n")),
    ]
}

fn rewritten(text: &str) -> impl Iterator<Item = (String, String)> {
    let spacings = [
        (Spacing::AsIs, "the same spacing"),
        (Spacing::Compact, "its white space removed"),
        (Spacing::Spaced, "a space after every comma and colon"),
        (Spacing::Indented(2), "two spaces of indentation"),
        (Spacing::Indented(4), "four spaces of indentation"),
    ];
    let letters = [
        (Letters::AsIs, ""),
        (Letters::Escaped, ", letters beyond ASCII escaped"),
        (Letters::Plain, ", escaped letters written plainly"),
    ];
    let slashes = [
        (Slashes::AsIs, ""),
        (Slashes::Escaped, ", slashes escaped"),
        (Slashes::Plain, ", slashes not escaped"),
    ];
    spacings
        .into_iter()
        .flat_map(move |(spacing, spacing_text)| {
            letters.into_iter().flat_map(move |(letter, letter_text)| {
                slashes.into_iter().map(move |(slash, slash_text)| {
                    let done = format!("with {spacing_text}{letter_text}{slash_text}");
                    (done, rewrite(text, spacing, letter, slash))
                })
            })
        })
}

/// Writes valid JSON again, token by token.
fn rewrite(text: &str, spacing: Spacing, letters: Letters, slashes: Slashes) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut depth = 0;
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let length = string_bytes(rest);
            write_string(&rest[..length], letters, slashes, &mut out);
            rest = &rest[length..];
            continue;
        }
        rest = &rest[first.len_utf8()..];
        if spacing == Spacing::AsIs {
            out.push(first);
            continue;
        }
        match first {
            ' ' | '\t' | '\r' | '\n' => {}
            '{' | '[' => {
                depth += 1;
                out.push(first);
                if !rest.trim_start().starts_with(['}', ']']) {
                    indent(spacing, depth, &mut out);
                }
            }
            '}' | ']' => {
                depth -= 1;
                if !out.ends_with(['{', '[']) {
                    indent(spacing, depth, &mut out);
                }
                out.push(first);
            }
            ',' => {
                out.push(',');
                match spacing {
                    Spacing::Spaced => out.push(' '),
                    _ => indent(spacing, depth, &mut out),
                }
            }
            ':' if spacing == Spacing::Compact => out.push(':'),
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    out
}

fn indent(spacing: Spacing, depth: usize, out: &mut String) {
    if let Spacing::Indented(width) = spacing {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', width * depth));
    }
}

/// The length of the string at the start of `text`, quotes included.
fn string_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn write_string(quoted: &str, letters: Letters, slashes: Slashes, out: &mut String) {
    let mut text = match letters {
        Letters::AsIs => quoted.to_owned(),
        Letters::Escaped => escaped(quoted),
        // The text was checked to be JSON, so that the string parses; if not, it stays as it is.
        Letters::Plain => match serde_json::from_str::<String>(quoted) {
            Ok(text) => serde_json::Value::from(text).to_string(),
            Err(_) => quoted.to_owned(),
        },
    };
    text = match slashes {
        Slashes::AsIs => text,
        Slashes::Escaped => text.replace("\\/", "/").replace('/', "\\/"),
        Slashes::Plain => text.replace("\\/", "/"),
    };
    out.push_str(&text);
}

fn escaped(quoted: &str) -> String {
    let mut text = String::with_capacity(quoted.len());
    for character in quoted.chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_usual_ways_of_writing_the_same_json() {
        let body = r#"{"b":1,"a":["x/y","é \" ,:"],"c":{},"d":[]}"#;
        let spaced = r#"{"b": 1, "a": ["x/y", "é \" ,:"], "c": {}, "d": []}"#;
        let ascii = r#"{"b":1,"a":["x/y","\u00e9 \" ,:"],"c":{},"d":[]}"#;
        let slashes = r#"{"b":1,"a":["x\/y","é \" ,:"],"c":{},"d":[]}"#;
        let pretty = "{\n  \"b\": 1,\n  \"a\": [\n    \"x/y\",\n    \"é \\\" ,:\"\n  ],\n  \"c\": {},\n  \"d\": []\n}";
        let forms = [body, spaced, ascii, slashes, pretty];
        for from in forms {
            for to in forms.iter().filter(|to| **to != from) {
                // Two changes at once, such as spacing and slashes, are found too.
                let found = find(from.as_bytes(), |bytes| bytes == to.as_bytes()).is_some();
                assert!(found, "{from} -> {to}");
            }
        }
    }

    #[test]
    fn ends_and_line_ends() {
        let has = |body: &[u8], want: &[u8]| find(body, |bytes| bytes == want).is_some();
        assert!(has(b"[1]", b"[1]\r\n"));
        assert!(has(b"[1]\n", b"[1]"));
        assert!(has(b"a=b+c", b"a=b%20c"));
        assert!(has(b"x\ny", b"x\r\ny"));
    }
}
