//! Keys whose time is over.

use super::error::TxError;
use super::tx::{AtomicTx, Dialect, Param};

/// Deletes at most so many keys that nobody needs any more; says how many went. A key that is free is free without it: this only makes
/// room. What is running is never forgotten (H4). The caller commits, and calls again while as many went as it had asked for.
///
/// # Errors
/// If the database refuses.
pub async fn forget<T: AtomicTx>(tx: &mut T, keys_max: u32) -> Result<usize, TxError> {
    let statement = match T::DIALECT {
        // Rows that somebody is using are left for the next time.
        Dialect::Postgres => {
            "DELETE FROM hapax_key WHERE key_hash IN (
                 SELECT key_hash FROM hapax_key
                 WHERE free_at <= (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AND state NOT IN (0, 3)
                 ORDER BY free_at LIMIT $1 FOR UPDATE SKIP LOCKED)
             RETURNING key_hash"
        }
        Dialect::Sqlite => {
            "DELETE FROM hapax_key WHERE key_hash IN (
                 SELECT key_hash FROM hapax_key
                 WHERE free_at <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND state NOT IN (0, 3)
                 ORDER BY free_at LIMIT $1)
             RETURNING key_hash"
        }
    };
    let gone = tx.query(statement, &[Param::Int(keys_max.into())]).await?;
    Ok(gone.len())
}
