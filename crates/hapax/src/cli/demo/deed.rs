//! What the world saw and did, line by line: the other side of every story that the ledger tells.
//!
//! One line of JSON per deed, written before whoever asked hears of it, so that it outlives a killed process as the ledger does. The judge
//! (`judge.rs`) holds the two against each other; they share nothing but the keys.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// One line of the world's log.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(super) enum Deed {
    /// The first line: what chance follows from.
    Began { seed: u64 },
    /// A customer bought something; the next start goes on after it.
    Round { number: u64 },
    /// The provider sent something and was answered.
    Sent {
        object: String,
        manner: Manner,
        heard: Heard,
        event: Option<String>,
    },
    /// A service was asked for something, and perhaps did it.
    Asked {
        effect: String,
        key: String,
        /// The business fact, whatever the key says.
        fact: String,
        version: Option<u64>,
        mishap: Mishap,
        did: bool,
    },
    /// The company published a message.
    Published { message: String },
    /// The customer's endpoint got a message.
    Received {
        message: String,
        genuine: bool,
        took: bool,
    },
    /// The API behind the guard charged for an order.
    Charged { order: String },
    /// The API's client was answered.
    Answered {
        order: String,
        status: u16,
        body: String,
    },
}

/// How the provider sent something.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Manner {
    Honest,
    Forged,
    Late,
}

/// What the provider heard.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Heard {
    Accepted,
    Duplicate,
    Refused,
    /// Not now, or nothing at all: nobody has promised anything.
    Nothing,
}

/// How a request goes wrong, if it does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mishap {
    None,
    /// Refused, and nothing done.
    Busy,
    /// Broken before anything was done.
    FailsBefore,
    /// Done, and then broken.
    FailsAfter,
    /// Done, and then hung up without a word.
    HangsUp,
    /// Done, and then silent for longer than anybody waits.
    TooSlow,
}

impl Mishap {
    /// Is the thing done all the same?
    pub(super) fn does_it(self) -> bool {
        !matches!(self, Mishap::Busy | Mishap::FailsBefore)
    }
}

/// The log, in a file and in memory.
#[derive(Clone)]
pub(super) struct Log(Arc<Mutex<Inner>>);

struct Inner {
    file: File,
    deeds: Vec<Deed>,
    asked: HashMap<String, u64>,
    done: HashSet<(String, String)>,
    broken: Option<io::Error>,
}

impl Log {
    /// The log in this file, with what is in it already.
    pub(super) fn open(path: &Path) -> io::Result<Log> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // A line that a full disk cut off stays what it is: no deed.
            file.write_all(b"\n")?;
        }
        let mut inner = Inner {
            file,
            deeds: Vec::new(),
            asked: HashMap::new(),
            done: HashSet::new(),
            broken: None,
        };
        let lines = text.lines();
        for deed in lines.filter_map(|line| serde_json::from_str(line).ok()) {
            inner.remember(deed);
        }
        Ok(Log(Arc::new(Mutex::new(inner))))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a deed down.
    pub(super) fn note(&self, deed: Deed) {
        self.lock().note(deed);
    }

    /// Decides with the count of requests under this name before, and with whether the thing is done, and writes the deed down in the
    /// same breath.
    pub(super) fn decide(
        &self,
        (effect, key): (&str, &str),
        decide: impl FnOnce(u64, bool) -> Deed,
    ) -> Deed {
        let mut inner = self.lock();
        let name = format!("{effect}:{key}");
        let asked = inner.asked.entry(name).or_default();
        *asked += 1;
        let asked = *asked;
        let done = inner.done.contains(&(effect.to_owned(), key.to_owned()));
        let deed = decide(asked, done);
        inner.write(&deed);
        inner.mark(&deed);
        inner.deeds.push(deed.clone());
        deed
    }

    /// Was the thing done?
    pub(super) fn is_done(&self, effect: &str, key: &str) -> bool {
        let done = (effect.to_owned(), key.to_owned());
        self.lock().done.contains(&done)
    }

    /// All of it.
    pub(super) fn deeds(&self) -> Vec<Deed> {
        self.lock().deeds.clone()
    }

    pub(super) fn is_broken(&self) -> bool {
        self.lock().broken.is_some()
    }

    /// Why it cannot be written any more.
    pub(super) fn broken(&self) -> Option<io::Error> {
        self.lock().broken.take()
    }
}

impl Inner {
    fn note(&mut self, deed: Deed) {
        self.write(&deed);
        self.remember(deed);
    }

    fn write(&mut self, deed: &Deed) {
        let mut line = serde_json::to_vec(deed).unwrap_or_default();
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            self.broken.get_or_insert(error);
        }
    }

    fn remember(&mut self, deed: Deed) {
        if let Some(name) = asked_name(&deed) {
            *self.asked.entry(name).or_default() += 1;
        }
        self.mark(&deed);
        self.deeds.push(deed);
    }

    fn mark(&mut self, deed: &Deed) {
        let done = match deed {
            Deed::Asked {
                effect,
                key,
                did: true,
                ..
            } => (effect.clone(), key.clone()),
            Deed::Received {
                message,
                took: true,
                ..
            } => (MESSAGE.to_owned(), message.clone()),
            Deed::Charged { order } => (CHARGE.to_owned(), order.clone()),
            _ => return,
        };
        self.done.insert(done);
    }
}

/// What a customer's endpoint takes, beside effects.
pub(super) const MESSAGE: &str = "~message";
/// What the API does.
pub(super) const CHARGE: &str = "~charge";

/// Under which name requests of this kind are counted.
fn asked_name(deed: &Deed) -> Option<String> {
    match deed {
        Deed::Asked { effect, key, .. } => Some(format!("{effect}:{key}")),
        Deed::Received { message, .. } => Some(format!("{MESSAGE}:{message}")),
        Deed::Charged { order } => Some(format!("{CHARGE}:{order}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_start_goes_on_with_what_was_done() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("world.jsonl");
        let asked = |log: &Log| {
            let mut seen = (0, false);
            log.decide(("mail", "k"), |asked, done| {
                seen = (asked, done);
                Deed::Asked {
                    effect: "mail".to_owned(),
                    key: "k".to_owned(),
                    fact: "in_1".to_owned(),
                    version: None,
                    mishap: Mishap::HangsUp,
                    did: true,
                }
            });
            seen
        };
        let log = Log::open(&path).expect("a log");
        assert_eq!(asked(&log), (1, false));
        drop(log);
        // A disk that was full cuts a line off.
        let mut file = OpenOptions::new().append(true).open(&path).expect("a file");
        file.write_all(b"{\"what\":\"rou").expect("written");
        let log = Log::open(&path).expect("a log");
        assert_eq!(asked(&log), (2, true));
        let log = Log::open(&path).expect("a log");
        assert_eq!(log.deeds().len(), 2);
    }
}
