//! What is in files, whoever wrote them.

use std::path::{Path, PathBuf};

/// Everything below a folder.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(below(&path)),
            false => found.push(path),
        }
    }
    found
}

/// A file as text: what is text in it stays so, and is found in it.
pub(crate) fn text(file: &Path) -> String {
    let bytes = std::fs::read(file).expect("read");
    String::from_utf8_lossy(&bytes).into_owned()
}
