//! Shards move between nodes, and nobody's lane stands still for it; requests under way outlast whatever else their node waits for.

use std::time::Duration;

use hapax_store::nouns::lane_shard;
use hapax_store::postgres::SHARDS;
use serde_json::{Value, json};

use super::cluster::{Cluster, lane_beside, lane_in, node_of};
use super::judge::wait_until_all_has_ended;
use super::scene::{Scene, effect, ended, on_database, on_postgres};
use crate::support::clock::{TOO_LONG, tick, until};
use crate::support::proxy::{Proxy, Wire};
use crate::support::server::Server;
use crate::support::world::{Act, World};

/// What every round of a node asks first: whether a claim has run out in one of its shards.
const ROUND: &str = "unnest($1::int2[]) AS k (shard)";
/// The short lease, and a second more. Less than the 15 s that a node that stops waits for what is under way.
const BEYOND_A_LEASE: Duration = Duration::from_secs(3 + 1);
/// Two of them, and a second more.
const BEYOND_TWO_LEASES: Duration = Duration::from_secs(2 * 3 + 1);
/// How often the ledger is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The lower half of the shards. What a node that was alone gives away first is above, as long as nothing there is busy.
const LOWER_HALF: u16 = 32;

/// An effect as a server shows it.
#[track_caller]
fn effect_of(server: &Server, event: &str) -> Value {
    let event = server.get(&format!("/api/v1/event/{event}")).json();
    let id = event["effects"][0]["id"].as_str().expect("an id");
    server.get(&format!("/api/v1/effect/{id}")).json()
}

/// Promise 7, G6: another node joins while a target hangs. The lanes that share its shard go on.
#[test]
fn a_target_that_hangs_holds_up_no_lane_of_its_shard_while_shards_move() {
    on_database(|shelf| {
        let (world, hanging) = (World::well(), World::new(|_| Act::Hang));
        let hangs = lane_in("hangs", |shard| shard >= LOWER_HALF);
        let beside = lane_beside("beside", &hangs);
        let url = shelf.url();
        let mut cluster = Cluster::begin(&[&url, &url], |path| {
            let hold = "types = \"hold\"\ntimeout = \"5m\"";
            vec![
                effect(&hangs, &hanging.url(path), hold),
                effect(&beside, &world.url(path), "types = \"t\""),
            ]
        });
        cluster.send(0, "evt_hold", "hold");
        hanging.wait_for("the one that hangs", |seen| seen.len() == 1);
        cluster.join();
        // The first has let go of some, and the rest is on its way, too.
        until(TOO_LONG, "the other node has shards", || {
            (shelf.shares().len() == 2).then_some(())
        });
        for (node, name) in [(0, "evt_0"), (1, "evt_1")] {
            cluster.send(node, name, "t");
            world.wait_for(name, |seen| {
                seen.iter().any(|seen| seen.key().ends_with(name))
            });
        }
        shelf.wait_until_shared_out(2);
        cluster.send(1, "evt_2", "t");
        let seen = world.wait_for("all three", |seen| seen.len() == 3);
        assert!(seen.iter().all(|seen| node_of(seen) == 0), "{seen:?}");
        assert_eq!(hanging.seen().len(), 1, "it was not sent again");
    });
}

