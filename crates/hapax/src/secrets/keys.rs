//! The keys of the vault: a line of base64 each. The first seals, all open, so that a key is changed by writing a new one above it.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hapax_store::vault::{KEY_BYTES, KEYS_MAX};

use crate::config::{Config, StoreTarget};
use crate::entropy;

/// A key file is a few lines.
const FILE_BYTES_MAX: u64 = 16 * 1024;

/// Keys, the one that seals first. They never print themselves.
#[derive(Clone, PartialEq, Eq)]
pub struct VaultKeys(Vec<[u8; KEY_BYTES]>);

impl std::fmt::Debug for VaultKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VaultKeys({})", self.0.len())
    }
}

impl VaultKeys {
    /// Reads keys: a line each, empty lines and lines that begin with `#` aside.
    ///
    /// # Errors
    /// What is wrong with them, without a word of them.
    pub fn parse(text: &str) -> Result<VaultKeys, String> {
        let mut keys: Vec<[u8; KEY_BYTES]> = Vec::new();
        let lines = text.lines().map(str::trim).enumerate();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let bytes = STANDARD.decode(line).ok();
            let key = bytes.and_then(|bytes| <[u8; KEY_BYTES]>::try_from(bytes).ok());
            let key = key
                .ok_or_else(|| format!("is not base64 of {KEY_BYTES} bytes in line {}", at + 1))?;
            if keys.contains(&key) {
                return Err(format!("has the same key again in line {}", at + 1));
            }
            keys.push(key);
        }
        match keys.len() {
            0 => Err("has no key".to_owned()),
            1..=KEYS_MAX => Ok(VaultKeys(keys)),
            _ => Err(format!("has more than {KEYS_MAX} keys")),
        }
    }

    pub(super) fn all(&self) -> &[[u8; KEY_BYTES]] {
        &self.0
    }

    /// The keys that a config names, or those in the file beside an SQLite store.
    pub(super) fn find(config: &Config) -> io::Result<Option<VaultKeys>> {
        if let Some(keys) = &config.vault_keys {
            return Ok(Some(keys.clone()));
        }
        match file_of(&config.store) {
            Some(path) => read(&path),
            None => Ok(None),
        }
    }
}

/// Where the keys of an SQLite store are, unless the config names others.
pub(super) fn file_of(store: &StoreTarget) -> Option<PathBuf> {
    match store {
        StoreTarget::Sqlite(path) => {
            let mut name = path.clone().into_os_string();
            name.push(".key");
            Some(name.into())
        }
        StoreTarget::Postgres(_) => None,
    }
}

fn read(path: &Path) -> io::Result<Option<VaultKeys>> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(named(error)),
    };
    let others = file.metadata().map_err(named)?.permissions().mode() & 0o077;
    if others != 0 {
        tracing::warn!(
            file = %path.display(),
            "others than its owner may read the vault key: chmod 600 it"
        );
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(named)?;
    let keys = VaultKeys::parse(&text);
    keys.map(Some)
        .map_err(|why| named(io::Error::new(ErrorKind::InvalidData, format!("it {why}"))))
}

/// Makes a key file with one new key, which only its owner reads. It is on disk before anything is sealed with it.
pub(super) fn make(path: &Path) -> io::Result<VaultKeys> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let key: [u8; KEY_BYTES] = entropy::bytes();
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(named)?;
    let line = format!("{}\n", STANDARD.encode(key));
    file.write_all(line.as_bytes()).map_err(named)?;
    file.sync_all().map_err(named)?;
    // The name of the file is in its folder, and that has to be on disk too.
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = std::fs::File::open(folder.unwrap_or(Path::new("."))).map_err(named)?;
    folder.sync_all().map_err(named)?;
    Ok(VaultKeys(vec![key]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(byte: u8) -> String {
        STANDARD.encode([byte; KEY_BYTES])
    }

    #[test]
    fn keys_are_lines_of_base64_and_the_first_comes_first() {
        let text = format!("# new\n\n {} \n{}\n", line(2), line(1));
        let keys = VaultKeys::parse(&text).expect("keys");
        assert_eq!(keys.all(), [[2; KEY_BYTES], [1; KEY_BYTES]]);
        assert_eq!(format!("{keys:?}"), "VaultKeys(2)");
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_shown() {
        let twice = format!("{}\n{}", line(1), line(1));
        let many: Vec<String> = (0..=KEYS_MAX as u8).map(line).collect();
        for (text, why) in [
            ("", "has no key"),
            ("hunter2", "is not base64 of 32 bytes in line 1"),
            ("AAAA", "is not base64 of 32 bytes in line 1"),
            (&*twice, "has the same key again in line 2"),
            (&*many.join("\n"), "has more than 16 keys"),
        ] {
            assert_eq!(VaultKeys::parse(text), Err(why.to_owned()));
        }
    }

    #[test]
    fn a_new_key_file_is_its_owners_alone_and_is_never_written_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hapax.db.key");
        assert_eq!(read(&path).expect("no file is no error"), None);
        let made = make(&path).expect("made");
        assert_eq!(read(&path).expect("read"), Some(made));
        let mode = std::fs::metadata(&path)
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            make(&path).expect_err("there").kind(),
            ErrorKind::AlreadyExists
        );
    }
}
