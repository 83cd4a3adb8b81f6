//! What an error proves: that certainly nothing was sent, or that nobody knows.
//!
//! The rule: as long as hyper had not given the request a connection, or gave it back untouched, no byte left. From
//! then on any error is a loss, whatever it says.

use std::error::Error;
use std::io;

use hapax_ledger::outcome::{Lost, NotSent, Outcome};
use hyper_util::client::legacy;

use super::connect::Unconnected;

/// Had the request been given a connection when it failed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// No.
    None,
    /// Yes: bytes may have left.
    Assigned,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection was gone before it took the request: nothing was written, another may be tried at once.
    Untouched,
    /// There will be no answer.
    Final {
        /// What that proves.
        outcome: Outcome,
        /// For people, short.
        text: String,
    },
}

impl From<Unconnected> for Failure {
    fn from(unconnected: Unconnected) -> Failure {
        not_sent(unconnected.why, unconnected.text)
    }
}

/// Nothing was sent.
pub(super) fn not_sent(why: NotSent, text: impl Into<String>) -> Failure {
    let outcome = Outcome::NotSent { why };
    let text = text.into();
    Failure::Final { outcome, text }
}

/// Something may have been sent, and there is no answer.
pub(super) fn lost(why: Lost, text: impl Into<String>) -> Failure {
    let outcome = Outcome::Lost { why };
    let text = text.into();
    Failure::Final { outcome, text }
}

/// What hyper's error proves.
pub(crate) fn of(error: &legacy::Error, connection: Connection) -> Failure {
    if let Some(unconnected) = find::<Unconnected>(error) {
        return unconnected.clone().into();
    }
    let cause = find::<hyper::Error>(error);
    // hyper 1.12 calls a request of a client canceled only where it hands the request back, and it hands back only what
    // it never took from its queue (client/dispatch.rs, proto/h1/dispatch.rs). A connection error that is not our
    // connector's is the pool's own, about a connection that somebody else was opening.
    if error.is_connect() || cause.is_some_and(hyper::Error::is_canceled) {
        return Failure::Untouched;
    }
    match connection {
        Connection::None => not_sent(
            NotSent::Refused,
            "the connection was closed before a request could be written",
        ),
        Connection::Assigned => {
            let (why, text) = words(error, cause);
            lost(why, text)
        }
    }
}

fn words(error: &legacy::Error, cause: Option<&hyper::Error>) -> (Lost, String) {
    if let Some(cause) = cause {
        if cause.is_parse_too_large() {
            return (Lost::Reset, "the head of the answer is too large".into());
        }
        if cause.is_parse() {
            return (Lost::Reset, "the answer is not HTTP".into());
        }
        if cause.is_incomplete_message() {
            return (Lost::Reset, "connection closed without an answer".into());
        }
        if cause.is_timeout() {
            return (Lost::Timeout, "the connection went silent".into());
        }
    }
    match find::<io::Error>(error) {
        Some(io) if io.kind() == io::ErrorKind::TimedOut => {
            (Lost::Timeout, "the connection went silent".into())
        }
        // rustls and HTTP/2 report through I/O errors of no particular kind; those are about the stream.
        Some(io) if io.kind() != io::ErrorKind::Other => (Lost::Reset, io.kind().to_string()),
        Some(_) | None => (Lost::Reset, "the connection broke".into()),
    }
}

/// The first cause of this type.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}
