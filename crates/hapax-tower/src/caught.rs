//! Work that may panic, and must not take its key with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// The work panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Carries work out; a panic ends it like any other failure. What it left behind is dropped and not looked at again.
pub(crate) fn caught<F: Future>(work: F) -> Caught<F> {
    Caught { work }
}

pin_project! {
    /// Work that is carried out. A type of its own, since an `async fn` would have room for the work twice.
    pub(crate) struct Caught<F> {
        #[pin]
        work: F,
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let work = self.project().work;
        match catch_unwind(AssertUnwindSafe(|| work.poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Err(_payload) => Poll::Ready(Err(Panicked)),
        }
    }
}
