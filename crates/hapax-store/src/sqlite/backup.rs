//! Copies of the file, and what follows when one is opened in its place.
//!
//! A copy is consistent and whole: one reading transaction writes it, without what was deleted. It carries a mark, so that whoever
//! opens it knows that others have gone on since: what it calls unfinished may have been sent (C1).

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hapax_ledger::outcome::{Lost, Outcome};
use hapax_ledger::transition::EffectStep;
use rusqlite::{Connection, params};

use super::effect::{Held, effect_columns, to_held};
use super::gate::Opened;
use super::open::{self, Paths};
use super::writer::Tx;
use super::{advance, attempt, sql_error};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::Said;

/// What copies beside the file are called, before their own part.
const PART: &str = ".backup-";
/// A backup outruns all epochs that the store began since it was made. Nobody starts a server so often between two backups.
pub(super) const EPOCHS_AHEAD: u32 = 1 << 16;
/// Effects that are looked at in one transaction.
const ROWS_PER_STEP: i64 = 500;

/// A copy beside the file.
pub(super) fn beside(paths: &Paths, suffix: &str) -> PathBuf {
    let mut name = paths.database.clone().into_os_string();
    name.push(PART);
    name.push(suffix);
    name.into()
}

/// Copies that a process left behind which ended before it could delete them.
pub(super) fn sweep(paths: &Paths) {
    let Some(name) = paths.database.file_name() else {
        return;
    };
    let begins = format!("{}{PART}", name.to_string_lossy());
    let entries = std::fs::read_dir(&paths.folder).into_iter().flatten();
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begins) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Copies the database into a file that must not be there, and marks the copy.
pub(super) fn copy(paths: &Paths, into: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| {
        let what = format!("cannot write {}", into.display());
        StoreError::new(StoreErrorKind::Unavailable, what).caused_by(error)
    };
    // SQLite writes into an empty file. This one is made so that it is new, and its owner's alone.
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(into)
        .map_err(failed)?;
    let made = write_copy(paths, into).and_then(|()| file.sync_all().map_err(failed));
    if made.is_err() {
        let _ = std::fs::remove_file(into);
    }
    made
}

fn write_copy(paths: &Paths, into: &Path) -> Result<(), StoreError> {
    let db = open::reader(paths)?;
    db.execute("VACUUM INTO ?1", [into.to_string_lossy()])
        .map_err(sql_error)?;
    let copy = Connection::open(into).map_err(sql_error)?;
    // One whole file, without a log beside it.
    copy.pragma_update(None, "journal_mode", "DELETE")
        .map_err(sql_error)?;
    copy.execute("UPDATE store SET copied = 1", [])
        .map_err(sql_error)?;
    copy.close().map_err(|(_, error)| sql_error(error))
}

/// Is it a copy that nobody has opened yet?
pub(super) fn is_copy(db: &Connection) -> Result<bool, StoreError> {
    db.query_row(
        "SELECT EXISTS (SELECT 1 FROM store WHERE copied = 1)",
        [],
        |row| row.get(0),
    )
    .map_err(sql_error)
}

/// From now on it is the store itself.
pub(super) fn is_opened(db: &Connection) -> Result<(), StoreError> {
    db.execute("UPDATE store SET copied = 0 WHERE copied = 1", [])
        .map_err(sql_error)?;
    Ok(())
}

/// What is unfinished may have been sent since, by the store that this is a copy of. Looks at effects after this one, and says at
/// which it stopped.
pub(super) fn restore(tx: &mut Tx<'_>, after: i64) -> Result<Option<i64>, StoreError> {
    let unfinished: Vec<Held> = tx
        .db
        .prepare_cached(effect_columns!(
            "WHERE seq > ?1 AND state IN (0, 1) ORDER BY seq LIMIT ?2"
        ))
        .and_then(|mut read| {
            read.query_map(params![after, ROWS_PER_STEP], to_held)?
                .collect()
        })
        .map_err(sql_error)?;
    let last = unfinished.last().map(|held| held.row);
    let wanted = EffectStep::Restore { now: tx.now };
    for mut held in unfinished {
        if held.effect.record.started {
            let why = Lost::Crash;
            attempt::end(tx, &mut held, Outcome::Lost { why }, Said::default())?;
        }
        // Nobody listens yet.
        let _ = advance::take(tx, &mut held, &wanted, &mut Opened::new())?;
    }
    Ok(last)
}
