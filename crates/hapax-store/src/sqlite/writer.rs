//! The thread that owns the writing connection. Whatever waits when a commit ends goes into the next one.
//!
//! Each job writes into the open transaction and keeps its answer; the answers go out only after COMMIT has come back, so
//! an ack depends on nothing but its own rows being in the committed transaction (A6). If COMMIT itself fails, nobody
//! can say what is on disk: every job of the group hears *unknown*, the connection is opened anew, and the index catches up
//! before the next group (A3).

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hapax_ledger::time::Time;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::bell::Bell;
use super::disk::Disk;
use super::group::Group;
use super::index::KeyIndex;
use super::log_file::LogFile;
use super::open::{self, Opened, Paths};
use super::queue::{Queue, Whose};
use super::{Clock, sql_error};
use crate::error::{StoreError, StoreErrorKind};

/// How long the log's restart may wait for a reader before it gives up until the next time.
const RESTART_WAIT: Duration = Duration::from_millis(50);
/// So often the log is emptied in vain before whoever asked hears of it: readers come and go.
const TRUNCATE_TRIES_MAX: u32 = 40;

/// What a job may use while the transaction is open.
pub(super) struct Tx<'a> {
    pub(super) db: &'a Connection,
    pub(super) index: &'a KeyIndex,
    pub(super) group: &'a mut Group,
    /// The store's clock, read once for the group: leases are decided by nothing else (C3).
    pub(super) now: Time,
}

/// Does a job need space on the disk, or does it make some?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Takes,
    Frees,
}

/// Called with what became of the commit.
pub(super) type Answer = Box<dyn FnOnce(Result<(), &StoreError>) + Send>;

