//! One connection of HTTP/2: opened, greeted, and kept for as long as somebody uses it.
//!
//! No request is given to a connection before the upstream has shown that it speaks HTTP/2: whatever fails until then proves that nothing
//! was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Ping, PingPong};
use hapax_ledger::outcome::NotSent;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::{CONNECT_TIMEOUT, HEAD_BYTES_MAX};
use crate::clock;
use crate::dispatch::connect::Unconnected;

/// How much of one answer may wait for its reader.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// All that HTTP/2 can say. With less, some readers that stand still would hold up everybody else's answers; what waits in
/// memory is bounded by the streams.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;
/// How often a connection is looked at. One that was not used between two looks is closed: common servers close theirs after 5 seconds,
/// and ours go first.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often a connection in use is asked whether it is still there, and how long the answer may take: without it one dead connection
/// would swallow every request to its upstream.
const PING_INTERVAL: Duration = Duration::from_secs(10);

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type Work = h2::client::Connection<TokioIo<Stream>, Bytes>;

/// A connection that requests share.
pub(super) struct Connection {
    send: SendRequest<Bytes>,
    /// Streams that are in use.
    streams: AtomicUsize,
    /// Streams that ever were: where this stands still, nobody comes.
    taken: AtomicU64,
}

/// What a connection needs to go on.
pub(super) struct Keeping {
    work: Work,
    pings: PingPong,
}

impl Connection {
    /// May another request go over it? One that is closing takes no more.
    pub(super) fn room(&self) -> Room {
        let mut send = self.send.clone();
        match send.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(_)) => Room::Closing,
            // A stream of this clone's own would have to wait; it has none.
            Poll::Pending => Room::None,
            Poll::Ready(Ok(())) => {
                match self.streams.load(Ordering::SeqCst) < send.current_max_send_streams() {
                    true => Room::Some,
                    false => Room::None,
                }
            }
        }
    }

    /// One more stream. Its origin's lock is held.
    pub(super) fn take(&self) {
        self.streams.fetch_add(1, Ordering::SeqCst);
        self.taken.fetch_add(1, Ordering::SeqCst);
    }

    /// One less.
    pub(super) fn give_back(&self) {
        self.streams.fetch_sub(1, Ordering::SeqCst);
    }

    /// Does nobody use it?
    pub(super) fn is_idle(&self) -> bool {
        self.streams.load(Ordering::SeqCst) == 0
    }

    /// The way to open a stream.
    pub(super) fn sender(&self) -> SendRequest<Bytes> {
        self.send.clone()
    }
}

/// Is there room for a request?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Yes.
    Some,
    /// Not now: the upstream allows no more streams at a time.
    None,
    /// Never again.
    Closing,
}

/// Begins to speak HTTP/2, and waits until the upstream does: its answer to the first ping comes after its settings.
pub(super) async fn greet(stream: Stream) -> Result<(Arc<Connection>, Keeping), Unconnected> {
    match timeout(CONNECT_TIMEOUT, greeted(stream)).await {
        Ok(greeted) => greeted,
        Err(_) => Err(Unconnected::new(
            NotSent::ConnectTimeout,
            "it is silent when spoken to in HTTP/2",
        )),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the guard's way of HTTP/2, over our own connector"
)]
async fn greeted(stream: Stream) -> Result<(Arc<Connection>, Keeping), Unconnected> {
    let stranger = || Unconnected::new(NotSent::Refused, "it does not speak HTTP/2");
    let shaking = h2::client::Builder::new()
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await;
    let (send, mut work): (SendRequest<Bytes>, Work) = shaking.map_err(|_| stranger())?;
    let mut pings = work.ping_pong().ok_or_else(stranger)?;
    tokio::select! {
        _ = &mut work => return Err(stranger()),
        answered = pings.ping(Ping::opaque()) => answered.map_err(|_| stranger())?,
    };
    if send.current_max_send_streams() == 0 {
        return Err(Unconnected::new(NotSent::Refused, "it allows no requests"));
    }
    let connection = Connection {
        send,
        streams: AtomicUsize::new(0),
        taken: AtomicU64::new(0),
    };
    Ok((Arc::new(connection), Keeping { work, pings }))
}

/// Works for a connection until it ends, is dead, or nobody uses it and `retire` agrees. What was under way then is lost.
pub(super) async fn keep(keeping: Keeping, connection: &Connection, retire: impl Fn() -> bool) {
    let Keeping {
        mut work,
        mut pings,
    } = keeping;
    let (mut heard, mut asked) = (clock::tick(), false);
    let mut taken = 0;
    loop {
        tokio::select! {
            _ = &mut work => return,
            () = sleep(LOOK_EVERY) => {}
        }
        let before = std::mem::replace(&mut taken, connection.taken.load(Ordering::SeqCst));
        if connection.is_idle() && before == taken && retire() {
            return;
        }
        if asked {
            match pings.poll_pong(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(_)) => (heard, asked) = (clock::tick(), false),
                Poll::Ready(Err(_)) => return,
                Poll::Pending if clock::since(heard) > 2 * PING_INTERVAL => return,
                Poll::Pending => {}
            }
        } else if clock::since(heard) >= PING_INTERVAL {
            if pings.send_ping(Ping::opaque()).is_err() {
                return;
            }
            asked = true;
        }
    }
}
