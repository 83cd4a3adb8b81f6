//! What operators are to hear, until it is told.

use async_trait::async_trait;
use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::PostgresStore;
use super::held::Hand;
use super::pool::Statement;
use super::wire::{Uuid, received, sendable};
use crate::error::StoreError;
use crate::nouns::{TIDINGS_PER_PAGE, Tiding, Untold};
use crate::tidings::{self, Tidings};

#[async_trait]
impl Tidings for PostgresStore {
    async fn untold(&self, after: i64) -> Result<Vec<Untold>, StoreError> {
        let rows = self
            .readers
            .read(
                "SELECT n, at, app, endpoint, news FROM hapax.tiding WHERE n > $1 ORDER BY n LIMIT $2",
                &[
                    (&after, Type::INT8),
                    (&(TIDINGS_PER_PAGE as i64), Type::INT8),
                ],
            )
            .await?;
        Ok(rows.iter().map(to_untold).collect())
    }

    async fn told(&self, numbers: Vec<i64>) -> Result<(), StoreError> {
        let taken = self.deciders.take().await?;
        taken
            .query_and_commit(
                "DELETE FROM hapax.tiding WHERE n = ANY ($1)",
                &[(&numbers, Type::INT8_ARRAY)],
            )
            .await?;
        Ok(())
    }
}

fn to_untold(row: &Row) -> Untold {
    let news = received(row.get(4));
    Untold {
        number: row.get(0),
        tiding: tidings::from_text(&news).map(|news| Tiding {
            at: Time::from_micros(row.get(1)),
            app: row
                .get::<_, Option<Uuid>>(2)
                .map(|app| AppId::from_bytes(app.0)),
            endpoint: EndpointId::from_bytes(row.get::<_, Uuid>(3).0),
            news,
        }),
    }
}

/// Tidings that are about to be written, in the transaction of what they tell of.
#[derive(Default)]
pub(super) struct TidingColumns {
    at: Vec<i64>,
    app: Vec<Option<Uuid>>,
    endpoint: Vec<Uuid>,
    news: Vec<String>,
}

impl TidingColumns {
    pub(super) fn of<'a>(tidings: impl IntoIterator<Item = &'a Tiding>) -> TidingColumns {
        let mut columns = TidingColumns::default();
        for tiding in tidings {
            columns.at.push(tiding.at.micros());
            columns.app.push(tiding.app.map(|app| Uuid(app.bytes())));
            columns.endpoint.push(Uuid(tiding.endpoint.bytes()));
            let news = tidings::to_text(&tiding.news);
            columns.news.push(sendable(&news).into_owned());
        }
        columns
    }

    /// Of the attempts that have ended here. One that was given up and brought back in the same group is told as it stands.
    pub(super) fn of_hand(hand: &Hand) -> TidingColumns {
        let ended = hand.ended.iter().filter_map(|(id, attempt)| {
            let effect = &hand.held.get(id)?.effect;
            let latest = effect.record.fence == attempt.fence;
            let (began, at) = (attempt.started_at, attempt.ended_at);
            latest.then(|| Tiding::of_attempt(effect, attempt.outcome, began, at))?
        });
        let tidings: Vec<Tiding> = ended.collect();
        TidingColumns::of(&tidings)
    }

    /// `None` if there are none.
    pub(super) fn statement(&self) -> Option<Statement<'_>> {
        let sql = "INSERT INTO hapax.tiding (at, app, endpoint, news)
             SELECT unnest($1::int8[]), unnest($2::uuid[]), unnest($3::uuid[]), unnest($4::text[])";
        let params = vec![
            (&self.at as _, Type::INT8_ARRAY),
            (&self.app as _, Type::UUID_ARRAY),
            (&self.endpoint as _, Type::UUID_ARRAY),
            (&self.news as _, Type::TEXT_ARRAY),
        ];
        (!self.at.is_empty()).then_some((sql, params))
    }
}
