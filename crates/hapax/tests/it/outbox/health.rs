//! Endpoints that only fail: what is written down, what is told, and when it ends.

use hapax::alert::{Announcer, Round};
use hapax::dispatch::Targets;
use hapax::outbox::extra::AppExtra;
use hapax::outbox::health::Patience;
use hapax::{clock, operate::ids};
use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{EndpointId, RunId};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Span;
use hapax_store::conformance::database::with_database;
use hapax_store::nouns::{About, Classes, Command, Commanded, Decision, News, Standing, Tiding};

use super::scene::{Scene, Wish, authority, soon, tries};
use crate::config::good;
use crate::support::clock::{TOO_LONG, tick};
use crate::support::world::{Act, World};

fn answered(status: u16) -> Outcome {
    Outcome::Answered {
        status,
        retry_after: None,
    }
}

/// The catalogue changes when an endpoint turns, and not with every attempt; a warning comes before the end.
#[tokio::test(flavor = "multi_thread")]
async fn five_days_of_failures_are_the_end() {
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let id = scene
        .endpoint(app, "http://127.0.0.1:9/", Wish::default())
        .await;
    let start = clock::now();
    let patience = Patience::default();
    let note = |status, after: Span| scene.registry.note(id, answered(status), start + after);
    let made = scene.known(id).revision;
    note(200, Span::ZERO).await;
    assert_eq!(scene.known(id).revision, made, "nothing new");
    for _ in 0..50 {
        note(500, Span::ZERO).await;
        note(200, Span::ZERO).await;
    }
    assert_eq!(scene.known(id).revision, made, "now well, now ill");
    note(500, Span::ZERO).await;
    assert_eq!(scene.known(id).failing_since, None, "it may pass");
    note(500, patience.failing_after).await;
    assert_eq!(scene.known(id).failing_since, Some(start));
    let failing = scene.known(id).revision;
    for hour in 1..90 {
        note(503, Span::from_hours(hour)).await;
    }
    assert_eq!(scene.known(id).revision, failing, "known already");
    note(200, Span::from_hours(91)).await;
    assert_eq!(scene.known(id).failing_since, None);
    let again = Span::from_hours(92);
    note(500, again).await;
    note(500, again + patience.failing_after).await;
    note(500, again + patience.warned_after).await;
    note(500, again + patience.warned_after).await;
    assert_eq!(scene.known(id).standing, Standing::Enabled);
    let told = scene.hear().await;
    assert_eq!(told.event_type(), "endpoint.disabling");
    note(500, again + patience.disabled_after).await;
    assert_eq!(scene.known(id).standing, Standing::Failed);
    let told = scene.hear().await;
    let what = News::Disabled {
        standing: Standing::Failed,
        failing_since: Some(start + again),
    };
    assert_eq!(told.what, what);
    assert_eq!(told.data()["trigger"], "automatic");
    assert_eq!(told.data()["reason"], "failed");
    note(500, again + patience.disabled_after + Span::from_days(1)).await;
    assert_eq!(scene.untold().await, [], "told once");
    scene.end().await;
}

/// What was only remembered of an endpoint is nothing that is known of it any more once its owner has changed it: its next failures are
/// the first.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_its_owner_changed_begins_anew() {
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let id = scene
        .endpoint(app, "http://127.0.0.1:9/", Wish::default())
        .await;
    let (start, patience) = (clock::now(), Patience::default());
    let note = |after: Span| scene.registry.note(id, answered(500), start + after);
    note(Span::ZERO).await;
    for standing in [Standing::Disabled, Standing::Enabled] {
        scene
            .change(id, |endpoint| endpoint.standing = standing)
            .await;
    }
    let later = Span::from_days(1);
    note(later).await;
    assert_eq!(scene.known(id).failing_since, None, "a first failure");
    note(later + patience.failing_after).await;
    assert_eq!(scene.known(id).failing_since, Some(start + later));
    scene.end().await;
}

