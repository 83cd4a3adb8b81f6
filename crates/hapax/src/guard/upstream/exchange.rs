//! One request and its answer over a stream of HTTP/2, and what a failure on it proves.
//!
//! The stream is the `h2` crate's own. A client above it would say of a connection that is closing only that it is; the stream itself says
//! whether the upstream has refused this very request.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Body;

use super::arriving::{Arriving, Streamed, Upload};
use super::moving::Moves;
use super::origin::Slot;
use super::{NoAnswer, Outgoing, Why, withheld};

/// Sends a request and waits for the head of the answer. Dropping it resets the stream.
pub(super) async fn exchange(
    slot: Slot,
    request: Request<Outgoing>,
    moves: &Arc<Moves>,
) -> Result<Response<Arriving>, NoAnswer> {
    let (head, body) = request.into_parts();
    let ends = body.is_end_stream();
    let mut sender = slot.connection().sender();
    if !moves.begin() {
        return Err(withheld());
    }
    let opened = sender.send_request(Request::from_parts(head, ()), ends);
    // Without a stream nothing was written.
    let (mut answering, stream) = opened.map_err(|error| NoAnswer::NotSent {
        why: Why::Broken,
        text: format!("no request can be made of it: {error}"),
    })?;
    let mut uploading = (!ends).then(|| Box::pin(upload(body, stream, moves.clone())));
    let answered = loop {
        tokio::select! {
            biased;
            answered = &mut answering => break answered,
            () = async { if let Some(upload) = &mut uploading { upload.await } }, if uploading.is_some() => {
                uploading = None;
            }
        }
    };
    let response = answered.map_err(|error| no_answer(&error))?;
    // An upstream may begin to answer before it has read everything, and its reader may begin to read when all is sent.
    let upload = uploading.map(|upload| Upload(tokio::spawn(upload).abort_handle()));
    let (head, stream) = response.into_parts();
    let body = Streamed::new(stream, &head.headers, upload, slot);
    Ok(Response::from_parts(head, Arriving::Two(body)))
}

/// What the end of a stream without an answer proves. An upstream that refuses a stream has done nothing with it (RFC 9113, 8.7), nor has one
/// that closes its connection and names the last stream it looks at, if ours came after that (6.8): `h2` ends only those streams
/// with the upstream's own word of goodbye. Whatever else ends a stream, the upstream may have been at work.
fn no_answer(error: &h2::Error) -> NoAnswer {
    let text = error.to_string();
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    match error.is_remote() && (refused || error.is_go_away()) {
        true => NoAnswer::Refused { text },
        false => NoAnswer::Lost {
            why: Why::Broken,
            text,
        },
    }
}

/// Passes a body on as it comes and as the upstream has room for it.
async fn upload(body: Outgoing, mut stream: SendStream<Bytes>, moves: Arc<Moves>) {
    let mut body = pin!(body);
    loop {
        // Nothing is asked of the caller before there is room for it.
        stream.reserve_capacity(1);
        if room(&mut stream).await.is_none() {
            return;
        }
        let frame = tokio::select! {
            biased;
            // The upstream wants no more of it.
            _ = poll_fn(|context| stream.poll_reset(context)) => return,
            frame = body.frame() => frame,
        };
        moves.note();
        let sent = match frame {
            None => stream.send_data(Bytes::new(), true).map(|()| Sent::All),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => pieces(&mut stream, data, body.is_end_stream(), &moves).await,
                Err(frame) => match frame.into_trailers() {
                    Ok(trailers) => stream.send_trailers(trailers).map(|()| Sent::All),
                    Err(_) => Ok(Sent::Part),
                },
            },
            Some(Err(_)) => {
                // The caller broke off: half a request must not look like a whole one.
                stream.send_reset(Reason::CANCEL);
                return;
            }
        };
        match sent {
            Ok(Sent::Part) => {}
            // Why there is nothing more to send is told by the answer.
            Ok(Sent::All) | Err(_) => return,
        }
    }
}

enum Sent {
    Part,
    All,
}

/// Passes one part on, in pieces as the upstream has room for them.
async fn pieces(
    stream: &mut SendStream<Bytes>,
    mut data: Bytes,
    last: bool,
    moves: &Moves,
) -> Result<Sent, h2::Error> {
    loop {
        stream.reserve_capacity(data.len());
        let room = match data.len() {
            0 => 0,
            _ => match room(stream).await {
                Some(room) => room,
                None => return Ok(Sent::All),
            },
        };
        let piece = data.split_to(room.min(data.len()));
        stream.send_data(piece, last && data.is_empty())?;
        moves.note();
        if data.is_empty() {
            return Ok(match last {
                true => Sent::All,
                false => Sent::Part,
            });
        }
    }
}

/// How many bytes the upstream has room for, at least one; nothing if it wants no more.
async fn room(stream: &mut SendStream<Bytes>) -> Option<usize> {
    loop {
        match stream.capacity() {
            0 => poll_fn(|context| stream.poll_capacity(context))
                .await?
                .ok()?,
            room => return Some(room),
        };
    }
}
