//! SQLite after a restart, with its key index as it was, gone, older or newer than the database.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use hapax_ledger::effect::{EffectState, Repeat};
use hapax_ledger::id::EventId;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_store::conformance::operator::{carried, log};
use hapax_store::conformance::publisher::{message, stored, to};
use hapax_store::conformance::sample::{KEEP, accept, at, detail};
use hapax_store::conformance::worker::{
    LEASE, SETTLED, START, accept_effects, claim, claim_one, done, planned, serial, start_one,
};
use hapax_store::nouns::{ConflictDecision, Decision, NewEffect, OwnClaim, OwnClaimed, Receipted};
use hapax_store::sqlite::SqliteStore;
use hapax_store::{Store, StoreErrorKind};

use crate::sqlite::{open, open_as};

/// What is accepted in one life of the store.
type Life = Vec<(String, EventId)>;

/// Opens the store, accepts `keys` as new, and closes it.
fn live(folder: &Path, keys: std::ops::Range<u32>) -> Life {
    with_store(folder, async |store| {
        let mut life = Vec::new();
        for key in keys {
            let key = format!("k{key}");
            let receipt = accept(&store, at(0), &key, "A").await;
            assert_eq!(receipt.sighting, Receipted::New, "{key}");
            life.push((key, receipt.event));
        }
        life
    })
}

/// Opens the store and sees that all of `life` is known under its ids, each after `deliveries`, and that nothing got in twice.
/// Adds one more delivery to each.
fn remembers(folder: &Path, life: &Life, deliveries: u32) {
    with_store(folder, async |store| {
        for (key, event) in life {
            let detail = detail(&store, *event).await;
            assert_eq!(
                (detail.event.delivery_count, detail.deliveries.len()),
                (deliveries, deliveries as usize),
                "{key}"
            );
            assert_eq!(
                store
                    .sighted("a", key, at(1))
                    .await
                    .expect("the store reads"),
                Some(*event),
                "{key}"
            );
            let again = accept(&store, at(1), key, "A").await;
            assert_eq!(
                (again.event, again.sighting),
                (*event, Receipted::Duplicate),
                "{key}"
            );
        }
        assert_eq!(store.stats().await.expect("the store counts").keys_twice, 0);
    });
}

fn with_store<T>(folder: &Path, work: impl AsyncFnOnce(Arc<dyn Store>) -> T) -> T {
    crate::runtime().block_on(async {
        let store: Arc<dyn Store> = Arc::new(open(folder).expect("the store opens"));
        let result = work(store.clone()).await;
        store.close().await;
        result
    })
}

/// Copies the files of one kind: the key index, or all of the database.
pub(crate) fn copy(from: &Path, to: &Path, index: bool) {
    for entry in fs::read_dir(from).expect("the folder is there").flatten() {
        let name = entry.file_name().into_string().expect("our own names");
        if name.ends_with(".keys") == index && !name.ends_with(".lock") {
            copy_all(&entry.path(), &to.join(name));
        }
    }
}

