//! Keys: how parts become one text, and how texts become the fixed-size hashes that stores look up.
//!
//! Everything here is injective. Two different facts that shared a key would lose one of them, and nobody
//! would notice; so no encoding in this file can be fooled by separators inside its parts.

use std::fmt;

use sha2::{Digest, Sha256};

/// The longest `Idempotency-Key` that is sent in readable form: what receivers commonly accept (the guard does too).
pub const WIRE_KEY_BYTES_MAX: usize = 255;
/// Stands before the hash in a wire key that cannot be sent in readable form.
const WIRE_HASH_PREFIX: &str = "hapax-sha256:";

/// SHA-256 over parts with their lengths in front, so that moving bytes from one part to the next changes the hash.
pub(crate) struct PartsHash(Sha256);

impl PartsHash {
    /// Starts a hash for one purpose; hashes for different purposes never meet.
    pub(crate) fn new(purpose: &str) -> PartsHash {
        PartsHash(Sha256::new()).part(purpose.as_bytes())
    }

    /// Adds one part.
    pub(crate) fn part(self, part: &[u8]) -> PartsHash {
        let mut hash = self.begin_part(part.len() as u64);
        hash.more(part);
        hash
    }

    /// Begins a part of so many bytes, which follow with [`PartsHash::more`].
    pub(crate) fn begin_part(mut self, bytes: u64) -> PartsHash {
        self.0.update(bytes.to_be_bytes());
        self
    }

    /// Adds bytes to the part that was begun last.
    pub(crate) fn more(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all parts.
    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// One text for a list of parts: a JSON array of strings, also for a single part.
pub fn composite(parts: &[impl AsRef<str>]) -> String {
    let bytes: usize = parts.iter().map(|part| part.as_ref().len() + 3).sum();
    let mut text = String::with_capacity(bytes + 1);
    text.push('[');
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        push_quoted(&mut text, part.as_ref());
    }
    text.push(']');
    text
}

/// As a JSON string. Most parts are names without anything to be escaped.
fn push_quoted(text: &mut String, part: &str) {
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    match part.bytes().all(plain) {
        true => {
            text.push('"');
            text.push_str(part);
            text.push('"');
        }
        false => text.push_str(&serde_json::Value::from(part).to_string()),
    }
}

/// What a key is unique for. The kind is part of the hash: an event and an effect with the same text do not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// One event per (source, key); the scope is the source or the app.
    Identity,
    /// One effect per (effect name, key); the scope is the effect's name.
    Effect,
    /// One run per guarded request; the scope is tenant, principal and route.
    Guard,
    /// What is to be done in order: one chain per (effect name, entity); the scope is the effect's name.
    Chain,
    /// The unit of isolation; no scope.
    Lane,
    /// One answer per `Idempotency-Key` of an API request; the scope is who asks.
    Request,
}

impl KeyKind {
    const fn purpose(self) -> &'static str {
        match self {
            KeyKind::Identity => "hapax/key/identity/1",
            KeyKind::Effect => "hapax/key/effect/1",
            KeyKind::Guard => "hapax/key/guard/1",
            KeyKind::Chain => "hapax/key/chain/1",
            KeyKind::Lane => "hapax/key/lane/1",
            KeyKind::Request => "hapax/key/request/1",
        }
    }
}

/// A key as the stores' indexes hold it. Sixteen bytes: among 10^12 keys a chance collision has odds below 10^-14,
/// and a hit is confirmed against its row anyway.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash([u8; 16]);

impl KeyHash {
    /// The hash of a key within its scope.
    pub fn of(kind: KeyKind, scope: &str, key: &str) -> KeyHash {
        let full = PartsHash::new(kind.purpose())
            .part(scope.as_bytes())
            .part(key.as_bytes())
            .finish();
        let mut short = [0; 16];
        short.copy_from_slice(&full[..16]);
        KeyHash(short)
    }

