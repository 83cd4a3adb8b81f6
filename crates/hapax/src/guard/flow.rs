//! Bodies on their way through: as they come, unless they stand still for too long.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use super::BoxError;
use super::place::Place;

/// A body that is given up when nothing of it comes for a while.
pub struct Flowing<B> {
    body: B,
    patience: Duration,
    /// Runs while somebody waits for a part; a part that is there costs no timer.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Held for as long as the body.
    place: Option<Place>,
}

/// Nothing came for too long.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body stood still for too long")]
pub struct StoodStill;

impl<B> Flowing<B> {
    /// This body, with so much patience between two parts.
    pub fn new(body: B, patience: Duration) -> Flowing<B> {
        Flowing {
            body,
            patience,
            waiting: None,
            place: None,
        }
    }

    /// The same, and its request has this place as long as the body is there.
    pub fn in_place(mut self, place: Option<Place>) -> Flowing<B> {
        self.place = place;
        self
    }
}

impl<B> Body for Flowing<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.waiting = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err(StoodStill.into()))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
