//! Transactions of `rusqlite`. They never wait for anything but the disk: see [`super::blocking`].

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Error, ErrorCode, ToSql, Transaction};

use super::error::TxError;
use super::tx::{AtomicTx, Dialect, Param, Row, Value};

/// Begin it `IMMEDIATE`: one that has read before it writes cannot wait for its turn.
impl AtomicTx for Transaction<'_> {
    const DIALECT: Dialect = Dialect::Sqlite;

    async fn query(
        &mut self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, TxError> {
        run(self, statement, params).map_err(failed)
    }
}

fn run(
    tx: &Transaction<'_>,
    statement: &'static str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, Error> {
    let mut statement = tx.prepare_cached(statement)?;
    let columns = statement.column_count();
    let mut rows = statement.query(rusqlite::params_from_iter(params.iter().map(Bound)))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| {
            Ok(match row.get_ref(column)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(value) => Value::Int(value),
                ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
                ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                // No column has one; a text shows what it was.
                ValueRef::Real(value) => Value::Text(value.to_string()),
            })
        });
        let values: Result<Vec<Value>, Error> = values.collect();
        found.push(Row(values?));
    }
    Ok(found)
}

/// A parameter as rusqlite takes it.
struct Bound<'a, 'b>(&'a Param<'b>);

impl ToSql for Bound<'_, '_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self.0 {
            Param::Int(value) => ValueRef::Integer(*value),
            Param::Bytes(bytes) => bytes.map_or(ValueRef::Null, ValueRef::Blob),
            Param::Text(text) => {
                text.map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes()))
            }
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

fn failed(error: Error) -> TxError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => TxError::Busy(error.into()),
        _ => TxError::Failed(error.into()),
    }
}
