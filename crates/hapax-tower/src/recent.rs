//! Answers that were given out again a moment ago, in memory: who retries once often does so many times, and that needs no query. Most
//! requests are never retried, so a first answer is not remembered.
//!
//! The store stays the authority. Only an answer that it has given out is remembered here, for a minute at most, and such an answer never changes
//! as long as its key lives. Everything else, such as another body under the same key, is the store's to decide.
//!
//! So while the store is down, an answer that it gave out less than a minute before is still given again: nothing is carried out for that, and
//! what was committed stays true. Every other guarded request hears 503 then.
//!
//! When a key expires is a time of the store's, and here it is held against this machine's clock. One that is slow gives an answer for a
//! minute longer at most; its key is not free by then, since it is refused as expired for its grace before it may run again. One that
//! is fast asks the store sooner.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hapax_ledger::fingerprint::Fingerprint;
use hapax_ledger::key::KeyHash;
use hapax_ledger::time::Time;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::clock;
use crate::stored::Stored;

/// The longest time that an answer is given out from memory.
const KEPT_FOR_MAX: Duration = Duration::from_secs(60);
/// A longer answer is not worth its place.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// What an answer takes beside its bytes, about.
const OVERHEAD_BYTES: u64 = 512;
/// How long a usual answer is: how many places the map begins with.
const USUAL_BYTES: u64 = 2 * 1024;

/// An answer that was stored.
#[derive(Clone)]
struct Answer {
    fingerprint: Fingerprint,
    stored: Stored,
    expires_at: Time,
    /// By the steady clock: no jump of another one makes it last longer.
    learned: Instant,
    kept_for: Duration,
}

#[derive(Clone)]
struct Weight;

impl Weighter<KeyHash, Answer> for Weight {
    fn weight(&self, _: &KeyHash, answer: &Answer) -> u64 {
        let headers = answer.stored.headers.iter();
        let headers = headers.chain(&answer.stored.trailers);
        let headers = headers.map(|(name, value)| name.as_str().len() + value.len());
        OVERHEAD_BYTES + (answer.stored.body.len() + headers.sum::<usize>()) as u64
    }
}

/// The latest answers, up to so many bytes.
pub(crate) struct Recent(Option<Cache<KeyHash, Answer, Weight>>);

impl Recent {
    /// Remembers so many bytes; none if that is 0.
    pub(crate) fn new(bytes_max: u64) -> Recent {
        let places = usize::try_from(bytes_max / USUAL_BYTES).unwrap_or(0);
        let cache = (bytes_max > 0).then(|| Cache::with_weighter(places, bytes_max, Weight));
        Recent(cache)
    }

    /// The answer to this request, and when it expires.
    pub(crate) fn find(&self, key: KeyHash, fingerprint: Fingerprint) -> Option<(Stored, Time)> {
        let answer = self.0.as_ref()?.get(&key)?;
        let fresh = clock::since(answer.learned) < answer.kept_for;
        (fresh && answer.fingerprint == fingerprint).then_some((answer.stored, answer.expires_at))
    }

    /// The store has this answer, until then by its own clock.
    pub(crate) fn learn(
        &self,
        key: KeyHash,
        fingerprint: Fingerprint,
        stored: Stored,
        expires_at: Time,
    ) {
        let Some(cache) = &self.0 else {
            return;
        };
        let left = clock::until(expires_at);
        if stored.body.len() > ANSWER_BYTES_MAX || left.is_zero() {
            return;
        }
        // A part of a larger buffer would keep the whole of it.
        let stored = Stored {
            body: Bytes::copy_from_slice(&stored.body),
            ..stored
        };
        let answer = Answer {
            fingerprint,
            stored,
            expires_at,
            learned: clock::tick(),
            kept_for: left.min(KEPT_FOR_MAX),
        };
        cache.insert(key, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hapax_ledger::fingerprint::RequestParts;
    use hapax_ledger::time::Span;
    use http::{HeaderMap, StatusCode};

    const KEY: KeyHash = KeyHash::from_bytes([7; 16]);

    fn answer(bytes: usize) -> Stored {
        Stored {
            status: StatusCode::CREATED,
            headers: HeaderMap::new(),
            body: vec![b'x'; bytes].into(),
            trailers: HeaderMap::new(),
        }
    }

    fn fingerprint(path: &str) -> Fingerprint {
        Fingerprint::of(&RequestParts {
            method: "POST",
            path,
            query: None,
            content_type: None,
            body: b"{}",
        })
    }

    #[test]
    fn only_the_same_request_gets_it_and_only_while_its_key_lives() {
        let recent = Recent::new(1 << 20);
        let (one, other) = (fingerprint("/a"), fingerprint("/b"));
        let later = clock::now() + Span::from_hours(1);
        recent.learn(KEY, one, answer(10), later);
        assert_eq!(recent.find(KEY, one), Some((answer(10), later)));
        assert_eq!(recent.find(KEY, other), None);
        assert_eq!(recent.find(KeyHash::from_bytes([8; 16]), one), None);

        let gone = KeyHash::from_bytes([9; 16]);
        recent.learn(gone, one, answer(10), clock::now());
        assert_eq!(recent.find(gone, one), None);
    }

    #[test]
    fn it_is_bounded_and_can_be_turned_off() {
        let later = clock::now() + Span::from_hours(1);
        let one = fingerprint("/a");
        let off = Recent::new(0);
        off.learn(KEY, one, answer(1), later);
        assert_eq!(off.find(KEY, one), None);

        let recent = Recent::new(1 << 20);
        recent.learn(KEY, one, answer(ANSWER_BYTES_MAX + 1), later);
        assert_eq!(recent.find(KEY, one), None);
        for number in 0..200u8 {
            let key = KeyHash::from_bytes([number; 16]);
            recent.learn(key, one, answer(ANSWER_BYTES_MAX), later);
        }
        let cache = recent.0.as_ref().expect("it is on");
        assert!(cache.weight() <= 1 << 20);
    }
}
