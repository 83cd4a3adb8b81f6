//! Names that change what they mean between the look and the connection, by a real name server.

use hapax::dispatch::resolve::Dns;

use super::*;
use crate::support::name_server::{NameServer, at};

/// Says something else each time it is asked; the last word stays.
fn rebinding(answers: &'static [&'static str]) -> NameServer {
    NameServer::new(move |_, before| at(&answers[before.min(answers.len() - 1)..][..1]))
}

/// A sender that asks it, as the program does.
fn asking(server: &NameServer) -> Sender {
    sender(Dns::new(Some(server.address)))
}

const NAME: &str = "moving.example";

/// The address that was vetted is the one that is connected to, whatever the name means a moment later; and when it is asked
/// again, it is vetted again.
#[tokio::test]
async fn the_vetted_address_is_the_one_connected_to() {
    let good = Canary::on("127.0.0.2:0").await;
    let port = good.address.port();
    let bad = Canary::on(&format!("127.0.0.1:{port}")).await;
    let names = rebinding(&["127.0.0.2", "127.0.0.1"]);
    let url = || Uri::try_from(format!("http://{NAME}:{port}/")).expect("a URL");
    let reach = || Reach::Consumer(open("127.0.0.2/32"));
    let first = asking(&names);
    assert_eq!(first.send(post(url(), reach())).await.outcome, OK);
    assert_eq!((names.asked(NAME), good.seen(), bad.seen()), (1, 1, 0));
    // Another process, or the same one some seconds later: the name means this machine by now.
    let second = asking(&names);
    let sent = second.send(post(url(), reach())).await;
    assert_eq!(sent.outcome, BLOCKED);
    assert_eq!(
        sent.error.as_deref(),
        Some("the address 127.0.0.1 is not allowed: it is this machine")
    );
    assert_eq!((names.asked(NAME), good.seen(), bad.seen()), (2, 1, 0));
}

/// A remembered answer is vetted like a fresh one: rules that are closed meanwhile count at once.
#[tokio::test]
async fn what_is_remembered_is_vetted_each_time() {
    let canary = Canary::on("127.0.0.1:0").await;
    let names = rebinding(&["127.0.0.1"]);
    let sender = asking(&names);
    let port = canary.address.port();
    let url = || Uri::try_from(format!("http://{NAME}:{port}/")).expect("a URL");
    let opened = Reach::Consumer(open("127.0.0.0/8"));
    assert_eq!(sender.send(post(url(), opened)).await.outcome, OK);
    let closed = Reach::Consumer(Arc::default());
    assert_eq!(sender.send(post(url(), closed)).await.outcome, BLOCKED);
    assert_eq!((names.asked(NAME), canary.seen()), (1, 1));
}
