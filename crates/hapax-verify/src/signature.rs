//! Signatures as they are written: one, several, among pairs, after a timestamp.

use crate::decode::{Encoding, TAG_BYTES_MAX};
use crate::refusal::Refusal;
use crate::scheme::{SignatureForm, TimePlace, Timestamp};

/// The most signatures that are looked at in one request; rotation needs two or three.
pub(crate) const SIGNATURES_MAX: usize = 16;

/// The most groups of pairs in one header; each costs a MAC.
const GROUPS_MAX: usize = 4;

/// Signatures still in their text form, any of which may match.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidates<'a> {
    texts: [&'a [u8]; SIGNATURES_MAX],
    length: usize,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new() -> Candidates<'a> {
        Candidates {
            texts: [&[]; SIGNATURES_MAX],
            length: 0,
        }
    }

    pub(crate) fn push(&mut self, text: &'a [u8]) -> Result<(), Refusal> {
        let slot = self
            .texts
            .get_mut(self.length)
            .ok_or(Refusal::MalformedSignature)?;
        *slot = text;
        self.length += 1;
        Ok(())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.texts[..self.length].iter().copied()
    }

    /// Those that decode to exactly `tag_bytes` bytes. One that does not is passed over: a later one may match.
    pub(crate) fn decode(&self, encoding: Encoding, tag_bytes: usize) -> Decoded {
        let mut decoded = Decoded {
            tags: [[0; TAG_BYTES_MAX]; SIGNATURES_MAX],
            tag_bytes,
            length: 0,
        };
        for text in self.iter() {
            let tag = &mut decoded.tags[decoded.length][..tag_bytes];
            if encoding.decode_exact(text, tag).is_some() {
                decoded.length += 1;
            }
        }
        decoded
    }
}

/// Signatures as bytes of one length.
pub(crate) struct Decoded {
    tags: [[u8; TAG_BYTES_MAX]; SIGNATURES_MAX],
    tag_bytes: usize,
    length: usize,
}

impl Decoded {
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.tags[..self.length]
            .iter()
            .map(|tag| &tag[..self.tag_bytes])
    }
}

/// Signatures that share one signed content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group<'a> {
    pub(crate) candidates: Candidates<'a>,
    /// The timestamp, if it is written beside the signatures.
    pub(crate) timestamp: Option<&'a [u8]>,
}

impl SignatureForm {
    /// Reads one value of the signature's place into groups.
    pub(crate) fn read<'a>(
        &self,
        value: &'a [u8],
        timestamp: Option<&Timestamp>,
        groups: &mut Vec<Group<'a>>,
    ) -> Result<(), Refusal> {
        let SignatureForm::Pairs {
            group: Some(separator),
            ..
        } = self
        else {
            groups.push(self.group(value, timestamp)?);
            return Ok(());
        };
        for text in split(value, separator).filter(|text| !text.is_empty()) {
            if groups.len() == GROUPS_MAX {
                return Err(Refusal::MalformedSignature);
            }
            groups.push(self.group(text, timestamp)?);
        }
        Ok(())
    }

    /// Reads a value that holds one group.
    pub(crate) fn group<'a>(
        &self,
        value: &'a [u8],
        timestamp: Option<&Timestamp>,
    ) -> Result<Group<'a>, Refusal> {
        let mut candidates = Candidates::new();
        let mut time = None;
        match self {
            SignatureForm::Plain { prefix } => {
                if let Some(text) = value.strip_prefix(prefix.as_bytes()) {
                    candidates.push(text)?;
                }
            }
            SignatureForm::Pairs { separator, key, .. } => {
                let time_key = match timestamp.map(|t| &t.place) {
                    Some(TimePlace::Pair(name)) => Some(name.as_bytes()),
                    _ => None,
                };
                for (name, text) in split(value, separator).filter_map(pair) {
                    if name == key.as_bytes() {
                        candidates.push(text)?;
                    } else if Some(name) == time_key && time.replace(text).is_some() {
                        return Err(Refusal::MalformedTimestamp);
                    }
                }
            }
            SignatureForm::List {
                separator,
                prefix,
                after,
            } => {
                for element in split(value, separator) {
                    let Some(text) = element.strip_prefix(prefix.as_bytes()) else {
                        continue;
                    };
                    match after {
                        Some(mark) => candidates.push(after_mark(text, mark.as_bytes()))?,
                        None => candidates.push(text)?,
                    }
                }
            }
            SignatureForm::Positional { separator } => {
                let mut elements = split(value, separator);
                time = elements.next();
                for text in elements {
                    candidates.push(text)?;
                }
            }
        }
        Ok(Group {
            candidates,
            timestamp: time,
        })
    }
}

fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|b| *b == b'=')?;
    let value = text[at + 1..].trim_ascii();
    // HTTP signatures write their values in quotes.
    let value = value
        .strip_prefix(b"\"")
        .and_then(|v| v.strip_suffix(b"\""))
        .unwrap_or(value);
    Some((text[..at].trim_ascii(), value))
}

fn after_mark<'a>(text: &'a [u8], mark: &[u8]) -> &'a [u8] {
    text.windows(mark.len())
        .position(|window| window == mark)
        .map_or(&[], |at| &text[at + mark.len()..])
}

/// Splits at a separator and trims the elements; `a, b` is the same list as `a,b`.
fn split<'a>(value: &'a [u8], separator: &str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    // Every separator in use is one character; of a longer one the rest would be trimmed as white space or refused.
    let byte = separator.as_bytes().first().copied().unwrap_or(b',');
    value.split(move |b| *b == byte).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(form: &SignatureForm, value: &str) -> Vec<String> {
        let group = form.group(value.as_bytes(), None).expect("few signatures");
        group
            .candidates
            .iter()
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect()
    }

    #[test]
    fn reads_every_form() {
        let plain = SignatureForm::Plain {
            prefix: "sha256=".to_owned(),
        };
        assert_eq!(texts(&plain, "sha256=ab"), ["ab"]);
        assert!(texts(&plain, "sha1=ab").is_empty());
        let pairs = SignatureForm::Pairs {
            separator: ",".to_owned(),
            group: None,
            key: "v1".to_owned(),
        };
        assert_eq!(texts(&pairs, "t=1, v1=ab,v0=cd,v1=\"ef\""), ["ab", "ef"]);
        let list = SignatureForm::List {
            separator: " ".to_owned(),
            prefix: "v1,".to_owned(),
            after: None,
        };
        assert_eq!(texts(&list, "v1,ab v2,cd v1,ef="), ["ab", "ef="]);
        let keyed = SignatureForm::List {
            separator: "&".to_owned(),
            prefix: String::new(),
            after: Some("|".to_owned()),
        };
        assert_eq!(texts(&keyed, "pub|ab&other|cd"), ["ab", "cd"]);
        let positional = SignatureForm::Positional {
            separator: ",".to_owned(),
        };
        assert_eq!(texts(&positional, "123,ab,cd"), ["ab", "cd"]);
    }

    #[test]
    fn too_many_signatures_are_refused() {
        let list = SignatureForm::List {
            separator: ",".to_owned(),
            prefix: String::new(),
            after: None,
        };
        let value = "ab,".repeat(SIGNATURES_MAX + 1);
        let refused = list.group(value.as_bytes(), None).map(|_| ());
        assert_eq!(refused, Err(Refusal::MalformedSignature));
    }
}
