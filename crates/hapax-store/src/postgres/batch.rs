//! The batcher: whatever waits while earlier groups are in flight goes into the next one.
//!
//! A few lanes take turns at one queue. A lane takes all that waits, up to a limit, and carries it through its commit. While another is on
//! its way, few asks wait for company: a group has costs of its own beside those of its asks. Each ask is answered after the commit that
//! holds its own rows, and by nothing else (A6).
//!
//! A lane that cannot reach the server says so to whoever it took, and then tries again after growing pauses. While no lane can
//! reach it, asks are refused at once instead of waiting for a server that may not come back (promise 6).

use std::pin::pin;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::fault::{unavailable, unknown};
use super::pool::Pool;
use crate::error::{StoreError, StoreErrorKind};

/// Asks that may wait. More callers than this hear *overloaded* at once, while what waits still fits in a second's work.
const QUEUE_MAX: usize = 4_096;
/// Asks in one group: enough that the cost of a statement does not show, few enough that nobody waits long for the rest.
const GROUP_MAX: usize = 256;
/// Bytes in one group; the last ask may go over.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// So many asks are worth a group of their own while another is on its way.
const WORTH: usize = 64;
/// So long fewer wait for company: many times what a commit takes, if it waits for nobody.
const WORTH_WAIT: Duration = Duration::from_millis(20);
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
    /// What asks are called in the log.
    const ASKS: &'static str;

    /// Whoever brings this and finds the queue full: is it refused, or does it wait until there is room?
    fn too_much(ask: &Self::Ask) -> TooMuch;

    /// About how many bytes an ask sends to the server.
    fn bytes(ask: &Self::Ask) -> usize;

    /// What a group reaches the server on.
    type Way: Send;

    /// So many asks set out behind the group before them; `None` if they wait until it has ended, or takes longer than usual.
    const BEHIND: Option<usize>;

    /// A way to the server for the next group.
    fn way(&self, pool: &Pool) -> impl Future<Output = Result<Self::Way, StoreError>> + Send;

    /// Carries a group through, and answers every job of it.
    fn step(&self, way: Self::Way, jobs: Vec<Job<Self>>) -> impl Future<Output = ()> + Send;
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
    pub(super) reply: Reply<W>,
}

/// Whoever waits for an answer.
pub(super) struct Reply<W: Work>(oneshot::Sender<Answer<W>>);

impl<W: Work> Reply<W> {
    pub(super) fn say(self, answer: Answer<W>) {
        // A caller that has gone away does not mind.
        let _ = self.0.send(answer);
    }
}

impl<W: Work> Job<W> {
    /// Answers.
    pub(super) fn answer(self, answer: Answer<W>) {
        self.reply.say(answer);
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
        let under_way = watch::Sender::new(0);
        let mut running = JoinSet::new();
        for _ in 0..lanes {
            let lane = Lane {
                queue: queue.clone(),
                pool: pool.clone(),
                work: work.clone(),
                up: up.clone(),
                under_way: under_way.clone(),
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
        let too_much = W::too_much(&ask);
        let job = Job {
            ask,
            reply: Reply(answer),
        };
        match too_much {
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
    /// Groups on their way.
    under_way: watch::Sender<usize>,
}

/// Asks that share a commit.
struct Group<W: Work> {
    jobs: Vec<Job<W>>,
    bytes: usize,
    on_its_way: OnItsWay,
}

/// Counts a group until it has ended, however it does.
struct OnItsWay(watch::Sender<usize>);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.send_modify(|groups| *groups -= 1);
    }
}

impl<W: Work> Group<W> {
    fn push(&mut self, job: Job<W>) {
        self.bytes += W::bytes(&job.ask);
        self.jobs.push(job);
    }

    /// Takes what waits, as far as there is room.
    fn fill(&mut self, queue: &mut Waiting<W>) {
        while self.jobs.len() < GROUP_MAX && self.bytes < GROUP_BYTES_MAX {
            let Ok(next) = queue.try_recv() else { break };
            self.push(next);
        }
    }

    /// Waits until then, or until so many are here that they set out behind the group before.
    async fn gather(&mut self, queue: &mut Waiting<W>, until: impl Future) {
        let mut until = pin!(until);
        let enough = |group: &Self| W::BEHIND.is_some_and(|enough| group.jobs.len() >= enough);
        while !enough(self) && self.bytes < GROUP_BYTES_MAX {
            tokio::select! {
                biased;
                _ = &mut until => return,
                Some(next) = queue.recv(), if W::BEHIND.is_some() => {
                    self.push(next);
                    self.fill(queue);
                }
            }
        }
    }

    /// Is it worth a commit of its own while another is on its way?
    fn is_worth_it(&self) -> bool {
        self.jobs.len() >= WORTH || self.bytes >= GROUP_BYTES_MAX
    }
}

impl<W: Work> Lane<W> {
    async fn run(self) {
        let mut pause = PAUSE_MIN;
        while let Some(Group {
            jobs, on_its_way, ..
        }) = self.next_group().await
        {
            match self.work.way(&self.pool).await {
                Ok(way) => {
                    pause = PAUSE_MIN;
                    self.work.step(way, jobs).await;
                    drop(on_its_way);
                }
                Err(error) => {
                    drop(on_its_way);
                    tracing::warn!(%error, refused = jobs.len(), asks = W::ASKS, "cannot reach the database; trying again");
                    Job::refuse(jobs, &error);
                    self.sit_out(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// What waits, and what has come by the time the group before it has ended.
    async fn next_group(&self) -> Option<Group<W>> {
        let mut queue = self.queue.lock().await;
        let mut others = self.under_way.subscribe();
        let mut group = self.waiting(&mut queue).await?;
        if !group.is_worth_it() {
            // It cannot be closed: we hold one end of it.
            let alone = timeout(WORTH_WAIT, others.wait_for(|groups| *groups == 1));
            group.gather(&mut queue, alone).await;
            group.fill(&mut queue);
        }
        Some(group)
    }

    /// What waits now, or comes next. Whoever gives up waiting for it leaves it in the queue.
    async fn waiting(&self, queue: &mut Waiting<W>) -> Option<Group<W>> {
        let first = queue.recv().await?;
        self.under_way.send_modify(|groups| *groups += 1);
        let mut group = Group {
            jobs: Vec::new(),
            bytes: 0,
            on_its_way: OnItsWay(self.under_way.clone()),
        };
        group.push(first);
        group.fill(queue);
        Some(group)
    }

    /// Waits before the next try. If no other lane can reach the server either, refuses what comes in meanwhile.
    async fn sit_out(&self, pause: Duration) {
        self.up.send_modify(|up| *up -= 1);
        let mut up = self.up.subscribe();
        let mut waiting = pin!(sleep(pause));
        loop {
            let nobody = *up.borrow_and_update() == 0;
            tokio::select! {
                () = &mut waiting => break,
                _ = up.changed() => {}
                group = async { self.waiting(&mut *self.queue.lock().await).await }, if nobody => match group {
                    Some(group) => Job::refuse(group.jobs, &unavailable("the database cannot be reached")),
                    None => break,
                },
            }
        }
        self.up.send_modify(|up| *up += 1);
    }
}
