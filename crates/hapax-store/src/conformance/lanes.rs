//! Lanes: which have something to do, what is taken from each, and who looks after them.

use hapax_ledger::effect::Repeat;
use hapax_ledger::retry::Next;
use hapax_ledger::time::{Span, Time};

use super::sample::{Dial, Subject, accept_one, arrival, at, detail, event};
use super::worker::{
    BROKEN, LEASE, SETTLED, START, accept_effects, calling_for, claim, claim_lanes, done, due,
    ended, planned, serial,
};
use crate::nouns::{
    Beat, ClaimAsk, Claimed, LANES_PER_LOOK_MAX, LaneDue, LaneRoom, NewEffect, NewEvent, Stay,
    lane_shard,
};

fn in_lane(lane: &str, key: &str, seconds: i64) -> NewEffect {
    NewEffect {
        lane: lane.into(),
        wait: Span::from_secs(seconds),
        ..planned("e", key, Repeat::Keyed)
    }
}

fn keys(claims: Vec<Claimed>) -> Vec<String> {
    claims
        .into_iter()
        .map(|claimed| claimed.effect.key)
        .collect()
}

async fn lanes_due(store: &Subject) -> Vec<(String, Time)> {
    let lanes = due(store).await.into_iter();
    lanes.map(|due| (due.lane.to_string(), due.at)).collect()
}

/// G6: what is taken from a lane is at most its room, and nothing is taken from a lane that was not named.
pub async fn a_claim_takes_from_the_lanes_it_names_and_no_more_than_their_room(
    store: Subject,
    dial: Dial,
) {
    let effects = vec![
        in_lane("slow", "s3", 3),
        in_lane("slow", "s1", 1),
        in_lane("fast", "f1", 1),
        in_lane("fast", "f2", 2),
        in_lane("other", "o", 0),
    ];
    accept_effects(&store, "k", effects).await;
    dial.set(at(10));
    let mut first = keys(claim_lanes(&store, "n", &[("slow", 1), ("fast", 5)], LEASE).await);
    first.sort_unstable();
    assert_eq!(first, ["f1", "f2", "s1"]);
    let nothing = claim_lanes(&store, "n", &[("slow", 0), ("unknown", 9)], LEASE).await;
    assert_eq!(nothing, []);
    assert_eq!(
        keys(claim_lanes(&store, "n", &[("slow", 9)], LEASE).await),
        ["s3"]
    );
    assert_eq!(
        keys(claim_lanes(&store, "n", &[("other", 9)], LEASE).await),
        ["o"]
    );
}

/// Liveness: a look names every lane in which something can be claimed, and when; what is held, done or behind is not it.
pub async fn a_look_names_the_lanes_that_have_something_to_do(store: Subject, dial: Dial) {
    assert_eq!(due(&store).await, []);
    let behind = |lane: &str, key: &str| NewEffect {
        order: Some(serial("in_1")),
        ..in_lane(lane, key, 0)
    };
    let effects = vec![
        in_lane("b", "b9", 9),
        in_lane("b", "b4", 4),
        in_lane("a", "a", 7),
        in_lane("Ä", "umlaut", 1),
        behind("first", "first"),
        behind("second", "second"),
    ];
    accept_effects(&store, "k", effects).await;
    let row = |lane: &str, seconds| (lane.to_owned(), at(seconds));
    let expected = vec![row("a", 7), row("b", 4), row("first", 0), row("Ä", 1)];
    assert_eq!(lanes_due(&store).await, expected);
    dial.set(at(4));
    for effect in claim(&store).await {
        done(&store, &effect, START).await;
        let end = match &*effect.lane {
            "b" => ended(BROKEN, Next::At(Span::from_secs(60))),
            "Ä" => continue,
            _ => SETTLED,
        };
        done(&store, &effect, end).await;
    }
    let expected = vec![row("a", 7), row("b", 9), row("second", 0)];
    assert_eq!(lanes_due(&store).await, expected);
}

/// Looks go on where the last one stopped, also when there are more lanes than one look names.
pub async fn a_look_goes_on_after_a_lane(store: Subject, _dial: Dial) {
    let many = LANES_PER_LOOK_MAX + 100;
    let effect = |n: u32| in_lane(&format!("lane-{n:05}"), &n.to_string(), 0);
    for from in (0..many).step_by(100) {
        let effects = (from..from + 100).map(effect).collect();
        let new = calling_for(&format!("k{from}"), effects);
        accept_one(&store, "a", at(0), new).await;
    }
    let lanes = due(&store).await;
    assert_eq!(lanes.len(), many as usize);
    assert!(lanes.windows(2).all(|two| two[0].lane < two[1].lane));
    if store.shards() == 1 {
        let look = store.due(0, None).await.expect("the store looks");
        assert_eq!(look.len(), LANES_PER_LOOK_MAX as usize);
        let look = store.due(0, Some("lane-00099")).await;
        let first = look.expect("the store looks").into_iter().next();
        let lane = "lane-00100".into();
        assert_eq!(first, Some(LaneDue { lane, at: at(0) }));
    }
}

