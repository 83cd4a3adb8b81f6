//! Ports on the loopback interface, for servers that live as long as one command.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use anyhow::Context;

/// A loopback address that was free a moment ago. Another process may take it before its user binds it: whoever
/// starts a server on it must be ready to be refused.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
    listener.local_addr().context("a bound port has an address")
}

/// Does someone accept connections at `address`?
#[expect(
    clippy::disallowed_methods,
    reason = "asks a server of our own whether it is up; loopback only"
)]
pub(crate) fn is_listening(address: SocketAddr) -> bool {
    address.ip().is_loopback() && TcpStream::connect(address).is_ok()
}
