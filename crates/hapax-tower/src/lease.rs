//! A run's lease, by this process's own clock: whoever begins something that cannot be taken back asks it first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::clock;

/// The lease of a guarded run, in the extensions of the request that the inner service gets, beside [`GuardedRun`](crate::GuardedRun).
///
/// A service that does its work elsewhere may be held up before that begins: it resolves a name, connects, waits for its turn. Meanwhile the
/// lease may end, because the process stood still or cannot reach its store; then the key's outcome counts as unknown, somebody may find
/// out that nothing was done, and the next request runs. So a service like that asks once more before the first thing that cannot be taken
/// back, and as near to it as it can:
///
/// ```
/// use hapax_tower::{Keep, RunLease};
///
/// # fn before_the_first_byte(request: http::Request<()>) -> Option<http::Response<&'static str>> {
/// let lease = request.extensions().get::<RunLease>();
/// if lease.is_some_and(|lease| !lease.holds()) {
///     let mut answer = http::Response::new("nothing was sent: try again");
///     *answer.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
///     answer.extensions_mut().insert(Keep::Release);
///     return Some(answer);
/// }
/// # None
/// # }
/// ```
///
/// What has begun goes on: nobody can tell what half of it would mean, and its answer still counts if nobody ran again.
#[derive(Clone, Debug)]
pub struct RunLease(Arc<Held>);

#[derive(Debug)]
struct Held {
    start: Instant,
    /// Microseconds from the start to its end; 0 once it is known lost.
    until: AtomicU64,
}

impl RunLease {
    /// A lease that begins now: for tests of a service that asks for it.
    pub fn lasting(length: Duration) -> RunLease {
        RunLease::granted(clock::tick(), length)
    }

    /// The store was asked for it then. It granted it later than that, so it holds no longer than we think.
    pub(crate) fn granted(asked: Instant, length: Duration) -> RunLease {
        RunLease(Arc::new(Held {
            start: asked,
            until: AtomicU64::new(micros(length)),
        }))
    }

    /// The store was asked then, and has extended it.
    pub(crate) fn extended(&self, asked: Instant, length: Duration) {
        let until = asked.saturating_duration_since(self.0.start) + length;
        self.0.until.store(micros(until), Ordering::SeqCst);
    }

    /// The key is not this run's any more.
    pub(crate) fn lost(&self) {
        self.0.until.store(0, Ordering::SeqCst);
    }

    /// Is the key this run's still? A process that stood still finds that the clock has run on.
    pub fn holds(&self) -> bool {
        micros(clock::since(self.0.start)) < self.0.until.load(Ordering::SeqCst)
    }
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn it_holds_for_as_long_as_was_granted() {
        assert!(RunLease::lasting(HOUR).holds());
        assert!(!RunLease::lasting(Duration::ZERO).holds());
        let second = Duration::from_secs(1);
        let before = clock::tick().checked_sub(second);
        let before = before.expect("the machine has been up for a second");
        let lease = RunLease::granted(before, second);
        assert!(!lease.holds(), "no timer had to run for that");
    }

    #[test]
    fn it_counts_from_when_the_store_was_asked() {
        let lease = RunLease::lasting(Duration::ZERO);
        lease.extended(clock::tick(), HOUR);
        assert!(lease.holds());
        lease.lost();
        assert!(!lease.holds());
    }
}
