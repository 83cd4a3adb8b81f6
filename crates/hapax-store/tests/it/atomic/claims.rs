//! A key, its work and its answer: together or not at all.

use hapax_ledger::time::Span;
use hapax_store::atomic::{Claimed, claim, finish, forget, install};

use crate::atomic::world::{
    End, Session, World, fresh, insert_charge, on_every_driver, refused, wants,
};

on_every_driver!(
    the_answer_is_given_again,
    another_request_is_refused,
    a_duplicate_does_not_wait,
    a_rollback_leaves_nothing,
    a_commit_without_an_end_is_not_an_answer,
    work_without_an_answer_is_not_done_again,
    expired_keys_are_refused_and_then_free,
    running_keys_are_not_forgotten,
    odd_keys_are_kept,
    the_table_is_made_once,
);

/// H3: byte for byte.
async fn the_answer_is_given_again<S: Session>(mut world: World<S>) {
    let asked = wants("k1", "10 EUR");
    let answer = b"\x00\xff charged".as_slice();
    world.charge(&asked, answer).await;
    for _ in 0..2 {
        match world.look(&asked).await {
            Claimed::Replay { answer: again, .. } => assert_eq!(again, answer),
            other => panic!("a replay: {other:?}"),
        }
    }
    assert_eq!(world.charges().await, 1);
}

/// H2.
async fn another_request_is_refused<S: Session>(mut world: World<S>) {
    world.charge(&wants("k1", "10 EUR"), b"ok").await;
    assert_eq!(world.look(&wants("k1", "11 EUR")).await, Claimed::Mismatch);
    let other_key = world.look(&wants("k2", "11 EUR")).await;
    assert!(matches!(other_key, Claimed::Fresh(_)));
}

/// H1: while the first has not committed, a second hears at once that it is in progress; then it hears the answer.
async fn a_duplicate_does_not_wait<S: Session>(world: World<S>) {
    let World { mut one, mut other } = world;
    let asked = wants("k1", "10 EUR");
    let mut first = one.begin().await;
    let run = fresh(&mut first, &asked).await;
    let mut second = other.begin().await;
    let said = claim(&mut second, &asked).await.expect("an answer");
    assert_eq!(said, Claimed::InProgress { remaining: None });
    End::roll_back(second).await;
    insert_charge(&mut first, "k1").await;
    finish(&mut first, run, Some(b"ok"))
        .await
        .expect("finished");
    End::commit(first).await;
    let mut world = World { one, other };
    assert!(matches!(world.look(&asked).await, Claimed::Replay { .. }));
    assert_eq!(world.charges().await, 1);
}

/// Whatever it had done: the key is free.
async fn a_rollback_leaves_nothing<S: Session>(mut world: World<S>) {
    let asked = wants("k1", "10 EUR");
    let mut tx = world.one.begin().await;
    let run = fresh(&mut tx, &asked).await;
    insert_charge(&mut tx, "k1").await;
    finish(&mut tx, run, Some(b"ok")).await.expect("finished");
    End::roll_back(tx).await;
    assert_eq!(world.charges().await, 0);
    world.charge(&asked, b"ok").await;
    assert_eq!(world.charges().await, 1);
}

/// A handler that forgets to finish: nobody gets an answer that is none.
async fn a_commit_without_an_end_is_not_an_answer<S: Session>(mut world: World<S>) {
    let asked = wants("k1", "10 EUR");
    let mut tx = world.one.begin().await;
    drop(fresh(&mut tx, &asked).await);
    End::commit(tx).await;
    let said = world.look(&asked).await;
    assert!(
        matches!(said, Claimed::InProgress { remaining: Some(left) } if left > Span::ZERO),
        "{said:?}"
    );
    world.lose().await;
    assert!(matches!(world.look(&asked).await, Claimed::Fresh(_)));
}

async fn work_without_an_answer_is_not_done_again<S: Session>(mut world: World<S>) {
    let asked = wants("k1", "10 EUR");
    let mut tx = world.one.begin().await;
    let run = fresh(&mut tx, &asked).await;
    finish(&mut tx, run, None).await.expect("finished");
    End::commit(tx).await;
    assert!(matches!(world.look(&asked).await, Claimed::NotKept { .. }));
}

/// The database's clock counts, so times of zero are over at once.
async fn expired_keys_are_refused_and_then_free<S: Session>(mut world: World<S>) {
    let mut asked = wants("k1", "10 EUR");
    asked.ttl = Span::ZERO;
    world.charge(&asked, b"ok").await;
    assert_eq!(world.look(&asked).await, Claimed::Expired);
    let mut free = wants("k2", "10 EUR");
    (free.ttl, free.grace) = (Span::ZERO, Span::ZERO);
    world.charge(&free, b"first").await;
    assert!(matches!(world.look(&free).await, Claimed::Fresh(_)));
    // It is another request's by then, and its answer is the new one.
    let again = wants("k2", "11 EUR");
    world.charge(&again, b"second").await;
    match world.look(&again).await {
        Claimed::Replay { answer, .. } => assert_eq!(answer, b"second".as_slice()),
        other => panic!("a replay: {other:?}"),
    }
}

/// H4: what is running stays, and so does what may still be asked for.
async fn running_keys_are_not_forgotten<S: Session>(mut world: World<S>) {
    let short = |key| {
        let mut asked = wants(key, "10 EUR");
        (asked.ttl, asked.grace) = (Span::ZERO, Span::ZERO);
        asked
    };
    world.charge(&short("over1"), b"ok").await;
    world.charge(&short("over2"), b"ok").await;
    world.charge(&short("over3"), b"ok").await;
    world.charge(&wants("kept", "10 EUR"), b"ok").await;
    let mut tx = world.one.begin().await;
    drop(fresh(&mut tx, &short("running")).await);
    End::commit(tx).await;
    for gone in [2, 1, 0] {
        let mut tx = world.one.begin().await;
        assert_eq!(forget(&mut tx, 2).await.expect("forgotten"), gone);
        End::commit(tx).await;
    }
    let said = world.look(&short("running")).await;
    assert!(matches!(said, Claimed::InProgress { .. }));
    let said = world.look(&wants("kept", "10 EUR")).await;
    assert!(matches!(said, Claimed::Replay { .. }));
}

async fn odd_keys_are_kept<S: Session>(mut world: World<S>) {
    for key in ["", "a\0b", "a\u{fffd}b", "'; --", &"long".repeat(1000)] {
        world.charge(&wants(key, "x"), key.as_bytes()).await;
        match world.look(&wants(key, "x")).await {
            Claimed::Replay { answer, .. } => assert_eq!(answer, key.as_bytes()),
            other => panic!("{key:.10}: {other:?}"),
        }
    }
    // Scope and key are told apart, whatever is in them.
    let mut moved = wants("k", "x");
    moved = hapax_store::atomic::Claim::new("charge", "sk", moved.fingerprint);
    assert!(matches!(world.look(&moved).await, Claimed::Fresh(_)));
}

async fn the_table_is_made_once<S: Session>(mut world: World<S>) {
    world.charge(&wants("k1", "x"), b"ok").await;
    let mut tx = world.one.begin().await;
    install(&mut tx).await.expect("it is there");
    End::commit(tx).await;
    let said = world.look(&wants("k1", "x")).await;
    assert!(matches!(said, Claimed::Replay { .. }));
    let mut tx = world.one.begin().await;
    let error = refused(&mut tx, "SELECT nothing FROM nowhere").await;
    assert!(error.to_string().contains("nowhere"), "{error}");
    End::roll_back(tx).await;
}
