//! Limits that keep one event from filling the disk.

use super::sample::{Subject, accept, all, at, detail};
use crate::nouns::{CONFLICT_BODIES_MAX, DELIVERIES_KEPT_MAX};

/// A provider that bounces one event for ever: counted for ever, kept up to the limit, and the last time is known.
pub async fn deliveries_beyond_the_limit_only_move_the_last_one(store: Subject) {
    let first = accept(&store, at(0), "k", "A").await;
    let racing = (0..DELIVERIES_KEPT_MAX).map(|_| {
        let store = store.clone();
        async move { accept(&store, at(1), "k", "A").await }
    });
    all(racing).await;
    let kept = DELIVERIES_KEPT_MAX as usize + 1;
    assert_eq!(detail(&store, first.event).await.deliveries.len(), kept);
    let beyond = 3;
    for n in 1..=beyond {
        let now = at(100 + i64::from(n));
        accept(&store, now, "k", "A").await;
        let detail = detail(&store, first.event).await;
        assert_eq!(detail.deliveries.len(), kept);
        assert_eq!(detail.event.duplicate_count, DELIVERIES_KEPT_MAX + n);
        assert_eq!(detail.event.delivery_count, DELIVERIES_KEPT_MAX + n + 1);
        assert_eq!(detail.deliveries.last().map(|last| last.at), Some(now));
    }
    // Many at once beyond the limit, and conflicts among them.
    let racing = (0..20).map(|n| {
        let store = store.clone();
        async move { accept(&store, at(200), "k", if n % 2 == 0 { "A" } else { "B" }).await }
    });
    all(racing).await;
    let detail = detail(&store, first.event).await;
    assert_eq!(detail.deliveries.len(), kept);
    assert_eq!(
        detail.event.duplicate_count,
        DELIVERIES_KEPT_MAX + beyond + 20
    );
    assert_eq!(detail.event.conflict_count, 10);
}

/// B3: a conflict whose bytes are no longer kept is a conflict all the same.
pub async fn conflicts_beyond_the_limit_are_still_counted(store: Subject) {
    let first = accept(&store, at(0), "k", "A").await;
    let conflicts = CONFLICT_BODIES_MAX + 4;
    for n in 0..conflicts {
        accept(&store, at(1), "k", &format!("B{n}")).await;
    }
    let detail = detail(&store, first.event).await;
    assert_eq!(detail.event.conflict_count, conflicts);
    assert!(
        detail.deliveries[1..]
            .iter()
            .all(|delivery| delivery.conflict)
    );
}
