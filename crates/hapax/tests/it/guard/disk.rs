//! A disk that takes no commit: nothing is carried out, and the retry is the first that is.

use super::scene::{Scene, answered, counting, refused, site};
use crate::effects::scene::SQLITE;
use crate::faults::shim::{Fault, LOG, Shim};
use crate::support::clock::{TOO_LONG, until};

/// H1: without a durable claim nothing is sent, whether the disk is full or nobody knows what is on it.
#[test]
fn a_request_whose_claim_cannot_be_committed_is_503_and_its_retry_runs_once() {
    for fault in [Fault::Full(LOG), Fault::SyncFails(LOG)] {
        let world = counting();
        let lines = "principal = \"header.x-user\"";
        let mut site = site(SQLITE, &world.url(""), lines);
        let shim = Shim::before(&mut site);
        let scene = Scene::of(site);
        answered(&scene.charge("before"), 1, false);

        shim.begin(fault);
        for _ in 0..3 {
            let answer = scene.charge("k1");
            refused(&answer, 503, "store-unavailable");
            let after = answer.header("retry-after").map(str::parse::<u32>);
            assert!(matches!(after, Some(Ok(1..))), "{fault:?}: {answer:?}");
        }
        assert_eq!(world.seen().len(), 1, "{fault:?}: sent without a claim");

        shim.end(fault);
        let back = until(TOO_LONG, "the disk takes commits again", || {
            Some(scene.charge("k1")).filter(|answer| answer.status != 503)
        });
        answered(&back, 2, false);
        answered(&scene.charge("k1"), 2, true);
        assert_eq!(world.by_key()["k1"], 1, "{fault:?}");
    }
}
