//! What the end of a stream proves. Only two things that an upstream can say prove that nothing was done: that it refuses the stream, and
//! that it closes its connection and has looked at no stream from this one on. Everything else leaves an unknown outcome (H1).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use super::TWO;
use super::frames::{
    CANCEL, Do, ENHANCE_YOUR_CALM, Frames, INTERNAL_ERROR, Last, NO_ERROR, REFUSED_STREAM,
};
use crate::effects::scene::{SQLITE, on_each_store};
use crate::guard::scene::{Scene, answered, charge, refused, request};
use crate::support::clock::{TOO_LONG, until};

/// The first request ends like this; a second one with its key is carried out.
#[track_caller]
fn proves_that_nothing_was_done(store: &str, acts: Vec<Do>) {
    let at = format!("{acts:?}");
    let upstream = Frames::new(vec![acts]);
    let scene = Scene::new(store, &upstream.url(), TWO);
    refused(&scene.charge("k1"), 502, "upstream-unreachable");
    // What our upstream did not look at is read, too, before it is thrown away.
    answered(&scene.charge("k1"), 2, false);
    answered(&scene.charge("k1"), 2, true);
    assert_eq!(upstream.carried_out(), 2, "{at}");
}

/// The first request ends like this; nothing more is sent under its key.
#[track_caller]
fn leaves_it_unknown(store: &str, acts: Vec<Do>) {
    let at = format!("{acts:?}");
    let upstream = Frames::new(vec![acts]);
    let scene = Scene::new(store, &upstream.url(), TWO);
    let first = scene.charge("k1");
    assert!(first.status >= 500, "{at}: {first:?}");
    refused(&scene.charge("k1"), 409, "outcome-unknown");
    assert_eq!(scene.keys("?state=unknown&key=k1").len(), 1, "{at}");
    assert_eq!(upstream.carried_out(), 1, "{at}");
    // The upstream is there for others.
    answered(&scene.charge("k2"), 2, false);
}

#[test]
fn a_stream_that_was_refused_has_done_nothing() {
    on_each_store(|store| proves_that_nothing_was_done(store, vec![Do::Reset(REFUSED_STREAM)]));
}

#[test]
fn a_stream_after_the_last_one_of_a_closing_connection_has_done_nothing() {
    for code in [NO_ERROR, INTERNAL_ERROR, ENHANCE_YOUR_CALM] {
        let closing = Do::GoAway(Last::Before, code);
        proves_that_nothing_was_done(SQLITE, vec![closing.clone(), Do::Close]);
        proves_that_nothing_was_done(SQLITE, vec![closing, Do::Wait, Do::Close]);
    }
}

#[test]
fn a_stream_that_the_upstream_looked_at_may_have_done_its_work() {
    for code in [NO_ERROR, INTERNAL_ERROR, ENHANCE_YOUR_CALM] {
        for last in [Last::Own, Last::Any] {
            leaves_it_unknown(SQLITE, vec![Do::GoAway(last, code), Do::Close]);
        }
    }
}

#[test]
fn a_stream_that_was_reset_may_have_done_its_work() {
    for code in [NO_ERROR, INTERNAL_ERROR, CANCEL] {
        leaves_it_unknown(SQLITE, vec![Do::Reset(code)]);
    }
}

#[test]
fn a_connection_that_breaks_after_the_work_leaves_it_unknown() {
    on_each_store(|store| leaves_it_unknown(store, vec![Do::Close]));
}

/// Half an answer is none, however its stream ends.
#[test]
fn an_answer_that_breaks_off_leaves_it_unknown() {
    for end in [
        Do::Close,
        Do::Reset(NO_ERROR),
        Do::Reset(CANCEL),
        Do::Reset(INTERNAL_ERROR),
        Do::GoAway(Last::Before, NO_ERROR),
    ] {
        leaves_it_unknown(SQLITE, vec![Do::HalfAnswer, end]);
    }
}

/// The same where the upstream has not read all of the request: that it wants no more of it does not make its answer whole.
#[test]
fn an_answer_that_breaks_off_before_the_request_is_read_leaves_it_unknown() {
    let acts = vec![Do::Early, Do::HalfAnswer, Do::Reset(NO_ERROR)];
    let upstream = Frames::new(vec![acts]);
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    let head = "x-user: ada\r\nidempotency-key: k1\r\n";
    // More than a stream takes before somebody reads.
    let large = format!("\"{}\"", "x".repeat(300_000));
    let charge = request("POST", "/charges", head, &large);
    let first = scene.ask(&charge);
    assert!(first.status >= 500, "{first:?}");
    refused(&scene.ask(&charge), 409, "outcome-unknown");
    assert_eq!(upstream.carried_out(), 1);
}

/// An upstream may say that it wants no more of the request, when it has answered.
#[test]
fn a_reset_without_an_error_after_the_answer_is_none() {
    let upstream = Frames::new(vec![vec![Do::Answer, Do::Reset(NO_ERROR)]]);
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    answered(&scene.charge("k1"), 1, false);
    answered(&scene.charge("k1"), 1, true);
}

/// A connection that is closing answers what it has taken, and takes no more.
#[test]
fn what_was_under_way_when_a_connection_began_to_close_is_answered() {
    let closing = Do::GoAway(Last::Any, NO_ERROR);
    let upstream = Frames::new(vec![vec![closing, Do::Wait, Do::Answer, Do::Close]]);
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    let mut first = scene.connect();
    first.send(&charge("k1")).expect("sent");
    until(TOO_LONG, "the request is there", || {
        (upstream.carried_out() == 1).then_some(())
    });
    upstream.go_on();
    answered(&first.answer().expect("an answer"), 1, false);
    answered(&scene.charge("k2"), 2, false);
    assert_eq!(upstream.connections(), 2);
}

/// Nothing is sent to an upstream before it has shown that it speaks HTTP/2.
#[test]
fn an_upstream_of_another_version_is_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let listening = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(TOO_LONG)).expect("a time");
        let mut read = vec![0; 24];
        stream.read_exact(&mut read).expect("a preface");
        let answer = b"HTTP/1.1 400 bad request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("shut");
        // It may be gone already, with what it had not read.
        let _ = stream.read_to_end(&mut read);
        read
    });
    let scene = Scene::new(SQLITE, &format!("http://{address}"), TWO);
    refused(&scene.charge("k1"), 502, "upstream-unreachable");
    let keys = scene.keys("?state=unknown");
    assert!(keys.is_empty(), "{keys:?}");
    let read = listening.join().expect("whole");
    let read = String::from_utf8_lossy(&read);
    assert!(!read.contains("amount"), "{read}");
}
