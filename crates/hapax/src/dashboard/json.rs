//! The API's answers, read for showing. What is not there is shown as nothing, never as an error: the API has tests of its own.

use super::indent::indent;
use serde_json::Value;

/// Reads fields of a JSON object.
pub trait Json {
    /// A text; empty if there is none.
    fn text(&self, name: &str) -> &str;
    /// A text, if there is one.
    fn maybe(&self, name: &str) -> Option<&str>;
    /// A number; 0 if there is none.
    fn number(&self, name: &str) -> u64;
    /// Is it `true`?
    fn is(&self, name: &str) -> bool;
    /// A list; empty if there is none.
    fn list(&self, name: &str) -> &[Value];
}

impl Json for Value {
    fn text(&self, name: &str) -> &str {
        self.maybe(name).unwrap_or_default()
    }

    fn maybe(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).and_then(Value::as_u64).unwrap_or_default()
    }

    fn is(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    fn list(&self, name: &str) -> &[Value] {
        let list = self.get(name).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }
}

/// JSON as a person reads it: in lines, but otherwise letter by letter as it came, since it is evidence. Bytes that are no JSON, as
/// text.
pub fn pretty(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        Ok(_) => indent(&text),
        Err(_) => cut(&text),
    }
}

/// A text as it came, as far as a page shows it.
pub fn cut(text: &str) -> String {
    match text.len() > SHOWN_BYTES_MAX {
        true => text
            .chars()
            .take(SHOWN_BYTES_MAX / 4)
            .chain(['…'])
            .collect(),
        false => text.to_owned(),
    }
}

/// Where a page stops to show a body: whoever needs all of it downloads it. Shown twice and escaped, it is well below the 100 KB that
/// the page of an event may have (`the_page_of_an_event_stays_small_whatever_its_payload`).
pub(super) const SHOWN_BYTES_MAX: usize = 24 * 1024;

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn json_is_put_in_lines_and_otherwise_left_alone() {
        let came = br#"{"b":1.10,"a":["x, \"y\": {", {}, [ ]],"b":1e3}"#;
        let want = "{\n  \"b\": 1.10,\n  \"a\": [\n    \"x, \\\"y\\\": {\",\n    {},\n    []\n  ],\n  \"b\": 1e3\n}";
        assert_eq!(pretty(came), want);
        assert_eq!(pretty(b"a=1&b=2"), "a=1&b=2");
    }
}
