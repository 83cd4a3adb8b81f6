//! Names that consumers wrote, asked for at a real name server.

use std::io;
use std::net::IpAddr;

use hapax::dispatch::resolve::{Dns, Resolve};

use crate::support::name_server::{NameServer, Says, at, parsed};

async fn found(says: Says) -> Result<Vec<IpAddr>, io::ErrorKind> {
    let server = NameServer::new(move |_, _| says.clone());
    let names = Dns::new(Some(server.address));
    let found = names.resolve("Hooks.example").await;
    found.map_err(|error| error.kind())
}

#[tokio::test]
async fn what_a_name_server_says_is_what_is_tried() {
    let four = ["192.0.2.1", "192.0.2.2", "2001:db8::1"];
    let in_turn = parsed(&["192.0.2.1", "2001:db8::1", "192.0.2.2"]);
    let table = [
        (at(&four), Ok(in_turn.clone())),
        (Says::AtLength(parsed(&four)), Ok(in_turn.clone())),
        (Says::Alias("other.example", parsed(&four)), Ok(in_turn)),
        (at(&["2001:db8::1"]), Ok(parsed(&["2001:db8::1"]))),
        (at(&[]), Err(io::ErrorKind::NotFound)),
        (Says::NoName, Err(io::ErrorKind::NotFound)),
        (Says::Fails, Err(io::ErrorKind::Other)),
    ];
    for (says, expected) in table {
        assert_eq!(found(says.clone()).await, expected, "{says:?}");
    }
}

/// A datagram may get lost, and a server that fails may do better a moment later.
#[tokio::test]
async fn a_server_is_asked_again() {
    let server = NameServer::new(|name, before| match (name, before) {
        ("lost.example", 0) => Says::Silence,
        ("failing.example", 0) => Says::Fails,
        _ => at(&["192.0.2.1"]),
    });
    let names = Dns::new(Some(server.address));
    for name in ["lost.example", "failing.example"] {
        let found = names.resolve(name).await.expect("the second time");
        assert_eq!(found, parsed(&["192.0.2.1"]));
        assert_eq!(server.asked(name), 2);
    }
}

/// Another server counts at once, and none at all means those of this machine, and its hosts file.
#[tokio::test]
async fn who_is_asked_can_be_changed() {
    let one = NameServer::new(|_, _| at(&["192.0.2.1"]));
    let other = NameServer::new(|_, _| at(&["192.0.2.2"]));
    let names = Dns::new(Some(one.address));
    let localhost = async || names.resolve("localhost").await.expect("an address");
    assert_eq!(localhost().await, parsed(&["192.0.2.1"]));
    names.reload(Some(other.address));
    assert_eq!(localhost().await, parsed(&["192.0.2.2"]));
    names.reload(None);
    assert!(localhost().await.iter().all(IpAddr::is_loopback));
    assert_eq!((one.names(), other.names()), (1, 1));
}
