//! Tokens: who may do what.

use hapax_ledger::id::TokenId;
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::pool::{Pool, Taken};
use super::wire::{Hash, Uuid, received, sendable};
use crate::catalog::TOKENS_PER_STEP;
use crate::error::StoreError;
use crate::nouns::{Role, Token};

/// Keeps a new token, unless one that counts has its name. The transaction is open, and nobody else of it writes tokens.
pub(super) async fn insert(taken: &Taken, token: &Token) -> Result<bool, StoreError> {
    let made = taken
        .query(
            "INSERT INTO hapax.token (id, created_at, expires_at, last_used_at, revoked_at, role, hash, name, app)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
             RETURNING id",
            &[
                (&Uuid(token.id.bytes()), Type::UUID),
                (&token.created_at.micros(), Type::INT8),
                (&token.expires_at.map(Time::micros), Type::INT8),
                (&token.last_used_at.map(Time::micros), Type::INT8),
                (&token.revoked_at.map(Time::micros), Type::INT8),
                (&i16::from(token.role.code()), Type::INT2),
                (&Hash(token.hash), Type::BYTEA),
                (&sendable(&token.name), Type::TEXT),
                (&token.app.as_deref().map(sendable), Type::TEXT),
            ],
        )
        .await?;
    Ok(!made.is_empty())
}

/// Says that a token does not count from then on, unless that was said before.
pub(super) async fn revoke(taken: &Taken, id: TokenId, at: Time) -> Result<bool, StoreError> {
    let revoked = taken
        .query(
            "UPDATE hapax.token SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING id",
            &[
                (&Uuid(id.bytes()), Type::UUID),
                (&at.micros(), Type::INT8),
            ],
        )
        .await?;
    Ok(!revoked.is_empty())
}

/// All of them, newest first.
pub(super) async fn all(pool: &Pool) -> Result<Vec<Token>, StoreError> {
    let rows = pool
        .read(
            "SELECT id, created_at, expires_at, last_used_at, revoked_at, role, hash, name, app
             FROM hapax.token ORDER BY created_at DESC, id DESC",
            &[],
        )
        .await?;
    Ok(rows.iter().map(to_token).collect())
}

/// Those that count at this time, newest first.
pub(super) async fn live(pool: &Pool, now: Time) -> Result<Vec<Token>, StoreError> {
    let rows = pool
        .read(
            "SELECT id, created_at, expires_at, last_used_at, revoked_at, role, hash, name, app
             FROM hapax.token WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1)
             ORDER BY created_at DESC, id DESC",
            &[(&now.micros(), Type::INT8)],
        )
        .await?;
    Ok(rows.iter().map(to_token).collect())
}

/// Deletes some tokens of one app whose names begin so and that ended before a time. Nodes that do so at the same time pass over
/// what another one deletes.
pub(super) async fn forget(pool: &Pool, begins: &str, before: Time) -> Result<u64, StoreError> {
    let taken = pool.take().await?;
    let forgotten = taken
        .begin(
            "DELETE FROM hapax.token WHERE id IN (
                 SELECT id FROM hapax.token
                 WHERE app IS NOT NULL AND starts_with(name, $1) AND (revoked_at < $2 OR expires_at < $2)
                 ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED)
             RETURNING id",
            &[
                (&sendable(begins), Type::TEXT),
                (&before.micros(), Type::INT8),
                (&i64::from(TOKENS_PER_STEP), Type::INT8),
            ],
        )
        .await?;
    taken.commit().await?;
    Ok(forgotten.len() as u64)
}

fn to_token(row: &Row) -> Token {
    let time = |column| row.get::<_, Option<i64>>(column).map(Time::from_micros);
    Token {
        id: TokenId::from_bytes(row.get::<_, Uuid>(0).0),
        created_at: Time::from_micros(row.get(1)),
        expires_at: time(2),
        last_used_at: time(3),
        revoked_at: time(4),
        // What cannot be read may do the least.
        role: Role::from_code(row.get::<_, i16>(5) as u8).unwrap_or(Role::Viewer),
        hash: row.get::<_, Hash>(6).0,
        name: received(row.get(7)).into(),
        app: row.get::<_, Option<String>>(8).map(received),
    }
}

/// Notes when tokens were used, as far as that is later than what is known. They are locked in the order of their ids, so that nodes
/// wait for each other but never in a circle.
pub(super) async fn used(pool: &Pool, used: &[(TokenId, Time)]) -> Result<(), StoreError> {
    let ids: Vec<Uuid> = used.iter().map(|(id, _)| Uuid(id.bytes())).collect();
    let times: Vec<i64> = used.iter().map(|(_, at)| at.micros()).collect();
    let taken = pool.take().await?;
    taken
        .begin(
            "WITH latest AS MATERIALIZED (
                 SELECT id, max(at) AS at FROM (SELECT unnest($1::uuid[]), unnest($2::int8[])) AS k (id, at) GROUP BY id
             ), locked AS MATERIALIZED (
                 SELECT t.id, l.at FROM latest l JOIN hapax.token t ON t.id = l.id ORDER BY t.id FOR UPDATE OF t
             )
             UPDATE hapax.token t SET last_used_at = greatest(t.last_used_at, locked.at) FROM locked
             WHERE t.id = locked.id",
            &[(&ids, Type::UUID_ARRAY), (&times, Type::INT8_ARRAY)],
        )
        .await?;
    taken.commit().await
}
