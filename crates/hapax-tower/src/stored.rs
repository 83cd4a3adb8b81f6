//! An answer as the store keeps it: status, headers, bytes, trailers. Sealed if the guard has a vault.
//!
//! The first byte says which form follows: [`PLAIN`] or [`SEALED`]. Inside, the first byte is the version of the
//! form itself. A sealed answer is bound to its key's hash: moved to another key, it does not open.

use bytes::{Buf, BufMut, Bytes};
use hapax_ledger::key::KeyHash;
use hapax_store::vault::{SEALED_BYTES_MORE, Vault, VaultError};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

use crate::entropy;

/// A form that anyone can read.
const PLAIN: u8 = 0;
/// A form that a vault has sealed.
const SEALED: u8 = 1;
/// The version of the form inside.
const VERSION: u8 = 1;
/// The same with trailers before the bytes. Few answers have any.
const VERSION_WITH_TRAILERS: u8 = 2;

/// An answer that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// What came behind the bytes; mostly nothing.
    pub(crate) trailers: HeaderMap,
}

/// Why a stored answer cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("a stored answer has a form that this version does not know")]
    Form,
    #[error("a stored answer is sealed, and this guard has no vault")]
    NoVault,
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl Stored {
    /// For the store.
    pub(crate) fn encode(&self, key: KeyHash, vault: Option<&Vault>) -> Bytes {
        match vault {
            None => {
                let mut form = Vec::with_capacity(self.body.len() + 256);
                form.push(PLAIN);
                self.write(&mut form);
                form.into()
            }
            Some(vault) => {
                let mut form = Vec::with_capacity(self.body.len() + SEALED_BYTES_MORE + 256);
                form.push(SEALED);
                vault.seal_behind(&mut form, &place(key), entropy::draw(), |form| {
                    self.write(form);
                });
                form.into()
            }
        }
    }

    /// From the store.
    pub(crate) fn decode(
        mut form: Bytes,
        key: KeyHash,
        vault: Option<&Vault>,
    ) -> Result<Stored, Unreadable> {
        if form.is_empty() {
            return Err(Unreadable::Form);
        }
        match (form.get_u8(), vault) {
            (PLAIN, _) => Stored::read(form).ok_or(Unreadable::Form),
            (SEALED, None) => Err(Unreadable::NoVault),
            (SEALED, Some(vault)) => {
                let plain = vault.open(&place(key), &form)?;
                Stored::read(Bytes::from(plain)).ok_or(Unreadable::Form)
            }
            _ => Err(Unreadable::Form),
        }
    }

    fn write(&self, form: &mut Vec<u8>) {
        let version = match self.trailers.is_empty() {
            true => VERSION,
            false => VERSION_WITH_TRAILERS,
        };
        form.put_u8(version);
        form.put_u16(self.status.as_u16());
        write_map(&self.headers, form);
        if version == VERSION_WITH_TRAILERS {
            write_map(&self.trailers, form);
        }
        form.put_slice(&self.body);
    }

    fn read(mut form: Bytes) -> Option<Stored> {
        let version = form.try_get_u8().ok()?;
        if ![VERSION, VERSION_WITH_TRAILERS].contains(&version) {
            return None;
        }
        let status = StatusCode::from_u16(form.try_get_u16().ok()?).ok()?;
        let headers = read_map(&mut form)?;
        let trailers = match version {
            VERSION_WITH_TRAILERS => read_map(&mut form)?,
            _ => HeaderMap::new(),
        };
        Some(Stored {
            status,
            headers,
            body: form,
            trailers,
        })
    }
}

fn write_map(map: &HeaderMap, form: &mut Vec<u8>) {
    form.put_u32(u32::try_from(map.len()).unwrap_or(u32::MAX));
    for (name, value) in map {
        for part in [name.as_str().as_bytes(), value.as_bytes()] {
            form.put_u32(u32::try_from(part.len()).unwrap_or(u32::MAX));
            form.put_slice(part);
        }
    }
}

fn read_map(form: &mut Bytes) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    for _ in 0..form.try_get_u32().ok()? {
        let name = HeaderName::from_bytes(&part(form)?).ok()?;
        map.append(name, HeaderValue::from_maybe_shared(part(form)?).ok()?);
    }
    Some(map)
}

fn part(form: &mut Bytes) -> Option<Bytes> {
    let bytes = usize::try_from(form.try_get_u32().ok()?).ok()?;
    (bytes <= form.len()).then(|| form.split_to(bytes))
}

/// What a sealed answer is bound to.
fn place(key: KeyHash) -> Vec<u8> {
    [b"guard-answer/1/".as_slice(), &key.bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Stored {
        let mut headers = HeaderMap::new();
        headers.append("link", HeaderValue::from_static("</a>"));
        headers.append("link", HeaderValue::from_static("</b>"));
        headers.insert("x-opaque", HeaderValue::from_bytes(b"\xff").expect("bytes"));
        Stored {
            status: StatusCode::CREATED,
            headers,
            body: Bytes::from_static(b"\0\xffcharged"),
            trailers: HeaderMap::new(),
        }
    }

    fn with_trailers() -> Stored {
        let mut stored = answer();
        let sum = HeaderValue::from_static("9");
        stored.trailers.insert("x-sum", sum);
        stored
    }

    const KEY: KeyHash = KeyHash::from_bytes([1; 16]);

    #[test]
    fn an_answer_comes_back_as_it_was() {
        let vault = Vault::new(&[[5; 32]]).expect("a key");
        for vault in [None, Some(&vault)] {
            for answer in [answer(), with_trailers()] {
                let form = answer.encode(KEY, vault);
                assert_eq!(Stored::decode(form.clone(), KEY, vault), Ok(answer));
                for cut in 0..form.len().min(40) {
                    assert!(
                        Stored::decode(form.slice(..cut), KEY, vault).is_err(),
                        "{cut}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_sealed_answer_opens_for_its_key_only_and_shows_nothing() {
        let vault = Vault::new(&[[5; 32]]).expect("a key");
        let form = answer().encode(KEY, Some(&vault));
        assert!(!form.windows(7).any(|part| part == b"charged"));
        let other = KeyHash::from_bytes([2; 16]);
        assert_eq!(
            Stored::decode(form.clone(), other, Some(&vault)),
            Err(Unreadable::Vault(VaultError::Broken))
        );
        assert_eq!(Stored::decode(form, KEY, None), Err(Unreadable::NoVault));
        let before = answer().encode(KEY, None);
        assert_eq!(Stored::decode(before, KEY, Some(&vault)), Ok(answer()));
    }
}
