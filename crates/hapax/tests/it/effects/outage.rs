//! A database that is away for longer than a lease: what was pending goes out once it is back, without a restart.

use serde_json::json;

use super::judge::{judge, ledger, wait_until_all_has_ended};
use super::scene::{Scene, effect, on_postgres};
use crate::support::proxy::{Proxy, Wire};
use crate::support::world::{Act, World};

/// Cut off, a node hears at once that it is not heard, a second apart; from a silent database only after its patience. Either way
/// the lease is over by then, and the second attempt has become due.
const OUTAGES: [(Wire, usize); 2] = [(Wire::Cut, 9), (Wire::Silent, 1)];
const DEAF: &str = "the store does not hear this node; nothing new is claimed once its lease ends";

/// Liveness, D2, D4: a node that could not rely on its shards for a while, and kept them, looks after all that it had forgotten.
#[test]
fn what_became_due_while_the_database_was_away_is_sent_when_it_is_back() {
    on_postgres(|url| {
        let (proxy, url) = Proxy::to_database(url);
        let world = World::new(|seen| match seen.before {
            0 => Act::Answer(429),
            _ => Act::Answer(200),
        });
        let effects = ["keyed", "once"].map(|repeat| {
            let more = format!("repeat = \"{repeat}\"\nretry = [\"0s\", \"5s\"]");
            effect(repeat, &world.url("/"), &more)
        });
        let scene = Scene::short(&url, &effects);
        for (round, (wire, beats)) in OUTAGES.into_iter().enumerate() {
            let event = scene.send(&format!("evt_{round}"), "t", &json!({}));
            for name in ["keyed", "once"] {
                scene.wait_for_attempts(&event, name, 1);
            }
            let before = world.seen().len();
            proxy.set(wire);
            for _ in 0..beats {
                scene.server.wait_for_log(DEAF);
            }
            assert_eq!(world.seen().len(), before, "sent without a ledger");
            proxy.set(Wire::Whole);
            scene.wait_for_status(&event, "completed");
        }
        wait_until_all_has_ended(&scene.server, || world.seen().len());
        let states = judge(&world.seen(), &ledger(&scene.server));
        assert_eq!(states["done"], 4, "{states:?}");
        for (key, requests) in world.by_key() {
            assert_eq!(requests, 2, "{key}");
        }
    });
}
