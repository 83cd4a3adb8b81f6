//! Sealed secrets as rows. Places are ASCII of our own making, so they travel as they are.

use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::pool::{Pool, Taken};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{Changed, SECRETS_PER_LOOK_MAX, SealedSecret, SecretChange, end_of};

/// Keeps, expects or drops one. The transaction is open, and holds the head of the audit log: nobody else changes secrets.
pub(super) async fn change(taken: &Taken, change: &SecretChange) -> Result<Changed, StoreError> {
    match change {
        SecretChange::Expect(secret) => {
            remove(taken, &secret.place).await?;
            insert(taken, secret).await?;
            Ok(Changed::Done)
        }
        SecretChange::Keep { secret, expected } => {
            let used_up = taken
                .query(
                    "DELETE FROM hapax.secret WHERE place = $1 AND sealed = $2 RETURNING place",
                    &[
                        (&expected.place, Type::TEXT),
                        (&expected.sealed, Type::BYTEA),
                    ],
                )
                .await?;
            match (insert(taken, secret).await?, used_up.is_empty()) {
                (false, _) => Ok(Changed::NameTaken),
                (true, true) => Ok(Changed::NotFound),
                (true, false) => Ok(Changed::Done),
            }
        }
        SecretChange::Drop(place) => match remove(taken, place).await? {
            true => Ok(Changed::Done),
            false => Ok(Changed::NotFound),
        },
    }
}

async fn insert(taken: &Taken, secret: &SealedSecret) -> Result<bool, StoreError> {
    let kept = taken
        .query(
            "INSERT INTO hapax.secret (place, sealed, at) VALUES ($1, $2, $3)
             ON CONFLICT (place) DO NOTHING RETURNING place",
            &[
                (&secret.place, Type::TEXT),
                (&secret.sealed, Type::BYTEA),
                (&secret.at.micros(), Type::INT8),
            ],
        )
        .await?;
    Ok(!kept.is_empty())
}

async fn remove(taken: &Taken, place: &str) -> Result<bool, StoreError> {
    let gone = taken
        .query(
            "DELETE FROM hapax.secret WHERE place = $1 RETURNING place",
            &[(&place, Type::TEXT)],
        )
        .await?;
    Ok(!gone.is_empty())
}

/// Keeps one unless its place has one; the one that holds.
pub(super) async fn hold(pool: &Pool, secret: &SealedSecret) -> Result<SealedSecret, StoreError> {
    let taken = pool.take().await?;
    taken.open().await?;
    insert(&taken, secret).await?;
    let rows = taken
        .query(
            "SELECT place, sealed, at FROM hapax.secret WHERE place = $1",
            &[(&secret.place, Type::TEXT)],
        )
        .await?;
    taken.commit().await?;
    rows.first().map(to_secret).ok_or_else(|| {
        StoreError::new(
            StoreErrorKind::Unavailable,
            "a secret went away while it was looked at",
        )
    })
}

fn to_secret(row: &Row) -> SealedSecret {
    SealedSecret {
        place: row.get(0),
        sealed: row.get(1),
        at: Time::from_micros(row.get(2)),
    }
}

/// Those at places that begin with this text, after a place.
pub(super) async fn under(
    pool: &Pool,
    under: &str,
    after: Option<&str>,
) -> Result<Vec<SealedSecret>, StoreError> {
    let rows = pool
        .read(
            "SELECT place, sealed, at FROM hapax.secret
             WHERE place >= $1 AND place < $2 AND ($3::text IS NULL OR place > $3) ORDER BY place LIMIT $4",
            &[
                (&under, Type::TEXT),
                (&end_of(under), Type::TEXT),
                (&after, Type::TEXT),
                (&i64::from(SECRETS_PER_LOOK_MAX), Type::INT8),
            ],
        )
        .await?;
    Ok(rows.iter().map(to_secret).collect())
}

/// Seals one anew, if it is still sealed as it was.
pub(super) async fn reseal(
    pool: &Pool,
    was: &SealedSecret,
    sealed: &[u8],
) -> Result<bool, StoreError> {
    let taken = pool.take().await?;
    let changed = taken
        .begin(
            "UPDATE hapax.secret SET sealed = $3 WHERE place = $1 AND sealed = $2 RETURNING place",
            &[
                (&was.place, Type::TEXT),
                (&was.sealed, Type::BYTEA),
                (&sealed, Type::BYTEA),
            ],
        )
        .await?;
    taken.commit().await?;
    Ok(!changed.is_empty())
}
