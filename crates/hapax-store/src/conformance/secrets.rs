//! Sealed secrets: kept, expected, dropped and sealed anew. What is in them no store can tell.

use super::operator::{actions, ada, asking, log};
use super::sample::{Subject, all, at};
use crate::nouns::{Authority, Changed, SECRETS_PER_LOOK_MAX, SealedSecret, SecretChange};

fn secret(place: &str, sealed: &[u8]) -> SealedSecret {
    SealedSecret {
        place: place.to_owned(),
        sealed: sealed.to_vec(),
        at: at(3),
    }
}

async fn change(store: &Subject, change: SecretChange, by: Authority) -> Changed {
    let changed = store.change_secret(change, by, "{}".into()).await;
    changed.expect("the store changes it")
}

async fn secrets(store: &Subject, under: &str) -> Vec<SealedSecret> {
    let secrets = store.secrets(under, None).await;
    secrets.expect("the store reads")
}

/// J1: one secret is kept for one expectation, whoever comes second, and each change is written down once.
pub async fn a_secret_is_kept_once_for_each_expectation(store: Subject) {
    let expected = secret("source/a/expected", b"until");
    let keep = |place: &str, sealed: &[u8]| SecretChange::Keep {
        secret: secret(place, sealed),
        expected: expected.clone(),
    };
    let unexpected = change(&store, keep("source/a/1", b"x"), ada()).await;
    assert_eq!(unexpected, Changed::NotFound);
    let expect = SecretChange::Expect(expected.clone());
    assert_eq!(
        change(&store, expect.clone(), asking("k", 1)).await,
        Changed::Done
    );
    let racing = (0..8_u8).map(|n| {
        let (store, keep) = (store.clone(), keep(&format!("source/a/{n}"), &[n]));
        async move { change(&store, keep, ada()).await }
    });
    let answers = all(racing).await;
    let kept = answers.iter().filter(|one| **one == Changed::Done).count();
    assert_eq!((kept, secrets(&store, "source/a/").await.len()), (1, 1));
    assert_eq!(actions(&store).await, ["secret.expect", "secret.keep"]);
    assert_eq!(log(&store).await[0].subject, "source/a/expected");
}

/// A place has one secret until it is dropped; a new expectation takes the place of the one before.
pub async fn a_place_has_one_secret(store: Subject) {
    let expected = secret("source/a/expected", b"until");
    let later = secret("source/a/expected", b"later");
    for one in [&expected, &later] {
        let expect = SecretChange::Expect((*one).clone());
        assert_eq!(change(&store, expect, ada()).await, Changed::Done);
    }
    assert_eq!(secrets(&store, "").await, std::slice::from_ref(&later));
    let kept = secret("source/a/1", b"x");
    let keep = |expected: &SealedSecret| SecretChange::Keep {
        secret: kept.clone(),
        expected: expected.clone(),
    };
    assert_eq!(
        change(&store, keep(&expected), ada()).await,
        Changed::NotFound
    );
    assert_eq!(change(&store, keep(&later), ada()).await, Changed::Done);
    change(&store, SecretChange::Expect(later.clone()), ada()).await;
    assert_eq!(
        change(&store, keep(&later), ada()).await,
        Changed::NameTaken
    );
    assert_eq!(
        secrets(&store, "").await,
        [kept.clone(), later],
        "a refusal changes nothing"
    );
    let drop = SecretChange::Drop(kept.place.clone());
    assert_eq!(change(&store, drop.clone(), ada()).await, Changed::Done);
    assert_eq!(change(&store, drop, ada()).await, Changed::NotFound);
}

/// The first that is held at a place stays, which is how nodes find out that they have different keys.
pub async fn the_first_that_is_held_stays(store: Subject) {
    let (one, other) = (
        secret("vault/check", b"one"),
        secret("vault/check", b"other"),
    );
    assert_eq!(store.hold_secret(one.clone()).await.ok(), Some(one.clone()));
    assert_eq!(store.hold_secret(other).await.ok(), Some(one));
    assert_eq!(log(&store).await, []);
}

/// What is sealed anew is so only once, and lists go on after a page.
pub async fn secrets_are_sealed_anew_and_listed_by_place(store: Subject) {
    let first = secret("p/0000", b"old");
    store.hold_secret(first.clone()).await.expect("held");
    let resealed = store.reseal(first.clone(), b"new".to_vec()).await;
    assert_eq!(resealed.ok(), Some(true));
    let again = store.reseal(first.clone(), b"newer".to_vec()).await;
    assert_eq!(again.ok(), Some(false), "it is not sealed like that");
    for n in 1..=SECRETS_PER_LOOK_MAX {
        let next = secret(&format!("p/{n:04}"), b"x");
        store.hold_secret(next).await.expect("held");
    }
    store.hold_secret(secret("q", b"x")).await.expect("held");
    let page = secrets(&store, "p/").await;
    assert_eq!(page.len(), SECRETS_PER_LOOK_MAX as usize);
    assert_eq!(page[0], secret("p/0000", b"new"));
    let last = page.last().map(|secret| secret.place.clone());
    let rest = store.secrets("p/", last).await.expect("read");
    assert_eq!(rest.len(), 1);
}
