//! Tokens as rows.

use hapax_ledger::id::TokenId;
use hapax_ledger::time::Time;
use rusqlite::{Connection, Row, params};

use super::sql_error;
use crate::catalog::TOKENS_PER_STEP;
use crate::error::StoreError;
use crate::nouns::{Changed, Role, Token};

/// Keeps a new token, unless its name is taken.
pub(super) fn create(db: &Connection, token: &Token) -> Result<Changed, StoreError> {
    let taken: bool = db
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM token WHERE revoked_at IS NULL AND name = ?1)",
            [&token.name],
            |row| row.get(0),
        )
        .map_err(sql_error)?;
    if taken {
        return Ok(Changed::NameTaken);
    }
    db.execute(
        "INSERT INTO token (id, name, role, app, hash, created_at, expires_at, last_used_at, revoked_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            token.id.bytes(),
            token.name,
            token.role.code(),
            token.app,
            token.hash,
            token.created_at.micros(),
            token.expires_at.map(Time::micros),
            token.last_used_at.map(Time::micros),
            token.revoked_at.map(Time::micros),
        ],
    )
    .map_err(sql_error)?;
    Ok(Changed::Done)
}

/// All tokens, newest first.
pub(super) fn all(db: &Connection) -> Result<Vec<Token>, StoreError> {
    db.prepare_cached(
        "SELECT id, name, role, app, hash, created_at, expires_at, last_used_at, revoked_at
         FROM token ORDER BY id DESC",
    )
    .and_then(|mut read| read.query_map([], to_token)?.collect())
    .map_err(sql_error)
}

/// Those that count at this time, newest first.
pub(super) fn live(db: &Connection, now: Time) -> Result<Vec<Token>, StoreError> {
    db.prepare_cached(
        "SELECT id, name, role, app, hash, created_at, expires_at, last_used_at, revoked_at
         FROM token WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?1) ORDER BY id DESC",
    )
    .and_then(|mut read| read.query_map([now.micros()], to_token)?.collect())
    .map_err(sql_error)
}

/// Deletes some tokens of one app whose names begin so and that ended before a time.
pub(super) fn forget(db: &Connection, begins: &str, before: Time) -> Result<u64, StoreError> {
    let forgotten = db
        .execute(
            "DELETE FROM token WHERE id IN (
                 SELECT id FROM token
                 WHERE app IS NOT NULL AND substr(name, 1, length(?1)) = ?1 AND (revoked_at < ?2 OR expires_at < ?2)
                 ORDER BY id LIMIT ?3)",
            params![begins, before.micros(), TOKENS_PER_STEP],
        )
        .map_err(sql_error)?;
    Ok(forgotten as u64)
}

fn to_token(row: &Row<'_>) -> rusqlite::Result<Token> {
    let time = |column| -> rusqlite::Result<Option<Time>> {
        let micros: Option<i64> = row.get(column)?;
        Ok(micros.map(Time::from_micros))
    };
    Ok(Token {
        id: TokenId::from_bytes(row.get(0)?),
        name: row.get(1)?,
        // What cannot be read may do the least.
        role: Role::from_code(row.get(2)?).unwrap_or(Role::Viewer),
        app: row.get(3)?,
        hash: row.get(4)?,
        created_at: Time::from_micros(row.get(5)?),
        expires_at: time(6)?,
        last_used_at: time(7)?,
        revoked_at: time(8)?,
    })
}

/// A token does not count from now on.
pub(super) fn revoke(db: &Connection, id: TokenId, at: Time) -> Result<Changed, StoreError> {
    let revoked = db
        .execute(
            "UPDATE token SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL",
            params![id.bytes(), at.micros()],
        )
        .map_err(sql_error)?;
    Ok(match revoked {
        0 => Changed::NotFound,
        _ => Changed::Done,
    })
}

/// These tokens were used then; what is known of a later use stays.
pub(super) fn used(db: &Connection, used: &[(TokenId, Time)]) -> Result<(), StoreError> {
    let mut update = db
        .prepare_cached(
            "UPDATE token SET last_used_at = ?2 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)",
        )
        .map_err(sql_error)?;
    for (id, at) in used {
        update
            .execute(params![id.bytes(), at.micros()])
            .map_err(sql_error)?;
    }
    Ok(())
}
