//! For tests of handlers with recovery points: time that passes at once.

use crate::atomic::{AtomicTx, TxError};

/// Ends the lease of every run in `hapax_key`, as if it had been lost long ago. The caller commits.
///
/// # Errors
/// If the database refuses.
pub async fn lose_all<T: AtomicTx>(tx: &mut T) -> Result<(), TxError> {
    let lost = tx.query("UPDATE hapax_key SET lease_until = 0", &[]);
    lost.await.map(|_| ())
}