    /// The hash with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> KeyHash {
        KeyHash(bytes)
    }

    /// Its bytes.
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// The shard, of `shards`, in which rows of this key live. Zero shards count as one.
    pub const fn shard(self, shards: u16) -> u16 {
        let spread = u16::from_be_bytes([self.0[0], self.0[1]]);
        if shards == 0 { 0 } else { spread % shards }
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// SHA-256 of bytes as they came: what bodies are compared by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyHash([u8; 32]);

impl BodyHash {
    /// The hash of these bytes.
    pub fn of(body: &[u8]) -> BodyHash {
        BodyHash(Sha256::digest(body).into())
    }

    /// The hash with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> BodyHash {
        BodyHash(bytes)
    }

    /// Its bytes.
    pub const fn bytes(self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Display for BodyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for BodyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The `Idempotency-Key` that an effect's requests carry: `NAME:KEY`, with `#n` for a forced generation n > 1.
///
/// What cannot be sent so, or could be read in two ways (a colon in the name, a key that ends like a generation),
/// is sent as a hash of all three. The same on every attempt (D5), and never the same for two effects.
pub fn wire_key(name: &str, key: &str, generation: u32) -> String {
    let plain = match generation {
        0 | 1 => format!("{name}:{key}"),
        n => format!("{name}:{key}#{n}"),
    };
    if sendable(&plain) && !name.contains(':') && !ends_like_generation(key) {
        return plain;
    }
    let hash = PartsHash::new("hapax/wire-key/1")
        .part(name.as_bytes())
        .part(key.as_bytes())
        .part(&generation.max(1).to_be_bytes())
        .finish();
    format!("{WIRE_HASH_PREFIX}{}", hex::encode(hash))
}

/// Does this text arrive at the other side of an HTTP header as it left?
fn sendable(text: &str) -> bool {
    // Outer blanks are cut in transit, and a leading quote starts the quoted form of the header.
    text.len() <= WIRE_KEY_BYTES_MAX
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !text.starts_with([' ', '"'])
        && !text.ends_with(' ')
        && !text.starts_with(WIRE_HASH_PREFIX)
}

fn ends_like_generation(key: &str) -> bool {
    key.rsplit_once('#')
        .is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Short texts over the letters that separate things: where injectivity breaks if it breaks.
    fn tricky() -> impl Strategy<Value = String> {
        proptest::string::string_regex("[a:#12\"\\\\,\\[ é]{0,6}").expect("a valid pattern")
    }

    #[test]
    fn a_composite_is_a_json_array() {
        assert_eq!(
            composite(&["invoice.paid", "in_1"]),
            r#"["invoice.paid","in_1"]"#
        );
        assert_eq!(composite(&["a\"b"]), r#"["a\"b"]"#);
        assert_eq!(composite(&[] as &[&str]), "[]");
    }

    #[test]
    fn a_wire_key_is_readable_where_it_can_be() {
        let table = [
            ("email", "in_1", 1, "email:in_1"),
            ("email", "in_1", 2, "email:in_1#2"),
            ("email", r#"["a","b:c"]"#, 1, r#"email:["a","b:c"]"#),
            ("email", "in#x", 1, "email:in#x"),
        ];
        for (name, key, generation, expected) in table {
            assert_eq!(wire_key(name, key, generation), expected);
        }
        for (name, key) in [("email", "ü"), ("email", "in#2"), ("a:b", "c"), ("e", "x ")] {
            let hashed = wire_key(name, key, 1);
            assert!(hashed.starts_with(WIRE_HASH_PREFIX), "{hashed}");
            assert_ne!(hashed, wire_key(name, key, 2));
        }
        assert_eq!(
            wire_key("e", &"x".repeat(300), 1).len(),
            WIRE_HASH_PREFIX.len() + 64
        );
    }

    #[test]
    fn kinds_and_scopes_keep_keys_apart() {
        let base = KeyHash::of(KeyKind::Identity, "billing", "evt_1");
        assert_eq!(base, KeyHash::of(KeyKind::Identity, "billing", "evt_1"));
        assert_ne!(base, KeyHash::of(KeyKind::Effect, "billing", "evt_1"));
        assert_ne!(base, KeyHash::of(KeyKind::Identity, "billin", "gevt_1"));
        assert!(base.shard(7) < 7);
        assert_eq!(base.shard(0), 0);
    }

    proptest! {
        /// B1: two lists of parts never share a key.
        #[test]
        fn composite_is_injective(a in prop::collection::vec(tricky(), 0..4), b in prop::collection::vec(tricky(), 0..4)) {
            prop_assert_eq!(composite(&a) == composite(&b), a == b);
        }

        #[test]
        fn composite_is_what_a_serializer_writes(parts in prop::collection::vec(any::<String>(), 0..4), tricky in tricky()) {
            let parts: Vec<String> = parts.into_iter().chain([tricky]).collect();
            prop_assert_eq!(composite(&parts), serde_json::to_string(&parts).unwrap());
        }

        /// D5, D6: two effects never share a wire key.
        #[test]
        fn wire_key_is_injective(a in (tricky(), tricky(), 1u32..4), b in (tricky(), tricky(), 1u32..4)) {
            prop_assert_eq!(wire_key(&a.0, &a.1, a.2) == wire_key(&b.0, &b.1, b.2), a == b);
        }

        #[test]
        fn a_wire_key_fits_a_header(name in ".{0,300}", key in ".{0,300}", generation in any::<u32>()) {
            let text = wire_key(&name, &key, generation);
            prop_assert!(sendable(&text) || text.starts_with(WIRE_HASH_PREFIX));
            prop_assert!(text.len() <= WIRE_KEY_BYTES_MAX);
        }
    }
}
