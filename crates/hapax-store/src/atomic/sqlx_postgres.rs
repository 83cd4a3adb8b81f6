//! PostgreSQL transactions of `sqlx`.

use sqlx::postgres::{PgRow, Postgres};
use sqlx::{Column, Error, Row as _, Transaction, TypeInfo};

use super::error::TxError;
use super::tx::{AtomicTx, Dialect, Param, Row, Value};

/// The code of PostgreSQL for a lock that was not waited for.
const LOCK_NOT_AVAILABLE: &str = "55P03";

impl AtomicTx for Transaction<'_, Postgres> {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn query(
        &mut self,
        statement: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, TxError> {
        // Not kept in the session, so that it works behind a pooler.
        let mut query = sqlx::query(statement).persistent(false);
        for param in params {
            query = match *param {
                Param::Int(value) => query.bind(value),
                Param::Bytes(bytes) => query.bind(bytes.map(<[u8]>::to_vec)),
                Param::Text(text) => query.bind(text.map(str::to_owned)),
            };
        }
        let rows = query.fetch_all(&mut **self).await.map_err(failed)?;
        rows.iter().map(row).collect()
    }
}

fn row(row: &PgRow) -> Result<Row, TxError> {
    let columns = row.columns().iter().enumerate();
    let values = columns.map(|(at, column)| {
        Ok(match column.type_info().name() {
            "INT8" => row.try_get::<Option<i64>, _>(at)?.map(Value::Int),
            "BYTEA" => row.try_get::<Option<Vec<u8>>, _>(at)?.map(Value::Bytes),
            _ => row.try_get::<Option<String>, _>(at)?.map(Value::Text),
        }
        .unwrap_or(Value::Null))
    });
    let values: Result<Vec<Value>, Error> = values.collect();
    Ok(Row(values.map_err(failed)?))
}

fn failed(error: Error) -> TxError {
    let code = error.as_database_error().and_then(|error| error.code());
    if code.as_deref() == Some(LOCK_NOT_AVAILABLE) {
        return TxError::Busy(error.into());
    }
    TxError::Failed(error.into())
}
