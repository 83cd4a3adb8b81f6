//! A wire to PostgreSQL, or to the program, that the test can cut.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::clock::TOO_LONG;

/// PostgreSQL's *ready for the next query, no transaction open*: what it says after a commit.
const READY_AND_IDLE: &[u8] = b"Z\0\0\0\x05I";

/// What the wire does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Carries everything.
    Whole,
    /// Is cut: connections end, new ones are ended at once.
    Cut,
    /// Carries nothing and says nothing.
    Silent,
    /// Carries everything up to the commit of a statement with this text in it. The answer to that is swallowed, its connection
    /// ends, and for all others the wire is [`Wire::Whole`] again.
    CutAtAnswerTo(String),
    /// Carries everything up to a request with this text in it. That is held back until the wire does something else, and then lost
    /// with its connection.
    HeldAtAskOf(String),
    /// The same with the answer to the commit of a statement with this text in it.
    HeldAtAnswerTo(String),
}

/// Listens on loopback and carries bytes to and from a server.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    wire: Wire,
    open: Vec<TcpStream>,
    /// Is something held back?
    held: bool,
}

/// What becomes of bytes on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Carried,
    Lost,
    Held,
}

impl Proxy {
    /// A wire to the server of a database, and the URL of the database through it.
    pub(crate) fn to_database(url: &str) -> (Proxy, String) {
        let (scheme, rest) = url.split_once("://").expect("a URL");
        let (authority, path) = rest.split_once('/').expect("a database");
        let (user, host) = authority.rsplit_once('@').expect("a user");
        let mut addresses = host.to_socket_addrs().expect("a host");
        let proxy = Proxy::to(addresses.next().expect("an address"));
        let through = format!("{scheme}://{user}@{}/{path}", proxy.address);
        (proxy, through)
    }

    /// A wire to `server`. Its threads end with the process.
    pub(crate) fn to(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Mutex::new(State {
            wire: Wire::Whole,
            open: Vec::new(),
            held: false,
        });
        let shared = Arc::new(Shared {
            server,
            state,
            changed: Condvar::new(),
        });
        let carrying = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A connection that cannot be carried is dropped, as a wire would.
                let _ = carrying.carry(client);
            }
        });
        Proxy { address, shared }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes the wire do something else from now on.
    pub(crate) fn set(&self, wire: Wire) {
        let mut state = self.shared.state();
        state.wire = wire;
        state.held = false;
        if state.wire == Wire::Cut {
            for stream in state.open.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.shared.changed.notify_all();
    }

    /// Waits until something is held back; see [`Wire::HeldAtAskOf`].
    #[track_caller]
    pub(crate) fn wait_until_held(&self) {
        let state = self.shared.state();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, TOO_LONG, |state| !state.held);
        let (_state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "nothing came that was to be held back");
    }

    pub(crate) fn wire(&self) -> Wire {
        self.shared.state().wire.clone()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test's wire to the test's own database server"
    )]
    fn carry(self: &Arc<Shared>, client: TcpStream) -> io::Result<()> {
        if self.state().wire == Wire::Cut {
            return client.shutdown(Shutdown::Both);
        }
        let server = TcpStream::connect(self.server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        self.state()
            .open
            .extend([client.try_clone()?, server.try_clone()?]);
        let (forth, back) = (self.clone(), self.clone());
        let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
        let doomed = Arc::new(AtomicBool::new(false));
        let dooms = doomed.clone();
        let asks = move |state: &mut State, bytes: &[u8]| match &state.wire {
            Wire::HeldAtAskOf(text) if contains(bytes, text.as_bytes()) => Fate::Held,
            Wire::CutAtAnswerTo(text) | Wire::HeldAtAnswerTo(text)
                if contains(bytes, text.as_bytes()) =>
            {
                dooms.store(true, Ordering::Relaxed);
                Fate::Carried
            }
            _ => Fate::Carried,
        };
        let answers = move |state: &mut State, bytes: &[u8]| {
            if !doomed.load(Ordering::Relaxed) || !bytes.ends_with(READY_AND_IDLE) {
                return Fate::Carried;
            }
            match state.wire {
                Wire::HeldAtAnswerTo(_) => Fate::Held,
                _ => {
                    state.wire = Wire::Whole;
                    Fate::Lost
                }
            }
        };
        thread::spawn(move || forth.pump(client, server, asks));
        thread::spawn(move || back.pump(server_too, client_too, answers));
        Ok(())
    }

    /// Carries bytes one way until an end closes or they may not pass.
    fn pump(
        &self,
        mut from: TcpStream,
        mut to: TcpStream,
        fate: impl Fn(&mut State, &[u8]) -> Fate,
    ) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            let mut state = self.state();
            while state.wire == Wire::Silent {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let fate = fate(&mut state, &bytes[..read]);
            if fate == Fate::Held {
                state.held = true;
                self.changed.notify_all();
                while state.held {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
            drop(state);
            if fate != Fate::Carried || to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
