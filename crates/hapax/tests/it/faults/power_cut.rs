//! A power cut takes back whatever was not synced. The shim keeps of each file what its last sync had seen; after `kill -9` that
//! is put in its place.

use std::time::Duration;

use super::shim::{Fault, LOG, Shimmed};
use crate::support::acks::{Acks, stored};
use crate::support::sender::Sender;
use crate::support::server::Server;

/// Power cuts in a row, each with what the one before left.
const CUTS: usize = 6;
/// Acks before each.
const ACKS: usize = 12;
/// Far longer than an answer takes that waits for nothing.
const NO_ANSWER: Duration = Duration::from_millis(300);

/// Sends events one after the other; each must be acknowledged.
fn accept(server: &Server, prefix: &str, acks: &mut Acks) {
    let sender = Sender::to("billing");
    let mut connection = server.connect();
    for n in 0..ACKS {
        let name = format!("evt_{prefix}_{n}");
        let answer = connection.ask(&sender.request(&name)).expect("an answer");
        assert!(acks.hear(&name, &answer), "{answer:?}");
    }
}

/// A1: what was acknowledged is there after a power cut, and each ack in a row had a sync of its own.
#[test]
fn a_power_cut_takes_nothing_that_was_acknowledged() {
    let shimmed = Shimmed::sqlite();
    let mut acks = Acks::default();
    for cut in 0..CUTS {
        let server = shimmed.site.start();
        acks.check(&server);
        let before = shimmed.shim.syncs(LOG);
        accept(&server, &cut.to_string(), &mut acks);
        let syncs = shimmed.shim.syncs(LOG) - before;
        assert!(
            syncs >= ACKS,
            "{ACKS} acks one after the other, but {syncs} syncs"
        );
        server.kill();
        shimmed.shim.cut_power();
    }
    let server = shimmed.site.start();
    acks.check(&server);
    acks.resend(&server, &Sender::to("billing"));
    assert_eq!(stored(&server).len(), acks.len());
}

/// The test above can fail: if syncs of the log are left out, a power cut does take acknowledged events.
#[test]
fn without_syncs_a_power_cut_takes_acknowledged_events() {
    let shimmed = Shimmed::sqlite();
    let mut acks = Acks::default();
    let server = shimmed.site.start();
    shimmed.shim.begin(Fault::SyncIgnored(LOG));
    accept(&server, "a", &mut acks);
    server.kill();
    shimmed.shim.end(Fault::SyncIgnored(LOG));
    shimmed.shim.cut_power();
    let server = shimmed.site.start();
    assert_eq!(acks.lost(&server).len(), ACKS);
}

/// A1: the ack comes after the sync, not beside it: as long as the sync has not come back, the sender hears nothing.
#[test]
fn an_ack_waits_for_its_sync() {
    let shimmed = Shimmed::sqlite();
    let server = shimmed.site.start();
    let mut acks = Acks::default();
    let mut connection = server.connect();
    shimmed.shim.begin(Fault::SyncHeld(LOG));
    connection
        .send(&Sender::to("billing").request("evt_held"))
        .expect("sent");
    shimmed.shim.wait_for_held_sync();
    assert!(
        connection.is_silent_for(NO_ANSWER),
        "answered before the log was synced"
    );
    shimmed.shim.end(Fault::SyncHeld(LOG));
    shimmed.shim.let_sync_go();
    assert!(acks.hear("evt_held", &connection.answer().expect("an answer")));
    server.kill();
    shimmed.shim.cut_power();
    acks.check(&shimmed.site.start());
}

/// A3: a power cut during the sync leaves the event or does not; the sender, who heard nothing, tries again, and there is one.
#[test]
fn a_power_cut_during_a_sync_ends_in_one_event() {
    let shimmed = Shimmed::sqlite();
    let server = shimmed.site.start();
    let mut acks = Acks::default();
    accept(&server, "a", &mut acks);
    shimmed.shim.begin(Fault::SyncHeld(LOG));
    let mut connection = server.connect();
    let sender = Sender::to("billing");
    connection.send(&sender.request("evt_held")).expect("sent");
    shimmed.shim.wait_for_held_sync();
    server.kill();
    shimmed.shim.end(Fault::SyncHeld(LOG));
    shimmed.shim.cut_power();
    let server = shimmed.site.start();
    acks.check(&server);
    assert!(acks.hear("evt_held", &server.ask(&sender.request("evt_held"))));
    acks.check(&server);
}
