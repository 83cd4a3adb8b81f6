//! The arrows between crates: hapax → tower → store → ledger, tower → verify; verify and ledger know nobody.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::Finding;
use super::tree::Tree;

/// What does or waits for something: no pure crate may have it, directly or through another.
const EFFECTFUL: &[&str] = &[
    "async-std",
    "axum",
    "deadpool-postgres",
    "fjall",
    "getrandom",
    "hyper",
    "hyper-util",
    "libsqlite3-sys",
    "mio",
    "postgres",
    "rand",
    "reqwest",
    "rusqlite",
    "rustls",
    "smol",
    "socket2",
    "sqlx",
    "tokio",
    "tokio-postgres",
    "tower",
    "ureq",
];

/// Run while other packages are built, and are not part of them: Cargo.lock does not tell the two apart.
const BUILD_TOOLS: &[&str] = &[
    "autocfg",
    "bindgen",
    "cc",
    "cmake",
    "jobserver",
    "pkg-config",
    "prost-build",
    "vcpkg",
    "version_check",
];

/// What speaks to a database: hapax-store only.
const DATABASES: &[&str] = &[
    "deadpool-postgres",
    "libsqlite3-sys",
    "postgres",
    "rusqlite",
    "sqlx",
    "tokio-postgres",
];

/// For each crate, which of our own crates it may depend on. A crate that is not listed may depend on any.
const ARROWS: [(&str, &[&str]); 4] = [
    ("hapax-ledger", &[]),
    ("hapax-verify", &[]),
    ("hapax-store", &["hapax-ledger"]),
    // Services of other people build on it: it must not bring the program along.
    (
        "hapax-tower",
        &["hapax-ledger", "hapax-store", "hapax-verify"],
    ),
];

/// Crates without effects.
const PURE: [&str; 2] = ["hapax-ledger", "hapax-verify"];

/// Dependencies that a manifest must not have.
pub(super) fn forbidden(tree: &Tree) -> Vec<Finding> {
    let lock = Lock::read(tree);
    let manifests = tree
        .files()
        .filter(|file| file.path.starts_with("crates/") && file.name() == "Cargo.toml");
    let mut findings = Vec::new();
    for file in manifests {
        let manifest = match file.text.parse::<Table>() {
            Ok(manifest) => Manifest(manifest),
            Err(error) => {
                let message = format!("not readable: {}", error.message());
                findings.push(Finding::failure(&file.path, 1, message));
                continue;
            }
        };
        for (dependency, message) in violations(&manifest, &lock) {
            let line = file.lines().find(|(_, text)| text.starts_with(&dependency));
            let line = line.map_or(1, |(line, _)| line);
            findings.push(Finding::failure(&file.path, line, message));
        }
    }
    findings
}

/// Forbidden dependencies, each with what is wrong with it.
fn violations(manifest: &Manifest, lock: &Lock) -> Vec<(String, String)> {
    let name = manifest.name();
    let arrows = ARROWS.iter().find(|(from, _)| *from == name);
    let mut violations = Vec::new();
    let mut add = |dependency: &str, message: String| {
        violations.push((dependency.to_owned(), message));
    };
    for dependency in manifest.dependencies(&["dependencies", "build-dependencies"]) {
        if let Some((_, to)) = arrows {
            let ours = dependency == "hapax" || dependency.starts_with("hapax-");
            if ours && !to.contains(&dependency.as_str()) {
                add(&dependency, format!("{name} must not know {dependency}"));
            }
        }
        if PURE.contains(&name) {
            for reached in lock.reach(&dependency) {
                if EFFECTFUL.contains(&reached.as_str()) {
                    let message = format!("{name} is pure, but {dependency} brings {reached}");
                    add(&dependency, message);
                }
            }
        }
    }
    if name != "hapax-store" {
        for dependency in manifest.dependencies(tables_without_database(name)) {
            if DATABASES.contains(&dependency.as_str()) {
                let message = format!("only hapax-store speaks to a database, not {name}");
                add(&dependency, message);
            }
        }
    }
    violations
}

/// Where a crate must not have a database. The tests and the example of hapax-tower join transactions of their own, as services do.
fn tables_without_database(name: &str) -> &'static [&'static str] {
    match name {
        "hapax-tower" => &["dependencies", "build-dependencies"],
        _ => &["dependencies", "dev-dependencies", "build-dependencies"],
    }
}

struct Manifest(Table);

impl Manifest {
    fn name(&self) -> &str {
        let package = self.0.get("package");
        let name = package.and_then(|package| package.get("name"));
        name.and_then(Value::as_str).unwrap_or_default()
    }

    /// Names of the dependencies in these tables, under whatever name they are used.
    fn dependencies(&self, tables: &[&str]) -> BTreeSet<String> {
        let targets = self.0.get("target").and_then(Value::as_table);
        let targets = targets.into_iter().flat_map(Table::values);
        let places = targets.filter_map(Value::as_table).chain([&self.0]);
        let found = places.flat_map(|place| tables.iter().map(|table| place.get(*table)));
        let entries = found.flatten().filter_map(Value::as_table).flatten();
        let name = |(alias, value): (&String, &Value)| {
            let real = value.get("package").and_then(Value::as_str);
            real.unwrap_or(alias).to_owned()
        };
        entries.map(name).collect()
    }
}

