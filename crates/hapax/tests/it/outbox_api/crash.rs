//! `kill -9` while the deliveries of a message to many endpoints are made.
//!
//! A shim stops SQLite at a sync, a wire stops PostgreSQL at a statement: the server stands between two steps of a fan-out when it is
//! killed. What the ledger has at that moment is read before another server goes on, and the consumers' own log says what arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use hapax::config::StoreTarget;
use hapax::http::serve::open;
use hapax_store::conformance::database::with_database;
use hapax_store::nouns::{EventFilter, FAN_OUT_STEP, Page, PageFrom};
use serde_json::{Value, json};

use super::scene::{Scene, site};
use crate::effects::scene::SQLITE;
use crate::faults::shim::{Fault, LOG, Shim};
use crate::support::client::Connection;
use crate::support::clock::{TOO_LONG, until};
use crate::support::proxy::{Proxy, Wire};
use crate::support::server::TOKEN;
use crate::support::site::Site;
use crate::support::world::{Seen, World};

/// Three steps: the first is made with the message, two follow. The last one is small, so that a statement of it goes over the wire in one
/// piece.
const ENDPOINTS: usize = 2 * FAN_OUT_STEP + 16;
/// Connections that make endpoints.
const MAKERS: usize = 8;

/// In the statement that begins a step, and in no other.
const STEP: &str = "FOR UPDATE OF f SKIP LOCKED";
/// In a statement of the last step, and in no other.
const LAST_STEP: &str = "hapax.fan_out_list WHERE shard";
/// A commit of SQLite's, once it is durable and before anybody hears of it.
const COMMITTED: Fault = Fault::SyncHeldWhenDone(LOG);

/// Where the server stands when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// The message is durable with the first step, and no other has begun.
    Published,
    /// A commit further, at least, and not all of the others are made.
    UnderWay,
}

impl Point {
    /// The publisher's id of the message that sees it.
    fn event_id(self) -> &'static str {
        match self {
            Point::Published => "published",
            Point::UnderWay => "under-way",
        }
    }
}

/// Stops a server at a point.
enum Brake {
    /// SQLite, at a sync of its log.
    Shim(Shim),
    /// PostgreSQL, by a text in a statement. A session sends a text when it runs it for the first time, so the server has to be fresh.
    Wire(Proxy),
}

impl Brake {
    /// The site's next server can be stopped.
    fn attach(&self, site: &mut Site) {
        match self {
            Brake::Shim(shim) => shim.stand_before(site),
            Brake::Wire(_) => {}
        }
    }

    /// From now on the server stops at this point.
    fn begin(&self, point: Point) {
        match (self, point) {
            (Brake::Shim(shim), _) => shim.begin(COMMITTED),
            (Brake::Wire(wire), Point::Published) => wire.set(Wire::HeldAtAskOf(STEP.to_owned())),
            (Brake::Wire(wire), Point::UnderWay) => {
                wire.set(Wire::HeldAtAskOf(LAST_STEP.to_owned()));
            }
        }
    }

    /// A step of a fan-out waits for its commit, so there is at most one in each: with one commit behind the message's, one is left.
    fn wait_until_stopped(&self, point: Point) {
        match (self, point) {
            (Brake::Shim(shim), Point::Published) => shim.wait_for_held_sync(),
            (Brake::Shim(shim), Point::UnderWay) => {
                shim.wait_for_held_sync();
                shim.let_sync_go();
                shim.wait_for_held_sync();
            }
            (Brake::Wire(wire), _) => wire.wait_until_held(),
        }
    }

    /// After the crash: nothing is stopped any more.
    fn let_go(&self, site: &mut Site) {
        match self {
            Brake::Shim(shim) => {
                shim.end(COMMITTED);
                shim.stand_aside(site);
            }
            Brake::Wire(wire) => wire.set(Wire::Whole),
        }
    }
}

