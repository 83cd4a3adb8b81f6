//! The exceptions to the checks: few, each with its reason.

use super::{Finding, tree::Tree};

/// A file that a check lets pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// The check's name.
    check: &'static str,
    /// The file, or a folder that ends with a slash.
    path: &'static str,
    /// Why it may.
    reason: &'static str,
}

/// All exceptions. One that nothing needs any more is itself a finding.
pub(super) const ALLOWED: &[Allowed] = &[
    Allowed {
        check: "machine-paths",
        path: "xtask/src/tidy/machine_paths.rs",
        reason: "the paths that it looks for, and those that its tests plant",
    },
    Allowed {
        check: "sql",
        path: "xtask/src/tidy/sql.rs",
        reason: "the statements that its tests plant",
    },
    Allowed {
        check: "sql",
        path: "examples/guarded-axum/",
        reason: "a service with tables of its own, whose transactions it joins",
    },
    Allowed {
        check: "sql",
        path: "crates/hapax-tower/tests/it/atomic/webhook_once.rs",
        reason: "a service with a table of its own, whose transactions it joins",
    },
    only_here(
        "crates/hapax-store/src/sqlite/backup.rs",
        "PostgreSQL has tools of its own for that",
    ),
    only_here(
        "crates/hapax-store/src/sqlite/checkpoint.rs",
        "PostgreSQL checkpoints by itself",
    ),
    only_here(
        "crates/hapax-store/src/sqlite/disk.rs",
        "the disk is the database server's",
    ),
    only_here(
        "crates/hapax-store/src/sqlite/group.rs",
        "what an open group has taken is decided by rows and locks",
    ),
    only_here(
        "crates/hapax-store/src/sqlite/index.rs",
        "the key index is a unique index there",
    ),
    only_here(
        "crates/hapax-store/src/sqlite/delivery_key.rs",
        "the unique index there holds deliveries like all else",
    ),
    only_here(
        "crates/hapax-store/src/sqlite/log_file.rs",
        "the file of the log is ours to look after",
    ),
    only_here(
        "crates/hapax-store/src/postgres/batch.rs",
        "SQLite's batcher is its writer thread",
    ),
    only_here(
        "crates/hapax-store/src/postgres/call.rs",
        "a statement for the usual arrival; SQLite has one path for all",
    ),
    only_here(
        "crates/hapax-store/src/postgres/called.rs",
        "locks of effects that others hold; SQLite has one writer",
    ),
    only_here(
        "crates/hapax-store/src/postgres/carry.rs",
        "locks and round trips; SQLite writes as it decides",
    ),
    only_here(
        "crates/hapax-store/src/postgres/columns.rs",
        "SQLite is given one row at a time",
    ),
    only_here(
        "crates/hapax-store/src/postgres/decide.rs",
        "SQLite decides beside its statements, which cost no round trip",
    ),
    only_here(
        "crates/hapax-store/src/postgres/direct.rs",
        "connections to a server",
    ),
    only_here(
        "crates/hapax-store/src/postgres/effect_columns.rs",
        "SQLite is given one row at a time",
    ),
    only_here(
        "crates/hapax-store/src/postgres/effect_id.rs",
        "where rows are in a sharded database",
    ),
    only_here(
        "crates/hapax-store/src/postgres/expired.rs",
        "SQLite deletes beside its round",
    ),
    only_here(
        "crates/hapax-store/src/postgres/fault.rs",
        "what a lost connection leaves open",
    ),
    only_here(
        "crates/hapax-store/src/postgres/held.rs",
        "SQLite decides beside its statements, which cost no round trip",
    ),
    only_here(
        "crates/hapax-store/src/postgres/kept.rs",
        "statements that a server knows by name",
    ),
    only_here(
        "crates/hapax-store/src/postgres/known.rs",
        "SQLite has one path for new and known keys",
    ),
    only_here(
        "crates/hapax-store/src/postgres/moment.rs",
        "SQLite's leases end by its process's clock",
    ),
    only_here(
        "crates/hapax-store/src/postgres/node.rs",
        "an embedded store has one node",
    ),
    only_here(
        "crates/hapax-store/src/postgres/notice.rs",
        "what a server says on the side",
    ),
    only_here(
        "crates/hapax-store/src/postgres/order_rule.rs",
        "SQLite keeps these as columns of their own",
    ),
    only_here(
        "crates/hapax-store/src/postgres/pipeline.rs",
        "round trips to a server",
    ),
    only_here(
        "crates/hapax-store/src/postgres/pool.rs",
        "connections to a server",
    ),
    only_here(
        "crates/hapax-store/src/postgres/session.rs",
        "connections to a server",
    ),
    only_here(
        "crates/hapax-store/src/postgres/status.rs",
        "SQLite's events have one writer and need no locks",
    ),
    only_here(
        "crates/hapax-store/src/postgres/stored.rs",
        "round trips to a server",
    ),
    only_here(
        "crates/hapax-store/src/postgres/tls.rs",
        "connections to a server",
    ),
    only_here(
        "crates/hapax-store/src/postgres/turn.rs",
        "SQLite decides beside its statements, which cost no round trip",
    ),
    only_here(
        "crates/hapax-store/src/postgres/wake.rs",
        "an embedded store has one node",
    ),
    only_here(
        "crates/hapax-store/src/postgres/wire.rs",
        "how values travel to a server",
    ),
    only_here(
        "crates/hapax-store/src/postgres/deed.rs",
        "SQLite's commands have one writer and need no locks",
    ),
    only_here(
        "crates/hapax-store/src/postgres/seated.rs",
        "in SQLite an effect's row number is its place",
    ),
    only_here(
        "crates/hapax-store/src/postgres/happy.rs",
        "SQLite's writer remembers what workers hold, and needs no statement for it",
    ),
    only_here(
        "crates/hapax-store/src/postgres/swift.rs",
        "SQLite's writer decides in memory, and has no round trips to save",
    ),
    only_here(
        "crates/hapax-store/src/postgres/swift_rows.rs",
        "the statement of `swift`",
    ),
    only_here(
        "crates/hapax-store/src/postgres/key_end.rs",
        "SQLite's writer settles in memory, and has no round trips to save",
    ),
    only_here(
        "crates/hapax-store/src/postgres/key_group.rs",
        "SQLite's writer has one group for everything",
    ),
    only_here(
        "crates/hapax-store/src/postgres/restored.rs",
        "SQLite's `backup` makes the copies that its `open` notices",
    ),
    only_here(
        "crates/hapax-store/src/postgres/begin.rs",
        "SQLite's settings are its connection's",
    ),
    only_here(
        "crates/hapax-store/src/postgres/road.rs",
        "SQLite's groups have no way to go",
    ),
    only_here(
        "crates/hapax-store/src/sqlite/queue.rs",
        "the one writer's queue; PostgreSQL's is `batch`",
    ),
    only_here(
        "crates/hapax-store/src/sqlite/bell.rs",
        "the writer is a thread; PostgreSQL's are tasks, which wake each other",
    ),
    only_here(
        "crates/hapax-store/src/sqlite/underway.rs",
        "what the one writer remembers",
    ),
    only_here(
        "crates/hapax-store/src/sqlite/census.rs",
        "what the one writer counts; PostgreSQL reads it once per group",
    ),
];

