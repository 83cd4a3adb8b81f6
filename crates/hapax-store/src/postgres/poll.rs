//! What those who ask for messages ask of PostgreSQL.

use async_trait::async_trait;
use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::pool::{Param, Pool};
use super::post::{message_columns, to_message};
use super::read::{ROWS_LOOKED_AT_MAX, event_columns};
use super::wire::Uuid;
use super::{PostgresStore, poll_consumer, poll_turn};
use crate::error::StoreError;
use crate::nouns::{Authority, Consumed, Message, PollAsk, PollPlace, Polled, Sought};
use crate::polling::{self, Given, Polls, Stream};

/// Rows that are read at once.
const ROWS_AT_ONCE: i64 = 256;
/// The column behind those of a message.
const TURN: usize = 30;

#[async_trait]
impl Polls for PostgresStore {
    async fn poll(&self, ask: PollAsk) -> Result<Polled, StoreError> {
        let Some(app) = ask.filter.app else {
            let (messages, place, more) = (Vec::new(), ask.from, false);
            return Ok(Polled {
                messages,
                place,
                more,
            });
        };
        let given = match poll_turn::any(&self.readers, app, ask.now).await? {
            true => poll_turn::give(&self.deciders, app, ask.now).await?,
            false => Given::All,
        };
        let limit = polling::limit(&ask);
        let in_turn = in_turn(&self.readers, app, &ask, limit).await?;
        // Every message has a turn here: commits end in any order, so the order in which messages came says nothing of what may still come.
        let mut at_once = Stream::new(limit);
        at_once.end();
        Ok(polling::merge(ask.from, at_once, in_turn, given, limit))
    }

    async fn consume(
        &self,
        endpoint: EndpointId,
        consumer: String,
        read: Option<PollPlace>,
        now: Time,
    ) -> Result<Consumed, StoreError> {
        let known = poll_consumer::read(&self.readers, endpoint, &consumer).await?;
        let (consumed, keep) = polling::consume(known, read, now);
        match keep {
            Some(_) => poll_consumer::consume(&self.deciders, endpoint, &consumer, read, now).await,
            None => Ok(consumed),
        }
    }

    async fn seek(
        &self,
        endpoint: EndpointId,
        consumer: String,
        place: PollPlace,
        by: Authority,
        answer: String,
    ) -> Result<Sought, StoreError> {
        poll_consumer::seek(&self.deciders, endpoint, &consumer, place, &by, &answer).await
    }
}

fn wanted(ask: &PollAsk, at: Time, message: Message) -> Option<Message> {
    let fits = ask.filter.fits(&message) && ask.from.since.is_none_or(|since| at >= since);
    Some(message).filter(|_| fits)
}

/// Messages that had their turn after another's.
async fn in_turn(
    pool: &Pool,
    app: AppId,
    ask: &PollAsk,
    limit: usize,
) -> Result<Stream<i64>, StoreError> {
    let app = Uuid(app.bytes());
    let mut from = ask.from.later;
    let mut stream = Stream::new(limit);
    let mut looked_at = 0;
    while looked_at < ROWS_LOOKED_AT_MAX {
        let params: [Param<'_>; 3] = [
            (&from, Type::INT8),
            (&ROWS_AT_ONCE, Type::INT8),
            (&app, Type::UUID),
        ];
        let rows: Vec<Row> = pool
            .walk(
                message_columns!(
                    ", m.turn FROM (
                         SELECT * FROM hapax.message
                         WHERE app = $3 AND turn IS NOT NULL AND turn > $1 ORDER BY turn LIMIT $2
                     ) m JOIN hapax.event e ON e.shard = m.shard AND e.id = m.event ORDER BY m.turn"
                ),
                &params,
            )
            .await?;
        for row in &rows {
            from = row.get(TURN);
            let message = to_message(row);
            let at = message
                .about
                .deliver_at
                .unwrap_or(message.event.received_at);
            if stream.is_over(from, at, wanted(ask, at, message)) {
                return Ok(stream);
            }
        }
        looked_at += rows.len() as i64;
        if (rows.len() as i64) < ROWS_AT_ONCE {
            stream.end();
            return Ok(stream);
        }
    }
    Ok(stream)
}
