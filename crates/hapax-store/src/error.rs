//! The world failing, as a store sees it. What a caller chooses between is a verdict, never one of these.

use std::error::Error;
use std::fmt;

/// What kind of failure it was; decides what the caller may conclude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Nothing was written: the store cannot be reached or cannot write now.
    Unavailable,
    /// Nothing was written: there is no space left, or too little to be safe.
    Full,
    /// Nothing was written: more work is waiting than the store accepts.
    Overloaded,
    /// It may or may not have been written. Never an ack, never a refusal (A3).
    CommitUnknown,
    /// What is stored contradicts itself.
    Corrupt,
    /// The store was made by another version, or is held by another process.
    Incompatible,
}

/// A store could not do what it was asked.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    what: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// A failure of this kind; `what` is a lowercase fragment naming the thing that failed.
    pub fn new(kind: StoreErrorKind, what: impl Into<String>) -> StoreError {
        StoreError {
            kind,
            what: what.into(),
            source: None,
        }
    }

    /// The same with what lay beneath it.
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        self.source = Some(source.into());
        self
    }

    /// What kind of failure it was.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Another error for another caller of the same group: kind and words, and the cause as text.
    pub fn for_another(&self) -> StoreError {
        let mut what = self.what.clone();
        if let Some(source) = &self.source {
            what = format!("{what}: {source}");
        }
        StoreError {
            kind: self.kind,
            what,
            source: None,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for StoreError {}
