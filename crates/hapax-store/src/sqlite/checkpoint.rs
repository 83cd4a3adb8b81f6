//! Moves the log into the database, off the writer's path.
//!
//! A thread with a connection of its own copies frames whenever the log has grown, without stopping the writer. Only when
//! the log is long does it ask the writer for one pause between two groups, in which the short rest is copied
//! and the log starts again at its beginning.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::open::{self, Paths};
use super::sql_error;
use super::writer::Restarter;
use crate::error::{StoreError, StoreErrorKind};

/// How often the length of the log is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A log shorter than this is left alone: copying rewrites the same few pages over and over. 16 MiB of 4 KiB pages.
const FRAMES_WORTH_COPYING: i64 = 4_096;
/// From here on the writer is asked for a pause. 128 MiB.
const FRAMES_RESTART: i64 = 32_768;

/// The thread and the way to end it.
pub(super) struct Checkpointer {
    stop: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl Checkpointer {
    pub(super) fn start(paths: &Paths, restarter: Restarter) -> Result<Checkpointer, StoreError> {
        let db = open::writer(paths)?;
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new()
            .name("hapax-checkpoint".into())
            .spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK_EVERY) {
                    if let Err(error) = step(&db, &restarter) {
                        tracing::warn!(%error, "a checkpoint failed; trying again");
                    }
                }
            })
            .map_err(|error| {
                StoreError::new(StoreErrorKind::Unavailable, "cannot start a thread")
                    .caused_by(error)
            })?;
        Ok(Checkpointer {
            stop: Mutex::new(Some((stop, thread))),
        })
    }

    pub(super) fn stop(&self) {
        let taken = self
            .stop
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((stop, thread)) = taken {
            drop(stop);
            let _ = thread.join();
        }
    }
}

fn step(db: &Connection, restarter: &Restarter) -> Result<(), StoreError> {
    if restarter.frames_since_restart() < FRAMES_WORTH_COPYING {
        return Ok(());
    }
    let (frames, copied): (i64, i64) = db
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok((row.get(1)?, row.get(2)?))
        })
        .map_err(sql_error)?;
    if frames >= FRAMES_RESTART {
        restarter.restart_log();
    } else if frames == copied {
        // All of it is in the database: if nobody reads from the log, the next commit starts it again by itself.
        restarter.log_is_copied();
    }
    Ok(())
}
