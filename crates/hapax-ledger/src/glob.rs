//! Patterns over event types.

use std::fmt;

/// A pattern in which `*` stands for any run of characters, dots and nothing included: `invoice.*` matches `invoice.paid`
/// and `invoice.line.added`, but not `invoice`. Every other character stands for itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob(String);

impl Glob {
    /// The pattern with this text. Every text is one.
    pub fn new(text: impl Into<String>) -> Glob {
        Glob(text.into())
    }

    /// Does it match the whole of `text`? At worst in time of both lengths multiplied, whatever the pattern.
    pub fn matches(&self, text: &str) -> bool {
        let (pattern, text) = (self.0.as_bytes(), text.as_bytes());
        let (mut at, mut place) = (0, 0);
        // Where to go on when a guess was wrong: behind the last star, one byte further into the text.
        let mut retry = None;
        while place < text.len() {
            match pattern.get(at) {
                Some(b'*') => {
                    at += 1;
                    retry = Some((at, place + 1));
                }
                Some(byte) if *byte == text[place] => {
                    at += 1;
                    place += 1;
                }
                _ => match retry {
                    Some((star, from)) => {
                        (at, place) = (star, from);
                        retry = Some((star, from + 1));
                    }
                    None => return false,
                },
            }
        }
        pattern[at..].iter().all(|byte| *byte == b'*')
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_match_within_and_across_dots() {
        let table = [
            ("invoice.paid", "invoice.paid", true),
            ("invoice.paid", "invoice.paid2", false),
            ("*", "", true),
            ("*", "a.b.c", true),
            ("invoice.*", "invoice.paid", true),
            ("invoice.*", "invoice.line.added", true),
            ("invoice.*", "invoice", false),
            ("*.deleted", "customer.subscription.deleted", true),
            ("a*b*c", "a.b.b.c", true),
            ("a*b*c", "a.c.b", false),
            ("**", "x", true),
            ("", "", true),
            ("", "x", false),
            ("a?c", "abc", false),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(
                Glob::new(pattern).matches(text),
                expected,
                "{pattern} {text}"
            );
        }
    }

    /// The definition, word for word; exponential, so for short texts only.
    fn oracle(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, rest) => rest.is_none(),
            (Some((b'*', after)), _) => (0..=text.len()).any(|cut| oracle(after, &text[cut..])),
            (Some((byte, after)), Some((first, rest))) => byte == first && oracle(after, rest),
            (Some(_), None) => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*]{0,7}", text in "[ab]{0,7}") {
            prop_assert_eq!(Glob::new(&*pattern).matches(&text), oracle(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
