//! Servers whose database is behind PgBouncer in transaction mode: they share sessions, and cannot wake each other.

use super::cluster::{Cluster, lane_in, node_of, send};
use super::judge::{judge, ledger, wait_until_all_has_ended};
use super::scene::{effect, on_database};
use crate::support::world::{Act, Seen, World};

/// Sessions with the server for both nodes, each of which would have some twenty of its own.
const SESSIONS: usize = 6;
const EVENTS: usize = 10;
const HALF: u16 = 32;

/// B1, C1, D1-D6, liveness: what one node accepts the other sends, and what a killed node had under way, the other sends again.
#[test]
fn two_nodes_behind_a_pooler_and_one_is_killed() {
    on_database(|shelf| {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(pooler) = shelf.pooler(folder.path(), SESSIONS) else {
            return;
        };
        let world = World::well();
        let holding = World::new(|seen| match seen.before {
            0 => Act::Hang,
            _ => Act::Answer(200),
        });
        // Of each class a lane for either node: the second gets the upper half.
        let lanes = ["keyed", "once"].map(|repeat| {
            let low = lane_in(repeat, |shard| shard < HALF);
            let high = lane_in(repeat, |shard| shard >= HALF);
            (repeat, [low, high])
        });
        let url = pooler.url();
        let mut cluster = Cluster::start(&[&url, &url], |path| {
            let lanes = lanes.iter().flat_map(|(repeat, lanes)| {
                let more = format!("types = \"t\"\nrepeat = \"{repeat}\"");
                lanes
                    .each_ref()
                    .map(|lane| effect(lane, &world.url(path), &more))
            });
            let hold = "types = \"hold\"\ntimeout = \"5m\"\nretry = [\"0s\", \"0s\"]";
            lanes
                .chain([effect("held", &holding.url(path), hold)])
                .collect()
        });
        shelf.wait_until_shared_out(2);
        for n in 0..EVENTS {
            cluster.send(0, &format!("evt_0_{n}"), "t");
        }
        let of = |seen: &[Seen], node| seen.iter().any(|seen| node_of(seen) == node);
        world.wait_for("both nodes", |seen| of(seen, 0) && of(seen, 1));
        wait_until_all_has_ended(&cluster.nodes[0], || world.seen().len());
        cluster.send(1, "evt_held", "hold");
        let held = holding.wait_for("the one that is held", |seen| seen.len() == 1);
        cluster.nodes.remove(node_of(&held[0])).kill();
        let left = &cluster.nodes[0];
        for n in 0..EVENTS {
            send(left, &format!("evt_1_{n}"), "t");
        }
        let all = 2 * EVENTS * lanes.len() * 2;
        world.wait_for("all of them", |seen| seen.len() >= all);
        holding.wait_for("what was under way again", |seen| seen.len() == 2);
        let requests = || world.seen().len() + holding.seen().len();
        wait_until_all_has_ended(left, requests);
        let seen = [world.seen(), holding.seen()].concat();
        let states = judge(&seen, &ledger(left));
        assert_eq!(states, [("done".to_owned(), all + 1)].into(), "{states:?}");
        assert_eq!(world.seen().len(), all, "each was sent once");
    });
}
