//! Keyed hashes with the key schedule done once: checking a request clones a ready state.

use hmac::{Hmac, KeyInit, Mac as _};
use serde::Deserialize;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

use crate::decode::TAG_BYTES_MAX;

/// The hash inside the MAC. It comes from configuration, never from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// SHA-1: legacy, and still sound inside HMAC.
    Sha1,
    /// SHA-256, what nearly everybody uses.
    #[default]
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Algorithm {
    pub(crate) const ALL: [Algorithm; 4] = [
        Algorithm::Sha256,
        Algorithm::Sha1,
        Algorithm::Sha512,
        Algorithm::Sha384,
    ];

    /// The word used in configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha384 => "sha384",
            Algorithm::Sha512 => "sha512",
        }
    }

    pub(crate) fn tag_bytes(self) -> usize {
        match self {
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 => 32,
            Algorithm::Sha384 => 48,
            Algorithm::Sha512 => 64,
        }
    }
}

/// Where the key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Construction {
    /// HMAC.
    #[default]
    Hmac,
    /// A plain hash with `{secret}` written into the content; weaker, and some providers have nothing else.
    Digest,
}

/// Something that takes the signed content piece by piece.
pub(crate) trait Sink {
    fn put(&mut self, bytes: &[u8]);
    /// The place of `{secret}`; only a plain digest has one.
    fn put_secret(&mut self) {}
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

#[derive(Clone)]
enum State {
    HmacSha1(Hmac<Sha1>),
    HmacSha256(Hmac<Sha256>),
    HmacSha384(Hmac<Sha384>),
    HmacSha512(Hmac<Sha512>),
    Sha1(Sha1),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

/// A keyed hash, ready to take content. Clone it to start.
#[derive(Clone)]
pub(crate) struct Mac {
    state: State,
    /// Only for [`Construction::Digest`]; empty otherwise.
    secret: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mac(..)")
    }
}

fn keyed<M: KeyInit>(key: &[u8]) -> M {
    M::new_from_slice(key).expect("HMAC takes keys of every length")
}

impl Mac {
    pub(crate) fn new(construction: Construction, algorithm: Algorithm, key: &[u8]) -> Mac {
        let (state, secret) = match construction {
            Construction::Hmac => (
                match algorithm {
                    Algorithm::Sha1 => State::HmacSha1(keyed(key)),
                    Algorithm::Sha256 => State::HmacSha256(keyed(key)),
                    Algorithm::Sha384 => State::HmacSha384(keyed(key)),
                    Algorithm::Sha512 => State::HmacSha512(keyed(key)),
                },
                Vec::new(),
            ),
            Construction::Digest => (
                match algorithm {
                    Algorithm::Sha1 => State::Sha1(Sha1::new()),
                    Algorithm::Sha256 => State::Sha256(Sha256::new()),
                    Algorithm::Sha384 => State::Sha384(Sha384::new()),
                    Algorithm::Sha512 => State::Sha512(Sha512::new()),
                },
                key.to_vec(),
            ),
        };
        Mac {
            state,
            secret: Zeroizing::new(secret),
        }
    }

    pub(crate) fn finish(self) -> Tag {
        match self.state {
            State::HmacSha1(mac) => Tag::of(&mac.finalize().into_bytes()),
            State::HmacSha256(mac) => Tag::of(&mac.finalize().into_bytes()),
            State::HmacSha384(mac) => Tag::of(&mac.finalize().into_bytes()),
            State::HmacSha512(mac) => Tag::of(&mac.finalize().into_bytes()),
            State::Sha1(hash) => Tag::of(&hash.finalize()),
            State::Sha256(hash) => Tag::of(&hash.finalize()),
            State::Sha384(hash) => Tag::of(&hash.finalize()),
            State::Sha512(hash) => Tag::of(&hash.finalize()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::HmacSha1(mac) => mac.update(bytes),
            State::HmacSha256(mac) => mac.update(bytes),
            State::HmacSha384(mac) => mac.update(bytes),
            State::HmacSha512(mac) => mac.update(bytes),
            State::Sha1(hash) => hash.update(bytes),
            State::Sha256(hash) => hash.update(bytes),
            State::Sha384(hash) => hash.update(bytes),
            State::Sha512(hash) => hash.update(bytes),
        }
    }
}

impl Sink for Mac {
    fn put(&mut self, bytes: &[u8]) {
        self.update(bytes);
    }

    fn put_secret(&mut self) {
        let secret = std::mem::take(&mut self.secret);
        self.update(&secret);
        self.secret = secret;
    }
}

/// A finished MAC.
#[derive(Clone, Copy)]
pub(crate) struct Tag {
    bytes: [u8; TAG_BYTES_MAX],
    length: usize,
}

impl Tag {
    fn of(output: &[u8]) -> Tag {
        let mut bytes = [0; TAG_BYTES_MAX];
        bytes[..output.len()].copy_from_slice(output);
        Tag {
            bytes,
            length: output.len(),
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Equality in time that depends on the lengths alone.
    pub(crate) fn matches(&self, other: &[u8]) -> Choice {
        self.as_slice().ct_eq(other)
    }
}

/// Equality of two texts whose length is itself a secret: their hashes are compared.
pub(crate) fn same_secret(left: &[u8], right: &[u8]) -> Choice {
    Sha256::digest(left).ct_eq(&Sha256::digest(right))
}

/// SHA-256, for body digests.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
