//! What an error of the driver lets us conclude.
//!
//! Before the statement that commits has been sent, nothing is written, whatever failed. After that only an `ERROR` from the
//! server proves that the transaction was rolled back: a lost connection, a server that goes down (`FATAL`) or no answer
//! at all leave it open (A3).

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::error::{StoreError, StoreErrorKind};

/// A failure before anything that commits was sent.
pub(super) fn nothing_written(error: &Error) -> StoreError {
    let kind = error.code().map_or(StoreErrorKind::Unavailable, kind_of);
    StoreError::new(kind, "the database failed").caused_by(words(error))
}

/// A failure of the statement that commits.
pub(super) fn of_commit(error: &Error) -> StoreError {
    let proof = error.as_db_error().and_then(DbError::parsed_severity);
    if proof == Some(Severity::Error) {
        return nothing_written(error);
    }
    unknown("the connection was lost during a commit").caused_by(words(error))
}

/// Nobody can say whether it was committed.
pub(super) fn unknown(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::CommitUnknown, what)
}

/// Nothing was written, for now.
pub(super) fn unavailable(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, what)
}

fn kind_of(code: &SqlState) -> StoreErrorKind {
    match *code {
        SqlState::DISK_FULL => StoreErrorKind::Full,
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => StoreErrorKind::Corrupt,
        SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_COLUMN | SqlState::INVALID_SCHEMA_NAME => {
            StoreErrorKind::Incompatible
        }
        _ => StoreErrorKind::Unavailable,
    }
}

/// The driver says "db error" and hides the rest one level down.
fn words(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => format!(
            "{}: {} ({})",
            said.severity(),
            said.message(),
            said.code().code()
        ),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise 6: a full disk and a server that is away are told apart, and neither is taken for the other.
    #[test]
    fn states_map_to_what_the_caller_may_conclude() {
        let table = [
            ("53100", StoreErrorKind::Full),
            ("53300", StoreErrorKind::Unavailable),
            ("57P01", StoreErrorKind::Unavailable),
            ("57P03", StoreErrorKind::Unavailable),
            ("25006", StoreErrorKind::Unavailable),
            ("40P01", StoreErrorKind::Unavailable),
            ("42P01", StoreErrorKind::Incompatible),
            ("XX001", StoreErrorKind::Corrupt),
        ];
        for (code, expected) in table {
            assert_eq!(kind_of(&SqlState::from_code(code)), expected, "{code}");
        }
    }
}
