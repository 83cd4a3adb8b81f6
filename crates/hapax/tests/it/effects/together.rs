//! What a lane may do holds over all nodes: its rate, and its breaker.

use std::time::Duration;

use super::cluster::{Cluster, node_of};
use super::scene::{effect, on_database};
use crate::support::world::{Act, Seen, World};

const NODES: usize = 3;
/// Requests a second.
const RATE: usize = 10;
/// Two seconds' worth beyond what goes at once, for each node: without the others it would be done long before all are.
const EVENTS_PER_NODE: usize = 20;
/// So much later than it was sent a request may be seen: the one after it then seems to come too soon.
const DELAY_MAX: Duration = Duration::from_millis(1_500);
/// Requests that a target that only fails gets at most before it is left alone: five, and those that are under way then.
const AT_FIRST_MAX: usize = 5 + CAP - 1;
const CAP: usize = 3;

/// Sends to all nodes in turn.
fn send_to_all(cluster: &Cluster, prefix: &str, events: usize) {
    for n in 0..events {
        for node in 0..NODES {
            cluster.send(node, &format!("{prefix}_{node}_{n}"), "t");
        }
    }
}

/// A rate holds over all nodes that accept for its lane: in no window come more than were saved up before it and earned in it.
#[test]
fn a_rate_holds_over_all_nodes() {
    on_database(|shelf| {
        let world = World::well();
        let url = shelf.url();
        let rate = format!("rate = {RATE}");
        let cluster = Cluster::start(&[&*url; NODES], |path| {
            vec![effect("slow", &world.url(path), &rate)]
        });
        // A lane that moves begins anew with a second's worth.
        shelf.wait_until_shared_out(NODES);
        send_to_all(&cluster, "evt", EVENTS_PER_NODE);
        let all = NODES * EVENTS_PER_NODE;
        let seen = world.wait_for("all of them", |seen| seen.len() == all);
        for (first, from) in seen.iter().enumerate() {
            for (last, to) in seen.iter().enumerate().skip(first) {
                let window = to.at.saturating_duration_since(from.at) + DELAY_MAX;
                let earned = RATE as f64 * window.as_secs_f64();
                let count = last - first + 1;
                assert!(
                    count as f64 <= RATE as f64 + earned,
                    "{count} in {window:?}"
                );
            }
        }
        assert_one_node(&seen);
    });
}

/// A target that is down is tried by the node that has its lane, with one request at a time, whoever accepts events for it.
#[test]
fn a_breaker_holds_over_all_nodes() {
    on_database(|shelf| {
        let world = World::new(|seen| match seen.nth {
            nth if nth < AT_FIRST_MAX => Act::Answer(500),
            _ => Act::HeldThen(500),
        });
        let url = shelf.url();
        let more =
            format!("concurrency = {CAP}\nretry = [\"0s\", \"0s\", \"0s\"]\ntimeout = \"5m\"");
        let cluster = Cluster::start(&[&*url; NODES], |path| {
            vec![effect("down", &world.url(path), &more)]
        });
        shelf.wait_until_shared_out(NODES);
        send_to_all(&cluster, "evt", 2 * CAP);
        for trial in 1..=2 {
            let so_far = AT_FIRST_MAX + trial;
            world.wait_for("the next trial", |seen| seen.len() >= so_far);
            // While it is under way, no node has another, whatever it accepts.
            send_to_all(&cluster, &format!("more_{trial}"), 2);
            assert_eq!(world.seen().len(), so_far, "one at a time");
            world.release(1);
        }
        let seen = world.seen();
        let trials = &seen[AT_FIRST_MAX..];
        assert!(trials.iter().all(|seen| seen.at_once == 1), "{trials:?}");
        assert_one_node(&seen);
    });
}

#[track_caller]
fn assert_one_node(seen: &[Seen]) {
    let node = node_of(&seen[0]);
    assert!(seen.iter().all(|seen| node_of(seen) == node), "{seen:?}");
}
