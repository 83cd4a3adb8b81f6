//! The world failing, in a transaction that is somebody else's.

use hapax_ledger::guard::GuardRejected;

/// Whatever a driver or a handler says.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a statement did not run.
#[derive(Debug, thiserror::Error)]
pub enum TxError {
    /// Somebody else holds what it needs, and it did not wait any longer.
    #[error("the database is busy: {}", in_full(.0.as_ref()))]
    Busy(#[source] BoxError),
    /// Anything else.
    #[error("{}", in_full(.0.as_ref()))]
    Failed(#[source] BoxError),
}

/// Why a key could not be written. Whatever it is, the transaction must not be committed: roll it back, and nothing has happened.
#[derive(Debug, thiserror::Error)]
pub enum AtomicError {
    /// The database did not do as it was told.
    #[error("a key could not be read or written: {0}")]
    Database(#[from] TxError),
    /// The run was decided about without its handler: its lease ran out, or another run has the key.
    #[error("this run does not have its key any more: {0}")]
    Lost(#[from] GuardRejected),
    /// A row of `hapax_key` has a form that this version does not know.
    #[error("a key is stored in a form that this version does not know")]
    Form,
    /// The key was taken and given up again and again while it was looked at.
    #[error("the key changed too often while it was looked at")]
    Unsettled,
}

/// An error with all that lies beneath it: some drivers say no more than that there was one.
fn in_full(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut beneath = error.source();
    while let Some(cause) = beneath {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        beneath = cause.source();
    }
    text
}
