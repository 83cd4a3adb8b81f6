//! The table.

use super::error::TxError;
use super::tx::{AtomicTx, Dialect};

/// The table for PostgreSQL, in whatever schema comes first in the search path. For your own migrations; [`install`] runs it.
pub const POSTGRES_SCHEMA: &str = include_str!("postgres.sql");
/// The table for SQLite.
pub const SQLITE_SCHEMA: &str = include_str!("sqlite.sql");

/// Nodes that start together wait for each other: `IF NOT EXISTS` alone fails when two look at once. The number stands for nothing.
const POSTGRES_LOCK: &str = "SELECT 1::int8 FROM pg_advisory_xact_lock(7450204937513165)";

/// Makes the table if it is not there. The caller commits.
///
/// # Errors
/// If the database refuses.
pub async fn install<T: AtomicTx>(tx: &mut T) -> Result<(), TxError> {
    let schema = match T::DIALECT {
        Dialect::Postgres => {
            tx.query(POSTGRES_LOCK, &[]).await?;
            POSTGRES_SCHEMA
        }
        Dialect::Sqlite => SQLITE_SCHEMA,
    };
    for statement in schema.split_inclusive(';') {
        if !statement.trim().is_empty() {
            tx.query(statement, &[]).await?;
        }
    }
    Ok(())
}