/// G1: exactly one delivery row per endpoint, whatever dies; and all of them got through, by the consumers' own log.
#[test]
fn a_crash_during_a_fan_out_leaves_one_delivery_for_each_endpoint() {
    let world = World::well();
    // A restart ends every lease, so it need not be short.
    let (mut site, endpoints) = with_endpoints(site("60s", SQLITE, ""), &world);
    let brake = Brake::Shim(Shim::before(&mut site));
    let store = StoreTarget::Sqlite(site.data().join("hapax.db"));
    survives(site, &store, &brake, &world, &endpoints);
}

/// G1, the same on PostgreSQL.
#[test]
fn a_crash_during_a_fan_out_on_postgres_leaves_one_delivery_for_each_endpoint() {
    with_database(|database| async move {
        let url = database.url();
        let work = move || {
            let world = World::well();
            let (wire, through) = Proxy::to_database(&url);
            // What was under way in a crash waits for so long; and nothing that goes well takes so long.
            let (site, endpoints) = with_endpoints(site("5s", &through, ""), &world);
            let store = StoreTarget::Postgres(url);
            survives(site, &store, &Brake::Wire(wire), &world, &endpoints);
        };
        let work = tokio::task::spawn_blocking(work);
        work.await.expect("the checks hold");
    });
}

/// One message for each point. Each is published to a server that is fresh, and finished by the next one.
fn survives(
    mut site: Site,
    store: &StoreTarget,
    brake: &Brake,
    world: &World,
    endpoints: &BTreeMap<String, String>,
) {
    for point in [Point::Published, Point::UnderWay] {
        let before = world.seen().len();
        leave_nothing_to_tell(store);
        brake.attach(&mut site);
        let killed = publish_and_kill(Scene::of(site), brake, point);
        let (made, to_come) = left_behind(store, point);
        assert!(made.len() < ENDPOINTS, "{point:?}: {to_come} to come");
        assert_eq!(made.len() + to_come, ENDPOINTS, "{point:?}");
        match point {
            Point::Published => assert_eq!(made.len(), FAN_OUT_STEP),
            Point::UnderWay => assert!(made.len() >= FAN_OUT_STEP, "{}", made.len()),
        }
        let scene = Scene::of(killed);
        let path = format!("/app/acme/msg/{}", point.event_id());
        let message = scene.told(200, "GET", &path, &Value::Null);
        let id = message["id"].as_str().expect("an id");
        // What was under way in the crash may come twice, so this is most of it, or all.
        world.wait_for("most of it", |seen| seen.len() >= before + ENDPOINTS);
        let rows = until(TOO_LONG, "all deliveries are done", || all_done(&scene, id));
        let distinct: BTreeSet<&String> = rows.iter().collect();
        assert!(distinct.into_iter().eq(endpoints.keys()), "{point:?}");
        assert_eq!(rows.len(), ENDPOINTS, "{point:?}: one row each");
        site = ended(scene);
        check_arrivals(&world.seen()[before..], id, &made, endpoints);
    }
}

/// Publishes a message, and kills the server where it then stands.
fn publish_and_kill(scene: Scene, brake: &Brake, point: Point) -> Site {
    let body =
        json!({"eventType": "invoice.paid", "eventId": point.event_id(), "payload": {"n": 1}});
    let mut publisher = scene.server.connect();
    brake.begin(point);
    publisher.send(&post("/app/acme/msg", &body)).expect("sent");
    brake.wait_until_stopped(point);
    match (brake, point) {
        (Brake::Shim(_), Point::Published) => {}
        _ => assert_eq!(publisher.answer().expect("an answer").status, 202),
    }
    let mut site = scene.killed();
    assert!(publisher.answer().is_err(), "nothing more is said");
    brake.let_go(&mut site);
    site
}

