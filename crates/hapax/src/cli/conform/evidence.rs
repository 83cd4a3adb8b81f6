//! What in an answer shows that something was carried out.

use bytes::Bytes;
use http::header::LOCATION;

use super::target::Said;

const REPLAYED: &str = "idempotent-replayed";

/// What the answers of this API show. Without any of it, two equal answers say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Does each execution give an answer of its own?
    pub(super) told_apart: bool,
    /// Are repeated answers marked, and first ones not?
    pub(super) marks_replays: bool,
}

impl Evidence {
    /// Is this answer, which is the same as an earlier one, shown to be that one?
    pub(super) fn shows(self, again: &Said) -> bool {
        self.told_apart || (self.marks_replays && again.is_replay())
    }
}

/// What tells one execution from another: the status, the body, where the result is, and the headers that the user named.
pub(super) type Mark = (u16, Bytes, Vec<Option<Bytes>>);

impl Said {
    pub(super) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn is_replay(&self) -> bool {
        let value = self.headers.get(REPLAYED);
        value.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    pub(super) fn mark(&self) -> Mark {
        let location = self.headers.get(LOCATION);
        let location = location.map(|value| Bytes::copy_from_slice(value.as_bytes()));
        let mut places = vec![location];
        places.extend(self.ids.iter().cloned());
        (self.status, self.body.clone(), places)
    }

    /// The mark of an answer to this key, as if it did not repeat the key: that shows no execution.
    pub(super) fn mark_beside(&self, key: &str) -> Mark {
        let without = |bytes: Bytes| match key.is_empty() {
            true => bytes,
            false => String::from_utf8_lossy(&bytes).replace(key, "").into(),
        };
        let (status, body, places) = self.mark();
        let places = places.into_iter().map(|place| place.map(without));
        (status, without(body), places.collect())
    }
}
