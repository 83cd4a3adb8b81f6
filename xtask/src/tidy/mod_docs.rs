//! A `mod.rs` lists and explains: it starts with documentation.

use super::Finding;
use super::tree::Tree;

/// `mod.rs` files that start with anything else.
pub(super) fn missing(tree: &Tree) -> Vec<Finding> {
    let modules = tree.rust("").filter(|file| file.name() == "mod.rs");
    modules
        .filter(|file| !file.text.starts_with("//!"))
        .map(|file| {
            Finding::failure(
                &file.path,
                1,
                "a mod.rs starts with `//!`: what is in here?",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn a_module_without_words_is_found() {
        let files = [
            ("crates/a/src/x/mod.rs", "//! The x.\nmod y;\n"),
            ("crates/a/src/z/mod.rs", "mod y;\n"),
            ("crates/a/src/z/y.rs", "fn y() {}\n"),
        ];
        assert_eq!(places(missing, &files), ["crates/a/src/z/mod.rs:1"]);
    }
}
