//! The batcher: whatever waits while earlier groups are in flight goes into the next one.
//!
//! A few lanes take turns at one queue. A lane takes all that waits, up to a limit, and carries it through its commit. Each ask is
//! answered after the commit that holds its own rows, and by nothing else (A6).
//!
//! A lane that cannot reach the server says so to whoever it took, and then tries again after growing pauses. While no lane can
//! reach it, asks are refused at once instead of waiting for a server that may not come back (promise 6).

use std::pin::pin;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::fault::{unavailable, unknown};
use super::pool::{Pool, Taken};
use crate::error::{StoreError, StoreErrorKind};

/// Asks that may wait. More callers than this hear *overloaded* at once, while what waits still fits in a second's work.
const QUEUE_MAX: usize = 4_096;
/// Asks in one group: enough that the cost of a statement does not show, few enough that nobody waits long for the rest.
const GROUP_MAX: usize = 256;
/// Bytes in one group; the last ask may go over.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The first pause after the server could not be reached.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause: work goes on at most so long after the server is back.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What lanes do with a group.
pub(super) trait Work: Send + Sync + Sized + 'static {
    /// What callers bring.
    type Ask: Send + 'static;
    /// What they are told.
    type Answer: Send + 'static;
    /// Whoever brings too much: is it refused, or does it wait until there is room?
    const TOO_MUCH: TooMuch;
    /// What asks are called in the log.
    const ASKS: &'static str;

    /// How long the lanes leave each group alone before the next one follows. One group at a time makes fewer and larger ones; one that
    /// takes longer waits for something, and the others need not wait with it. `None`: they follow at once.
    const ALONE_FOR: Option<Duration> = None;

    /// About how many bytes an ask sends to the server.
    fn bytes(ask: &Self::Ask) -> usize;

    /// Carries a group through, and answers every job of it.
    fn step(&self, taken: Taken, jobs: Vec<Job<Self>>) -> impl Future<Output = ()> + Send;
}

/// What becomes of an ask that finds the queue full.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TooMuch {
    /// Somebody at a door waits for it, and is better refused than left waiting.
    IsRefused,
    /// It is our own, and must not get lost.
    Waits,
}

type Answer<W> = Result<<W as Work>::Answer, StoreError>;

/// An ask and whoever waits for its answer.
pub(super) struct Job<W: Work> {
    pub(super) ask: W::Ask,
    answer: oneshot::Sender<Answer<W>>,
}

impl<W: Work> Job<W> {
    /// Answers.
    pub(super) fn answer(self, answer: Answer<W>) {
        // A caller that has gone away does not mind.
        let _ = self.answer.send(answer);
    }

    /// Tells all of them of one failure.
    pub(super) fn refuse(jobs: Vec<Job<W>>, error: &StoreError) {
        for job in jobs {
            job.answer(Err(error.for_another()));
        }
    }
}

/// The way to the lanes.
pub(super) struct Batcher<W: Work> {
    jobs: StdMutex<Option<mpsc::Sender<Job<W>>>>,
    queue: mpsc::WeakSender<Job<W>>,
    lanes: Mutex<JoinSet<()>>,
}

impl<W: Work> Batcher<W> {
    /// Starts so many lanes.
    pub(super) fn start(pool: &Pool, lanes: usize, work: W) -> Batcher<W> {
        let (jobs, queue) = mpsc::channel(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let work = Arc::new(work);
        let up = watch::Sender::new(lanes);
        let mut running = JoinSet::new();
        for _ in 0..lanes {
            let lane = Lane {
                queue: queue.clone(),
                pool: pool.clone(),
                work: work.clone(),
                up: up.clone(),
            };
            running.spawn(lane.run());
        }
        let weak = jobs.downgrade();
        Batcher {
            jobs: StdMutex::new(Some(jobs)),
            queue: weak,
            lanes: Mutex::new(running),
        }
    }

    /// Has this done with the next group.
    pub(super) async fn ask(&self, ask: W::Ask) -> Answer<W> {
        let (answer, answered) = oneshot::channel();
        let closed = || unavailable("the store is closed");
        let queue = self.queue.upgrade().ok_or_else(closed)?;
        let job = Job { ask, answer };
        match W::TOO_MUCH {
            TooMuch::Waits => queue.send(job).await.map_err(|_| closed())?,
            TooMuch::IsRefused => queue.try_send(job).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => StoreError::new(
                    StoreErrorKind::Overloaded,
                    "more requests are waiting than the database keeps up with",
                ),
                mpsc::error::TrySendError::Closed(_) => closed(),
            })?,
        }
        drop(queue);
        // A lane answers every job it took. If it is gone without a word, its last commit is unknown.
        answered
            .await
            .unwrap_or_else(|_| Err(unknown("the writer ended before it answered")))
    }

    /// Finishes what was taken, then ends the lanes.
    pub(super) async fn stop(&self) {
        drop(
            self.jobs
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        let mut lanes = self.lanes.lock().await;
        while lanes.join_next().await.is_some() {}
    }
}

type Waiting<W> = mpsc::Receiver<Job<W>>;

struct Lane<W: Work> {
    queue: Arc<Mutex<Waiting<W>>>,
    pool: Pool,
    work: Arc<W>,
    /// How many lanes can reach the server, as far as they know.
    up: watch::Sender<usize>,
}

impl<W: Work> Lane<W> {
    async fn run(self) {
        let mut pause = PAUSE_MIN;
        while let Some((jobs, queue)) = self.next_group().await {
            match self.pool.take().await {
                Ok(taken) => {
                    pause = PAUSE_MIN;
                    self.carry(taken, jobs, queue).await;
                }
                Err(error) => {
                    drop(queue);
                    tracing::warn!(%error, refused = jobs.len(), asks = W::ASKS, "cannot reach the database; trying again");
                    Job::refuse(jobs, &error);
                    self.sit_out(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Carries a group through, and lets the other lanes at the queue.
    async fn carry(&self, taken: Taken, jobs: Vec<Job<W>>, queue: MutexGuard<'_, Waiting<W>>) {
        let mut step = pin!(self.work.step(taken, jobs));
        if let Some(alone_for) = W::ALONE_FOR
            && timeout(alone_for, &mut step).await.is_ok()
        {
            return;
        }
        drop(queue);
        step.await;
    }

    /// What waits, and the queue that it was taken from.
    async fn next_group(&self) -> Option<(Vec<Job<W>>, MutexGuard<'_, Waiting<W>>)> {
        let mut queue = self.queue.lock().await;
        let first = queue.recv().await?;
        let mut bytes = W::bytes(&first.ask);
        let mut jobs = vec![first];
        while jobs.len() < GROUP_MAX && bytes < GROUP_BYTES_MAX {
            let Ok(next) = queue.try_recv() else { break };
            bytes += W::bytes(&next.ask);
            jobs.push(next);
        }
        Some((jobs, queue))
    }

    /// Waits before the next try. If no other lane can reach the server either, refuses what comes in meanwhile.
    async fn sit_out(&self, pause: Duration) {
        self.up.send_modify(|up| *up -= 1);
        let mut up = self.up.subscribe();
        let mut waiting = std::pin::pin!(tokio::time::sleep(pause));
        loop {
            let nobody = *up.borrow_and_update() == 0;
            tokio::select! {
                () = &mut waiting => break,
                _ = up.changed() => {}
                jobs = self.next_group(), if nobody => match jobs {
                    Some((jobs, _)) => Job::refuse(jobs, &unavailable("the database cannot be reached")),
                    None => break,
                },
            }
        }
        self.up.send_modify(|up| *up += 1);
    }
}
