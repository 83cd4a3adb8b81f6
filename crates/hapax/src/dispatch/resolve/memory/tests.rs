use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::*;

/// Names that begin with `silent` are never answered, until the gate opens; `gone` does not exist; all others are this machine.
struct Scripted {
    asked: AtomicUsize,
    silence: watch::Sender<bool>,
    lookups_max: usize,
}

impl Scripted {
    fn new(lookups_max: usize) -> (Arc<Scripted>, Remembering) {
        let scripted = Arc::new(Scripted {
            asked: AtomicUsize::new(0),
            silence: watch::Sender::new(true),
            lookups_max,
        });
        let resolver = Remembering::new(Arc::clone(&scripted) as Arc<dyn Resolve>);
        (scripted, resolver)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Resolve for Scripted {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if host.starts_with("silent") {
            let mut silence = self.silence.subscribe();
            let _ = silence.wait_for(|silent| !silent).await;
        }
        match host {
            "gone" => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(vec![IpAddr::from([127, 0, 0, 1])]),
        }
    }

    fn lookups_max(&self) -> usize {
        self.lookups_max
    }
}

/// Asks and gives up at once, as one does whose time is over.
async fn give_up(resolver: &Remembering, host: &str) {
    let asking = resolver.resolve(host);
    timeout(Duration::ZERO, asking)
        .await
        .expect_err("nobody answers");
}

#[tokio::test]
async fn answers_and_failures_are_remembered() {
    let (scripted, resolver) = Scripted::new(8);
    for _ in 0..3 {
        resolver.resolve("here").await.expect("it has an address");
    }
    assert_eq!(scripted.asked(), 1);
    resolver.forget("here");
    resolver.resolve("here").await.expect("it has an address");
    assert_eq!(scripted.asked(), 2);
    for _ in 0..3 {
        let gone = resolver.resolve("gone").await.expect_err("it has none");
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }
    assert_eq!(scripted.asked(), 3);
}

/// However many ask, and however many of them give up.
#[tokio::test]
async fn a_name_is_looked_up_once_at_a_time() {
    let (scripted, resolver) = Scripted::new(8);
    for _ in 0..20 {
        give_up(&resolver, "silent").await;
        yield_now().await;
    }
    assert_eq!(scripted.asked(), 1);
    let waiting = tokio::spawn({
        let resolver = resolver.clone();
        async move { resolver.resolve("silent").await }
    });
    scripted.silence.send_replace(false);
    let found = waiting.await.expect("it does not panic");
    found.expect("it answers at last");
    assert_eq!(scripted.asked(), 1);
}

/// G6: names that never answer take the room of other new names, and none of those that are known to answer.
#[tokio::test]
async fn silent_names_leave_room_for_others() {
    let (scripted, resolver) = Scripted::new(4);
    resolver.resolve("good").await.expect("it has an address");
    for number in 0..600 {
        give_up(&resolver, &format!("silent-{number}")).await;
        yield_now().await;
    }
    assert_eq!(scripted.asked(), 1 + 4, "no more than there is room for");
    resolver.forget("good");
    resolver.resolve("good").await.expect("it has an address");
    assert_eq!(scripted.asked(), 1 + 4 + 1);
    // A new one waits until one of them is through.
    give_up(&resolver, "new").await;
    scripted.silence.send_replace(false);
    resolver.resolve("new").await.expect("it has an address");
}

#[tokio::test]
async fn the_memory_is_bounded() {
    let (_scripted, resolver) = Scripted::new(8);
    for number in 0..2 * NAMES_MAX {
        let host = format!("host-{number}");
        resolver.resolve(&host).await.expect("it has an address");
        let names = resolver.0.names();
        assert!(names.known.len() <= NAMES_MAX && names.under_way.is_empty());
    }
}
