//! Brings the database file to the shape this version needs.
//!
//! Migrations are whole files, applied in order and never edited once released: each is recorded with a checksum, and a
//! file that was made by other text than ours is refused instead of guessed at.

use hapax_ledger::key::BodyHash;
use rusqlite::{Connection, OptionalExtension};

use super::sql_error;
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::Migrated;

/// All migrations, oldest first.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001-foundation", include_str!("schema.sql")),
    ("0002-outbox", include_str!("schema-0002.sql")),
    ("0003-endpoints", include_str!("schema-0003.sql")),
    ("0004-running", include_str!("schema-0004.sql")),
];

/// Applies what is missing, each migration in a transaction of its own.
pub(super) fn migrate(db: &mut Connection) -> Result<Migrated, StoreError> {
    db.execute_batch(
        "CREATE TABLE IF NOT EXISTS migration (
            n INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum BLOB NOT NULL
        ) STRICT",
    )
    .map_err(sql_error)?;
    let from = refuse_newer(db)?;
    for (at, (name, text)) in MIGRATIONS.iter().enumerate() {
        let n = at as i64 + 1;
        let checksum = BodyHash::of(text.as_bytes()).bytes();
        let known: Option<Vec<u8>> = db
            .query_row("SELECT checksum FROM migration WHERE n = ?1", [n], |row| {
                row.get(0)
            })
            .optional()
            .map_err(sql_error)?;
        match known {
            Some(known) if known == checksum => {}
            Some(_) => {
                return Err(StoreError::new(
                    StoreErrorKind::Incompatible,
                    format!(
                        "migration {name} in this file is not the one this version knows; it was made by a build that was never released"
                    ),
                ));
            }
            None => apply(db, n, name, text, &checksum)?,
        }
    }
    Ok(Migrated {
        from,
        to: MIGRATIONS.len(),
    })
}

/// How many were applied before, unless there are more than we know.
fn refuse_newer(db: &Connection) -> Result<usize, StoreError> {
    let latest: Option<i64> = db
        .query_row("SELECT max(n) FROM migration", [], |row| row.get(0))
        .map_err(sql_error)?;
    if latest.unwrap_or(0) > MIGRATIONS.len() as i64 {
        return Err(StoreError::new(
            StoreErrorKind::Incompatible,
            "this file was made by a newer version of Hapax; use that version, or restore an older backup",
        ));
    }
    Ok(latest.unwrap_or(0).max(0) as usize)
}

fn apply(
    db: &mut Connection,
    n: i64,
    name: &str,
    text: &str,
    checksum: &[u8],
) -> Result<(), StoreError> {
    let tx = db.transaction().map_err(sql_error)?;
    tx.execute_batch(text).map_err(sql_error)?;
    tx.execute(
        "INSERT INTO migration (n, name, checksum) VALUES (?1, ?2, ?3)",
        (n, name, checksum),
    )
    .map_err(sql_error)?;
    tx.commit().map_err(sql_error)
}
