//! Keys that expire, and keys as operators see them.

use hapax_ledger::guard::GuardState;
use hapax_ledger::time::Span;
use hapax_store::Keys;
use hapax_store::conformance::sample::at;
use hapax_store::nouns::{Authority, KeyFilter, KeyRecord, KeyResolution, Page, PageFrom};

use crate::server::{Door, Server, guard};
use crate::world::{World, on_every_store};

on_every_store!(
    an_expired_key_says_so_before_it_runs_again,
    a_clock_on_the_wall_that_jumps_neither_frees_a_key_nor_runs_it_again,
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
    // The store's clock jumps hours ahead here, which memory does not hear of.
    let guard = guard().recent_bytes_max(0);
    let guard = guard.ttl(Span::from_hours(24)).grace(Span::from_hours(2));
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

/// I2: what is told by the wall's clock is for people to read. Leases and lives end by the store's.
async fn a_clock_on_the_wall_that_jumps_neither_frees_a_key_nor_runs_it_again(world: World) {
    let (door, year) = (Door::new(), Span::from_days(365));
    let less = Span::from_days(-365);
    let handler = door.clone();
    let guard = guard().ttl(Span::from_hours(24)).recent_bytes_max(0);
    let server = Server::start(&world, guard, move |_| {
        let door = handler.clone();
        async move { door.pass().await }
    })
    .await;
    let jumps = [("forward", year, less), ("back", less, year)];
    for (runs, (key, jump, back)) in jumps.into_iter().enumerate() {
        world.keys.set_wall(Span::ZERO);
        let first = server.charge(key, "");
        let others = async {
            door.reached().await;
            world.keys.set_wall(jump);
            let again = server.charge(key, "").await;
            assert_eq!(again.refusal(), (409, "in-progress".to_owned()), "{key}");
            door.open();
        };
        // It is claimed before the jump and settled after it.
        let (first, ()) = tokio::join!(first, others);
        assert_eq!(first.status, 200, "{key}");
        for jump in [jump, Span::ZERO, back] {
            world.keys.set_wall(jump);
            assert!(server.charge(key, "").await.is_replay(), "{key}");
        }
        assert_eq!(server.runs(), runs + 1);
    }
    world.dial.set(at(24 * 3600));
    for (key, ..) in jumps {
        let expired = server.charge(key, "").await;
        assert_eq!(expired.refusal(), (409, "key-expired".to_owned()), "{key}");
    }
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
        .resolve_key(key.id, key.fence, resolution, by, String::new());
    resolved.await.expect("the store answers");
    assert_eq!(server.charge("k", "").await.body, "nobody knows");
    assert_eq!(server.runs(), 2);
}
