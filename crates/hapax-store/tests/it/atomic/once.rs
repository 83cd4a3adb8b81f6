//! Events that are worked on once.

use hapax_ledger::time::Span;
use hapax_store::atomic::{AtomicTx, Event, Once, once};

use crate::atomic::world::{End, Session, World, insert_charge, on_every_driver};

on_every_driver!(
    an_event_is_worked_on_once,
    failed_work_leaves_the_event_new,
    somebody_is_at_work,
    an_event_that_is_forgotten_is_new,
);

async fn ship<T: AtomicTx>(tx: &mut T, event: &Event) -> Once {
    let seen = once(tx, event).await.expect("the database answers");
    if seen == Once::Fresh {
        insert_charge(tx, &event.id).await;
    }
    seen
}

async fn an_event_is_worked_on_once<S: Session>(mut world: World<S>) {
    let event = Event::new("shop", "evt_1");
    for expected in [Once::Fresh, Once::Seen, Once::Seen] {
        let mut tx = world.one.begin().await;
        assert_eq!(ship(&mut tx, &event).await, expected);
        End::commit(tx).await;
    }
    assert_eq!(world.charges().await, 1);
    let mut tx = world.one.begin().await;
    let elsewhere = Event::new("other shop", "evt_1");
    assert_eq!(ship(&mut tx, &elsewhere).await, Once::Fresh);
    End::roll_back(tx).await;
}

async fn failed_work_leaves_the_event_new<S: Session>(mut world: World<S>) {
    let event = Event::new("shop", "evt_1");
    let mut tx = world.one.begin().await;
    assert_eq!(ship(&mut tx, &event).await, Once::Fresh);
    End::roll_back(tx).await;
    assert_eq!(world.charges().await, 0);
    let mut tx = world.one.begin().await;
    assert_eq!(ship(&mut tx, &event).await, Once::Fresh);
    End::commit(tx).await;
}

async fn somebody_is_at_work<S: Session>(mut world: World<S>) {
    let event = Event::new("shop", "evt_1");
    let mut first = world.one.begin().await;
    assert_eq!(ship(&mut first, &event).await, Once::Fresh);
    let mut second = world.other.begin().await;
    assert_eq!(ship(&mut second, &event).await, Once::Busy);
    End::roll_back(second).await;
    End::commit(first).await;
    let mut second = world.other.begin().await;
    assert_eq!(ship(&mut second, &event).await, Once::Seen);
    End::roll_back(second).await;
}

async fn an_event_that_is_forgotten_is_new<S: Session>(mut world: World<S>) {
    let mut event = Event::new("shop", "evt_1");
    event.remember = Span::ZERO;
    for _ in 0..2 {
        let mut tx = world.one.begin().await;
        assert_eq!(ship(&mut tx, &event).await, Once::Fresh);
        End::commit(tx).await;
    }
}