/// A file that only one of the two stores needs.
const fn only_here(path: &'static str, reason: &'static str) -> Allowed {
    Allowed {
        check: "twins",
        path,
        reason,
    }
}

impl Allowed {
    fn covers(&self, check: &str, path: &str) -> bool {
        let is_path = match self.path.strip_suffix('/') {
            Some(_) => path.starts_with(self.path),
            None => path == self.path,
        };
        self.check == check && is_path
    }
}

/// `found` without what `allowed` covers, and with a finding for each unused exception whose files are in the tree.
pub(super) fn filter(
    allowed: &[Allowed],
    tree: &Tree,
    found: Vec<(&'static str, Finding)>,
) -> Vec<(&'static str, Finding)> {
    let covers = |allowed: &Allowed, (check, finding): &(&str, Finding)| {
        allowed.covers(check, &finding.path)
    };
    let unused: Vec<_> = allowed
        .iter()
        .filter(|allowed| tree.holds(allowed.path))
        .filter(|allowed| !found.iter().any(|finding| covers(allowed, finding)))
        .map(unused_exception)
        .collect();
    let (_, mut kept): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|finding| allowed.iter().any(|allowed| covers(allowed, finding)));
    kept.extend(unused);
    kept
}

fn unused_exception(allowed: &Allowed) -> (&'static str, Finding) {
    let message = format!(
        "the exception from `{}` ({}) is not needed: remove it from xtask/src/tidy/allowed.rs",
        allowed.check, allowed.reason
    );
    ("allowed", Finding::failure(allowed.path, 1, message))
}

#[cfg(test)]
mod tests {
    use super::super::tests::planted;
    use super::*;

    const EXCEPTION: Allowed = Allowed {
        check: "sql",
        path: "crates/a/tests/",
        reason: "a test",
    };

    #[test]
    fn an_exception_covers_its_check_and_folder_only() {
        let (_folder, tree) = planted(&[("crates/a/tests/it/main.rs", "")]);
        let findings = vec![
            ("sql", Finding::failure("crates/a/tests/it/main.rs", 1, "")),
            ("sql", Finding::failure("crates/a/src/main.rs", 1, "")),
            ("todo", Finding::failure("crates/a/tests/it/main.rs", 1, "")),
        ];
        let kept = filter(&[EXCEPTION], &tree, findings.clone());
        assert_eq!(kept, findings[1..]);
    }

    #[test]
    fn an_exception_that_nothing_needs_is_found() {
        let (_folder, tree) = planted(&[("crates/a/tests/it/main.rs", "")]);
        let kept = filter(&[EXCEPTION], &tree, Vec::new());
        assert_eq!(kept.len(), 1);
        let (_folder, tree) = planted(&[]);
        assert_eq!(filter(&[EXCEPTION], &tree, Vec::new()), []);
    }
}
