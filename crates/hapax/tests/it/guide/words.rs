//! Ids and times differ from run to run, and so do nodes, revisions and how long things took. A page shows examples. Those of ids and
//! times are as long as the real ones, so that tables stay tables: ids are numbered as they come, and every time is the same.

/// What the letters of an id stand behind.
const PREFIXES: [&str; 8] = [
    "evt_", "eff_", "run_", "aud_", "key_", "app_", "ep_", "msg_",
];
/// Letters of an id.
const ID_LETTERS: usize = 26;
/// What an example's letters begin with.
const EXAMPLE: &str = "01hapax";
/// A time, and what it has where: digits, and marks between them.
const TIME: &str = "2026-01-31 12:00:00";

/// A time that a page has in its own files, and so in what the program makes of them.
const OF_THE_PAGE: &str = "2026-01-31T12:00:00Z";
/// What lots stand behind that `hapax send` draws for a sample, and how many digits they have.
const LOTS: [(&str, usize); 2] = [("evt_sample_", 16), ("obj_", 12)];

/// Other words that differ: what stands before them, and the example. They end before a space or with their line.
const OTHERS: [(&str, &str); 4] = [
    ("whsec_", "4pwbxfv7JHnlkIBK3Yvl9Q0Uy5hTn8sD"),
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

    /// Something else that differs, and what the page has for it.
    pub(super) fn know(&mut self, real: &str, example: &str) {
        self.ids.push((real.to_owned(), example.to_owned()));
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
            } else if let Some((before, digits)) = lot_at(rest) {
                text.push_str(&format!("{before}{:0digits$}", 7));
                rest = &rest[before.len() + digits..];
            } else if rest.starts_with(OF_THE_PAGE) {
                text.push_str(OF_THE_PAGE);
                rest = &rest[OF_THE_PAGE.len()..];
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
        let prefix = &id[..id.len() - ID_LETTERS];
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

/// The lot with which a text begins: what stands before it, and its digits.
fn lot_at(text: &str) -> Option<(&'static str, usize)> {
    LOTS.into_iter().find(|(before, digits)| {
        let lot = text.strip_prefix(before).unwrap_or_default().bytes();
        lot.take_while(u8::is_ascii_hexdigit).count() == *digits
    })
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
