//! The sender against receivers that behave and receivers that do not, over real sockets.

mod answers;
mod connections;
mod names;
mod receiver;
mod tls;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use hapax::dispatch::answer::Keep;
use hapax::dispatch::connect::Reach;
use hapax::dispatch::sender::{Outgoing, Sender, Settings};
use hapax_ledger::outcome::{Lost, NotSent, Outcome};
use http::{HeaderMap, Method};

/// Long enough for any answer on loopback, short enough to wait for none.
const SHORT: Duration = Duration::from_millis(200);
/// For requests that are answered: the machine may be busy.
const LONG: Duration = Duration::from_secs(30);

fn sender() -> Sender {
    Sender::new(Settings::default()).expect("no additional roots")
}

fn post(url: &str, timeout: Duration) -> Outgoing {
    Outgoing {
        method: Method::POST,
        url: url.parse().expect("a URL"),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"hello"),
        timeout,
        reach: Reach::Anywhere,
        keep: Keep::Excerpt,
        secrets_to_redact: [].into(),
    }
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/hook")
}

fn not_sent(why: NotSent) -> Outcome {
    Outcome::NotSent { why }
}

fn lost(why: Lost) -> Outcome {
    Outcome::Lost { why }
}

fn answered(status: u16) -> Outcome {
    Outcome::Answered {
        status,
        retry_after: None,
    }
}
