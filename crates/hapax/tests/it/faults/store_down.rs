//! PostgreSQL that is away, silent, or cut off between a commit and its answer: 503, and back to work without a restart.

use std::time::Duration;

use hapax_store::Store;
use hapax_store::conformance::database::{Database, with_database};

use crate::support::acks::{Acks, Told, stored};
use crate::support::clock::{tick, until};
use crate::support::proxy::{Proxy, Wire};
use crate::support::sender::Sender;
use crate::support::server::Server;
use crate::support::site::Site;

/// The store tries again at most this long after the server is back, and a little more.
const BACK_WITHIN: Duration = Duration::from_secs(10);
/// What a commit may take (10 s), and a little more. Many senders give up not much later.
const PATIENCE: Duration = Duration::from_secs(15);

/// A site whose database is behind a wire.
struct Scene {
    proxy: Proxy,
    server: Server,
    sender: Sender,
    acks: Acks,
    _site: Site,
}

impl Scene {
    fn new(url: &str) -> Scene {
        let (proxy, url) = Proxy::to_database(url);
        let site = Site::with(&url, "");
        let server = site.start();
        let mut scene = Scene {
            proxy,
            server,
            sender: Sender::to("billing"),
            acks: Acks::default(),
            _site: site,
        };
        assert!(scene.send("evt_before"));
        scene
    }

    /// Sends an event; true if it was acknowledged, false if it is to be tried again.
    fn send(&mut self, name: &str) -> bool {
        let answer = self.server.ask(&self.sender.request(name));
        let acknowledged = self.acks.hear(name, &answer);
        if !acknowledged {
            answer.expect_try_again(&answer.code());
        }
        acknowledged
    }

    fn send_until_acknowledged(&mut self, name: &str) {
        until(BACK_WITHIN, "intake accepts again", || {
            self.send(name).then_some(())
        });
    }

    /// All is there, once.
    fn finish(self) {
        self.acks.check(&self.server);
        self.acks.resend(&self.server, &self.sender);
        assert_eq!(stored(&self.server).len(), self.acks.len());
        self.server.signal("TERM");
        assert_eq!(self.server.wait().code(), Some(0));
    }
}

/// Runs `test` with a database of its own; afterwards no key is there twice.
fn with_scene(test: fn(Scene)) {
    with_database(move |database| async move {
        let url = database.url();
        let work = move || test(Scene::new(&url));
        tokio::task::spawn_blocking(work)
            .await
            .expect("the checks hold");
        expect_no_key_twice(&database).await;
    });
}

async fn expect_no_key_twice(database: &Database) {
    let store = database.open().await;
    assert_eq!(store.stats().await.expect("the store counts").keys_twice, 0);
    store.close().await;
}

/// A3, liveness: connections that break are 503, and open again by themselves.
#[test]
fn a_database_that_is_away_is_503_until_it_is_back() {
    with_scene(|mut scene| {
        for round in 0..3 {
            scene.proxy.set(Wire::Cut);
            let names: Vec<String> = (0..5).map(|n| format!("evt_{round}_{n}")).collect();
            for name in &names {
                assert!(!scene.send(name), "acknowledged without a database");
            }
            assert_eq!(scene.server.get("/healthz").status, 200);
            scene.server.get("/readyz").expect_try_again("H0205");
            scene.proxy.set(Wire::Whole);
            for name in &names {
                scene.send_until_acknowledged(name);
            }
        }
        scene.finish();
    });
}

/// A3: the commit went through, its answer did not. Unknown to us, so 503; the sender's retry finds the one event.
#[test]
fn a_commit_whose_answer_is_lost_ends_in_one_event() {
    with_scene(|mut scene| {
        for round in 0..3 {
            let name = format!("evt_lost_{round}");
            scene.proxy.set(Wire::CutAtAnswerTo(name.clone()));
            scene
                .server
                .ask(&scene.sender.request(&name))
                .expect_try_again("H0208");
            assert_eq!(scene.proxy.wire(), Wire::Whole, "the answer was swallowed");
            let id = stored(&scene.server)
                .remove(&name)
                .expect("it was committed all the same");
            let told = Told::read(&scene.server.ask(&scene.sender.request(&name)));
            assert_eq!(
                told,
                Told::Acknowledged {
                    id: id.clone(),
                    duplicate: true
                }
            );
            scene.acks.add(&name, id);
        }
        scene.finish();
    });
}

/// A3: a database that says nothing is 503 before the sender loses patience, and all is well once it speaks again.
#[test]
fn a_silent_database_is_503_in_time() {
    with_scene(|mut scene| {
        scene.proxy.set(Wire::Silent);
        let start = tick();
        assert!(
            !scene.send("evt_silent"),
            "acknowledged without a word of the database"
        );
        assert!(tick() - start < PATIENCE, "503 after {:?}", tick() - start);
        scene.proxy.set(Wire::Whole);
        scene.send_until_acknowledged("evt_silent");
        scene.finish();
    });
}
