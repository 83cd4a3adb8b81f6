//! `kill -9` in mid-send, again and again: whatever the world received is in the ledger, `once` is once, and all comes to an end.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use serde_json::{Value, json};

use super::judge::{judge, ledger, wait_until_all_has_ended};
use super::scene::{SQLITE, effect, fact, on_postgres, site};
use crate::support::acks::{Acks, Told};
use crate::support::client::Connection;
use crate::support::lots::Lots;
use crate::support::sender::Sender;
use crate::support::server::Server;
use crate::support::world::{Act, Seen, World};

const CYCLES: usize = 20;
/// Senders at a time.
const SENDERS: usize = 3;
/// Events of one sender per cycle, if the server lives that long.
const EVENTS_MAX: usize = 8;
/// As long as a few requests take.
const REQUEST_STEPS: usize = 2_000_000;
/// More than can be held at any time.
const ALL: usize = 1_000_000;

/// C1, C2, C3, D1-D6, F1, liveness: on SQLite, where a restart voids older leases.
#[test]
fn sqlite_survives_kill_9_in_mid_send() {
    survives(SQLITE, 3);
}

/// The same on PostgreSQL, where a restarted node waits for the lease of its former self.
#[test]
fn postgres_survives_kill_9_in_mid_send() {
    on_postgres(|url| survives(url, 4));
}

/// Answers at once, or when the test lets it, or never: by key and count, so that a run can be run again.
fn manners(seen: &Seen) -> Act {
    let letters = seen.key().bytes().map(u64::from);
    let seed = letters.fold(seen.before as u64, |sum, letter| {
        sum.wrapping_mul(31).wrapping_add(letter)
    });
    match Lots::new(seed).below(8) {
        0..=1 => Act::Answer(200),
        2..=5 => Act::Held,
        6 => Act::HeldThenHangUp,
        _ => Act::HangUp,
    }
}

fn effects(world: &World) -> [String; 6] {
    let retry = format!("retry = [{}]", ["\"0s\""; 8].join(", "));
    let shared = "key = \"{data.object.shared}\"";
    let serial = "order = { serial = true }";
    let behind = "after = \"keyed\"\nrepeat = \"once\"";
    [
        ("keyed", ""),
        ("converges", "repeat = \"converges\""),
        ("once", "repeat = \"once\""),
        ("shared", shared),
        ("serial", serial),
        ("behind", behind),
    ]
    .map(|(name, more)| effect(name, &world.url("/"), &format!("{more}\n{retry}")))
}

fn survives(store: &str, seed: u64) {
    let world = World::new(manners);
    let entity = "entity = \"data.object.entity\"";
    let site = site(store, &effects(&world), entity);
    let mut lots = Lots::new(seed);
    let mut acks = Acks::default();
    for cycle in 0..CYCLES {
        load_and_kill(site.start(), cycle, &world, &mut acks, &mut lots);
    }
    let server = site.start();
    world.release(ALL);
    wait_until_all_has_ended(&server, || world.seen().len());
    acks.check(&server);
    assert!(acks.len() > CYCLES, "the load was no load: {}", acks.len());
    let states = judge(&world.seen(), &ledger(&server));
    // What the faults are for: most came through, and the world's silence left its mark.
    assert!(states["done"] > states["uncertain"], "{states:?}");
    assert_in_turn(&world.seen());
}

/// Sends new events on several connections, and kills the server at a random moment while requests are with the world.
fn load_and_kill(server: Server, cycle: usize, world: &World, acks: &mut Acks, lots: &mut Lots) {
    let kill_at = 1 + lots.below(SENDERS * EVENTS_MAX);
    let before = world.seen().len();
    let answers = AtomicUsize::new(0);
    let (now, moment) = channel();
    let address = server.address();
    let heard: Vec<(String, Told)> = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (now, answers) = (now.clone(), &answers);
                let mut lots = Lots::new(lots.draw());
                let answered = move || {
                    world.release(lots.below(4));
                    if answers.fetch_add(1, Ordering::Relaxed) + 1 == kill_at {
                        let _ = now.send(());
                    }
                };
                scope.spawn(move || send(address, cycle * SENDERS + sender, answered))
            })
            .collect();
        drop(now);
        // If every sender came to its end first, that is a moment too.
        let _ = moment.recv();
        world.wait_for("a request of this server", |seen| seen.len() > before);
        lots.linger(REQUEST_STEPS);
        server.kill();
        senders
            .into_iter()
            .flat_map(|sender| sender.join().expect("a sender never fails"))
            .collect()
    });
    for (name, told) in heard {
        if let Told::Acknowledged { id, .. } = told {
            acks.add(&name, id);
        }
    }
}

/// One sender: until the connection breaks, or all is sent.
fn send(server: SocketAddr, sender: usize, mut answered: impl FnMut()) -> Vec<(String, Told)> {
    let billing = Sender::to("billing");
    let mut heard = Vec::new();
    let Ok(mut connection) = Connection::open(server) else {
        return heard;
    };
    for n in 0..EVENTS_MAX {
        let number = sender * EVENTS_MAX + n;
        let name = format!("evt_{number}");
        let object = json!({
            "number": number,
            // Only this sender's, so that it is known in which order they were accepted.
            "entity": format!("e_{}_{}", sender % SENDERS, n % 2),
            "shared": format!("s_{}", number / 2),
        });
        let body = fact(&name, "invoice.paid", &object);
        let Ok(answer) = connection.ask(&billing.request_with(&body)) else {
            return heard;
        };
        heard.push((name, Told::read(&answer)));
        answered();
    }
    heard
}

/// F1: of one entity, the world saw no request of an earlier event after one of a later event.
fn assert_in_turn(seen: &[Seen]) {
    let mut latest: HashMap<String, u64> = HashMap::new();
    let serial = |seen: &&Seen| seen.headers["hapax-effect"] == "serial";
    for one in seen.iter().filter(serial) {
        let body: Value = serde_json::from_slice(&one.body).expect("JSON");
        let object = &body["data"]["object"];
        let number = object["number"].as_u64().expect("a number");
        let before = latest.insert(object["entity"].to_string(), number);
        assert!(before <= Some(number), "{number} was sent after {before:?}");
    }
}
