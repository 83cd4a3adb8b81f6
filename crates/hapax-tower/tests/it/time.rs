//! Keys that expire, and keys as operators see them.

use hapax_ledger::guard::GuardState;
use hapax_ledger::time::Span;
use hapax_store::Keys;
use hapax_store::conformance::sample::at;
use hapax_store::nouns::{Authority, KeyFilter, KeyRecord, KeyResolution, Page, PageFrom};

use crate::server::{Server, guard};
use crate::world::{World, on_every_store};

on_every_store!(
    an_expired_key_says_so_before_it_runs_again,
    a_person_who_knows_frees_an_unknown_key,
);

/// All keys, newest first.
pub(crate) async fn listed(world: &World) -> Vec<KeyRecord> {
    let page = Page {
        limit: 100,
        from: PageFrom::Newest,
    };
    let listed = world.keys.keys(KeyFilter::default(), page).await;
    listed.expect("a page").rows
}

async fn an_expired_key_says_so_before_it_runs_again(world: World) {
    let guard = guard().ttl(Span::from_hours(24)).grace(Span::from_hours(2));
    let server = Server::start(&world, guard, async |_| "charged").await;
    let hour = |hours: i64| at(hours * 3600);
    server.charge("k", "").await;
    world.dial.set(at(24 * 3600 - 1));
    assert!(server.charge("k", "").await.is_replay());
    world.dial.set(hour(24));
    let expired = server.charge("k", "").await;
    assert_eq!(expired.refusal(), (409, "key-expired".to_owned()));
    assert_eq!(server.runs(), 1);
    world.dial.set(hour(26));
    assert!(!server.charge("k", "").await.is_replay());
    assert_eq!(server.runs(), 2);
}

async fn a_person_who_knows_frees_an_unknown_key(world: World) {
    let server = Server::start(&world, guard(), async |_| {
        crate::server::status(500, "nobody knows")
    })
    .await;
    server.charge("k", "").await;
    let key = listed(&world).await.remove(0);
    assert_eq!((&*key.key, key.state), ("k", GuardState::Unknown));
    assert_eq!((&*key.method, &*key.path), ("POST", "/charges"));
    assert_eq!((key.status, key.runs), (Some(500), 1));
    let by = Authority {
        actor: "anna".into(),
        reason: "looked it up".to_owned(),
        at: at(1),
        request: None,
    };
    let resolution = KeyResolution::NotExecuted;
    let resolved = world
        .keys
        .resolve_key(key.id, resolution, by, String::new());
    resolved.await.expect("the store answers");
    assert_eq!(server.charge("k", "").await.body, "nobody knows");
    assert_eq!(server.runs(), 2);
}
