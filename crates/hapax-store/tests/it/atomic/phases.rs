//! Recovery points: a run that is lost is taken up behind the last one.

use hapax_store::atomic::{Claim, Claimed, Phase, Run, claim, finish, phase};

use crate::atomic::world::{
    End, Session, World, fresh, insert_charge, lost, on_every_driver, wants,
};

on_every_driver!(
    a_lost_run_is_taken_up_behind_its_last_phase,
    a_phase_that_did_not_commit_did_not_happen,
    a_run_that_was_taken_over_changes_nothing,
    a_run_that_goes_on_is_in_progress,
    a_takeover_that_did_not_commit_took_nothing,
);

/// Commits the phase `charged` with a charge.
async fn charged<S: Session>(world: &mut World<S>, asked: &Claim) -> Run {
    let mut tx = world.one.begin().await;
    let mut run = fresh(&mut tx, asked).await;
    insert_charge(&mut tx, &asked.key).await;
    phase(&mut tx, &mut run, "charged", b"ch_1")
        .await
        .expect("a phase");
    End::commit(tx).await;
    run
}

async fn resume<S: Session>(session: &mut S, asked: &Claim) -> (Run, Phase) {
    let mut tx = session.begin().await;
    let claimed = claim(&mut tx, asked).await;
    End::commit(tx).await;
    match claimed {
        Ok(Claimed::Resume(run, phase)) => (run, phase),
        other => panic!("to be resumed: {other:?}"),
    }
}

async fn a_lost_run_is_taken_up_behind_its_last_phase<S: Session>(mut world: World<S>) {
    let asked = wants("k1", "10 EUR");
    drop(charged(&mut world, &asked).await);
    world.lose().await;
    let (mut run, found) = resume(&mut world.one, &asked).await;
    assert_eq!(
        (&*found.name, &*found.data),
        ("charged", b"ch_1".as_slice())
    );
    let mut tx = world.one.begin().await;
    phase(&mut tx, &mut run, "mailed", b"")
        .await
        .expect("a phase");
    End::commit(tx).await;
    drop(run);
    world.lose().await;
    let (run, found) = resume(&mut world.one, &asked).await;
    assert_eq!((&*found.name, &*found.data), ("mailed", b"".as_slice()));
    let mut tx = world.one.begin().await;
    finish(&mut tx, run, Some(b"ok")).await.expect("finished");
    End::commit(tx).await;
    assert!(matches!(world.look(&asked).await, Claimed::Replay { .. }));
    assert_eq!(world.charges().await, 1);
}

async fn a_phase_that_did_not_commit_did_not_happen<S: Session>(mut world: World<S>) {
    let asked = wants("k1", "10 EUR");
    let mut run = charged(&mut world, &asked).await;
    let mut tx = world.one.begin().await;
    phase(&mut tx, &mut run, "mailed", b"")
        .await
        .expect("a phase");
    End::roll_back(tx).await;
    world.lose().await;
    let (_, found) = resume(&mut world.one, &asked).await;
    assert_eq!(found.name, "charged");
}

/// The process was only slow: what it still wants to write is refused, and rolled back with the work beside it.
async fn a_run_that_was_taken_over_changes_nothing<S: Session>(mut world: World<S>) {
    let asked = wants("k1", "10 EUR");
    let mut slow = charged(&mut world, &asked).await;
    world.lose().await;
    let (run, _) = resume(&mut world.other, &asked).await;
    let mut tx = world.one.begin().await;
    assert!(lost(phase(&mut tx, &mut slow, "mailed", b"").await));
    assert!(lost(finish(&mut tx, slow.clone(), Some(b"slow")).await));
    End::roll_back(tx).await;
    let mut tx = world.other.begin().await;
    finish(&mut tx, run, Some(b"ok")).await.expect("finished");
    End::commit(tx).await;
    let mut tx = world.one.begin().await;
    assert!(lost(finish(&mut tx, slow, Some(b"slow")).await));
    End::roll_back(tx).await;
    match world.look(&asked).await {
        Claimed::Replay { answer, .. } => assert_eq!(answer, b"ok".as_slice()),
        other => panic!("a replay: {other:?}"),
    }
}

/// Between two phases no transaction is open: the lease says that somebody is at work, and H2 holds.
async fn a_run_that_goes_on_is_in_progress<S: Session>(mut world: World<S>) {
    let asked = wants("k1", "10 EUR");
    let run = charged(&mut world, &asked).await;
    let said = world.look(&asked).await;
    assert!(
        matches!(said, Claimed::InProgress { remaining: Some(_) }),
        "{said:?}"
    );
    assert_eq!(world.look(&wants("k1", "11 EUR")).await, Claimed::Mismatch);
    let mut tx = world.one.begin().await;
    finish(&mut tx, run, Some(b"ok")).await.expect("finished");
    End::commit(tx).await;
    assert!(matches!(world.look(&asked).await, Claimed::Replay { .. }));
}

/// A run holds when its transaction commits, and not before: one that was rolled back cannot finish.
async fn a_takeover_that_did_not_commit_took_nothing<S: Session>(mut world: World<S>) {
    let asked = wants("k1", "10 EUR");
    let slow = charged(&mut world, &asked).await;
    world.lose().await;
    let Claimed::Resume(never, _) = world.look(&asked).await else {
        panic!("to be resumed");
    };
    let mut tx = world.one.begin().await;
    assert!(lost(finish(&mut tx, never, Some(b"never")).await));
    End::roll_back(tx).await;
    let mut tx = world.one.begin().await;
    let late = finish(&mut tx, slow, Some(b"late")).await;
    late.expect("an answer that comes late is the answer, if nobody ran again");
    End::commit(tx).await;
}