/// Writes into the open transaction; gives its answer, and whether the transaction is still sound.
type Run = Box<dyn FnOnce(&mut Tx<'_>, &GroupState) -> (Answer, Result<(), StoreError>) + Send>;

enum Job {
    Write(Run),
    RestartLog,
    /// Says whether the log is empty now.
    TruncateLog(oneshot::Sender<bool>),
}

/// What befell the group before this job.
struct GroupState {
    no_room: Option<StoreError>,
    broken: Option<StoreError>,
}

/// The way to the writer thread.
pub(super) struct Writer {
    queue: Arc<Queue<Job>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    frames: Arc<AtomicI64>,
    bytes: Arc<AtomicU64>,
}

/// Lets the checkpointer ask for a pause.
pub(super) struct Restarter {
    queue: Arc<Queue<Job>>,
    frames: Arc<AtomicI64>,
}

impl Restarter {
    pub(super) fn restart_log(&self) {
        self.queue.put_now(Job::RestartLog);
    }

    pub(super) fn log_is_copied(&self) {
        self.frames.store(0, Ordering::Relaxed);
    }

    pub(super) fn frames_since_restart(&self) -> i64 {
        self.frames.load(Ordering::Relaxed)
    }
}

impl Writer {
    pub(super) fn start(
        paths: Paths,
        opened: Opened,
        disk: Disk,
        clock: Clock,
    ) -> Result<Writer, StoreError> {
        let queue = Arc::new(Queue::new());
        let frames = Arc::new(AtomicI64::new(0));
        let bytes = Arc::new(AtomicU64::new(0));
        let group = Group::new(&opened.db, &opened.index, opened.epoch)?;
        let work = Work {
            log: LogFile::open(&paths),
            paths,
            db: opened.db,
            index: opened.index,
            disk,
            clock,
            bell: Bell::hang(),
            group,
            queue: queue.clone(),
            frames: frames.clone(),
            bytes: bytes.clone(),
        };
        work.measure();
        let thread = std::thread::Builder::new()
            .name("hapax-writer".into())
            .spawn(move || work.run())
            .map_err(|error| {
                StoreError::new(StoreErrorKind::Unavailable, "cannot start a thread")
                    .caused_by(error)
            })?;
        Ok(Writer {
            queue,
            thread: Mutex::new(Some(thread)),
            frames,
            bytes,
        })
    }

    pub(super) fn restarter(&self) -> Restarter {
        Restarter {
            queue: self.queue.clone(),
            frames: self.frames.clone(),
        }
    }

    /// Bytes on disk, as of a moment ago.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Runs `work` in the next group's transaction; `Ok` only after the commit. `bytes` says how much it will write.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        whose: Whose,
        space: Space,
        bytes: usize,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let run = Box::new(move |tx: &mut Tx<'_>, state: &GroupState| {
            let refused = match space {
                Space::Takes => state.no_room.as_ref().or(state.broken.as_ref()),
                Space::Frees => state.broken.as_ref(),
            };
            let (result, broke) = match refused {
                Some(error) => (Err(error.for_another()), Ok(())),
                None => match work(tx) {
                    Ok(value) => (Ok(value), Ok(())),
                    Err(error) => (Err(error.for_another()), Err(error)),
                },
            };
            let answer: Answer = Box::new(move |commit| {
                // A caller that has gone away does not mind.
                let _ = reply.send(commit.map_err(StoreError::for_another).and(result));
            });
            (answer, broke)
        });
        self.queue.put(whose, bytes, Job::Write(run)).await?;
        // The writer answers every job it took. If it is gone without a word, its last commit is unknown.
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::new(
                StoreErrorKind::CommitUnknown,
                "the writer ended before it answered",
            ))
        })
    }

    /// Empties the log, so that nothing that was deleted is left in it.
    pub(super) async fn truncate_log(&self) -> Result<(), StoreError> {
        for _ in 0..TRUNCATE_TRIES_MAX {
            let (reply, answer) = oneshot::channel();
            self.queue.put_now(Job::TruncateLog(reply));
            match answer.await {
                Ok(true) => return Ok(()),
                Ok(false) => tokio::time::sleep(RESTART_WAIT).await,
                Err(_) => break,
            }
        }
        Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "the log is being read, and still holds what was deleted",
        ))
    }

    /// Finishes what was taken, then ends the thread.
    pub(super) fn stop(&self) {
        self.queue.close();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

struct Work {
    paths: Paths,
    log: LogFile,
    db: Connection,
    index: KeyIndex,
    disk: Disk,
    clock: Clock,
    bell: Bell,
    group: Group,
    queue: Arc<Queue<Job>>,
    frames: Arc<AtomicI64>,
    bytes: Arc<AtomicU64>,
}

impl Work {
    fn run(mut self) {
        let (mut jobs, mut bytes) = (Vec::new(), 0);
        while self.queue.take_group(&mut jobs, &mut bytes) {
            self.group.will_write(bytes);
            self.disk.will_write(bytes);
            self.step(&mut jobs);
        }
        // A clean end leaves one whole file.
        let _ = truncate_log(&self.db);
    }

    /// One group: write all, commit once, answer all, tell the index.
    fn step(&mut self, jobs: &mut Vec<Job>) {
        let mut answers = Vec::with_capacity(jobs.len());
        let mut state = GroupState {
            no_room: self.disk.room().err(),
            broken: None,
        };
        state.broken = self.begin().err();
        let mut restart = false;
        let mut truncate = Vec::new();
        let mut tx = Tx {
            db: &self.db,
            index: &self.index,
            group: &mut self.group,
            now: (self.clock)(),
        };
        for job in jobs.drain(..) {
            match job {
                Job::Write(run) => {
                    let (answer, wrote) = run(&mut tx, &state);
                    answers.push(answer);
                    if let Err(error) = wrote {
                        state.broken = Some(error);
                    }
                }
                Job::RestartLog => restart = true,
                Job::TruncateLog(reply) => truncate.push(reply),
            }
        }
        let written = match state.broken {
            Some(broken) => Err(broken),
            None => tx.group.tallies.write(tx.db),
        };
        match written.and_then(|()| self.commit()) {
            // Whoever hears of a delivery may read it at once, and reads it through the index; of a new event nobody does.
            Ok(()) if self.group.has_deliveries() => {
                self.settle();
                self.bell.tell(answers);
            }
            Ok(()) => {
                self.bell.tell(answers);
                self.settle();
            }
            Err(error) => self.fail(&error, answers),
        }
        if restart {
            self.checkpoint("PRAGMA wal_checkpoint(RESTART)");
        }
        if !truncate.is_empty() {
            let empty = self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
            for reply in truncate {
                let _ = reply.send(empty);
            }
        }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.group.usable()?;
        self.db
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(sql_error)?;
        self.log.keep_ahead();
        Ok(())
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.db.execute_batch("COMMIT").map_err(|error| {
            let full = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull);
            // A commit that ran out of space before its last frame was never there. Anything else is unknown: an error
            // from a sync says nothing about what a restart will find.
            let kind = if full {
                StoreErrorKind::Full
            } else {
                StoreErrorKind::CommitUnknown
            };
            StoreError::new(kind, "the commit failed").caused_by(error)
        })
    }

    fn settle(&mut self) {
        self.frames
            .fetch_add(self.group.frames(), Ordering::Relaxed);
        if let Err(error) = self.group.settle(&self.index) {
            tracing::error!(%error, "the key index fell behind; reopening");
            self.reopen();
        }
    }

    fn fail(&mut self, error: &StoreError, answers: Vec<Answer>) {
        tracing::error!(%error, jobs = answers.len(), "a group of writes failed");
        for answer in answers {
            answer(Err(error));
        }
        if error.kind() == StoreErrorKind::Full {
            self.disk.filled_up();
        }
        // After an error SQLite may have rolled back by itself; then there is nothing to roll back.
        let _ = self.db.execute_batch("ROLLBACK");
        if error.kind() == StoreErrorKind::Corrupt {
            // The database is the truth. If the index contradicts it, the index is made anew.
            if let Err(error) = self.index.empty() {
                tracing::error!(%error, "the key index cannot be emptied");
            }
        }
        self.reopen();
    }

    /// After an unknown commit: look at the file with fresh eyes, and bring the index level with what is there.
    fn reopen(&mut self) {
        let again = open::writer(&self.paths).and_then(|db| {
            // After a failed sync the kernel may have dropped what it could not write, and a later sync would not notice. So
            // the log is copied whole into the database and begun anew before anything is built on it.
            truncate_log(&db)?;
            self.index.renew_if_failed()?;
            open::catch_up(&db, &self.index)?;
            self.group = Group::new(&db, &self.index, self.group.epoch())?;
            Ok(db)
        });
        match again {
            Ok(db) => {
                self.db = db;
                self.log = LogFile::open(&self.paths);
            }
            Err(error) => {
                self.group.must_reopen();
                tracing::error!(%error, "cannot reopen the database; the next write tries again");
            }
        }
    }

    /// Copies the short rest of the log and begins it anew, unless somebody reads it for longer than a moment.
    fn checkpoint(&mut self, how: &str) -> bool {
        let checkpoint = || -> rusqlite::Result<bool> {
            self.db.busy_timeout(RESTART_WAIT)?;
            let busy = self.db.query_row(how, [], |row| row.get(0));
            self.db.busy_timeout(open::BUSY_WAIT)?;
            busy.map(|busy: i64| busy == 0)
        };
        let begun = checkpoint().unwrap_or_else(|error| {
            tracing::warn!(%error, "the log could not be restarted; trying again later");
            false
        });
        if begun {
            self.frames.store(0, Ordering::Relaxed);
        }
        self.measure();
        begun
    }

    fn measure(&self) {
        let database = std::fs::metadata(&self.paths.database).map_or(0, |file| file.len());
        self.bytes
            .store(database + self.index.bytes(), Ordering::Relaxed);
    }
}

/// Copies the whole log into the database and begins it anew.
fn truncate_log(db: &Connection) -> Result<(), StoreError> {
    let busy: i64 = db
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .map_err(sql_error)?;
    match busy {
        0 => Ok(()),
        _ => Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "the log is still being read",
        )),
    }
}

/// Says that the commit is there.
pub(super) fn answer_all(answers: Vec<Answer>) {
    for answer in answers {
        answer(Ok(()));
    }
}
