//! No space left: intake says 503 and when to come back, loses nothing, and takes work again by itself when there is space.

use std::time::Duration;

use super::shim::{ALL, Fault, INDEX, LOG, Shimmed};
use crate::support::acks::{Acks, stored};
use crate::support::clock::until;
use crate::support::sender::Sender;
use crate::support::server::Server;

/// Promise: after space returns, intake accepts within this time without a restart.
const BACK_WITHIN: Duration = Duration::from_secs(10);
/// Refused events per fault, each of which is sent again later.
const REFUSED: usize = 5;
/// Requests until a fault must have been noticed: free space is looked at only now and then, and the index's journal is written in
/// pieces of a few kilobytes.
const UNTIL_NOTICED_MAX: usize = 600;

/// One site, one sender, and what it was told.
struct Scene {
    shimmed: Shimmed,
    server: Server,
    sender: Sender,
    acks: Acks,
    sent: usize,
}

impl Scene {
    fn new() -> Scene {
        let shimmed = Shimmed::sqlite();
        let server = shimmed.site.start();
        let mut scene = Scene {
            shimmed,
            server,
            sender: Sender::to("billing"),
            acks: Acks::default(),
            sent: 0,
        };
        for _ in 0..10 {
            assert!(scene.send_new().is_none());
        }
        scene
    }

    /// Sends a new event. If it was refused with 503, says its name and the code.
    fn send_new(&mut self) -> Option<(String, String)> {
        self.sent += 1;
        let name = format!("evt_{}", self.sent);
        let answer = self.server.ask(&self.sender.request(&name));
        if self.acks.hear(&name, &answer) {
            return None;
        }
        let code = answer.code();
        answer.expect_try_again(&code);
        Some((name, code))
    }

    /// Runs into the fault, is refused a few times, ends the fault, and tries again what was refused. Says with which codes.
    fn survive(&mut self, fault: Fault) -> Vec<String> {
        self.shimmed.shim.begin(fault);
        let noticed = (0..UNTIL_NOTICED_MAX).find_map(|_| self.send_new());
        let mut refused = vec![noticed.unwrap_or_else(|| panic!("{fault:?} was never noticed"))];
        while refused.len() < REFUSED {
            refused.push(self.send_new().expect("there is still no space"));
        }
        assert_eq!(self.server.get("/healthz").status, 200);
        self.shimmed.shim.end(fault);
        let (names, codes): (Vec<_>, Vec<_>) = refused.into_iter().unzip();
        for name in names {
            until(BACK_WITHIN, "intake accepts again", || {
                let answer = self.server.ask(&self.sender.request(&name));
                self.acks.hear(&name, &answer).then_some(())
            });
        }
        for _ in 0..10 {
            assert_eq!(self.send_new(), None, "it stays so");
        }
        codes
    }

    /// All is there now, known when it is sent again, and there after a crash, each event once.
    fn finish(self) {
        let Scene {
            shimmed,
            server,
            sender,
            acks,
            sent,
        } = self;
        assert_eq!(acks.len(), sent);
        acks.check(&server);
        acks.resend(&server, &sender);
        assert_eq!(stored(&server).len(), acks.len());
        server.kill();
        let server = shimmed.site.start();
        acks.check(&server);
        acks.resend(&server, &sender);
        assert_eq!(stored(&server).len(), acks.len());
    }
}

/// A3, liveness: below the watermark nothing is taken, though every write would succeed.
#[test]
fn below_the_watermark_intake_pauses_and_comes_back() {
    let mut scene = Scene::new();
    let codes = scene.survive(Fault::Low);
    assert!(codes.iter().all(|code| code == "H0207"), "{codes:?}");
    scene.finish();
}

/// A3, liveness: a write in the middle of a commit finds no space.
#[test]
fn a_disk_that_is_full_all_at_once_loses_nothing() {
    let mut scene = Scene::new();
    for fault in [Fault::Full(LOG), Fault::Full(ALL)] {
        let codes = scene.survive(fault);
        assert!(
            codes.iter().all(|code| code == "H0207" || code == "H0205"),
            "{codes:?}"
        );
        assert_eq!(codes[0], "H0207");
    }
    scene.finish();
}

/// B1, liveness: the key index finds no space where the database did. What it was not told it is told later, before anything new is
/// decided on it.
#[test]
fn a_key_index_without_space_falls_behind_and_catches_up() {
    let mut scene = Scene::new();
    for _ in 0..2 {
        scene.survive(Fault::Full(INDEX));
    }
    scene.finish();
}

/// The same with nothing left at all, watermark included, again and again.
#[test]
fn a_disk_that_fills_up_again_and_again_loses_nothing() {
    let mut scene = Scene::new();
    for fault in [
        Fault::Full(ALL),
        Fault::Low,
        Fault::Full(INDEX),
        Fault::Full(LOG),
        Fault::Low,
        Fault::Full(ALL),
    ] {
        scene.survive(fault);
    }
    scene.finish();
}
