//! The lock that keeps another program from ending the log of a database that is in use.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use hapax_store::Store;
use hapax_store::conformance::sample::{accept, at};

use crate::sqlite::open;

/// Is there a lock of this process on a file with this number?
fn locked(inode: u64) -> bool {
    let locks = std::fs::read_to_string("/proc/locks").expect("locks");
    let (ours, this) = (std::process::id().to_string(), format!(":{inode}"));
    locks.lines().any(|lock| {
        let words: Vec<&str> = lock.split_whitespace().collect();
        matches!(words[..], [_, "POSIX", _, "READ", pid, file, ..] if pid == ours && file.ends_with(&this))
    })
}

/// A1: without it, whoever looks at the database with another program and closes it deletes the log, and what is acknowledged from
/// then on is written to a file without a name. It goes as soon as this process closes any file that it opened at that path.
#[cfg(target_os = "linux")]
#[test]
fn the_database_stays_locked_while_its_store_is_open() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    crate::runtime().block_on(async {
        let store: Arc<dyn Store> = Arc::new(open(folder.path()).expect("the store opens"));
        let database = folder.path().join("hapax.db").metadata();
        let database = database.expect("a database").ino();
        assert!(locked(database), "after it was opened");
        accept(&store, at(0), "k", "A").await;
        assert!(locked(database), "after a commit");
        store.close().await;
        drop(store);
        assert!(!locked(database), "it is closed");
    });
}
