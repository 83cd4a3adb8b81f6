//! A server that stands still on the way to its upstream, beyond its lease: it sends nothing any more.

use std::time::Duration;

use super::http2::TWO;
use super::http2::frames::Frames;
use super::scene::{Scene, answered, charge, problem};
use crate::effects::scene::SQLITE;
use crate::support::clock::{TOO_LONG, until};

/// The lease, and a second more.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(4);
/// A server that stands still cannot be asked, which would pace a loop.
const A_MOMENT: Duration = Duration::from_millis(10);

/// C4, H1: its connection is there when it goes on, and still nothing leaves. What another node may have done by then is tested where
/// clocks can be set, in hapax-tower's `lease.rs`: a connection is not waited for as long as it takes until others may run.
#[test]
fn a_pause_of_the_only_server_before_the_first_byte() {
    let upstream = Frames::reserved();
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    let mut first = scene.connect();
    first.send(&charge("k1")).expect("sent");
    until(TOO_LONG, "it connects", || {
        scene.server.get("/api/v1/guard/key");
        (upstream.connections() == 1).then_some(())
    });
    scene.server.signal("STOP");
    assert!(first.is_silent_for(BEYOND_THE_LEASE), "it stands still");
    upstream.go_on();
    until(TOO_LONG, "it is connected", || {
        first.is_silent_for(A_MOMENT);
        (upstream.greeted() == 1).then_some(())
    });
    scene.server.signal("CONT");
    let answer = first.answer().expect("an answer");
    // A machine that is slow as well may find that connecting took too long.
    let names = ["lease-lost", "upstream-unreachable"];
    assert!(names.contains(&&*problem(&answer)), "{answer:?}");
    assert_eq!(upstream.carried_out(), 0);
    // It is known that nothing was done, and the connection is there.
    answered(&scene.charge("k1"), 1, false);
    assert_eq!(upstream.carried_out(), 1);
}
