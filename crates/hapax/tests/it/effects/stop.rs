//! A server that is told to stop: what is under way ends, what waits in memory is sent or left in the ledger, and nothing is lost or
//! repeated.

use serde_json::json;

use super::scene::{effect, ended, fact, on_each_store, site};
use crate::support::clock::{TOO_LONG, until};
use crate::support::sender::Sender;
use crate::support::world::{Act, World};

/// D1, D2: requests that are under way when SIGTERM comes end well, and so does what waited behind them; whoever starts next finds
/// them done.
#[test]
fn what_is_under_way_ends_before_the_server_does() {
    on_each_store(|store| {
        let world = World::new(|_| Act::Held);
        let site = site(
            store,
            &[effect("x", &world.url("/"), "concurrency = 2")],
            "",
        );
        let server = site.start();
        let sender = Sender::to("billing");
        let events: Vec<String> = (0..3)
            .map(|n| {
                let body = fact(&format!("evt_{n}"), "t", &json!({}));
                let answer = server.ask(&sender.request_with(&body));
                answer.json()["eventId"].as_str().expect("an id").to_owned()
            })
            .collect();
        world.wait_for("two requests", |seen| seen.len() == 2);
        server.signal("TERM");
        world.release(3);
        assert!(server.wait().success());
        let server = site.start();
        for (n, event) in events.iter().enumerate() {
            let done = until(TOO_LONG, "it is done", || {
                let event = server.get(&format!("/api/v1/event/{event}")).json();
                (event["status"] == "completed").then_some(event)
            });
            let effect = done["effects"][0]["id"].as_str().expect("an id");
            let effect = server.get(&format!("/api/v1/effect/{effect}")).json();
            assert_eq!(ended(&effect).len(), 1, "{effect:#}");
            assert_eq!(world.by_key()[&format!("x:evt_{n}")], 1);
        }
    });
}
