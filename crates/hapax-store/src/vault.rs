//! Secrets at rest: sealed with a key that is not in the store, and bound to the row they are kept in.
//!
//! A sealed value names the key it was sealed with, so several keys can be known at once: values are sealed with the first and opened
//! with any. That is how a key is changed while the program runs. What a value belongs to (a table, a row, a column) is
//! authenticated with it: moved to another row, it does not open.
//!
//! AES-256-GCM-SIV: a nonce that should ever come twice costs no more than the knowledge that two values are the same.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// The most keys that are known at once.
pub const KEYS_MAX: usize = 16;
/// How values are sealed; the first byte of each.
const VERSION: u8 = 1;
/// Bytes by which a value names its key.
const NAME_BYTES: usize = 4;
const HEAD_BYTES: usize = 1 + NAME_BYTES + NONCE_LEN;
/// A sealed value is so much longer than the value.
pub const SEALED_BYTES_MORE: usize = HEAD_BYTES + TAG_BYTES;
const TAG_BYTES: usize = 16;

/// A nonce for one value; it must be drawn anew for each.
pub type Draw = [u8; NONCE_LEN];

/// Why a value stays closed. Says nothing about its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// Not something that a vault has sealed.
    #[error("not a sealed value")]
    Form,
    /// Sealed with a key that is not known here.
    #[error("sealed with a key that is not in the key file")]
    UnknownKey,
    /// Changed, or moved from another row.
    #[error("a sealed value was changed or moved since")]
    Broken,
    /// No key, or too many, or one twice.
    #[error("a vault needs 1 to {KEYS_MAX} different keys")]
    Keys,
}

/// Seals and opens.
pub struct Vault {
    keys: Vec<([u8; NAME_BYTES], LessSafeKey)>,
}

impl Vault {
    /// A vault with these keys; values are sealed with the first.
    pub fn new(keys: &[[u8; KEY_BYTES]]) -> Result<Vault, VaultError> {
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(VaultError::Keys);
        }
        let mut known: Vec<([u8; NAME_BYTES], LessSafeKey)> = Vec::with_capacity(keys.len());
        for key in keys {
            let name = name_of(key);
            let key =
                UnboundKey::new(&AES_256_GCM_SIV, key).map_err(|_unspecified| VaultError::Keys)?;
            if known.iter().any(|(other, _)| *other == name) {
                return Err(VaultError::Keys);
            }
            known.push((name, LessSafeKey::new(key)));
        }
        Ok(Vault { keys: known })
    }

    /// Seals a value for one place.
    pub fn seal(&self, place: &[u8], draw: Draw, plain: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(SEALED_BYTES_MORE + plain.len());
        self.seal_behind(&mut sealed, place, draw, |sealed| {
            sealed.extend_from_slice(plain);
        });
        sealed
    }

    /// The same for what `write` adds to bytes that may be there already, and in place: nothing is copied.
    pub fn seal_behind(
        &self,
        bytes: &mut Vec<u8>,
        place: &[u8],
        draw: Draw,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let (name, key) = &self.keys[0];
        bytes.push(VERSION);
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(&draw);
        let plain_from = bytes.len();
        write(bytes);
        // It fails for values of many gigabytes only, and every value has a limit far below.
        let tag = key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(draw),
                Aad::from(place),
                &mut bytes[plain_from..],
            )
            .expect("values are far smaller than the cipher's limit");
        bytes.extend_from_slice(tag.as_ref());
    }

    /// Opens a value that was sealed for this place.
    pub fn open(&self, place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        let (name, draw, body) = parts(sealed)?;
        let (_, key) = self
            .keys
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or(VaultError::UnknownKey)?;
        let mut body = body.to_vec();
        let plain = key
            .open_in_place(
                Nonce::assume_unique_for_key(draw),
                Aad::from(place),
                &mut body,
            )
            .map_err(|_unspecified| VaultError::Broken)?;
        let length = plain.len();
        body.truncate(length);
        Ok(body)
    }

    /// Was the value sealed with the key that is first now? If not, it should be sealed anew.
    pub fn is_current(&self, sealed: &[u8]) -> bool {
        parts(sealed).is_ok_and(|(name, _, _)| name == self.keys[0].0)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault({} keys)", self.keys.len())
    }
}

/// The first bytes of the key's hash: enough to tell a few keys apart, and no help in guessing one.
fn name_of(key: &[u8; KEY_BYTES]) -> [u8; NAME_BYTES] {
    let hash = digest(&SHA256, &[b"hapax/vault-key/1".as_slice(), key].concat());
    let mut name = [0; NAME_BYTES];
    name.copy_from_slice(&hash.as_ref()[..NAME_BYTES]);
    name
}

fn parts(sealed: &[u8]) -> Result<([u8; NAME_BYTES], Draw, &[u8]), VaultError> {
    let ([VERSION, rest @ ..], true) = (sealed, sealed.len() >= HEAD_BYTES) else {
        return Err(VaultError::Form);
    };
    let (name, rest) = rest.split_first_chunk().ok_or(VaultError::Form)?;
    let (draw, body) = rest.split_first_chunk().ok_or(VaultError::Form)?;
    Ok((*name, *draw, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: [u8; KEY_BYTES] = [1; KEY_BYTES];
    const NEW: [u8; KEY_BYTES] = [2; KEY_BYTES];

    fn vault(keys: &[[u8; KEY_BYTES]]) -> Vault {
        Vault::new(keys).expect("keys")
    }

    #[test]
    fn a_value_opens_in_its_place_and_nowhere_else() {
        let vault = vault(&[OLD]);
        let sealed = vault.seal(b"endpoint/1", [7; 12], b"whsec_x");
        assert_eq!(vault.open(b"endpoint/1", &sealed), Ok(b"whsec_x".to_vec()));
        assert_eq!(vault.open(b"endpoint/2", &sealed), Err(VaultError::Broken));
        assert!(!sealed.windows(7).any(|part| part == b"whsec_x"));
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(vault.open(b"endpoint/1", &changed).is_err(), "{place}");
            assert!(vault.open(b"endpoint/1", &sealed[..place]).is_err());
        }
    }

    #[test]
    fn a_key_can_be_changed_while_old_values_still_open() {
        let before = vault(&[OLD]).seal(b"p", [0; 12], b"x");
        let both = vault(&[NEW, OLD]);
        assert_eq!(both.open(b"p", &before), Ok(b"x".to_vec()));
        assert!(!both.is_current(&before));
        let after = both.seal(b"p", [1; 12], b"x");
        assert!(both.is_current(&after));
        assert_eq!(vault(&[NEW]).open(b"p", &after), Ok(b"x".to_vec()));
        assert_eq!(
            vault(&[NEW]).open(b"p", &before),
            Err(VaultError::UnknownKey)
        );
    }

    #[test]
    fn a_vault_needs_keys_that_differ() {
        assert_eq!(Vault::new(&[]).map(drop), Err(VaultError::Keys));
        assert_eq!(Vault::new(&[OLD, OLD]).map(drop), Err(VaultError::Keys));
        assert_eq!(
            Vault::new(&[[3; KEY_BYTES]; 17]).map(drop),
            Err(VaultError::Keys)
        );
    }
}
