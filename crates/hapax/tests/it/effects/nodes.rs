//! Several servers on one database: what one accepts another sends, caps hold over all of them, and a dead one is missed by nobody.

use std::net::SocketAddr;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::cluster::{lane_beside, node_of};
use super::judge::{judge, ledger, wait_until_all_has_ended};
use super::scene::{effect, ended, fact, on_database, site};
use crate::support::acks::{Acks, Told};
use crate::support::client::Connection;
use crate::support::lots::Lots;
use crate::support::sender::Sender;
use crate::support::server::Server;
use crate::support::site::Site;
use crate::support::world::{Act, Seen, World};

const NODES: usize = 3;
const EVENTS: usize = 40;
/// Requests under way per lane, over all nodes.
const CAP: usize = 3;
/// As long as a target may take to answer.
const ANSWER_STEPS: usize = 400_000;
/// What a killed node had under way is started again so soon after its lease has ended: with the next beat of another node.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(1);
/// What comes with that: the beat that is given the shard, the look at it, the rescue, the claim and the start. Each is a commit or two, on
/// a machine that is under load from this test and others.
const ALLOWANCE: Duration = Duration::from_secs(2);
/// The event that calls for the effect whose first request is never answered.
const HELD: &str = "evt_held";

const LANES: [(&str, &str); 5] = [
    ("keyed", "repeat = \"keyed\""),
    ("converges", "repeat = \"converges\""),
    ("once", "repeat = \"once\""),
    ("behind", "after = \"keyed\""),
    ("serial", "order = { serial = true }"),
];

/// Takes its time, so that requests meet.
fn slow(seen: &Seen) -> Act {
    Lots::new(seen.key().len() as u64).linger(ANSWER_STEPS);
    Act::Answer(200)
}

/// Never answers the first request for a key.
fn hang_at_first(seen: &Seen) -> Act {
    match seen.before {
        0 => Act::Hang,
        _ => Act::Answer(200),
    }
}

/// The lane of the effect that is held: it shares its shard with another, which goes on.
fn held_lane() -> String {
    lane_beside("held", LANES[0].0)
}

/// The effects as one node knows them: their paths say which node has sent a request.
fn effects(node: usize, worlds: &[(&str, &str, World)], holding: &World) -> Vec<String> {
    let path = format!("/node-{node}");
    let retry = "retry = [\"0s\", \"0s\", \"0s\"]";
    let lanes = worlds.iter().map(|(name, more, world)| {
        let more = format!("types = \"t\"\n{more}\nconcurrency = {CAP}\n{retry}");
        effect(name, &world.url(&path), &more)
    });
    let more = format!("types = \"hold\"\ntimeout = \"5m\"\n{retry}");
    let held = effect(&held_lane(), &holding.url(&path), &more);
    lanes.chain([held]).collect()
}

/// C1, C3, D1-D6, G6, liveness: three nodes, one of which is killed under load, while a request of its own is with a target.
#[test]
fn three_nodes_and_one_is_killed() {
    on_database(|shelf| {
        let url = &shelf.url();
        let worlds = LANES.map(|(name, more)| (name, more, World::new(slow)));
        let holding = World::new(hang_at_first);
        let entity = "entity = \"data.object.entity\"";
        let sites: Vec<Site> = (0..NODES)
            .map(|node| site(url, &effects(node, &worlds, &holding), entity))
            .collect();
        let mut nodes: Vec<Server> = sites.iter().map(Site::start).collect();
        let addresses: Vec<SocketAddr> = nodes.iter().map(Server::address).collect();
        let mut acks = Acks::default();
        load(&addresses, 0..EVENTS / 2, &mut acks, || {});
        hold(&nodes[0], &mut acks);
        let held = holding.wait_for("the one that it holds", |seen| seen.len() == 1);
        let victim = nodes.remove(node_of(&held[0]));
        let (_, _, world) = &worlds[0];
        let before = world.seen().len();
        let mut lease_end = 0;
        load(&addresses, EVENTS / 2..EVENTS, &mut acks, || {
            world.wait_for("load", |seen| seen.len() > before + EVENTS / 4);
            assert_eq!(holding.seen().len(), 1, "sent again before its node ended");
            victim.kill();
            // The dead extend nothing: this is the last word.
            lease_end = shelf.held_until(&held_lane());
            holding.wait_for("what was under way again", |seen| seen.len() == 2);
        });
        let [node, other] = &nodes[..] else {
            panic!("two are left");
        };
        let requests = || worlds.iter().map(|(.., world)| world.seen().len()).sum();
        wait_until_all_has_ended(node, requests);
        acks.check(node);
        acks.check(other);
        assert_eq!(acks.len(), NODES * EVENTS + 1);
        let ledger = ledger(node);
        let held = &ledger[&format!("{}:{HELD}", held_lane())];
        assert_taken_over(held, &holding.seen());
        assert_taken_over_in_time(held, lease_end);
        let mut seen: Vec<Seen> = worlds.iter().flat_map(|(.., world)| world.seen()).collect();
        seen.extend(holding.seen());
        let states = judge(&seen, &ledger);
        let open: usize = ["pending", "claimed", "dead"]
            .iter()
            .filter_map(|state| states.get(*state))
            .sum();
        assert_eq!(open, 0, "{states:?}");
        for (name, _, world) in &worlds {
            assert!(
                world.at_once_max() <= CAP,
                "{name}: {}",
                world.at_once_max()
            );
        }
        assert!(world.at_once_max() > 1, "the load was no load");
    });
}

