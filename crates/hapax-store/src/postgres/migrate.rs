//! Brings the database to the shape this version needs.
//!
//! Migrations are whole files, applied in order and never edited once released: each is recorded with a checksum, and a
//! database that was made by other text than ours is refused instead of guessed at. All of it is one transaction under one lock,
//! so that any number of nodes may start at once. A node that finds nothing to do needs no right to create anything.

use hapax_ledger::key::BodyHash;
use tokio_postgres::types::Type;

use super::pool::{Pool, Taken};
use super::wire::Uuid;
use super::{SHARDS, restored};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::Migrated;

/// All migrations, oldest first.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001-foundation", include_str!("schema.sql")),
    ("0002-outbox", include_str!("schema-0002.sql")),
    ("0003-endpoints", include_str!("schema-0003.sql")),
    ("0004-keys", include_str!("schema-0004.sql")),
    ("0005-unknown", include_str!("schema-0005.sql")),
    ("0006-running", include_str!("schema-0006.sql")),
];

/// Whoever migrates holds this lock to the end of the transaction. The letters "hapax" as a number.
const LOCK: i64 = 0x68_61_70_61_78;

/// Applies what is missing, and settles what this database is.
pub(super) async fn migrate(pool: &Pool, new_store_id: [u8; 16]) -> Result<Migrated, StoreError> {
    let taken = pool.take().await?;
    taken
        .begin("SELECT pg_advisory_xact_lock($1)", &[(&LOCK, Type::INT8)])
        .await?;
    let known = known(&taken).await?;
    let n_known = known.len();
    if n_known > MIGRATIONS.len() {
        return refuse(
            "this database was made by a newer version of Hapax; use that version, or restore an older backup",
        );
    }
    for (at, (name, text)) in MIGRATIONS.iter().enumerate() {
        let checksum = BodyHash::of(text.as_bytes()).bytes();
        match known.get(at) {
            Some(known) if **known == checksum => {}
            Some(_) => {
                return refuse(&format!(
                    "migration {name} in this database is not the one this version knows; it was made by a build \
                     that was never released"
                ));
            }
            None => apply(&taken, at as i32 + 1, name, text, &checksum).await?,
        }
    }
    settle_store(&taken, new_store_id).await?;
    restored::notice(&taken).await?;
    taken.commit().await?;
    Ok(Migrated {
        from: n_known,
        to: MIGRATIONS.len(),
    })
}

/// Checksums of the migrations that were applied, in order.
async fn known(taken: &Taken) -> Result<Vec<Vec<u8>>, StoreError> {
    let there = taken
        .query("SELECT to_regclass('hapax.migration') IS NOT NULL", &[])
        .await?;
    if !there.first().is_some_and(|row| row.get(0)) {
        taken
            .run_file(
                "CREATE SCHEMA IF NOT EXISTS hapax;
                 CREATE TABLE hapax.migration (
                     n integer NOT NULL, name text NOT NULL, checksum bytea NOT NULL,
                     CONSTRAINT migration_pk PRIMARY KEY (n)
                 )",
            )
            .await?;
    }
    let rows = taken
        .query("SELECT checksum FROM hapax.migration ORDER BY n", &[])
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

async fn apply(
    taken: &Taken,
    n: i32,
    name: &str,
    text: &str,
    checksum: &[u8],
) -> Result<(), StoreError> {
    taken.run_file(text).await?;
    taken
        .query(
            "INSERT INTO hapax.migration (n, name, checksum) VALUES ($1, $2, $3)",
            &[
                (&n, Type::INT4),
                (&name, Type::TEXT),
                (&checksum, Type::BYTEA),
            ],
        )
        .await?;
    Ok(())
}

/// Gives a new database its id, and refuses one whose rows were placed by another number of shards.
async fn settle_store(taken: &Taken, new_store_id: [u8; 16]) -> Result<(), StoreError> {
    let shards = SHARDS as i16;
    let read = "SELECT shards FROM hapax.store WHERE one = 1";
    let mut stored = taken.query(read, &[]).await?;
    if stored.is_empty() {
        taken
            .query(
                "INSERT INTO hapax.store (one, shards, epoch, touched, store_id) VALUES (1, $1, 1, 0, $2)",
                &[(&shards, Type::INT2), (&Uuid(new_store_id), Type::UUID)],
            )
            .await?;
        taken
            .query(
                "INSERT INTO hapax.shard (shard, until) SELECT n, 0 FROM generate_series(0, $1 - 1) AS n",
                &[(&i32::from(SHARDS), Type::INT4)],
            )
            .await?;
        stored = taken.query(read, &[]).await?;
    }
    match stored.first().map(|row| row.get::<_, i16>(0)) {
        Some(stored) if stored == shards => Ok(()),
        _ => refuse(&format!(
            "this database is not divided into {SHARDS} shards, as this version expects"
        )),
    }
}

fn refuse<T>(what: &str) -> Result<T, StoreError> {
    Err(StoreError::new(StoreErrorKind::Incompatible, what))
}