/// C4, D3, D4: a node that stops keeps what is under way for longer than a lease, and gives everything else to another meanwhile.
#[test]
fn a_node_that_stops_loses_no_request_and_holds_up_no_lane() {
    on_database(|shelf| {
        let (world, slow) = (World::well(), World::new(|_| Act::Held));
        // Both stay with the node that was there first.
        let slows = lane_in("slow", |shard| shard < LOWER_HALF);
        let busy = lane_shard(&slows, SHARDS);
        let other = lane_in("other", |shard| shard < LOWER_HALF && shard != busy);
        let url = shelf.url();
        let mut cluster = Cluster::begin(&[&url, &url], |path| {
            let once = "types = \"hold\"\nrepeat = \"once\"\ntimeout = \"5m\"";
            vec![
                effect(&slows, &slow.url(path), once),
                effect(&other, &world.url(path), "types = \"t\""),
            ]
        });
        cluster.join();
        shelf.wait_until_shared_out(2);
        let held = cluster.send(1, "evt_held", "hold");
        slow.wait_for("the one that takes its time", |seen| seen.len() == 1);
        let stopping = cluster.nodes.remove(0);
        stopping.signal("TERM");
        let start = tick();
        while tick() - start < BEYOND_A_LEASE {
            let silent = cluster.nodes[0].connect().is_silent_for(LOOK_EVERY);
            assert!(silent, "it speaks only when it is asked");
            let effect = effect_of(&cluster.nodes[0], &held);
            assert_eq!(effect["state"], "claimed", "{effect:#}");
        }
        cluster.send(0, "evt_1", "t");
        let seen = world.wait_for("the other lane", |seen| seen.len() == 1);
        assert_eq!(node_of(&seen[0]), 1);
        slow.release(1);
        assert!(stopping.wait().success());
        let effect = effect_of(&cluster.nodes[0], &held);
        assert_eq!(
            (&effect["state"], ended(&effect).len()),
            (&json!("done"), 1)
        );
        assert_eq!(slow.seen().len(), 1);
    });
}

/// C4, D3, D4: a node whose look at its shards takes longer than its lease loses none of its requests.
#[test]
fn a_request_outlasts_a_round_that_hangs() {
    on_postgres(|url| {
        let (proxy, url) = Proxy::to_database(url);
        let world = World::new(|_| Act::Held);
        let once = "repeat = \"once\"\ntimeout = \"5m\"";
        let scene = Scene::short(&url, &[effect("x", &world.url("/"), once)]);
        let event = scene.send("evt_1", "t", &json!({}));
        world.wait_for("the request", |seen| seen.len() == 1);
        proxy.set(Wire::HeldAtAskOf(ROUND.to_owned()));
        proxy.wait_until_held();
        let start = tick();
        while tick() - start < BEYOND_TWO_LEASES {
            let silent = scene.server.connect().is_silent_for(LOOK_EVERY);
            assert!(silent, "it speaks only when it is asked");
            let effect = scene.effect(&event, "x");
            assert_eq!(effect["state"], "claimed", "{effect:#}");
        }
        world.release(1);
        let done = scene.wait_for_state(&event, "x", "done");
        assert_eq!((ended(&done).len(), world.seen().len()), (1, 1));
    });
}

/// What is accepted on one node wakes the one that looks after its lane: that one's own looks, once a second, stand still meanwhile.
#[test]
fn a_node_is_woken_for_what_another_has_accepted() {
    on_database(|shelf| {
        let world = World::well();
        let lane = lane_in("lane", |shard| shard >= LOWER_HALF);
        let url = shelf.url();
        let (proxy, through) = Proxy::to_database(&url);
        let mut cluster = Cluster::begin(&[&url, &through], |path| {
            vec![effect(&lane, &world.url(path), "")]
        });
        cluster.join();
        shelf.wait_until_shared_out(2);
        let first = cluster.send(0, "evt_first", "t");
        let seen = world.wait_for("the first", |seen| seen.len() == 1);
        assert_eq!(node_of(&seen[0]), 1, "the other node has the lane");
        until(TOO_LONG, "it is done", || {
            let effect = effect_of(&cluster.nodes[0], &first);
            (effect["state"] == "done").then_some(())
        });
        wait_until_all_has_ended(&cluster.nodes[0], || world.seen().len());
        proxy.set(Wire::HeldAtAskOf(ROUND.to_owned()));
        proxy.wait_until_held();
        // Hints may get lost, the first ones before anybody listens.
        let mut sent = 0;
        until(TOO_LONG, "a hint is heard", || {
            sent += 1;
            cluster.send(0, &format!("evt_{sent}"), "t");
            (world.seen().len() > 1).then_some(())
        });
        assert!(world.seen().iter().all(|seen| node_of(seen) == 1));
    });
}