/// What a node remembers of a lane is over once another has looked after it: it may have seen successes.
#[test]
fn a_first_failure_is_forgotten_where_another_node_came_in_between() {
    with_database(|database| async move {
        let url = database.url();
        let first = Scene::on(&url).await;
        let app = first.app(&AppExtra::default()).await;
        let mut all = Vec::new();
        for _ in 0..8 {
            let made = first.endpoint(app, "http://127.0.0.1:9/", Wish::default());
            all.push(made.await);
        }
        let is_ours = |id: &EndpointId| first.publisher.dispatcher.looks_after(&id.to_string());
        until(|| all.iter().all(is_ours)).await;
        let (start, patience) = (clock::now(), Patience::default());
        for id in &all {
            first.registry.note(*id, answered(500), start).await;
        }
        let second = Scene::on(&url).await;
        until(|| !all.iter().all(is_ours)).await;
        let moved: Vec<EndpointId> = all.iter().filter(|id| !is_ours(id)).copied().collect();
        second.end().await;
        until(|| all.iter().all(is_ours)).await;
        for id in moved {
            let again = start + patience.failing_after;
            first.registry.note(id, answered(500), again).await;
            assert_eq!(first.known(id).failing_since, None, "a first failure");
        }
        first.end().await;
    });
}

async fn until(holds: impl Fn() -> bool) {
    let start = tick();
    while !holds() {
        assert!(tick() - start < 2 * TOO_LONG, "it never comes to that");
        tokio::task::yield_now().await;
    }
}

