//! What the server says on the side, of which one thing matters: that a commit did not wait for its standby.
//!
//! When the wait for a synchronous standby is cancelled, PostgreSQL reports success all the same, with a warning. The row is
//! there until a failover takes it away. So the warning turns the success into *unknown* (A1, A3).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_postgres::error::DbError;

/// The function of the server that waits for the standby. Messages may be translated, this is not.
const WAITING_ROUTINE: &str = "SyncRepWaitForLSN";
/// How both of its warnings go on after "canceling", in the untranslated text; for poolers that drop the routine.
const WAITING_WORDS: &str = "wait for synchronous replication";

/// Does a notice say that the commit is only on this server?
pub(super) fn not_durable(routine: Option<&str>, message: &str) -> bool {
    routine == Some(WAITING_ROUTINE) || message.contains(WAITING_WORDS)
}

/// Remembers whether such a notice came in on a connection. Once set it stays: the connection is not used again.
#[derive(Clone, Default)]
pub(super) struct Notices {
    not_durable: Arc<AtomicBool>,
}

impl Notices {
    /// A notice came in.
    pub(super) fn heard(&self, notice: &DbError) {
        if not_durable(notice.routine(), notice.message()) {
            tracing::warn!(
                notice = notice.message(),
                "a commit was not waited for by the standby"
            );
            self.not_durable.store(true, Ordering::Release);
        } else {
            tracing::debug!(notice = notice.message(), "the database says");
        }
    }

    /// Was a commit on this connection reported without its standby? Complete once the server is ready for the next
    /// query, since notices are in line before that.
    pub(super) fn any_not_durable(&self) -> bool {
        self.not_durable.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A1: a cancelled wait for the standby is no ack, in any language.
    #[test]
    fn a_cancelled_wait_is_told_from_other_notices() {
        let table = [
            (
                Some("SyncRepWaitForLSN"),
                "canceling wait for synchronous replication due to user request",
                true,
            ),
            (
                Some("SyncRepWaitForLSN"),
                "canceling the wait for synchronous replication and terminating connection due to administrator command",
                true,
            ),
            (
                Some("SyncRepWaitForLSN"),
                "storniere Warten auf synchrone Replikation wegen Benutzeraufforderung",
                true,
            ),
            (
                None,
                "canceling wait for synchronous replication due to user request",
                true,
            ),
            (
                Some("transformRelOptions"),
                "relation \"event\" already exists, skipping",
                false,
            ),
            (None, "there is no transaction in progress", false),
        ];
        for (routine, message, expected) in table {
            assert_eq!(not_durable(routine, message), expected, "{message}");
        }
    }
}
