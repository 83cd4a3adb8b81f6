//! How fast deliveries go, and in which order.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use hapax::clock;
use hapax::dispatch::directory::{Directory, Found};
use hapax::outbox::extra::{AppExtra, EndpointExtra};
use hapax_ledger::effect::EffectState;
use hapax_ledger::time::Span;
use hapax_store::nouns::{About, Entry};
use tokio::task::block_in_place;

use super::scene::{Scene, Wish, tries};
use crate::support::clock::tick;
use crate::support::world::{Act, Seen, World};

/// A consumer that asks for time gets it, whatever the schedule says.
#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_honoured() {
    let world = World::new(|_| Act::AnswerWith(429, "retry-after: 90\r\n", String::new()));
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    scene.endpoint(app, &world.url("/"), tries(9)).await;
    let before = clock::now();
    let event = scene.publish(app, "{}", About::default()).await;
    block_in_place(|| world.wait_for("one", |seen| seen.len() == 1));
    let waits = scene.until_state(event, EffectState::Pending).await;
    let due = waits.effect.record.next_attempt_at;
    assert!(due >= before + Span::from_secs(90), "{due:?}");
    assert_eq!(world.seen().len(), 1);
    scene.end().await;
}

/// The same by the consumer's own log: the schedule says at once, and nothing comes before the consumer wants it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_comes_again_when_the_consumer_wants_it() {
    const ASKED: Duration = Duration::from_secs(1);
    let world = World::new(|seen| {
        let asks = "retry-after: 1\r\n";
        match seen.before {
            0 => Act::AnswerWith(429, asks, String::new()),
            1 => Act::AnswerWith(503, asks, String::new()),
            _ => Act::Answer(200),
        }
    });
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    scene.endpoint(app, &world.url("/"), tries(9)).await;
    let event = scene.publish(app, "{}", About::default()).await;
    scene.until_state(event, EffectState::Done).await;
    let seen = world.seen();
    assert_eq!(seen.len(), 3);
    for (first, second) in seen.iter().zip(&seen[1..]) {
        let gap = second.at - first.at;
        assert!(gap >= ASKED, "{gap:?}");
    }
    scene.end().await;
}

/// Ten at five a second, by the consumer's own log: the bucket holds five, each of the others comes a fifth of a second later.
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_holds() {
    const BETWEEN: Duration = Duration::from_millis(200);
    let world = World::well();
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let wish = Wish {
        throttle_rate: Some(5),
        ..Wish::default()
    };
    scene.endpoint(app, &world.url("/"), wish).await;
    let start = tick();
    for _ in 0..10 {
        scene.publish(app, "{}", About::default()).await;
    }
    let seen = block_in_place(|| world.wait_for("all", |seen| seen.len() == 10));
    let mut at: Vec<_> = seen.iter().map(|one| one.at).collect();
    at.sort();
    let mut earliest = start;
    for late in &at[5..] {
        earliest += BETWEEN;
        assert!(*late >= earliest, "{:?} too early", earliest - *late);
    }
    scene.end().await;
}

/// By the consumer's own log: never more with it than its cap, and always as many while there are more.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_has_no_more_at_a_time_than_it_asked_for() {
    const CAP: usize = 2;
    const ALL: usize = 9;
    let world = World::new(|_| Act::Held);
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let wish = Wish {
        extra: EndpointExtra {
            concurrency: Some(2),
            ..EndpointExtra::default()
        },
        ..Wish::default()
    };
    scene.endpoint(app, &world.url("/"), wish).await;
    let mut events = Vec::new();
    for _ in 0..ALL {
        events.push(scene.publish(app, "{}", About::default()).await);
    }
    for answered in 0..ALL {
        let with_it = (answered + CAP).min(ALL);
        block_in_place(|| world.wait_for("the next", |seen| seen.len() == with_it));
        world.release(1);
    }
    for event in events {
        scene.until_state(event, EffectState::Done).await;
    }
    assert_eq!((world.at_once_max(), world.seen().len()), (CAP, ALL));
    scene.end().await;
}

/// An application's rate holds for each of its endpoints that have no lower one.
#[tokio::test(flavor = "multi_thread")]
async fn the_lower_rate_counts() {
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    let mut lanes = Vec::new();
    for throttle_rate in [None, Some(3), Some(9)] {
        let wish = Wish {
            throttle_rate,
            ..Wish::default()
        };
        let id = scene.endpoint(app, "http://127.0.0.1:9/", wish).await;
        lanes.push(id.to_string());
    }
    let rates = || -> Vec<Option<u32>> {
        let found = lanes.iter().map(|lane| scene.registry.find(lane));
        let rate = |found| match found {
            Found::Target(target) => target.caps.rate,
            _ => panic!("it can be sent to"),
        };
        found.map(rate).collect()
    };
    assert_eq!(rates(), [None, Some(3), Some(9)]);
    let known = scene.registry.catalog().app_by_id(app).cloned();
    let mut known = (*known.expect("it is there")).clone();
    known.throttle_rate = Some(5);
    let was = known.revision;
    scene.put(Entry::App(known), was).await;
    assert_eq!(rates(), [Some(5), Some(3), Some(5)]);
    scene.end().await;
}

