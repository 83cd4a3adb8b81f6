//! Sealed secrets as rows.

use hapax_ledger::time::Time;
use rusqlite::{Connection, Row, params};

use super::sql_error;
use crate::error::StoreError;
use crate::nouns::{Changed, SECRETS_PER_LOOK_MAX, SealedSecret, SecretChange, end_of};

/// Keeps, expects or drops one.
pub(super) fn change(db: &Connection, change: &SecretChange) -> Result<Changed, StoreError> {
    match change {
        SecretChange::Expect(secret) => {
            remove(db, &secret.place)?;
            insert(db, secret)?;
        }
        SecretChange::Keep { secret, .. } if !is_free(db, &secret.place)? => {
            return Ok(Changed::NameTaken);
        }
        SecretChange::Keep { secret, expected } => {
            let used_up = db
                .execute(
                    "DELETE FROM secret WHERE place = ?1 AND sealed = ?2",
                    params![expected.place, expected.sealed],
                )
                .map_err(sql_error)?;
            if used_up == 0 {
                return Ok(Changed::NotFound);
            }
            insert(db, secret)?;
        }
        SecretChange::Drop(place) if remove(db, place)? == 0 => return Ok(Changed::NotFound),
        SecretChange::Drop(_) => {}
    }
    Ok(Changed::Done)
}

fn is_free(db: &Connection, place: &str) -> Result<bool, StoreError> {
    db.query_row(
        "SELECT NOT EXISTS (SELECT 1 FROM secret WHERE place = ?1)",
        [place],
        |row| row.get(0),
    )
    .map_err(sql_error)
}

fn insert(db: &Connection, secret: &SealedSecret) -> Result<usize, StoreError> {
    db.execute(
        "INSERT INTO secret (place, sealed, at) VALUES (?1, ?2, ?3) ON CONFLICT (place) DO NOTHING",
        params![secret.place, secret.sealed, secret.at.micros()],
    )
    .map_err(sql_error)
}

fn remove(db: &Connection, place: &str) -> Result<usize, StoreError> {
    db.execute("DELETE FROM secret WHERE place = ?1", [place])
        .map_err(sql_error)
}

/// Keeps one unless its place has one; the one that holds.
pub(super) fn hold(db: &Connection, secret: &SealedSecret) -> Result<SealedSecret, StoreError> {
    insert(db, secret)?;
    db.query_row(
        "SELECT place, sealed, at FROM secret WHERE place = ?1",
        [&secret.place],
        to_secret,
    )
    .map_err(sql_error)
}

fn to_secret(row: &Row<'_>) -> rusqlite::Result<SealedSecret> {
    Ok(SealedSecret {
        place: row.get(0)?,
        sealed: row.get(1)?,
        at: Time::from_micros(row.get(2)?),
    })
}

/// Those at places that begin with this text, after a place.
pub(super) fn under(
    db: &Connection,
    under: &str,
    after: Option<&str>,
) -> Result<Vec<SealedSecret>, StoreError> {
    db.prepare_cached(
        "SELECT place, sealed, at FROM secret
         WHERE place >= ?1 AND place < ?2 AND (?3 IS NULL OR place > ?3) ORDER BY place LIMIT ?4",
    )
    .and_then(|mut read| {
        let rows = read.query_map(
            params![under, end_of(under), after, SECRETS_PER_LOOK_MAX],
            to_secret,
        )?;
        rows.collect()
    })
    .map_err(sql_error)
}

/// Seals one anew, if it is still sealed as it was.
pub(super) fn reseal(
    db: &Connection,
    was: &SealedSecret,
    sealed: &[u8],
) -> Result<bool, StoreError> {
    let changed = db
        .execute(
            "UPDATE secret SET sealed = ?3 WHERE place = ?1 AND sealed = ?2",
            params![was.place, was.sealed, sealed],
        )
        .map_err(sql_error)?;
    Ok(changed > 0)
}
