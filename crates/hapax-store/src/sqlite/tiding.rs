//! What operators are to hear, until it is told.

use async_trait::async_trait;
use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Time;
use rusqlite::{Connection, params};

use super::queue::Whose;
use super::writer::Space;
use super::{SqliteStore, sql_error};
use crate::error::StoreError;
use crate::nouns::{TIDINGS_PER_PAGE, Tiding, Untold};
use crate::tidings::{self, Tidings};

#[async_trait]
impl Tidings for SqliteStore {
    async fn untold(&self, after: i64) -> Result<Vec<Untold>, StoreError> {
        self.readers.run(move |db| untold(db, after)).await
    }

    async fn told(&self, numbers: Vec<i64>) -> Result<(), StoreError> {
        self.writer
            .write(Whose::Ours, Space::Frees, 0, move |tx| {
                numbers.iter().try_for_each(|number| forget(tx.db, *number))
            })
            .await
    }
}

/// Writes one down, in the transaction of what it tells of.
pub(super) fn write(db: &Connection, tiding: &Tiding) -> Result<(), StoreError> {
    let app = tiding.app.map(AppId::bytes);
    let news = tidings::to_text(&tiding.news);
    db.prepare_cached("INSERT INTO tiding (at, app, endpoint, news) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| {
            insert.execute(params![
                tiding.at.micros(),
                app,
                tiding.endpoint.bytes(),
                news
            ])
        })
        .map_err(sql_error)?;
    Ok(())
}

fn untold(db: &Connection, after: i64) -> Result<Vec<Untold>, StoreError> {
    db.prepare_cached(
        "SELECT n, at, app, endpoint, news FROM tiding WHERE n > ?1 ORDER BY n LIMIT ?2",
    )
    .and_then(|mut read| {
        let rows = read.query_map(params![after, TIDINGS_PER_PAGE as i64], |row| {
            let (app, news): (Option<[u8; 16]>, String) = (row.get(2)?, row.get(4)?);
            let (at, endpoint) = (row.get(1)?, row.get(3)?);
            Ok(Untold {
                number: row.get(0)?,
                tiding: tidings::from_text(&news).map(|news| Tiding {
                    at: Time::from_micros(at),
                    app: app.map(AppId::from_bytes),
                    endpoint: EndpointId::from_bytes(endpoint),
                    news,
                }),
            })
        })?;
        rows.collect()
    })
    .map_err(sql_error)
}

fn forget(db: &Connection, number: i64) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM tiding WHERE n = ?1")
        .and_then(|mut delete| delete.execute([number]))
        .map_err(sql_error)?;
    Ok(())
}
