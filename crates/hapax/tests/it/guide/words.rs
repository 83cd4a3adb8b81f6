//! Ids and times differ from run to run, and so do nodes, revisions and how long things took. A page shows examples. Those of ids and
//! times are as long as the real ones, so that tables stay tables: ids are numbered as they come, and every time is the same.

/// What the letters of an id stand behind.
const PREFIXES: [&str; 5] = ["evt_", "eff_", "run_", "aud_", "key_"];
/// Letters of an id.
const ID_LETTERS: usize = 26;
/// What an example's letters begin with.
const EXAMPLE: &str = "01hapax";
/// A time, and what it has where: digits, and marks between them.
const TIME: &str = "2026-01-31 12:00:00";

/// Other words that differ: what stands before them, and the example. They end before a space or with their line.
const OTHERS: [(&str, &str); 3] = [
    ("revision  ", "1"),
    (" answered 200 after ", "3"),
    (" answered 500 after ", "3"),
];
/// What stands before the node that made an attempt, which ends its line.
const NODE: (&str, &str) = (" ms, by ", "node-1");

/// Ids that were seen, and their examples.
#[derive(Default)]
pub(super) struct Words {
    ids: Vec<(String, String)>,
}

impl Words {
    /// A command of the page with the ids of this run.
    pub(super) fn real(&self, command: &str) -> String {
        let ids = self.ids.iter();
        ids.fold(command.to_owned(), |text, (real, example)| {
            text.replace(example, real)
        })
    }

    /// What the program said, as the page shows it.
    pub(super) fn example(&mut self, said: &str) -> String {
        let mut text = self.ids_and_times(said);
        for (before, example) in OTHERS.into_iter().chain([NODE]) {
            text = replace_word_after(&text, before, example);
        }
        text
    }

    fn ids_and_times(&mut self, said: &str) -> String {
        let mut text = String::new();
        let mut rest = said;
        while let Some(first) = rest.chars().next() {
            if let Some(id) = id_at(rest) {
                text.push_str(&self.example_of(id));
                rest = &rest[id.len()..];
            } else if let Some(length) = time_at(rest) {
                text.push_str(TIME);
                rest = &rest[length..];
            } else {
                text.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        text
    }

    fn example_of(&mut self, id: &str) -> String {
        if let Some((_, example)) = self.ids.iter().find(|(real, _)| real == id) {
            return example.clone();
        }
        let prefix = &id[..4];
        let before = self.ids.iter().filter(|(real, _)| real.starts_with(prefix));
        let number = before.count() + 1;
        let width = ID_LETTERS - EXAMPLE.len();
        let example = format!("{prefix}{EXAMPLE}{number:0width$}");
        self.ids.push((id.to_owned(), example.clone()));
        example
    }
}

/// The text with another word wherever something stands before one.
fn replace_word_after(text: &str, before: &str, word: &str) -> String {
    let mut parts = text.split(before);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([' ', '\n']).unwrap_or(part.len());
        replaced.push_str(&format!("{before}{word}{}", &part[end..]));
    }
    replaced
}

/// The id with which a text begins.
fn id_at(text: &str) -> Option<&str> {
    let prefix = PREFIXES.iter().find(|prefix| text.starts_with(**prefix))?;
    let letters = text[prefix.len()..]
        .bytes()
        .take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    (letters.count() == ID_LETTERS).then(|| &text[..prefix.len() + ID_LETTERS])
}

/// How long the time is with which a text begins: `2026-11-16 02:28:39`, or RFC 3339 with or without a fraction.
fn time_at(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let begins = TIME.bytes().enumerate().all(|(at, wanted)| {
        bytes.get(at).is_some_and(|byte| match wanted {
            b'0'..=b'9' => byte.is_ascii_digit(),
            b' ' => matches!(byte, b' ' | b'T'),
            mark => *byte == mark,
        })
    });
    let more = bytes.get(TIME.len()..).filter(|_| begins)?;
    let fraction = more
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
    let fraction = fraction.count();
    let zone = usize::from(more.get(fraction) == Some(&b'Z'));
    // Without a zone there is no fraction: the point ends a sentence.
    Some(TIME.len() + if zone == 1 { fraction + 1 } else { 0 })
}

#[test]
fn ids_and_times_are_examples() {
    let mut words = Words::default();
    let id = "evt_01m7h2yss1e008000000000001";
    let said = format!("{id} at 2026-11-16T02:28:39.12Z, evt_1001, {id} at 2026-11-16 02:28:39.");
    let shown = "evt_01hapax0000000000000000001 at 2026-01-31 12:00:00, evt_1001, \
                 evt_01hapax0000000000000000001 at 2026-01-31 12:00:00.";
    assert_eq!(words.example(&said), shown);
    assert_eq!(
        words.real("show evt_01hapax0000000000000000001"),
        format!("show {id}")
    );
}
