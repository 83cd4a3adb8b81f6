//! The batcher: whatever waits while earlier groups are in flight goes into the next one.
//!
//! A few lanes take turns at one queue. A lane takes all that waits, up to a limit, and carries it through one commit, or two if
//! keys turn out to be held. Each arrival is answered after the commit that holds its own rows, and by nothing else (A6).
//!
//! A lane that cannot reach the server says so to whoever it took, and then tries again after growing pauses. While no lane can
//! reach it, arrivals are refused at once instead of waiting for a server that may not come back (promise 6).

use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::fault::{unavailable, unknown};
use super::pool::{Pool, Taken};
use super::{Entropy, accept, known, open};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{Arrival, NewEvent, Receipt};

/// Arrivals that may wait. More callers than this hear *overloaded* at once, while what waits still fits in a second's work.
const QUEUE_MAX: usize = 4_096;
/// Arrivals in one group: enough that the cost of a statement does not show, few enough that nobody waits long for the rest.
const GROUP_MAX: usize = 256;
/// Bytes of bodies in one group; the last arrival may go over.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The first pause after the server could not be reached.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause: intake is back at most so long after the server is.
const PAUSE_MAX: Duration = Duration::from_secs(2);

type Answer = Result<Vec<Receipt>, StoreError>;

struct Job {
    arrival: Arrival,
    answer: oneshot::Sender<Answer>,
}

impl Job {
    fn bytes(&self) -> usize {
        self.arrival
            .events
            .iter()
            .map(|event| event.body.len())
            .sum()
    }

    fn answer(self, answer: Answer) {
        // A caller that has gone away does not mind.
        let _ = self.answer.send(answer);
    }
}

/// The way to the lanes.
pub(super) struct Writer {
    jobs: StdMutex<Option<mpsc::Sender<Job>>>,
    queue: mpsc::WeakSender<Job>,
    lanes: Mutex<JoinSet<()>>,
}

impl Writer {
    pub(super) fn start(pool: &Pool, entropy: &Entropy) -> Writer {
        let (jobs, queue) = mpsc::channel(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let up = watch::Sender::new(open::WRITERS);
        let mut lanes = JoinSet::new();
        for _ in 0..open::WRITERS {
            let lane = Lane {
                queue: queue.clone(),
                pool: pool.clone(),
                entropy: entropy.clone(),
                up: up.clone(),
            };
            lanes.spawn(lane.run());
        }
        let weak = jobs.downgrade();
        Writer {
            jobs: StdMutex::new(Some(jobs)),
            queue: weak,
            lanes: Mutex::new(lanes),
        }
    }

    /// Stores an arrival with the next group.
    pub(super) async fn accept(&self, arrival: Arrival) -> Answer {
        let (answer, answered) = oneshot::channel();
        let closed = || unavailable("the store is closed");
        self.queue
            .upgrade()
            .ok_or_else(closed)?
            .try_send(Job { arrival, answer })
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => StoreError::new(
                    StoreErrorKind::Overloaded,
                    "more requests are waiting than the database keeps up with",
                ),
                mpsc::error::TrySendError::Closed(_) => closed(),
            })?;
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

struct Lane {
    queue: Arc<Mutex<mpsc::Receiver<Job>>>,
    pool: Pool,
    entropy: Entropy,
    /// How many lanes can reach the server, as far as they know.
    up: watch::Sender<usize>,
}

impl Lane {
    async fn run(self) {
        let mut pause = PAUSE_MIN;
        while let Some(jobs) = self.next_group().await {
            match self.pool.take().await {
                Ok(taken) => {
                    pause = PAUSE_MIN;
                    self.step(taken, jobs).await;
                }
                Err(error) => {
                    tracing::warn!(%error, arrivals = jobs.len(), "cannot reach the database; trying again");
                    refuse(jobs, &error);
                    self.sit_out(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    async fn next_group(&self) -> Option<Vec<Job>> {
        let mut queue = self.queue.lock().await;
        let first = queue.recv().await?;
        let mut bytes = first.bytes();
        let mut jobs = vec![first];
        while jobs.len() < GROUP_MAX && bytes < GROUP_BYTES_MAX {
            let Ok(next) = queue.try_recv() else { break };
            bytes += next.bytes();
            jobs.push(next);
        }
        Some(jobs)
    }

    /// One group: new keys in one commit, then the rest in another.
    async fn step(&self, taken: Taken, jobs: Vec<Job>) {
        let (single, mut careful): (Vec<Job>, Vec<Job>) = jobs
            .into_iter()
            .partition(|job| job.arrival.events.len() == 1);
        if single.is_empty() {
            taken.give_back();
        } else {
            careful.extend(self.accept_new(taken, single).await);
        }
        if !careful.is_empty() {
            self.accept_known(careful).await;
        }
    }

    /// Answers those whose keys were free and gives back the others.
    async fn accept_new(&self, taken: Taken, jobs: Vec<Job>) -> Vec<Job> {
        let arrivals: Vec<(&Arrival, &NewEvent)> = jobs
            .iter()
            .flat_map(|job| job.arrival.events.iter().map(|event| (&job.arrival, event)))
            .collect();
        match accept::accept_new(taken, &arrivals, &self.entropy).await {
            Ok(receipts) => {
                let mut held = Vec::new();
                for (job, receipt) in jobs.into_iter().zip(receipts) {
                    match receipt {
                        Some(receipt) => job.answer(Ok(vec![receipt])),
                        None => held.push(job),
                    }
                }
                held
            }
            Err(error) => {
                tracing::error!(%error, arrivals = jobs.len(), "a group of arrivals failed");
                refuse(jobs, &error);
                Vec::new()
            }
        }
    }

    async fn accept_known(&self, jobs: Vec<Job>) {
        let arrivals: Vec<&Arrival> = jobs.iter().map(|job| &job.arrival).collect();
        match known::accept(&self.pool, &arrivals, &self.entropy).await {
            Ok(receipts) => {
                for (job, receipts) in jobs.into_iter().zip(receipts) {
                    job.answer(Ok(receipts));
                }
            }
            Err(error) => {
                tracing::error!(%error, arrivals = jobs.len(), "a group of arrivals failed");
                refuse(jobs, &error);
            }
        }
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
                    Some(jobs) => refuse(jobs, &unavailable("the database cannot be reached")),
                    None => break,
                },
            }
        }
        self.up.send_modify(|up| *up += 1);
    }
}

fn refuse(jobs: Vec<Job>, error: &StoreError) {
    for job in jobs {
        job.answer(Err(error.for_another()));
    }
}