/// What operators would hear of the endpoints is forgotten: a server that tells it commits at times of its own, and the brake is for the message.
fn leave_nothing_to_tell(store: &StoreTarget) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = open(store).await.expect("a store that nobody has");
        loop {
            let untold = store.untold(0).await.expect("the store lists");
            if untold.is_empty() {
                break;
            }
            let numbers = untold.iter().map(|untold| untold.number).collect();
            store.told(numbers).await.expect("the store forgets");
        }
        store.close().await;
    });
}

/// What the ledger has of the message while no server has it: the endpoints that have a delivery, and how many deliveries are to come.
fn left_behind(store: &StoreTarget, point: Point) -> (BTreeSet<String>, usize) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = open(store).await.expect("a store that nobody has");
        let filter = EventFilter {
            key: Some(point.event_id().to_owned()),
            ..EventFilter::default()
        };
        let page = Page {
            limit: 1,
            from: PageFrom::Newest,
        };
        let listed = store.events(filter, page).await.expect("the store lists");
        let event = listed.rows.first().expect("the message is durable").id;
        let detail = store.event(event).await.expect("the store reads");
        let effects = detail.expect("the message is there").effects;
        let made: BTreeSet<String> = effects.iter().map(|one| one.lane.to_string()).collect();
        assert_eq!(made.len(), effects.len(), "one row each");
        let facts = store.facts(event).await.expect("the store reads");
        let to_come = facts.expect("the message is there").to_come;
        store.close().await;
        (made, usize::try_from(to_come).expect("a small number"))
    })
}

/// Every consumer has the message; twice at most if its delivery may have been under way in the crash, and once if it was made after it.
fn check_arrivals(
    seen: &[Seen],
    id: &str,
    made: &BTreeSet<String>,
    endpoints: &BTreeMap<String, String>,
) {
    let mut arrived: BTreeMap<&str, usize> = BTreeMap::new();
    for one in seen {
        assert_eq!(one.headers["webhook-id"], id, "nothing else was sent");
        *arrived.entry(one.target.as_str()).or_default() += 1;
    }
    for (endpoint, target) in endpoints {
        let times = arrived.get(target.as_str()).copied().unwrap_or(0);
        let most = 1 + usize::from(made.contains(endpoint));
        assert!(
            (1..=most).contains(&times),
            "{target}: {times} times, {most} at most"
        );
    }
    assert_eq!(arrived.len(), endpoints.len(), "and nobody else has");
}

/// Makes many endpoints of one world, each with a path of its own, and ends the server. The paths, by the endpoints' ids.
fn with_endpoints(site: Site, world: &World) -> (Site, BTreeMap<String, String>) {
    let scene = Scene::of(site);
    scene.app("acme");
    let address = scene.server.address();
    let make = |maker: usize| {
        let mut connection = Connection::open(address).expect("the server takes connections");
        let mut made = Vec::new();
        for number in (maker..ENDPOINTS).step_by(MAKERS) {
            let target = format!("/e{number}");
            // What was under way in a crash is due again at once.
            let body = json!({"url": world.url(&target), "retrySchedule": [0, 0, 0, 0, 0, 0]});
            let request = post("/app/acme/endpoint", &body);
            let answer = connection.ask(&request).expect("an answer");
            assert_eq!(answer.status, 201, "{answer:?}");
            let id = answer.json()["id"].as_str().expect("an id").to_owned();
            made.push((id, target));
        }
        made
    };
    let make = &make;
    let endpoints: BTreeMap<String, String> = thread::scope(|scope| {
        let makers: Vec<_> = (0..MAKERS)
            .map(|maker| scope.spawn(move || make(maker)))
            .collect();
        let made = makers.into_iter().map(|maker| maker.join());
        made.flat_map(|made| made.expect("they are made")).collect()
    });
    (ended(scene), endpoints)
}

fn post(path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST /api/v1{path} HTTP/1.1\r\nhost: hapax\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The server ends as it should, so that nothing of it is left to wait for.
fn ended(scene: Scene) -> Site {
    scene.server.signal("TERM");
    assert_eq!(scene.server.wait().code(), Some(0));
    scene.site
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
