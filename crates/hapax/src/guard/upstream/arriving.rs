//! An answer's body as it comes from an upstream, over either version of HTTP.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::task::AbortHandle;

use super::origin::Slot;
use crate::guard::BoxError;

/// An answer's body.
pub enum Arriving {
    /// Over a connection of its own.
    One(Incoming),
    /// Over a stream.
    Two(Streamed),
}

/// The body of an answer over HTTP/2. Dropping it before its end resets the stream.
pub struct Streamed {
    stream: RecvStream,
    /// How many bytes are to come, where the head says so.
    left: Option<u64>,
    part: Part,
    /// The rest of the request, which may still be on its way.
    _upload: Option<Upload>,
    /// Given back when the stream is not used any more.
    _slot: Slot,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Data,
    Trailers,
    End,
}

impl Streamed {
    pub(super) fn new(
        stream: RecvStream,
        head: &HeaderMap,
        upload: Option<Upload>,
        slot: Slot,
    ) -> Streamed {
        let length = head.get(CONTENT_LENGTH);
        // An answer to HEAD has a length and no body.
        let length = length.filter(|_| !stream.is_end_stream());
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        Streamed {
            stream,
            left: length,
            part: Part::Data,
            _upload: upload,
            _slot: slot,
        }
    }

    fn poll_part(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if self.part == Part::Data {
            match ready!(self.stream.poll_data(context)) {
                Some(Ok(data)) => {
                    // It fails only for a stream that is no more, and that is told by the next part.
                    let _ = self.stream.flow_control().release_capacity(data.len());
                    self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(self.broken(error)),
                None => self.part = Part::Trailers,
            }
        }
        if self.part == Part::Trailers {
            let trailers = ready!(self.stream.poll_trailers(context));
            self.part = Part::End;
            return Poll::Ready(match trailers {
                Ok(trailers) => trailers.map(|trailers| Ok(Frame::trailers(trailers))),
                Err(error) => self.broken(error),
            });
        }
        Poll::Ready(None)
    }

    /// The stream was reset. An upstream that does not want the rest of the request says so without an error, after its whole answer
    /// (RFC 9113, 8.1), of which the end has been heard then; every other reset leaves half an answer. So does one that comes before the end,
    /// whatever it is called, unless all that was announced is here.
    fn broken(&mut self, error: h2::Error) -> Option<Result<Frame<Bytes>, h2::Error>> {
        let by_upstream = error.is_reset() && error.is_remote();
        let enough = by_upstream && error.reason() == Some(Reason::NO_ERROR);
        self.part = Part::End;
        match enough && self.left == Some(0) {
            true => None,
            false => Some(Err(error)),
        }
    }
}

impl Arriving {
    /// Does its end show that it is whole? One of HTTP/1.1 that has neither a length nor chunks ends with the connection, however that ends.
    pub fn ends_by_itself(&self, head: &HeaderMap) -> bool {
        match self {
            Arriving::One(body) => body.size_hint().exact().is_some() || in_chunks(head),
            Arriving::Two(_) => true,
        }
    }
}

/// Is the last coding of the body chunked?
fn in_chunks(head: &HeaderMap) -> bool {
    let last = head.get_all(TRANSFER_ENCODING).iter().next_back();
    let codings = last.and_then(|value| value.to_str().ok());
    let last = codings.and_then(|codings| codings.rsplit(',').next());
    last.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"))
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Arriving::One(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Arriving::Two(body) => body.poll_part(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Arriving::One(body) => body.is_end_stream(),
            Arriving::Two(body) => body.part == Part::End || body.stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Arriving::One(body) => body.size_hint(),
            Arriving::Two(_) if self.is_end_stream() => SizeHint::with_exact(0),
            Arriving::Two(body) => body
                .left
                .map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

/// The rest of a request that is still on its way while its answer comes. It ends with the answer.
pub(super) struct Upload(pub(super) AbortHandle);

impl Drop for Upload {
    fn drop(&mut self) {
        self.0.abort();
    }
}
