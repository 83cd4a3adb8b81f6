//! Several servers on one database: what one accepts another sends, caps hold over all of them, and a dead one is missed by nobody.

use std::net::SocketAddr;
use std::thread;

use serde_json::json;

use super::judge::{judge, ledger, wait_until_all_has_ended};
use super::scene::{effect, fact, on_postgres, site};
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

/// C3, D1-D6, G6, liveness: three nodes, one of which is killed under load.
#[test]
fn three_nodes_and_one_is_killed() {
    on_postgres(|url| {
        let worlds = LANES.map(|(name, more)| (name, more, World::new(slow)));
        let effects = worlds.each_ref().map(|(name, more, world)| {
            let more = format!("{more}\nconcurrency = {CAP}\nretry = [\"0s\", \"0s\", \"0s\"]");
            effect(name, &world.url("/"), &more)
        });
        let entity = "entity = \"data.object.entity\"";
        let sites: Vec<Site> = (0..NODES).map(|_| site(url, &effects, entity)).collect();
        let mut nodes: Vec<Server> = sites.iter().map(Site::start).collect();
        let mut addresses: Vec<SocketAddr> = nodes.iter().map(Server::address).collect();
        let victim = nodes.remove(0);
        let mut acks = Acks::default();
        thread::scope(|scope| {
            let senders: Vec<_> = (0..NODES)
                .map(|n| {
                    let at = addresses.clone();
                    addresses.rotate_left(1);
                    scope.spawn(move || send(&at, &format!("n{n}")))
                })
                .collect();
            let (_, _, world) = &worlds[0];
            world.wait_for("load", |seen| seen.len() > EVENTS / 2);
            victim.kill();
            for heard in senders {
                for (name, id) in heard.join().expect("a sender never fails") {
                    acks.add(&name, id);
                }
            }
        });
        let [node, other] = &nodes[..] else {
            panic!("two are left");
        };
        let requests = || worlds.iter().map(|(.., world)| world.seen().len()).sum();
        wait_until_all_has_ended(node, requests);
        acks.check(node);
        acks.check(other);
        assert_eq!(acks.len(), NODES * EVENTS);
        let seen: Vec<Seen> = worlds.iter().flat_map(|(.., world)| world.seen()).collect();
        let states = judge(&seen, &ledger(node));
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
        assert!(worlds[0].2.at_once_max() > 1, "the load was no load");
    });
}

/// Sends to the first of these nodes, and as a sender would, to the next one what that does not answer.
fn send(nodes: &[SocketAddr], prefix: &str) -> Vec<(String, String)> {
    let sender = Sender::to("billing");
    let mut nodes = nodes.iter();
    let mut next = || Connection::open(*nodes.next().expect("a node is left"));
    let mut connection = next();
    let mut heard = Vec::new();
    for n in 0..EVENTS {
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
