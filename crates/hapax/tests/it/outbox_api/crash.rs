//! `kill -9` while the deliveries of a message to many endpoints are made.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use serde_json::{Value, json};

use super::scene::{Scene, message, on_each_store};
use crate::support::client::Connection;
use crate::support::clock::{TOO_LONG, until};
use crate::support::lots::Lots;
use crate::support::server::TOKEN;
use crate::support::world::World;

/// More than one step of a fan-out: the first is made with the message, the second follows.
const ENDPOINTS: usize = 600;
/// Messages, each of which sees the server die.
const MESSAGES: u32 = 2;
/// Connections that make endpoints.
const MAKERS: usize = 8;
/// As long as a fan-out takes, more or less.
const FAN_OUT_STEPS: usize = 4_000_000;

/// G1: exactly one delivery row per endpoint, whatever dies; and all of them got through, by the consumers' own log.
#[test]
fn a_crash_during_a_fan_out_leaves_one_delivery_for_each_endpoint() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        make_endpoints(&scene, &world);
        let mut lots = Lots::new(5);
        let mut scene = scene;
        let mut published = Vec::new();
        for number in 0..MESSAGES {
            published.push(scene.publish("acme", &message(number)));
            lots.linger(FAN_OUT_STEPS);
            scene = scene.restarted();
        }
        // What was under way in a crash may come twice, so this is a part of all that comes, and most of it.
        world.wait_for("most of it", |seen| {
            seen.len() >= ENDPOINTS * published.len()
        });
        for id in &published {
            let rows = until(TOO_LONG, "all deliveries are done", || all_done(&scene, id));
            assert_eq!(rows.len(), ENDPOINTS, "{id}");
            let distinct: BTreeSet<&String> = rows.iter().collect();
            assert_eq!(distinct.len(), ENDPOINTS, "{id}: one row each");
        }
        let mut arrived: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for seen in world.seen() {
            let id = seen.headers["webhook-id"].clone();
            arrived.entry(id).or_default().insert(seen.target.clone());
        }
        assert_eq!(arrived.len(), published.len(), "nothing else was sent");
        for id in &published {
            assert_eq!(arrived[id].len(), ENDPOINTS, "{id}: every consumer has it");
        }
    });
}

/// Many endpoints of one world, each with a path of its own.
fn make_endpoints(scene: &Scene, world: &World) {
    let address = scene.server.address();
    let make = |maker: usize| {
        let mut connection = Connection::open(address).expect("the server takes connections");
        for number in (maker..ENDPOINTS).step_by(MAKERS) {
            let url = world.url(&format!("/e{number}"));
            // What was under way in a crash is due again at once.
            let body = json!({"url": url, "retrySchedule": [0, 0, 0, 0, 0, 0]}).to_string();
            let length = body.len();
            let request = format!(
                "POST /api/v1/app/acme/endpoint HTTP/1.1\r\nhost: hapax\r\nauthorization: Bearer {TOKEN}\r\n\
                 content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            let answer = connection.ask(request.as_bytes()).expect("an answer");
            assert_eq!(answer.status, 201, "{answer:?}");
        }
    };
    let make = &make;
    thread::scope(|scope| {
        for maker in 0..MAKERS {
            scope.spawn(move || make(maker));
        }
    });
}

/// Where a message goes, if all of it is done; from all pages of the list.
fn all_done(scene: &Scene, id: &str) -> Option<Vec<String>> {
    let (mut found, mut iterator) = (Vec::new(), String::new());
    loop {
        let path = format!("/app/acme/msg/{id}/endpoint?limit=250{iterator}");
        let page = scene.told(200, "GET", &path, &Value::Null);
        for row in page["data"].as_array().expect("a list") {
            if row["statusText"] != "success" {
                return None;
            }
            found.push(row["id"].as_str().expect("an id").to_owned());
        }
        if page["done"] == true {
            break;
        }
        let next = page["iterator"].as_str().expect("an iterator");
        iterator = format!("&iterator={next}");
    }
    (found.len() >= ENDPOINTS).then_some(found)
}