/// Whoever comes after a restart, or is another node, knows that the owner was told and from when on it is disabled: nobody is told twice,
/// and nothing takes longer than it was said to. A success makes it all begin anew.
async fn a_warning_is_given_once(first: Scene, database: Option<&str>) {
    let app = first.app(&AppExtra::default()).await;
    let id = first
        .endpoint(app, "http://127.0.0.1:9/", Wish::default())
        .await;
    let (start, patience) = (clock::now(), Patience::default());
    let note = async |node: &Scene, status, after| {
        let noted = node.registry.note(id, answered(status), start + after);
        noted.await;
    };
    let (mut nodes, mut from) = (vec![first], Span::ZERO);
    for streak in ["the first", "after a success"] {
        let node = &nodes[nodes.len() - 1];
        // A node that gains shards forgets what it only remembers of them.
        let began = tick();
        while node.known(id).failing_since != Some(start + from) {
            assert!(tick() - began < TOO_LONG, "it never fails: {streak}");
            note(node, 500, from).await;
            note(node, 500, from + patience.failing_after).await;
        }
        note(node, 500, from + patience.warned_after).await;
        let what = News::Disabling {
            failing_since: start + from,
            disabled_from: start + from + patience.disabled_after,
        };
        assert_eq!(node.hear().await.what, what, "{streak}");
        let node = match database {
            Some(url) => Scene::on(url).await,
            None => node.beside().await,
        };
        let soon = from + patience.warned_after + Span::from_secs(1);
        note(&node, 500, soon).await;
        assert_eq!(node.untold().await, [], "{streak}");
        if streak == "the first" {
            note(&node, 200, soon).await;
            from = soon + Span::from_secs(1);
        }
        nodes.push(node);
    }
    let last = &nodes[nodes.len() - 1];
    note(last, 500, from + patience.disabled_after).await;
    assert_eq!(last.known(id).standing, Standing::Failed, "as it was said");
    assert_eq!(last.hear().await.event_type(), "endpoint.disabled");
    assert_eq!(last.untold().await, []);
    for node in nodes {
        node.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_warns_nobody_again() {
    a_warning_is_given_once(Scene::new().await, None).await;
}

#[test]
fn another_node_warns_nobody_again() {
    with_database(|database| async move {
        let url = database.url();
        let first = Scene::on(&url).await;
        a_warning_is_given_once(first, Some(&url)).await;
    });
}

/// A message that is given up is told, and one that gets through after that.
#[tokio::test(flavor = "multi_thread")]
async fn exhausted_and_recovered_are_told() {
    let world = World::new(|seen| match seen.before {
        0 | 1 => Act::Answer(500),
        _ => Act::Answer(200),
    });
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let id = scene.endpoint(app, &world.url("/"), tries(2)).await;
    let event = scene.publish(app, "{}", About::default()).await;
    scene.until_state(event, EffectState::Dead).await;
    let told = scene.hear().await;
    assert_eq!(told.event_type(), "message.attempt.exhausted");
    assert_eq!(told.endpoint, id);
    assert_eq!(told.data()["lastAttempt"]["responseStatusCode"], 500);
    let command = Command {
        event,
        decision: Decision::Retry,
        only: None,
        by: authority(),
        if_revision: None,
        dry_run: false,
        run: RunId(ids::fresh(clock::now())),
        classes: Classes::default(),
    };
    let Ok(Commanded::Done(done)) = scene.store.command(command).await else {
        panic!("a dead delivery can be retried");
    };
    scene.publisher.dispatcher.opened(&done.opened);
    scene.until_state(event, EffectState::Done).await;
    let told = scene.hear().await;
    assert_eq!(told.event_type(), "message.attempt.recovered");
    assert_eq!(world.seen().len(), 3);
    scene.end().await;
}

/// What is told goes through the ledger and the dispatcher, as alerts do; the same thing told twice is one event.
#[tokio::test(flavor = "multi_thread")]
async fn operators_are_told_where_alerts_go() {
    let (gone, operators) = (World::new(|_| Act::Answer(410)), World::well());
    let scene = Scene::new().await;
    let config = good(&format!("[alerts]\nurl = \"{}\"\n", operators.url("/told")));
    let dispatcher = scene.publisher.dispatcher.clone();
    dispatcher.reload(Targets::new(&config.sent(), &[], scene.store.shards()));
    let announcer = Announcer::new(scene.publisher.clone(), config.alerts);
    let app = scene.app(&AppExtra::default()).await;
    let id = scene.endpoint(app, &gone.url("/"), tries(1)).await;
    scene.publish(app, "{}", About::default()).await;
    let start = tick();
    while scene.untold().await.len() < 2 {
        assert!(tick() - start < TOO_LONG, "not both are written");
        tokio::task::yield_now().await;
    }
    let untold = scene.untold().await.into_iter();
    let tidings = untold.map(|one| one.tiding.expect("it is of this version"));
    let tidings: Vec<Tiding> = tidings.collect();
    let round = announcer.tell_all().await;
    assert_eq!(round.expect("the store is well"), Round::Done);
    assert_eq!(scene.untold().await, [], "told and forgotten");
    // As if it had died before it could forget them.
    for tiding in &tidings {
        let round = announcer.tell(tiding, clock::now()).await;
        assert_eq!(round.expect("the store is well"), Round::Done);
    }
    let types = ["endpoint.disabled", "message.attempt.exhausted"];
    let seen = tokio::task::block_in_place(|| operators.wait_for("both", |seen| seen.len() == 2));
    for one in &seen {
        let body: serde_json::Value = serde_json::from_slice(&one.body).expect("JSON");
        assert_eq!(body["data"]["endpointId"], id.to_string());
        assert!(types.contains(&body["type"].as_str().expect("a type")));
    }
    scene.end().await;
    assert_eq!(operators.seen().len(), 2, "once each");
}

/// Endpoints that all turn at once, more attempts at them than are settled at a time: while nothing can be written about any of them, what
/// is due elsewhere is still claimed and sent; and in the end all of it is written.
#[test]
fn endpoints_that_turn_at_once_keep_no_claim_waiting() {
    with_database(|database| async move {
        let (gone, well) = (World::new(|_| Act::Answer(410)), World::well());
        let scene = Scene::on(&database.url()).await;
        let (broken, other) = (
            scene.app(&AppExtra::default()).await,
            scene.app(&AppExtra::default()).await,
        );
        let mut endpoints = Vec::new();
        for _ in 0..270 {
            endpoints.push(scene.endpoint(broken, &gone.url("/"), tries(1)).await);
        }
        scene.endpoint(other, &well.url("/"), tries(1)).await;
        let held = database.hold_catalogue().await;
        for _ in 0..2 {
            scene.publish(broken, "{}", About::default()).await;
        }
        tokio::task::block_in_place(|| gone.wait_for("all of them", |seen| seen.len() >= 540));
        // Due later, so that it has to be claimed.
        scene.publish(other, "{}", soon()).await;
        tokio::task::block_in_place(|| well.wait_for("the other", |seen| seen.len() == 1));
        let standing = endpoints.iter().map(|id| scene.known(*id).standing);
        assert!(standing.into_iter().all(|one| one == Standing::Enabled));
        drop(held);
        for id in endpoints {
            scene.until_standing(id, Standing::Gone).await;
        }
        scene.end().await;
    });
}
