//! Where a configuration looks beyond its own text: environment variables and files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest file that `file:PATH` reads: a chain of PEM certificates fits, a mistaken log file does not.
pub const FILE_BYTES_MAX: u64 = 64 * 1024;

/// What an environment variable holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// It is set to this text.
    Set(String),
    /// It is not set.
    Unset,
    /// It is set to bytes that are not text.
    NotText,
}

/// What surrounds a configuration; tests bring their own.
pub trait Environment {
    /// The environment variable of this name.
    fn variable(&self, name: &str) -> Variable;

    /// The text of a file; a relative path starts at the config file's folder.
    ///
    /// # Errors
    /// If it cannot be read, is larger than [`FILE_BYTES_MAX`] or is not text.
    fn file(&self, path: &Path) -> io::Result<String>;

    /// The bytes of a file; a relative path starts at the config file's folder.
    ///
    /// # Errors
    /// If it cannot be read or is larger than [`FILE_BYTES_MAX`].
    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The process's environment and the machine's files.
#[derive(Clone, Debug, Default)]
pub struct System {
    folder: PathBuf,
}

impl System {
    /// The environment of a config file: its folder is where relative paths start.
    pub fn beside(config_file: &Path) -> System {
        let folder = config_file.parent().unwrap_or(Path::new(""));
        System {
            folder: folder.to_owned(),
        }
    }
}

impl Environment for System {
    fn variable(&self, name: &str) -> Variable {
        match std::env::var_os(name).map(|value| value.into_string()) {
            None => Variable::Unset,
            Some(Ok(text)) => Variable::Set(text),
            Some(Err(_)) => Variable::NotText,
        }
    }

    fn file(&self, path: &Path) -> io::Result<String> {
        let file = File::open(self.folder.join(path))?;
        read_text(file, FILE_BYTES_MAX)
    }

    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = File::open(self.folder.join(path))?;
        read_bytes(file, FILE_BYTES_MAX)
    }
}

/// Reads a file of at most `bytes_max` bytes as text.
pub(super) fn read_text(file: File, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read_bytes(file, bytes_max)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

fn read_bytes(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("it is larger than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}
