//! Ids: 16 bytes in the shape of a UUIDv7, shown as a prefix and 26 base32 letters (`evt_01k...`).
//!
//! An id says when its row was made (48 bits of milliseconds), in which shard it lives (12 bits) and
//! which row it is there (62 bits, given by the store). So ids sort by time, and a store finds
//! the row of an id without an index over ids.

use std::fmt;
use std::str::FromStr;

use crate::key::PartsHash;
use crate::lease::Fence;
use crate::time::Time;

/// Crockford's base32 in lower case: no i, l, o, u, so that an id survives being read aloud.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// What each byte stands for in it; 32 and above: nothing.
const DIGITS: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        digits[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};
/// 128 bits in 5-bit letters.
const TEXT_LETTERS: usize = 26;
/// The largest row number an id can hold.
pub const ROW_MAX: u64 = (1 << 62) - 1;
/// The largest shard number an id can hold.
pub const SHARD_MAX: u16 = (1 << 12) - 1;

/// The parts of an id, whatever it names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawId([u8; 16]);

impl RawId {
    /// Puts an id together. `shard` and `row` are cut to the bits they have.
    pub const fn new(at: Time, shard: u16, row: u64) -> RawId {
        let high = ((at.millis() & 0xffff_ffff_ffff) << 16) | 0x7000 | (shard & SHARD_MAX) as u64;
        let low = (0b10 << 62) | (row & ROW_MAX);
        RawId(((high as u128) << 64 | low as u128).to_be_bytes())
    }

    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> RawId {
        RawId(bytes)
    }

    /// Its bytes, in sorting order.
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// When the row was made, to the millisecond.
    pub const fn millis(self) -> u64 {
        (u128::from_be_bytes(self.0) >> 80) as u64
    }

    /// The shard in which the row lives.
    pub const fn shard(self) -> u16 {
        (u128::from_be_bytes(self.0) >> 64) as u16 & SHARD_MAX
    }

    /// The row within its shard.
    pub const fn row(self) -> u64 {
        u128::from_be_bytes(self.0) as u64 & ROW_MAX
    }

    fn write_text(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        let mut text = [0u8; TEXT_LETTERS];
        for (place, letter) in text.iter_mut().enumerate() {
            let shift = 5 * (TEXT_LETTERS - 1 - place);
            *letter = ALPHABET[(value >> shift) as usize & 31];
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }

    fn parse_text(text: &str) -> Option<RawId> {
        let letters: &[u8; TEXT_LETTERS] = text.as_bytes().try_into().ok()?;
        let digits = letters.map(|letter| DIGITS[usize::from(letter)]);
        // 26 letters hold 130 bits; the first may only use three of its five.
        let is_id = digits[0] < 8 && digits.iter().all(|digit| *digit < 32);
        let value = digits
            .iter()
            .fold(0, |value, digit| value << 5 | u128::from(*digit));
        is_id.then_some(RawId(value.to_be_bytes()))
    }
}

/// The text is not an id of the wanted kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an id: expected `{prefix}_` and 26 letters")]
pub struct BadId {
    prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub RawId);

        impl $name {
            /// What stands before the underscore.
            pub const PREFIX: &'static str = $prefix;

            /// The id with these bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> $name {
                $name(RawId::from_bytes(bytes))
            }

            /// Its bytes, in sorting order.
            pub const fn bytes(self) -> [u8; 16] {
                self.0.bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!($prefix, "_"))?;
                self.0.write_text(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<$name, BadId> {
                text.strip_prefix(concat!($prefix, "_"))
                    .and_then(RawId::parse_text)
                    .map($name)
                    .ok_or(BadId { prefix: $prefix })
            }
        }
    };
}

id!(
    /// Names an event.
    EventId,
    "evt"
);
id!(
    /// Names an effect.
    EffectId,
    "eff"
);
id!(
    /// Names one attempt at an effect.
    AttemptId,
    "atmpt"
);
id!(
    /// Names one pass over an event.
    RunId,
    "run"
);
id!(
    /// Names a replay of many events.
    ReplayId,
    "rpl"
);
id!(
    /// Names an API token; says nothing about its secret.
    TokenId,
    "tok"
);
id!(
    /// Names an application: whoever messages are sent for.
    AppId,
    "app"
);
id!(
    /// Names an endpoint of an application.
    EndpointId,
    "ep"
);
id!(
    /// Names a message. It is an event, so it is the event's id under another prefix.
    MessageId,
    "msg"
);
id!(
    /// Names a guarded key.
    KeyId,
    "key"
);

impl AttemptId {
    /// The id of the attempt that ran under this fence and started then. It is told from them, and nowhere kept: the same whenever it
    /// is asked for, and in the order in which attempts started.
    pub fn of(effect: EffectId, fence: Fence, started_at: Time) -> AttemptId {
        let hash = PartsHash::new("attempt")
            .part(&effect.bytes())
            .part(&fence.as_u64().to_be_bytes())
            .finish();
        let [a, b, c, d, e, f, g, h, ..] = hash;
        let row = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        AttemptId(RawId::new(started_at, effect.0.shard(), row))
    }
}

impl RunId {
    /// The run that every event begins with. It is told from the event, and nowhere kept.
    pub const fn initial(event: EventId) -> RunId {
        RunId(event.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_out() {
        let id = RawId::new(Time::from_micros(1_700_000_000_123_456), 0x5a5, 77);
        assert_eq!(id.millis(), 1_700_000_000_123);
        assert_eq!(id.shard(), 0x5a5);
        assert_eq!(id.row(), 77);
    }

    #[test]
    fn an_attempt_has_one_id_and_another_attempt_has_another() {
        let effect = EffectId(RawId::new(Time::from_secs(1), 3, 7));
        let of = |fence, at| AttemptId::of(effect, Fence::from_u64(fence), Time::from_secs(at));
        assert_eq!(of(1, 5), of(1, 5));
        assert_eq!((of(1, 5).0.shard(), of(1, 5).0.millis()), (3, 5_000));
        assert_ne!(of(1, 5), of(2, 5));
        assert!(of(2, 5) < of(1, 6));
    }

    #[test]
    fn text_round_trips_and_sorts_as_the_bytes_do() {
        let early = EventId(RawId::new(Time::from_secs(1_700_000_000), 1, ROW_MAX));
        let late = EventId(RawId::new(Time::from_secs(1_700_000_001), 0, 0));
        assert_eq!(early.to_string().parse(), Ok(early));
        assert!(early < late);
        assert!(early.to_string() < late.to_string());
        assert_eq!(early.to_string().len(), 30);
    }

    #[test]
    fn other_prefixes_lengths_and_letters_are_refused() {
        let id = EventId(RawId::new(Time::from_secs(1), 0, 1)).to_string();
        let swapped = id.replace("evt_", "eff_");
        for text in [
            swapped.as_str(),
            "evt_",
            "evt_zzzzzzzzzzzzzzzzzzzzzzzzzz",
            &id[..29],
            "evt_0000000000000000000000000u",
        ] {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }
}
