//! Both stores keep the same files, so that a diff of the two is a reading aid.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::Tree;

const SQLITE: &str = "crates/hapax-store/src/sqlite/";
const POSTGRES: &str = "crates/hapax-store/src/postgres/";

/// Files that one store has and the other has not. What only one of them needs is listed with the exceptions.
pub(super) fn without_their_other(tree: &Tree) -> Vec<Finding> {
    let (sqlite, postgres) = (names(tree, SQLITE), names(tree, POSTGRES));
    if sqlite.is_empty() || postgres.is_empty() {
        return Vec::new();
    }
    let finding = |folder: &str, other: &str, name: &&str| {
        let message = format!("{other} has no {name}: both stores keep the same files");
        Finding::failure(&format!("{folder}{name}"), 1, message)
    };
    let lone_sqlite = sqlite.difference(&postgres);
    let lone_postgres = postgres.difference(&sqlite);
    lone_sqlite
        .map(|name| finding(SQLITE, POSTGRES, name))
        .chain(lone_postgres.map(|name| finding(POSTGRES, SQLITE, name)))
        .collect()
}

fn names<'a>(tree: &'a Tree, folder: &'a str) -> BTreeSet<&'a str> {
    tree.rust(folder)
        .filter_map(|file| file.path.strip_prefix(folder))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn a_file_without_its_twin_is_found() {
        let files = [
            ("crates/hapax-store/src/sqlite/accept.rs", ""),
            ("crates/hapax-store/src/sqlite/index/mod.rs", "//! x"),
            ("crates/hapax-store/src/postgres/accept.rs", ""),
            ("crates/hapax-store/src/postgres/pool.rs", ""),
        ];
        let expected = [
            "crates/hapax-store/src/postgres/pool.rs:1",
            "crates/hapax-store/src/sqlite/index/mod.rs:1",
        ];
        assert_eq!(places(without_their_other, &files), expected);
        assert!(places(without_their_other, &files[..2]).is_empty());
    }
}
