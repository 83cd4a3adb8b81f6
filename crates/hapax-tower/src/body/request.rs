//! The body that the inner service gets.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::fs::File;
use tokio::io::{AsyncRead, ReadBuf};

use super::BoxError;

/// Bytes that are read from disk at a time.
const READ_BYTES: usize = 64 * 1024;

pin_project! {
    /// A request's body: the caller's own where the guard has no business with it, else what the guard has held.
    pub struct GuardBody<B> {
        #[pin]
        from: From<B>,
    }
}

pin_project! {
    #[project = Source]
    enum From<B> {
        Caller { #[pin] body: B },
        Memory { bytes: Bytes },
        Disk { #[pin] file: File, left: u64, buffer: Vec<u8> },
    }
}

impl<B> GuardBody<B> {
    pub(crate) fn passed(body: B) -> GuardBody<B> {
        GuardBody {
            from: From::Caller { body },
        }
    }

    pub(crate) fn memory(bytes: Bytes) -> GuardBody<B> {
        GuardBody {
            from: From::Memory { bytes },
        }
    }

    /// `bytes` bytes of a file, from where it stands.
    pub(crate) fn disk(file: File, bytes: u64) -> GuardBody<B> {
        GuardBody {
            from: From::Disk {
                file,
                left: bytes,
                buffer: Vec::new(),
            },
        }
    }
}

impl<B> Body for GuardBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().from.project() {
            Source::Caller { body } => body.poll_frame(context).map_err(Into::into),
            Source::Memory { bytes } if bytes.is_empty() => Poll::Ready(None),
            Source::Memory { bytes } => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Source::Disk { left: 0, .. } => Poll::Ready(None),
            Source::Disk { file, left, buffer } => {
                let part = ready!(read(file, *left, buffer, context));
                if let Ok(part) = &part {
                    *left -= part.len() as u64;
                }
                Poll::Ready(Some(part.map(Frame::data).map_err(Into::into)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.from {
            From::Caller { body } => body.is_end_stream(),
            From::Memory { bytes } => bytes.is_empty(),
            From::Disk { left, .. } => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.from {
            From::Caller { body } => body.size_hint(),
            From::Memory { bytes } => SizeHint::with_exact(bytes.len() as u64),
            From::Disk { left, .. } => SizeHint::with_exact(*left),
        }
    }
}

/// The next bytes of a file of which `left` are left, at least one.
fn read(
    file: Pin<&mut File>,
    left: u64,
    buffer: &mut Vec<u8>,
    context: &mut Context<'_>,
) -> Poll<io::Result<Bytes>> {
    let most = usize::try_from(left).map_or(READ_BYTES, |left| left.min(READ_BYTES));
    buffer.resize(most, 0);
    let mut part = ReadBuf::new(buffer);
    ready!(file.poll_read(context, &mut part))?;
    Poll::Ready(match part.filled() {
        [] => Err(io::ErrorKind::UnexpectedEof.into()),
        filled => Ok(Bytes::copy_from_slice(filled)),
    })
}
