//! The body that the caller gets.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// An answer's body: the service's own where the guard has no business with it, else what the guard has kept or says.
    pub struct AnswerBody<B> {
        #[pin]
        from: From<B>,
    }
}

pin_project! {
    #[project = Source]
    enum From<B> {
        Service { #[pin] body: B },
        Whole { bytes: Bytes, trailers: Option<HeaderMap> },
        Resumed { head: VecDeque<Bytes>, rest: Pin<Box<B>> },
    }
}

impl<B> AnswerBody<B> {
    /// The service's own.
    pub(crate) fn passed(body: B) -> AnswerBody<B> {
        AnswerBody {
            from: From::Service { body },
        }
    }

    /// These bytes.
    pub(crate) fn whole(bytes: Bytes) -> AnswerBody<B> {
        AnswerBody::with_trailers(bytes, None)
    }

    /// These bytes, and what came behind them.
    pub(crate) fn with_trailers(bytes: Bytes, trailers: Option<HeaderMap>) -> AnswerBody<B> {
        AnswerBody {
            from: From::Whole { bytes, trailers },
        }
    }

    /// What was read of it, and then the rest.
    pub(crate) fn resumed(head: VecDeque<Bytes>, rest: Pin<Box<B>>) -> AnswerBody<B> {
        AnswerBody {
            from: From::Resumed { head, rest },
        }
    }
}

impl<B: Body<Data = Bytes>> Body for AnswerBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().from.project() {
            Source::Service { body } => body.poll_frame(context),
            Source::Whole { bytes, .. } if !bytes.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes)))))
            }
            Source::Whole { trailers, .. } => Poll::Ready(
                trailers
                    .take()
                    .map(|trailers| Ok(Frame::trailers(trailers))),
            ),
            Source::Resumed { head, rest } => match head.pop_front() {
                Some(part) => Poll::Ready(Some(Ok(Frame::data(part)))),
                None => rest.as_mut().poll_frame(context),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.from {
            From::Service { body } => body.is_end_stream(),
            From::Whole { bytes, trailers } => bytes.is_empty() && trailers.is_none(),
            From::Resumed { head, rest } => head.is_empty() && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.from {
            From::Service { body } => body.size_hint(),
            From::Whole {
                bytes,
                trailers: None,
            } => SizeHint::with_exact(bytes.len() as u64),
            // A length would leave no room for what comes behind it: over HTTP/1.1 only chunks have trailers.
            From::Whole { bytes, .. } => {
                let mut hint = SizeHint::new();
                hint.set_lower(bytes.len() as u64);
                hint
            }
            From::Resumed { head, rest } => {
                let head: u64 = head.iter().map(|part| part.len() as u64).sum();
                let rest = rest.size_hint();
                let mut hint = SizeHint::new();
                hint.set_lower(rest.lower().saturating_add(head));
                if let Some(upper) = rest.upper() {
                    hint.set_upper(upper.saturating_add(head));
                }
                hint
            }
        }
    }
}
