//! Transactions of `tokio-postgres`.

use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Transaction};

use super::error::TxError;
use super::tx::{AtomicTx, Dialect, Param, Row, Value};

impl AtomicTx for Transaction<'_> {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn query(
        &mut self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, TxError> {
        let params: Vec<(&(dyn ToSql + Sync), Type)> = params.iter().map(typed).collect();
        // With the types at hand nothing is prepared, so that it works behind a pooler and takes one round trip.
        let rows = self.query_typed(statement, &params).await.map_err(failed)?;
        rows.iter().map(row).collect()
    }
}

fn typed<'a>(param: &'a Param<'_>) -> (&'a (dyn ToSql + Sync), Type) {
    match param {
        Param::Int(value) => (value, Type::INT8),
        Param::Bytes(bytes) => (bytes, Type::BYTEA),
        Param::Text(text) => (text, Type::TEXT),
    }
}

fn row(row: &tokio_postgres::Row) -> Result<Row, TxError> {
    let columns = row.columns().iter().enumerate();
    let values = columns.map(|(at, column)| {
        Ok(match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map(Value::Int),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map(Value::Bytes),
            _ => row.try_get::<_, Option<String>>(at)?.map(Value::Text),
        }
        .unwrap_or(Value::Null))
    });
    let values: Result<Vec<Value>, Error> = values.collect();
    Ok(Row(values.map_err(failed)?))
}

fn failed(error: Error) -> TxError {
    match error.code() {
        Some(&SqlState::LOCK_NOT_AVAILABLE) => TxError::Busy(error.into()),
        _ => TxError::Failed(error.into()),
    }
}
