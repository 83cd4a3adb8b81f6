//! Guarded keys in SQLite after a restart, with the key index as it was, gone, older or newer than the database.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use hapax_ledger::guard::{GuardRejected, GuardState, OnUnknown};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Span;
use hapax_store::Store;
use hapax_store::conformance::keys::{
    GRACE, TTL, answered, claim, record, runs, settle, wants, wants_by,
};
use hapax_store::conformance::sample::{Dial, at, reap_all};
use hapax_store::nouns::KeyClaimed;

use crate::sqlite::open_with;
use crate::sqlite_reopen::{copy, two_folders};

/// A run: its key, its fence, and whether an earlier one is unknown.
type Run = (KeyId, Fence, bool);

fn with_store<T>(folder: &Path, dial: &Dial, work: impl AsyncFnOnce(Arc<dyn Store>) -> T) -> T {
    crate::runtime().block_on(async {
        let store = open_with(folder, [7; 16], dial.clock()).expect("the store opens");
        let store: Arc<dyn Store> = Arc::new(store);
        let result = work(store.clone()).await;
        store.close().await;
        result
    })
}

/// Opens the store, runs these keys and answers each, and closes it.
fn live(folder: &Path, keys: std::ops::Range<u32>) -> Vec<(String, KeyId)> {
    with_store(folder, &Dial::default(), async |store| {
        let mut life = Vec::new();
        for key in keys {
            let key = format!("k{key}");
            let run = runs(&store, wants(&key, 1)).await;
            assert_eq!(settle(&store, run, answered(b"A")).await, Ok(()));
            life.push((key, run.0));
        }
        life
    })
}

/// Opens the store and sees that all of `life` is answered as before, and that no key has two rows.
fn remembers(folder: &Path, life: &[(String, KeyId)]) {
    with_store(folder, &Dial::default(), async |store| {
        for (key, known) in life {
            let said = claim(&store, wants(key, 1)).await;
            assert!(
                matches!(said, KeyClaimed::Replay { id, ref answer, .. } if id == *known && answer == "A"),
                "{key}: {said:?}"
            );
        }
        assert_eq!(store.stats().await.expect("the store counts").keys_twice, 0);
    });
}

/// H1: the index is derived; without it, it is rebuilt, and no key runs twice.
#[test]
fn a_deleted_index_lets_no_key_run_twice() {
    let (folder, _) = two_folders();
    let life = live(folder.path(), 0..20);
    remembers(folder.path(), &life);
    fs::remove_dir_all(folder.path().join("hapax.db.keys")).expect("the index was there");
    remembers(folder.path(), &life);
}

/// H1: an index that lost its latest writes catches up.
#[test]
fn an_index_from_earlier_catches_up_with_keys() {
    let (folder, old) = two_folders();
    let mut life = live(folder.path(), 0..20);
    copy(folder.path(), old.path(), true);
    life.extend(live(folder.path(), 20..40));
    copy(old.path(), folder.path(), true);
    remembers(folder.path(), &life);
}

/// H1: an index that knows keys which a restored database does not is not believed.
#[test]
fn a_restored_database_runs_the_keys_that_it_lost() {
    let (folder, backup) = two_folders();
    let mut life = live(folder.path(), 0..20);
    copy(folder.path(), backup.path(), false);
    live(folder.path(), 20..40);
    copy(backup.path(), folder.path(), false);
    remembers(folder.path(), &life);
    life.extend(live(folder.path(), 20..40));
    remembers(folder.path(), &life);
}

/// Runs a key of each rule and leaves it running when the process ends.
fn crash(folder: &Path, dial: &Dial) -> Vec<Run> {
    with_store(folder, dial, async |store| {
        let mut running = Vec::new();
        for on_unknown in OnUnknown::ALL {
            running.push(runs(&store, wants_by(on_unknown.word(), *on_unknown)).await);
        }
        running
    })
}

/// C3: a restart ends the lease of whoever ran, however long it was to last. What was sent may still arrive: so the run counts as
/// running for the grace, and is then read by its route's rule.
#[test]
fn what_was_running_at_a_crash_is_unknown_after_the_grace() {
    // The clock may have been set anew in between, either way.
    for restart in [3, -100_000, 100_000] {
        let (folder, _) = two_folders();
        let dial = Dial::default();
        let before = crash(folder.path(), &dial);
        dial.set(at(restart));
        with_store(folder.path(), &dial, async |store| {
            for (on_unknown, run) in OnUnknown::ALL.iter().zip(&before) {
                let said = claim(&store, wants_by(on_unknown.word(), *on_unknown)).await;
                let until = at(restart + 5);
                let remaining = Span::from_secs(5);
                assert_eq!(
                    said,
                    KeyClaimed::InProgress {
                        id: run.0,
                        until,
                        remaining
                    }
                );
            }
            dial.set(at(restart + 5));
            for (on_unknown, run) in OnUnknown::ALL.iter().zip(&before) {
                assert_eq!(record(&store, run.0).await.state, GuardState::Unknown);
                let said = claim(&store, wants_by(on_unknown.word(), *on_unknown)).await;
                match on_unknown {
                    OnUnknown::Hold => {
                        assert_eq!(said, KeyClaimed::OutcomeUnknown { id: run.0 });
                    }
                    OnUnknown::Keyed | OnUnknown::Atomic => assert!(
                        matches!(said, KeyClaimed::Run { id, fence, again: true } if id == run.0 && fence > run.1)
                    ),
                }
            }
        });
    }
}

/// C1, C2: neither a number nor a fence is given twice, though nothing is left of the key and the index is gone.
#[test]
fn a_forgotten_key_is_not_mistaken_for_a_new_one() {
    let (folder, _) = two_folders();
    let dial = Dial::default();
    let old = with_store(folder.path(), &dial, async |store| {
        let run = runs(&store, wants("k", 1)).await;
        assert_eq!(settle(&store, run, answered(b"A")).await, Ok(()));
        let end = at(0) + TTL + GRACE;
        dial.set(end);
        assert_eq!(reap_all(&store, end).await.keys, 1);
        run
    });
    for index_is_gone in [false, true] {
        if index_is_gone {
            fs::remove_dir_all(folder.path().join("hapax.db.keys")).expect("the index was there");
        }
        with_store(folder.path(), &dial, async |store| {
            let key = format!("new, {index_is_gone}");
            let new = runs(&store, wants(&key, 1)).await;
            assert!(new.0.0.row() > old.0.0.row() && new.1 > old.1);
            let late = settle(&store, old, answered(b"late")).await;
            assert_eq!(late, Err(GuardRejected::StaleFence));
            assert_eq!(record(&store, new.0).await.state, GuardState::Running);
        });
    }
}
