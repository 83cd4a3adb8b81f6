//! Endpoints that are gone, disabled, deleted, closed by the gate, or not asked for.

use hapax::dispatch::gate::Rules;
use hapax::outbox::extra::AppExtra;
use hapax_ledger::effect::{EffectState, SkipReason};
use hapax_ledger::outcome::{NotSent, Outcome};
use hapax_store::nouns::{About, News, Standing};

use super::scene::{Scene, Wish, later, soon, tries};
use crate::support::world::{Act, World};

/// 410: nothing more is sent, what waits is skipped, and nothing new is planned.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_gone_is_left_alone() {
    let world = World::new(|_| Act::Answer(410));
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let id = scene.endpoint(app, &world.url("/"), tries(3)).await;
    let waits = scene.publish(app, "{}", soon()).await;
    scene.publish(app, "{}", About::default()).await;
    scene.until_standing(id, Standing::Gone).await;
    let told = scene.hear().await;
    assert_eq!(told.event_type(), "endpoint.disabled");
    assert!(matches!(
        told.what,
        News::Disabled {
            standing: Standing::Gone,
            ..
        }
    ));
    let skipped = scene.until_state(waits, EffectState::Skipped).await;
    let reason = skipped.effect.record.skip;
    assert_eq!(reason, Some(SkipReason::EndpointDisabled));
    let new = scene.publish(app, "{}", About::default()).await;
    assert!(scene.deliveries(new).await.is_empty());
    // The one that was told so, however often it may be due again before the mark.
    assert!(world.seen().iter().all(|seen| seen.before < 3));
    scene.end().await;
}

/// G2: deliveries to an endpoint that its owner has disabled or deleted end, each with its reason.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_disabled_or_deleted_endpoint_is_skipped() {
    let world = World::well();
    let scene = Scene::new().await;
    let table = [
        (SkipReason::EndpointDisabled, false),
        (SkipReason::EndpointDeleted, true),
    ];
    for (reason, deleted) in table {
        let app = scene.app(&AppExtra::default()).await;
        let id = scene.endpoint(app, &world.url("/"), Wish::default()).await;
        let waits = scene.publish(app, "{}", soon()).await;
        scene
            .change(id, |endpoint| match deleted {
                true => endpoint.deleted_at = Some(later(hapax_ledger::time::Span::ZERO)),
                false => endpoint.standing = Standing::Disabled,
            })
            .await;
        let skipped = scene.until_state(waits, EffectState::Skipped).await;
        assert_eq!(skipped.effect.record.skip, Some(reason));
        assert!(skipped.attempts.is_empty());
    }
    assert!(world.seen().is_empty());
    scene.end().await;
}

/// G5: what the gate closes is seen at the attempt, and not by the world.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_where_none_may_be_gets_nothing() {
    let world = World::well();
    let scene = Scene::with(Rules::default()).await;
    let app = scene.app(&AppExtra::default()).await;
    scene.endpoint(app, &world.url("/"), tries(1)).await;
    let event = scene.publish(app, "{}", About::default()).await;
    let dead = scene.until_state(event, EffectState::Dead).await;
    let blocked = Outcome::NotSent {
        why: NotSent::Blocked,
    };
    assert_eq!(dead.attempts[0].outcome, blocked);
    let said = dead.attempts[0].said.error.clone();
    let closed = "the address 127.0.0.1 is not allowed: it is this machine";
    assert_eq!(said.as_deref(), Some(closed));
    assert!(world.seen().is_empty());
    scene.end().await;
}

/// Types and channels decide who gets what.
#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_want_it_get_it() {
    let world = World::well();
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let other = scene.app(&AppExtra::default()).await;
    let list = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let wish = |types: &[&str], channels: &[&str]| Wish {
        event_types: list(types),
        channels: list(channels),
        ..Wish::default()
    };
    let endpoints = [
        ("all", app, wish(&[], &[])),
        ("type", app, wish(&["invoice.paid", "x"], &[])),
        ("other-type", app, wish(&["x"], &[])),
        ("channel", app, wish(&[], &["eu", "us"])),
        ("other-channel", app, wish(&[], &["asia"])),
        ("other-app", other, wish(&[], &[])),
    ];
    for (path, app, wish) in endpoints {
        let url = world.url(&format!("/{path}"));
        scene.endpoint(app, &url, wish).await;
    }
    let about = About {
        channels: list(&["eu"]),
        ..About::default()
    };
    let event = scene.publish(app, "{}", about).await;
    assert_eq!(scene.deliveries(event).await.len(), 3);
    let seen = tokio::task::block_in_place(|| world.wait_for("three", |seen| seen.len() == 3));
    let mut paths: Vec<&str> = seen.iter().map(|one| one.target.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/all", "/channel", "/type"]);
    let plain = scene.publish(app, "{}", About::default()).await;
    assert_eq!(
        scene.deliveries(plain).await.len(),
        2,
        "no channel, no listener to channels"
    );
    scene.end().await;
}