/// Sends the event whose request is held, to a node that need not be the one that sends it on.
fn hold(node: &Server, acks: &mut Acks) {
    let body = fact(HELD, "hold", &json!({ "entity": "e_held" }));
    let answer = node.ask(&Sender::to("billing").request_with(&body));
    assert!(acks.hear(HELD, &answer), "it was refused");
}

/// Liveness: by the database's clock, the second attempt has started within a beat of the end of the first one's lease, and not before it.
#[track_caller]
fn assert_taken_over_in_time(held: &Value, lease_end: i64) {
    let started = ended(held)[1]["startedAt"].as_str().expect("a time");
    let started: jiff::Timestamp = started.parse().expect("a time");
    let after = started.as_microsecond() - lease_end;
    let after = u64::try_from(after).expect("nobody has two leases");
    let after = Duration::from_micros(after);
    assert!(after <= TAKEN_OVER_WITHIN + ALLOWANCE, "{after:?}");
}

/// C1, D5: what the killed node had under way was lost, and done by another, under a higher fence and the same key.
#[track_caller]
fn assert_taken_over(held: &Value, seen: &[Seen]) {
    let [lost, done] = &ended(held)[..] else {
        panic!("two attempts: {held:#}");
    };
    assert_eq!(lost["outcome"], "lost: lost_lease", "{held:#}");
    assert_eq!(done["outcome"], "answered 200", "{held:#}");
    assert_ne!(lost["node"], done["node"], "{held:#}");
    assert!(lost["fence"].as_u64() < done["fence"].as_u64(), "{held:#}");
    let [first, second] = seen else {
        panic!("two requests: {seen:?}");
    };
    assert_ne!(node_of(first), node_of(second));
    assert_eq!(first.key(), second.key());
}

/// A sender for each node, at the same time. What they were told is kept.
fn load(
    addresses: &[SocketAddr],
    numbers: Range<usize>,
    acks: &mut Acks,
    meanwhile: impl FnOnce(),
) {
    thread::scope(|scope| {
        let senders: Vec<_> = (0..NODES)
            .map(|n| {
                let mut at = addresses.to_vec();
                at.rotate_left(n);
                let numbers = numbers.clone();
                scope.spawn(move || send(&at, &format!("n{n}"), numbers))
            })
            .collect();
        meanwhile();
        for heard in senders {
            for (name, id) in heard.join().expect("a sender never fails") {
                acks.add(&name, id);
            }
        }
    });
}

/// Sends to the first of these nodes, and as a sender would, to the next one what that does not answer.
fn send(nodes: &[SocketAddr], prefix: &str, numbers: Range<usize>) -> Vec<(String, String)> {
    let sender = Sender::to("billing");
    let mut nodes = nodes.iter();
    let mut next = || Connection::open(*nodes.next().expect("a node is left"));
    let mut connection = next();
    let mut heard = Vec::new();
    for n in numbers {
        let name = format!("evt_{prefix}_{n}");
        let body = fact(&name, "t", &json!({ "entity": format!("e_{}", n % 5) }));
        let answer = loop {
            let asked = connection.and_then(|mut open| {
                let answer = open.ask(&sender.request_with(&body))?;
                Ok((open, answer))
            });
            match asked {
                Ok((open, answer)) => {
                    connection = Ok(open);
                    break answer;
                }
                Err(_) => connection = next(),
            }
        };
        let Told::Acknowledged { id, .. } = Told::read(&answer) else {
            panic!("{name} was refused");
        };
        heard.push((name, id));
    }
    heard
}