/// F3: one lane's backlog is in nobody else's way.
pub async fn a_full_lane_hides_no_other(store: Subject, _dial: Dial) {
    let effects = (0..300).map(|n| in_lane("full", &n.to_string(), 0));
    let events = vec![
        calling_for("k1", effects.collect()),
        calling_for("k2", vec![in_lane("small", "x", 0)]),
    ];
    let accepted = store.accept(arrival("a", at(0), events)).await;
    accepted.expect("the store accepts");
    let claims = claim_lanes(&store, "n", &[("full", 10), ("small", 10)], LEASE).await;
    let from = |lane: &str| {
        let claims = claims.iter();
        claims
            .filter(|claimed| &*claimed.effect.lane == lane)
            .count()
    };
    assert_eq!((from("full"), from("small")), (10, 1));
}

/// Whoever claims hears when the lane has something again, so that nobody has to look.
pub async fn a_claim_says_when_the_next_is_due(store: Subject, _dial: Dial) {
    let later = in_lane("lane", "later", 50);
    let effects = vec![in_lane("lane", "now", 0), later];
    let accepted = store
        .accept(arrival("a", at(0), vec![calling_for("k", effects)]))
        .await;
    accepted.expect("the store accepts");
    let ask = |room| ClaimAsk {
        shard: lane_shard("lane", store.shards()),
        node: "n".into(),
        lease: LEASE,
        lanes: ["lane", "empty"]
            .map(|lane| LaneRoom {
                lane: lane.into(),
                room,
            })
            .to_vec(),
    };
    for claimed in [1, 0] {
        let claims = store.claim(ask(10)).await.expect("the store claims");
        assert_eq!(claims.claimed.len(), claimed);
        assert_eq!(claims.next, [Some(at(50)), None]);
    }
}

/// C3: one node alone looks after everything, and after it has left the next one does.
pub async fn a_lone_node_looks_after_every_shard(store: Subject, _dial: Dial) {
    let all: Vec<u16> = (0..store.shards()).collect();
    for node in ["one", "two"] {
        let beat = Beat {
            node: node.into(),
            lease: LEASE,
            let_go: Vec::new(),
            stay: Stay::Stays,
        };
        for _ in 0..2 {
            let mut beaten = store.beat(beat.clone()).await.expect("the store hears");
            beaten.held.sort_unstable();
            assert_eq!((beaten.nodes, beaten.held), (1, all.clone()), "{node}");
        }
        store.leave(node).await.expect("the store hears");
    }
}

/// Whoever plans has a clock of their own, which may be hours off. What is due, and when, goes by the store's.
pub async fn a_clock_that_is_off_delays_nothing(store: Subject, dial: Dial) {
    dial.set(at(10));
    for (source, hours) in [("ahead", 2), ("behind", -2)] {
        let theirs = at(10) + Span::from_hours(hours);
        let named = |name: &str| planned(name, source, Repeat::Once);
        let effects = vec![
            named("plain"),
            NewEffect {
                wait: Span::from_secs(5),
                ..named("later")
            },
        ];
        // Those that others can make wait are planned elsewhere than those that wait for nothing.
        let gated = vec![
            NewEffect {
                order: Some(serial(source)),
                ..named("ordered")
            },
            NewEffect {
                after: vec![0],
                wait: Span::from_secs(5),
                ..named("after")
            },
        ];
        for (key, effects) in [("free", effects), ("gated", gated)] {
            let event = NewEvent {
                effects,
                ..event(source, key, "{}")
            };
            let receipt = accept_one(&store, source, theirs, event).await;
            let planned = detail(&store, receipt.event).await.effects;
            let due = planned.iter().map(|effect| effect.record.next_attempt_at);
            assert_eq!(due.collect::<Vec<_>>(), [at(10), at(15)], "{source} {key}");
        }
    }
    let mut names: Vec<String> = claim(&store)
        .await
        .iter()
        .map(|effect| effect.name.to_string())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["ordered", "ordered", "plain", "plain"]);
}
