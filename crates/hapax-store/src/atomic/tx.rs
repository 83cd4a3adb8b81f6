//! What a driver has to do: run one statement in its transaction.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::error::{AtomicError, TxError};

/// Which SQL a database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

/// A parameter of a statement.
#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    /// An `int8`.
    Int(i64),
    /// A `bytea` or blob, or NULL.
    Bytes(Option<&'a [u8]>),
    /// A `text`, or NULL.
    Text(Option<&'a str>),
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// NULL.
    Null,
    /// An `int8`.
    Int(i64),
    /// A `bytea` or blob.
    Bytes(Vec<u8>),
    /// A `text`.
    Text(String),
}

/// A row that a statement returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(pub Vec<Value>);

impl Row {
    pub(super) fn int(&self, column: usize) -> Result<i64, AtomicError> {
        match self.0.get(column) {
            Some(Value::Int(value)) => Ok(*value),
            _ => Err(AtomicError::Form),
        }
    }

    pub(super) fn bytes(&self, column: usize) -> Result<Option<&[u8]>, AtomicError> {
        match self.0.get(column) {
            Some(Value::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Value::Null) => Ok(None),
            _ => Err(AtomicError::Form),
        }
    }

    pub(super) fn text(&self, column: usize) -> Result<Option<&str>, AtomicError> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Null) => Ok(None),
            _ => Err(AtomicError::Form),
        }
    }
}

/// A transaction of the caller's. Statements have their parameters as `$1`, `$2`, ..., in the order in which they are given, in both
/// dialects; they return integers, bytes and texts only.
///
/// The futures are `Send` where the driver's are: a driver that never waits need not be.
pub trait AtomicTx {
    /// What it speaks.
    const DIALECT: Dialect;

    /// Runs a statement and returns its rows.
    fn query(
        &mut self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, TxError>>;
}

/// Carries out what never waits: everything here, on a driver that is not asynchronous.
///
/// # Panics
/// If it does wait.
pub fn blocking<F: Future>(work: F) -> F::Output {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("an asynchronous driver needs `.await`"),
    }
}
