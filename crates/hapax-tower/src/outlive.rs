//! Work that goes on when whoever waits for it has gone.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tracing::Instrument;

/// Work in the task of whoever waits for it: nothing has to be handed from one task to another. When nobody waits any more, what is left of it gets a
/// task of its own.
pub struct Outliving<T: Send + 'static> {
    /// `None` once it is done; and while it is polled, so that work that panics is not taken up again.
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    runtime: Handle,
}

impl<T: Send + 'static> Outliving<T> {
    /// Work to be waited for, in a runtime.
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> Outliving<T> {
        Outliving {
            work: Some(Box::pin(work)),
            runtime: Handle::current(),
        }
    }
}

impl<T: Send + 'static> Future for Outliving<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut work = self
            .work
            .take()
            .expect("a future is not polled after it has answered");
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Outliving<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            let rest = async move { drop(work.await) };
            // Whoever counts what runs waits for it: see `running`, and the program's dispatcher.
            drop(self.runtime.spawn(rest.in_current_span()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn whoever_waits_gets_what_came_of_it() {
        assert_eq!(Outliving::new(async { 7 }).await, 7);
    }

    #[tokio::test]
    async fn work_goes_on_when_nobody_waits() {
        let (go, going) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let mut work = Outliving::new(async move {
            going.await.expect("it is let go");
            done.send(()).expect("somebody listens");
        });
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut work).poll(&mut context).is_pending());
        drop(work);
        go.send(()).expect("it goes on");
        is_done.await.expect("it came to its end");
    }

    #[tokio::test]
    async fn work_that_nobody_ever_polled_is_done_too() {
        let (done, is_done) = oneshot::channel();
        drop(Outliving::new(async move { done.send(()).is_ok() }));
        is_done.await.expect("it came to its end");
    }
}
