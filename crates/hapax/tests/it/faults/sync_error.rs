//! A sync of the log that fails: nobody knows what is on disk. The sender hears 503, tries again, and there is one event.

use std::time::Duration;

use super::shim::{Fault, LOG, Shimmed};
use crate::support::acks::{Acks, Told, stored};
use crate::support::clock::until;
use crate::support::sender::Sender;

/// As after a full disk.
const BACK_WITHIN: Duration = Duration::from_secs(10);

/// A3: never 2xx, never 4xx; once syncs work, the retry is acknowledged, and nothing is there twice.
#[test]
fn a_failed_sync_is_an_unknown_commit_and_ends_in_one_event() {
    let shimmed = Shimmed::sqlite();
    let server = shimmed.site.start();
    let sender = Sender::to("billing");
    let mut acks = Acks::default();
    assert!(acks.hear("evt_before", &server.ask(&sender.request("evt_before"))));
    for round in 0..3 {
        shimmed.shim.begin(Fault::SyncFails(LOG));
        let names: Vec<String> = (0..4).map(|n| format!("evt_{round}_{n}")).collect();
        server
            .ask(&sender.request(&names[0]))
            .expect_try_again("H0208");
        for name in &names {
            let answer = server.ask(&sender.request(name));
            assert_eq!(Told::read(&answer), Told::TryAgain, "{answer:?}");
        }
        // One that is known and durable may be acknowledged or not, but not under another id, and not refused.
        acks.hear("evt_before", &server.ask(&sender.request("evt_before")));
        shimmed.shim.end(Fault::SyncFails(LOG));
        for name in &names {
            until(BACK_WITHIN, "intake accepts again", || {
                acks.hear(name, &server.ask(&sender.request(name)))
                    .then_some(())
            });
        }
    }
    acks.check(&server);
    acks.resend(&server, &sender);
    assert_eq!(stored(&server).len(), acks.len());
    server.kill();
    shimmed.shim.cut_power();
    let server = shimmed.site.start();
    acks.check(&server);
    acks.resend(&server, &sender);
    assert_eq!(stored(&server).len(), acks.len());
}

/// A3: a crash before the retry finds the event or does not; with the retry there is one.
#[test]
fn a_crash_after_a_failed_sync_ends_in_one_event() {
    let sender = Sender::to("billing");
    for power_goes_too in [false, true] {
        let shimmed = Shimmed::sqlite();
        let server = shimmed.site.start();
        let mut acks = Acks::default();
        assert!(acks.hear("evt_before", &server.ask(&sender.request("evt_before"))));
        shimmed.shim.begin(Fault::SyncFails(LOG));
        server
            .ask(&sender.request("evt_unknown"))
            .expect_try_again("H0208");
        server.kill();
        shimmed.shim.end(Fault::SyncFails(LOG));
        if power_goes_too {
            shimmed.shim.cut_power();
        }
        let server = shimmed.site.start();
        acks.check(&server);
        assert!(acks.hear("evt_unknown", &server.ask(&sender.request("evt_unknown"))));
        acks.resend(&server, &sender);
        assert_eq!(stored(&server).len(), 2);
    }
}
