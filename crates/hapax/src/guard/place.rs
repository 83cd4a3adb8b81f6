//! Places for requests under way to a guard's upstream.
//!
//! A run goes on when its caller hangs up, and one connection of HTTP/2 brings many requests: the number of connections says little about the
//! number of requests. Each of them may need a connection to the upstream, and those are files that the whole server shares.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of one guard.
#[derive(Clone)]
pub struct Places(Arc<Semaphore>);

/// A place of one request. It is free again when nothing of the request or its answer is left.
#[derive(Clone)]
pub struct Place(#[expect(dead_code, reason = "held, not read")] Arc<OwnedSemaphorePermit>);

impl Places {
    /// So many.
    pub fn new(most: usize) -> Places {
        Places(Arc::new(Semaphore::new(most)))
    }

    /// One of them; `None` if all are taken.
    pub fn take(&self) -> Option<Place> {
        let permit = self.0.clone().try_acquire_owned().ok()?;
        Some(Place(Arc::new(permit)))
    }
}
