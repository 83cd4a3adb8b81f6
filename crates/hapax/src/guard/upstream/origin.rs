//! Where an upstream is reached over HTTP/2: few connections, each with many streams, opened when the others are full.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hapax_ledger::outcome::NotSent;
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::Connection as _;
use tokio::sync::{Notify, watch};
use tower_service::Service;

use super::connection::{self, Connection, Keeping, Room};
use crate::clock;
use crate::dispatch::connect::{Connector, Unconnected};

/// Connections at a time. Servers allow a hundred streams or more on each, so this is what their HTTP/1.1 would have to bear, too.
const CONNECTIONS_MAX: usize = 256;
/// How long an upstream that has chosen HTTP/1.1 is not asked again.
const CHOICE_HOLDS: Duration = Duration::from_secs(300);

/// What is spoken where both can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Choice {
    /// HTTP/2, or nothing.
    Two,
    /// HTTP/2, or HTTP/1.1 if the upstream does not choose it.
    Either,
}

/// An upstream that may be spoken to in HTTP/2.
pub(super) struct Origin {
    /// Scheme and authority.
    uri: Uri,
    choice: Choice,
    connector: Connector,
    state: Mutex<State>,
    /// A stream has become free.
    freed: Notify,
}

#[derive(Default)]
struct State {
    connections: Vec<Arc<Connection>>,
    opening: Option<Opening>,
    /// When it last chose HTTP/1.1.
    chose_one: Option<Instant>,
}

/// What becomes of a connection that is being opened; nothing as long as nobody knows.
type Opening = watch::Receiver<Option<Result<(), Unconnected>>>;

/// How a request may go out.
pub(super) enum Spoken {
    /// In HTTP/1.1.
    One,
    /// Over this stream.
    Two(Slot),
}

enum Seen {
    Spoken(Spoken),
    Opening(Opening),
    Full,
}

impl Origin {
    pub(super) fn new(uri: Uri, choice: Choice, connector: Connector) -> Origin {
        Origin {
            uri,
            choice,
            connector,
            state: Mutex::default(),
            freed: Notify::new(),
        }
    }

    /// A stream for one request, as soon as there is one. Whoever stops waiting has sent nothing.
    pub(super) async fn speak(self: &Arc<Self>) -> Result<Spoken, Unconnected> {
        loop {
            let mut opening = match self.look() {
                Seen::Spoken(spoken) => return Ok(spoken),
                Seen::Opening(opening) => opening,
                Seen::Full => {
                    let mut freed = pin!(self.freed.notified());
                    freed.as_mut().enable();
                    // One may have become free before we listened.
                    match self.look() {
                        Seen::Spoken(spoken) => return Ok(spoken),
                        Seen::Opening(opening) => opening,
                        Seen::Full => {
                            freed.await;
                            continue;
                        }
                    }
                }
            };
            // All who wait for a connection hear of its failure: the next may have to wait as long for the same.
            match opening.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(Err(failed))) => return Err(failed.clone()),
                Ok(Some(Ok(())) | None) => {}
                Err(_) => return Err(Unconnected::new(NotSent::Refused, "no connection")),
            }
        }
    }

    fn look(self: &Arc<Self>) -> Seen {
        let mut state = self.state();
        let mut free = None;
        state.connections.retain(|connection| {
            if free.is_some() {
                return true;
            }
            let room = connection.room();
            if room == Room::Some {
                free = Some(connection.clone());
            }
            room != Room::Closing
        });
        if let Some(connection) = free {
            connection.take();
            let origin = self.clone();
            return Seen::Spoken(Spoken::Two(Slot { origin, connection }));
        }
        let one = state.chose_one;
        if one.is_some_and(|chosen| clock::since(chosen) < CHOICE_HOLDS) {
            return Seen::Spoken(Spoken::One);
        }
        let opening = state.opening.clone();
        if let Some(opening) = opening.filter(|opening| opening.has_changed().is_ok()) {
            return Seen::Opening(opening);
        }
        if state.connections.len() >= CONNECTIONS_MAX {
            return Seen::Full;
        }
        let (told, opening) = watch::channel(None);
        state.opening = Some(opening.clone());
        let origin = self.clone();
        // Not in the task of whoever needs it first: they may go away, and others wait for it.
        tokio::spawn(async move {
            let opened = origin.open().await;
            told.send_replace(Some(origin.enter(opened)));
        });
        Seen::Opening(opening)
    }

    async fn open(&self) -> Result<Option<(Arc<Connection>, Keeping)>, Unconnected> {
        let stream = self.connector.clone().call(self.uri.clone()).await?;
        let encrypted = self.uri.scheme() == Some(&Scheme::HTTPS);
        match (
            encrypted && !stream.connected().is_negotiated_h2(),
            self.choice,
        ) {
            (true, Choice::Either) => Ok(None),
            (true, Choice::Two) => Err(Unconnected::new(
                NotSent::Tls,
                "it does not choose HTTP/2 in the handshake of TLS",
            )),
            (false, _) => connection::greet(stream).await.map(Some),
        }
    }

    /// What was opened counts from now on.
    fn enter(
        self: &Arc<Self>,
        opened: Result<Option<(Arc<Connection>, Keeping)>, Unconnected>,
    ) -> Result<(), Unconnected> {
        let mut state = self.state();
        state.opening = None;
        match opened? {
            None => state.chose_one = Some(clock::tick()),
            Some((connection, keeping)) => {
                state.chose_one = None;
                state.connections.push(connection.clone());
                let origin = self.clone();
                tokio::spawn(async move {
                    connection::keep(keeping, &connection, || origin.retire(&connection)).await;
                    origin.remove(&connection);
                });
            }
        }
        Ok(())
    }

    /// Takes a connection away if nobody uses it: from then on nobody can.
    fn retire(&self, connection: &Arc<Connection>) -> bool {
        let mut state = self.state();
        let idle = connection.is_idle();
        if idle {
            state
                .connections
                .retain(|held| !Arc::ptr_eq(held, connection));
        }
        idle
    }

    fn remove(&self, connection: &Arc<Connection>) {
        self.state()
            .connections
            .retain(|held| !Arc::ptr_eq(held, connection));
        // There is room for another.
        self.freed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One stream of a connection, until it is dropped.
pub(super) struct Slot {
    origin: Arc<Origin>,
    connection: Arc<Connection>,
}

impl Slot {
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connection.give_back();
        self.origin.freed.notify_one();
    }
}
