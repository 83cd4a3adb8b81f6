//! Work that may panic, and must not take its key with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;

/// The work panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Carries work out; a panic ends it like any other failure. What it left behind is dropped and not looked at again.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    std::future::poll_fn(move |context| {
        let work: Pin<_> = work.as_mut();
        match catch_unwind(AssertUnwindSafe(|| work.poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Err(_payload) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}
