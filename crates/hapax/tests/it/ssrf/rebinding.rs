//! Names that change what they mean between the look and the connection.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::*;

/// Says something else each time it is asked; the last word stays.
#[derive(Clone)]
struct Rebinding(Arc<Mutex<(VecDeque<IpAddr>, usize)>>);

impl Rebinding {
    fn new(answers: &[[u8; 4]]) -> Rebinding {
        let answers = answers.iter().copied().map(IpAddr::from).collect();
        Rebinding(Arc::new(Mutex::new((answers, 0))))
    }

    fn asked(&self) -> usize {
        self.0.lock().expect("whole").1
    }
}

#[async_trait]
impl Resolve for Rebinding {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let mut state = self.0.lock().expect("whole");
        state.1 += 1;
        let next = match state.0.len() {
            1 => state.0.front().copied(),
            _ => state.0.pop_front(),
        };
        Ok(next.into_iter().collect())
    }
}

/// The address that was vetted is the one that is connected to, whatever the name means a moment later; and when it is asked
/// again, it is vetted again.
#[tokio::test]
async fn the_vetted_address_is_the_one_connected_to() {
    let good = Canary::on("127.0.0.2:0").await;
    let port = good.address.port();
    let bad = Canary::on(&format!("127.0.0.1:{port}")).await;
    let names = Rebinding::new(&[[127, 0, 0, 2], [127, 0, 0, 1]]);
    let url = || Uri::try_from(format!("http://moving.example:{port}/")).expect("a URL");
    let reach = || Reach::Consumer(open("127.0.0.2/32"));
    let first = sender(names.clone());
    assert_eq!(first.send(post(url(), reach())).await.outcome, OK);
    assert_eq!((names.asked(), good.seen(), bad.seen()), (1, 1, 0));
    // Another process, or the same one some seconds later: the name means this machine by now.
    let second = sender(names.clone());
    let sent = second.send(post(url(), reach())).await;
    assert_eq!(sent.outcome, BLOCKED);
    assert_eq!(
        sent.error.as_deref(),
        Some("the address 127.0.0.1 is not allowed: it is this machine")
    );
    assert_eq!((names.asked(), good.seen(), bad.seen()), (2, 1, 0));
}

/// A remembered answer is vetted like a fresh one: rules that are closed meanwhile count at once.
#[tokio::test]
async fn what_is_remembered_is_vetted_each_time() {
    let canary = Canary::on("127.0.0.1:0").await;
    let names = Rebinding::new(&[[127, 0, 0, 1]]);
    let sender = sender(names.clone());
    let port = canary.address.port();
    let url = || Uri::try_from(format!("http://moving.example:{port}/")).expect("a URL");
    let opened = Reach::Consumer(open("127.0.0.0/8"));
    assert_eq!(sender.send(post(url(), opened)).await.outcome, OK);
    let closed = Reach::Consumer(Arc::default());
    assert_eq!(sender.send(post(url(), closed)).await.outcome, BLOCKED);
    assert_eq!((names.asked(), canary.seen()), (1, 1));
}
