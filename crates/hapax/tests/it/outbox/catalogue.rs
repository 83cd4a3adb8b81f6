//! The catalogue in memory: what nodes know of each other's changes, lists, and large sets of endpoints.

use std::collections::HashSet;

use hapax::dispatch::directory::{Directory, Found};
use hapax::outbox::catalog::{Catalog, Way};
use hapax::outbox::extra::{AppExtra, EndpointExtra, SchemeWord};
use hapax::outbox::sealed::{Opened, fresh_key};
use hapax::{clock, entropy};
use hapax_ledger::effect::{EffectState, SkipReason};
use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Span;
use hapax_store::nouns::{About, Deliveries, Entry, Page, PageFrom, PostedFilter, Standing};

use super::scene::{Scene, Wish, later};
use crate::effects::scene::on_postgres;
use crate::support::world::World;

/// A node that has not heard of an endpoint asks; a message planned by an old catalogue is planned again.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_hears_of_another_s_changes_when_it_asks() {
    let world = World::well();
    let one = Scene::new().await;
    let other = one.beside().await;
    let app = one.app(&AppExtra::default()).await;
    let id = one.endpoint(app, &world.url("/"), Wish::default()).await;
    let lane = id.to_string();
    assert!(matches!(other.registry.find(&lane), Found::Unknown));
    other.registry.refresh().await.expect("the store is well");
    assert!(matches!(other.registry.find(&lane), Found::Target(_)));
    one.change(id, |endpoint| endpoint.standing = Standing::Disabled)
        .await;
    let closed = Found::Closed(SkipReason::EndpointDisabled);
    assert!(matches!(one.registry.find(&lane), found if same(&found, &closed)));
    let event = other.publish(app, "{}", About::default()).await;
    assert!(
        other.deliveries(event).await.is_empty(),
        "planned by what is true now"
    );
    assert!(world.seen().is_empty());
    one.end().await;
    other.end().await;
}

fn same(one: &Found, other: &Found) -> bool {
    match (one, other) {
        (Found::Closed(one), Found::Closed(other)) => one == other,
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_go_both_ways_and_names_are_found() {
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let mut made = Vec::new();
    for number in 0..5 {
        let id = scene
            .endpoint(app, "http://127.0.0.1:9/", Wish::default())
            .await;
        scene
            .change(id, |endpoint| {
                endpoint.uid = Some(format!("ep-{number}").into())
            })
            .await;
        made.push(id);
    }
    made.sort_unstable();
    in_order(&scene.registry.catalog(), app, &made);
    let id = made[0];
    scene
        .change(id, |endpoint| endpoint.deleted_at = Some(later(Span::ZERO)))
        .await;
    assert!(scene.registry.catalog().endpoint_by_id(id).is_none());
    let gone = scene.registry.catalog().app_by_id(app).cloned();
    let mut gone = (*gone.expect("it is there")).clone();
    gone.deleted_at = Some(later(Span::ZERO));
    let was = gone.revision;
    scene.put(Entry::App(gone), was).await;
    assert!(
        scene.registry.catalog().endpoint_by_id(made[1]).is_none(),
        "with its application"
    );
    scene.end().await;
}

fn in_order(catalog: &Catalog, app: AppId, made: &[EndpointId]) {
    let ids = |after, way, max| -> Vec<_> {
        let some = catalog.endpoints(app, after, way, max);
        some.iter().map(|endpoint| endpoint.id).collect()
    };
    assert_eq!(ids(None, Way::Up, 3), made[..3]);
    assert_eq!(ids(Some(made[2]), Way::Up, 3), made[3..]);
    assert_eq!(ids(Some(made[2]), Way::Down, 9), [made[1], made[0]]);
    let named = catalog
        .endpoint(app, "ep-3")
        .expect("by what its owner calls it");
    assert_eq!(catalog.endpoint(app, &named.id.to_string()), Some(named));
    assert!(catalog.endpoint(app, "ep-9").is_none());
}

/// G1: exactly one delivery for each endpoint, also where there are more than one commit takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_set_gets_one_delivery_each() {
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let mut made = HashSet::new();
    for _ in 0..600 {
        let id = scene
            .endpoint(app, "http://127.0.0.1:9/", Wish::default())
            .await;
        made.insert(id.to_string());
    }
    let about = About {
        deliver_at: Some(later(Span::from_hours(1))),
        ..About::default()
    };
    let event = scene.publish(app, "{}", about).await;
    scene
        .publisher
        .fan_out
        .step()
        .await
        .expect("the store is well");
    let mut names = Vec::new();
    let mut from = PageFrom::Newest;
    loop {
        let page = Page { limit: 100, from };
        let which = Deliveries::Of(event);
        let listed = scene.store.deliveries(which, PostedFilter::default(), page);
        let listed = listed.await.expect("the store is well");
        names.extend(
            listed
                .rows
                .iter()
                .map(|posted| posted.effect.name.to_string()),
        );
        match listed.next {
            Some(next) => from = PageFrom::OlderThan(next),
            None => break,
        }
    }
    assert_eq!(names.len(), 600);
    assert_eq!(names.into_iter().collect::<HashSet<_>>(), made);
    scene.end().await;
}

/// A key pair signs, and its public key can be shown.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_with_a_key_pair_has_a_public_key() {
    let world = World::well();
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let extra = EndpointExtra {
        signature_scheme: Some(SchemeWord::Ed25519),
        ..EndpointExtra::default()
    };
    let key = fresh_key(&extra.scheme(), entropy::bytes());
    let wish = Wish {
        extra,
        ..Wish::default()
    };
    let id = scene.endpoint(app, &world.url("/"), wish).await;
    // With a secret of another kind it cannot be sent to, and its deliveries wait.
    assert!(matches!(
        scene.registry.find(&id.to_string()),
        Found::Unready
    ));
    scene
        .change(id, |endpoint| {
            let opened = Opened::new(key.clone(), [].into(), clock::now());
            let vault = scene.registry.vault().expect("a key");
            endpoint.sealed = opened.seal(&vault, id, entropy::bytes());
        })
        .await;
    assert_eq!(scene.registry.public_keys(id, clock::now()).len(), 1);
    let event = scene.publish(app, "{}", About::default()).await;
    scene.until_state(event, EffectState::Done).await;
    let signature = world.seen()[0].headers["webhook-signature"].clone();
    assert!(signature.starts_with("v1a,"), "{signature}");
    scene.end().await;
}

/// Nodes on one database: what one has made the other plans by, and each delivery is made once, by whoever has its lane.
#[test]
fn nodes_share_endpoints_and_deliveries() {
    on_postgres(|url| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let world = World::well();
            let (one, other) = (Scene::on(url).await, Scene::on(url).await);
            let app = one.app(&AppExtra::default()).await;
            for _ in 0..8 {
                one.endpoint(app, &world.url("/"), Wish::default()).await;
            }
            for scene in [&one, &other] {
                scene
                    .registry
                    .fresh()
                    .await
                    .map(drop)
                    .expect("the store is well");
                for _ in 0..5 {
                    let event = scene.publish(app, "{}", About::default()).await;
                    assert_eq!(scene.deliveries(event).await.len(), 8);
                }
            }
            let seen = world.wait_for("all", |seen| seen.len() == 80);
            let mut times = std::collections::HashMap::<&str, u32>::new();
            for one in &seen {
                *times.entry(&one.headers["webhook-id"]).or_default() += 1;
            }
            assert_eq!(times.len(), 10);
            assert!(times.values().all(|times| *times == 8));
            one.end().await;
            other.end().await;
        });
    });
}