fn copy_all(from: &Path, to: &Path) {
    if from.is_dir() {
        let _ = fs::remove_dir_all(to);
        fs::create_dir_all(to).expect("the folder can be made");
        for entry in fs::read_dir(from).expect("the folder is there").flatten() {
            copy_all(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).expect("the file can be copied");
    }
}

pub(crate) fn two_folders() -> (tempfile::TempDir, tempfile::TempDir) {
    let folder = || tempfile::tempdir().expect("a temporary folder");
    (folder(), folder())
}

/// A1, B1: a restart forgets nothing.
#[test]
fn a_restart_forgets_no_key() {
    let (folder, _) = two_folders();
    let mut life = live(folder.path(), 0..20);
    life.extend(live(folder.path(), 20..40));
    remembers(folder.path(), &life, 1);
    remembers(folder.path(), &life, 2);
}

/// B1: the index is derived; without it, it is rebuilt.
#[test]
fn a_deleted_index_is_rebuilt() {
    let (folder, _) = two_folders();
    let life = live(folder.path(), 0..20);
    remembers(folder.path(), &life, 1);
    fs::remove_dir_all(folder.path().join("hapax.db.keys")).expect("the index was there");
    remembers(folder.path(), &life, 2);
    remembers(folder.path(), &life, 3);
}

/// B1: an index that lost its latest writes catches up.
#[test]
fn an_index_from_earlier_catches_up() {
    let (folder, old) = two_folders();
    let life = live(folder.path(), 0..20);
    copy(folder.path(), old.path(), true);
    remembers(folder.path(), &life, 1);
    let later = live(folder.path(), 20..40);
    copy(old.path(), folder.path(), true);
    remembers(folder.path(), &life, 2);
    remembers(folder.path(), &later, 1);
}

/// B1: an index that knows keys which a restored database does not is not believed.
#[test]
fn a_restored_database_is_not_misled_by_a_newer_index() {
    let (folder, backup) = two_folders();
    let life = live(folder.path(), 0..20);
    copy(folder.path(), backup.path(), false);
    live(folder.path(), 20..40);
    remembers(folder.path(), &life, 1);
    copy(backup.path(), folder.path(), false);
    // What came after the backup is lost, deliveries too.
    remembers(folder.path(), &life, 1);
    // And so a key that came after it is new when it comes again.
    let again = live(folder.path(), 20..40);
    remembers(folder.path(), &life, 2);
    remembers(folder.path(), &again, 1);
}

/// B1: an index of another store is not believed, even if it fits in every number.
#[test]
fn another_stores_index_is_not_believed() {
    let (folder, other) = two_folders();
    let life = live(folder.path(), 0..20);
    drop(open_as(other.path(), [8; 16]).expect("the store opens"));
    live(other.path(), 100..120);
    remembers(folder.path(), &life, 1);
    copy(other.path(), folder.path(), true);
    remembers(folder.path(), &life, 2);
}

/// C3, F1: a restart voids the leases of the process before it, and who waited for whom is as it was.
#[test]
fn a_restart_keeps_the_order_of_effects() {
    let (folder, _) = two_folders();
    let ordered = |key: &str| NewEffect {
        lane: key.into(),
        order: Some(serial("in_1")),
        ..planned("e", key, Repeat::Keyed)
    };
    with_store(folder.path(), async |store| {
        accept_effects(&store, "k", vec![ordered("1"), ordered("2")]).await;
        start_one(&store).await;
    });
    with_store(folder.path(), async |store| {
        let effect = start_one(&store).await;
        assert_eq!((effect.key.as_str(), effect.record.attempts), ("1", 1));
        assert_eq!(done(&store, &effect, SETTLED).await, ["2"]);
    });
    with_store(folder.path(), async |store| {
        assert_eq!(claim_one(&store).await.key, "2");
    });
}

/// D6: an effect that joined its event late is known after a crash that took the index's latest writes.
#[test]
fn an_index_from_before_an_effect_joined_catches_up() {
    let (folder, old) = two_folders();
    let event = with_store(folder.path(), async |store| {
        accept_effects(&store, "k", vec![]).await.event
    });
    let claim = OwnClaim {
        event: Some(event),
        name: "ship".into(),
        key: "1".into(),
        key_hash: KeyHash::of(KeyKind::Effect, "ship", "1"),
        repeat: Repeat::Once,
        actor: "shop".into(),
        lease: LEASE,
        at: at(0),
        keep: KEEP,
    };
    let first = with_store(folder.path(), async |store| {
        copy(folder.path(), old.path(), true);
        let claimed = store.claim_own(claim.clone()).await;
        let Ok(OwnClaimed::Claimed { effect, fence }) = claimed else {
            panic!("it is free: {claimed:?}");
        };
        let moved = store.advance(effect, fence, SETTLED).await;
        moved.expect("the store moves");
        effect
    });
    copy(old.path(), folder.path(), true);
    with_store(folder.path(), async |store| {
        let told = store.claim_own(claim).await.expect("the store claims");
        let (effect, result) = (first, None);
        assert_eq!(told, OwnClaimed::Done { effect, result });
        assert_eq!(detail(&store, event).await.effects.len(), 1);
    });
}

/// D6: the deliveries of an expired message whose key another took are known to an index that lost its latest writes, and to a new one.
#[test]
fn deliveries_of_an_expired_message_are_known_after_a_crash() {
    for is_new in [false, true] {
        let (folder, old) = two_folders();
        let first = with_store(folder.path(), async |store| {
            let first = stored(&store, message(1, "m", at(0), &[1, 2], 0)).await;
            for effect in claim(&store).await {
                done(&store, &effect, START).await;
                done(&store, &effect, SETTLED).await;
            }
            first.event
        });
        let second = with_store(folder.path(), async |store| {
            copy(folder.path(), old.path(), true);
            let expired = at(0) + KEEP.identity;
            stored(&store, message(1, "m", expired, &[1], 0))
                .await
                .event
        });
        match is_new {
            true => fs::remove_dir_all(folder.path().join("hapax.db.keys")).expect("it was there"),
            false => copy(old.path(), folder.path(), true),
        }
        with_store(folder.path(), async |store| {
            let effects = vec![to(2, "m")];
            carried(&store, second, Decision::Deliver { effects }).await;
            let shared = detail(&store, second).await.effects;
            let of: Vec<EventId> = shared.iter().map(|effect| effect.event).collect();
            assert_eq!(of, [first; 2], "new: {is_new}");
        });
    }
}

/// E1, J1: what was decided is there after a restart, and the chain goes on.
#[test]
fn a_restart_keeps_what_was_decided() {
    let (folder, _) = two_folders();
    let event = with_store(folder.path(), async |store| {
        let event = accept(&store, at(0), "k", "A").await.event;
        accept(&store, at(1), "k", "B").await;
        carried(&store, event, Decision::Acknowledge { delivery: 1 }).await;
        carried(&store, event, Decision::Retry).await;
        event
    });
    with_store(folder.path(), async |store| {
        carried(&store, event, Decision::Retry).await;
        let read = detail(&store, event).await;
        assert_eq!(read.runs[1].parent, read.runs[0].id);
        let decided = Some(ConflictDecision::Acknowledged);
        assert_eq!(read.deliveries[1].decided, decided);
        assert_eq!(log(&store).await.len(), 3);
    });
}

/// B1: the index only knows what its own writer wrote, so there is only one.
#[test]
fn a_file_is_held_by_one_store_at_a_time() {
    let (folder, _) = two_folders();
    let first = open(folder.path()).expect("the store opens");
    let second = open(folder.path()).err().expect("refused");
    assert_eq!(second.kind(), StoreErrorKind::Incompatible);
    drop(first);
    open(folder.path()).expect("the store opens again");
}

/// C1: whoever opens a backup knows that it is one: fences outrun those that it does not know, and what it calls unfinished may have
/// been sent since.
#[test]
fn a_restored_backup_outruns_every_fence_and_trusts_nothing_unfinished() {
    let (folder, other) = two_folders();
    let once = planned("pay", "1", Repeat::Once);
    let keyed = NewEffect {
        lane: "another".into(),
        ..planned("crm", "1", Repeat::Keyed)
    };
    let (event, before) = with_store(folder.path(), async |store| {
        let receipt = accept_effects(&store, "k", vec![once, keyed]).await;
        let copy = store.backup("1").await.expect("the store copies");
        let copy = copy.expect("there is a file");
        std::fs::rename(copy, other.path().join("hapax.db")).expect("moved");
        let [before, other] = claim(&store).await.try_into().expect("both are due");
        for effect in [&before, &other] {
            done(&store, effect, START).await;
            done(&store, effect, SETTLED).await;
        }
        (receipt.event, before)
    });
    // The original goes on, start after start.
    for _ in 0..3 {
        with_store(folder.path(), async |_store| {});
    }
    with_store(other.path(), async |store| {
        let effects = detail(&store, event).await.effects;
        assert_eq!(effects[0].record.state, EffectState::Uncertain);
        assert_eq!(effects[1].record.state, EffectState::Pending);
        assert!(effects[1].record.ambiguous);
        let claimed = claim_one(&store).await;
        assert!(claimed.record.fence > before.record.fence);
        assert!(claimed.record.fence.as_u64() >> 20 > 1 << 15, "far ahead");
        done(&store, &claimed, START).await;
        done(&store, &claimed, SETTLED).await;
    });
    with_store(other.path(), async |store| {
        let effects = detail(&store, event).await.effects;
        assert_eq!(effects[1].record.state, EffectState::Done, "only once");
    });
}

/// A copy is new, its owner's alone, and whole; what others held is refused.
#[test]
fn a_file_that_nobody_holds_is_copied_and_migrated() {
    let (folder, other) = two_folders();
    let life = live(folder.path(), 0..20);
    let (database, copy) = (
        folder.path().join("hapax.db"),
        other.path().join("hapax.db"),
    );
    let store = open(folder.path()).expect("the store opens");
    for refused in [
        SqliteStore::copy(&database, &copy).err(),
        SqliteStore::migrate(&database).err(),
    ] {
        let kind = refused.map(|error| error.kind());
        assert_eq!(kind, Some(StoreErrorKind::Incompatible));
    }
    drop(store);
    SqliteStore::copy(&database, &copy).expect("copied");
    SqliteStore::copy(&database, &copy).expect_err("it is there");
    remembers(other.path(), &life, 1);
    let migrated = SqliteStore::migrate(&database).expect("migrated");
    assert_eq!(migrated.from, migrated.to);
    let new = SqliteStore::migrate(&other.path().join("new.db")).expect("made");
    assert_eq!((new.from, new.to), (0, migrated.to));
}