/// What every package in Cargo.lock depends on. Dependencies for tests of packages that are not ours are not in it.
struct Lock(BTreeMap<String, BTreeSet<String>>);

impl Lock {
    fn read(tree: &Tree) -> Lock {
        let lock = tree.file("Cargo.lock");
        let lock = lock.and_then(|file| file.text.parse::<Table>().ok());
        let packages = lock.as_ref().and_then(|lock| lock.get("package"));
        let packages = packages.and_then(Value::as_array).into_iter().flatten();
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for package in packages {
            let name = package.get("name").and_then(Value::as_str);
            let dependencies = package.get("dependencies").and_then(Value::as_array);
            let dependencies = dependencies.into_iter().flatten();
            // "name", or "name version" where two versions are in use.
            let names = dependencies.filter_map(|text| text.as_str()?.split(' ').next());
            let known = graph.entry(name.unwrap_or_default().to_owned());
            known.or_default().extend(names.map(str::to_owned));
        }
        Lock(graph)
    }

    /// `start` and everything it depends on when it runs.
    fn reach(&self, start: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut open = vec![start.to_owned()];
        while let Some(name) = open.pop() {
            if BUILD_TOOLS.contains(&name.as_str()) {
                continue;
            }
            let next = self.0.get(&name).into_iter().flatten();
            open.extend(next.filter(|name| !reached.contains(*name)).cloned());
            reached.insert(name);
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    const LOCK: &str = r#"
[[package]]
name = "helper"
dependencies = ["cc", "inner 1.0.0"]
[[package]]
name = "cc"
dependencies = ["rand"]
[[package]]
name = "rand"
[[package]]
name = "inner"
dependencies = ["tokio"]
[[package]]
name = "tokio"
"#;

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{rest}")
    }

    #[test]
    fn pure_crates_reach_nothing_effectful() {
        let ledger = manifest(
            "hapax-ledger",
            "[dependencies]\nserde = \"1\"\nhelper = \"1\"\n",
        );
        let verify = manifest("hapax-verify", "[dependencies]\nhyper.workspace = true\n");
        let files = [
            ("Cargo.lock", LOCK),
            ("crates/hapax-ledger/Cargo.toml", ledger.as_str()),
            ("crates/hapax-verify/Cargo.toml", verify.as_str()),
        ];
        let expected = [
            "crates/hapax-ledger/Cargo.toml:5",
            "crates/hapax-verify/Cargo.toml:4",
        ];
        assert_eq!(places(forbidden, &files), expected);
    }

    #[test]
    fn arrows_point_one_way() {
        let verify = manifest("hapax-verify", "[dependencies]\nhapax-ledger = \"1\"\n");
        let store = manifest(
            "hapax-store",
            "[dependencies]\nhapax-ledger = \"1\"\nhapax-verify = \"1\"\n",
        );
        let files = [
            ("crates/hapax-verify/Cargo.toml", verify.as_str()),
            ("crates/hapax-store/Cargo.toml", store.as_str()),
        ];
        let expected = [
            "crates/hapax-store/Cargo.toml:5",
            "crates/hapax-verify/Cargo.toml:4",
        ];
        assert_eq!(places(forbidden, &files), expected);
    }

    #[test]
    fn only_the_store_speaks_to_a_database_under_any_name() {
        let store = manifest("hapax-store", "[dependencies]\nrusqlite = \"1\"\n");
        let hapax = manifest(
            "hapax",
            "[target.'cfg(unix)'.dev-dependencies]\nlite = { package = \"rusqlite\" }\n",
        );
        let files = [
            ("crates/hapax-store/Cargo.toml", store.as_str()),
            ("crates/hapax/Cargo.toml", hapax.as_str()),
        ];
        assert_eq!(places(forbidden, &files), ["crates/hapax/Cargo.toml:1"]);
    }

    #[test]
    fn tests_of_the_tower_may_have_transactions_of_their_own() {
        let tests = manifest("hapax-tower", "[dev-dependencies]\nrusqlite = \"1\"\n");
        let files = [("crates/hapax-tower/Cargo.toml", tests.as_str())];
        assert!(places(forbidden, &files).is_empty());
        let itself = manifest("hapax-tower", "[dependencies]\nrusqlite = \"1\"\n");
        let files = [("crates/hapax-tower/Cargo.toml", itself.as_str())];
        assert_eq!(
            places(forbidden, &files),
            ["crates/hapax-tower/Cargo.toml:4"]
        );
    }

    #[test]
    fn tests_of_pure_crates_may_draw_lots() {
        let ledger = manifest("hapax-ledger", "[dev-dependencies]\nrand = \"1\"\n");
        let files = [("crates/hapax-ledger/Cargo.toml", ledger.as_str())];
        assert!(places(forbidden, &files).is_empty());
    }
}