/// A consumer that only fails is left alone for a while, tried with one request, and served again. Five failures open the breaker of one that
/// has never answered; more of them would make the pause longer than a test should last.
#[tokio::test(flavor = "multi_thread")]
async fn a_breaker_opens_and_closes() {
    const FAILURES: usize = 5;
    let world = World::new(|seen| match seen.before {
        0..FAILURES => Act::HangUp,
        _ => Act::Answer(200),
    });
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    scene.endpoint(app, &world.url("/"), tries(20)).await;
    let event = scene.publish(app, "{}", About::default()).await;
    block_in_place(|| world.wait_for("five", |seen| seen.len() == FAILURES));
    let opened = tick();
    scene.until_state(event, EffectState::Done).await;
    assert!(
        tick() - opened >= Duration::from_millis(400),
        "a pause of half a second at least"
    );
    assert_eq!(world.seen().len(), FAILURES + 1);
    scene.end().await;
}

/// F1: messages of one key arrive one after the other, whatever has to be tried again; those of other keys do not wait for them.
#[tokio::test(flavor = "multi_thread")]
async fn order_holds_under_retries() {
    const EACH: usize = 6;
    let tried = Mutex::new(HashMap::<String, usize>::new());
    let world = World::new(move |seen| {
        let mut tried = tried.lock().expect("whole");
        let times = tried.entry(seen.headers["webhook-id"].clone()).or_default();
        *times += 1;
        // Every one of them fails twice, each time in another way.
        match *times {
            1 => Act::Answer(500),
            2 => Act::HangUp,
            _ => Act::Answer(200),
        }
    });
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    scene.endpoint(app, &world.url("/"), tries(9)).await;
    let keys = ["a", "b", "c"];
    for number in 0..EACH * keys.len() {
        let key = keys[number % keys.len()];
        let about = About {
            ordering_key: Some(key.to_owned()),
            ..About::default()
        };
        scene.publish(app, &format!("\"{key}\""), about).await;
    }
    let all = 3 * EACH * keys.len();
    let seen = block_in_place(|| world.wait_for("all", |seen| seen.len() == all));
    for key in keys {
        let numbers: Vec<usize> = seen
            .iter()
            .filter(|one| one.body == format!("\"{key}\"").as_bytes())
            .map(sequence)
            .collect();
        let expected: Vec<usize> = (1..=EACH).flat_map(|number| [number; 3]).collect();
        assert_eq!(numbers, expected, "{key}");
    }
    scene.end().await;
}

/// A consumer that says nothing about one key is sent all of the others meanwhile, and of that key nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_hangs_holds_up_no_other() {
    const EACH: usize = 3;
    let world = World::new(|seen| match &*seen.body {
        b"\"slow\"" => Act::Held,
        _ => Act::Answer(200),
    });
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    scene.endpoint(app, &world.url("/"), tries(1)).await;
    let keys = ["slow", "b", "c"];
    let mut events = Vec::new();
    for number in 0..EACH * keys.len() {
        let key = keys[number % keys.len()];
        let about = About {
            ordering_key: Some(key.to_owned()),
            ..About::default()
        };
        events.push(scene.publish(app, &format!("\"{key}\""), about).await);
    }
    let of = |seen: &[Seen], key: &str| -> Vec<usize> {
        let body = format!("\"{key}\"");
        let own = seen.iter().filter(|one| one.body == body.as_bytes());
        own.map(sequence).collect()
    };
    let others = EACH * (keys.len() - 1);
    block_in_place(|| world.wait_for("the others", |seen| seen.len() > others));
    let seen = world.seen();
    assert_eq!(of(&seen, "slow"), [1]);
    for key in &keys[1..] {
        assert_eq!(of(&seen, key), [1, 2, 3], "{key}");
    }
    world.release(EACH);
    for event in events {
        scene.until_state(event, EffectState::Done).await;
    }
    assert_eq!(of(&world.seen(), "slow"), [1, 2, 3]);
    scene.end().await;
}

/// Messages of one sequence are numbered, and none waits for the one before it.
#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_is_numbered_and_does_not_wait() {
    const ALL: usize = 4;
    let world = World::new(|_| Act::Held);
    let scene = Scene::new().await;
    let app = scene.app(&AppExtra::default()).await;
    scene.endpoint(app, &world.url("/"), tries(1)).await;
    let mut events = Vec::new();
    for number in 1..=ALL {
        let about = About {
            sequence_key: Some("orders".to_owned()),
            ..About::default()
        };
        events.push(scene.publish(app, &number.to_string(), about).await);
    }
    // Nothing is answered yet.
    let seen = block_in_place(|| world.wait_for("all of them", |seen| seen.len() == ALL));
    for one in &seen {
        assert_eq!(one.body, sequence(one).to_string().as_bytes());
    }
    assert_eq!(world.at_once_max(), ALL);
    world.release(ALL);
    for event in events {
        scene.until_state(event, EffectState::Done).await;
    }
    scene.end().await;
}

fn sequence(seen: &Seen) -> usize {
    seen.headers["hapax-sequence"].parse().expect("a number")
}
