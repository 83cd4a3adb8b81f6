//! What the outbox asks of SQLite. What is published shares the group, and so the commit, with what is accepted.

use async_trait::async_trait;
use hapax_ledger::id::{AppId, EffectId, EndpointId, EventId};
use hapax_ledger::time::Time;

use super::queue::Whose;
use super::writer::Space;
use super::{SqliteStore, addressed, app, fan_out, mark, message, post, publish, tally};
use crate::error::StoreError;
use crate::nouns::{
    Addressed, Authority, Changes, Deliveries, Entry, FannedOut, Listed, Mark, Message,
    MessageFilter, NewMessage, Page, Posted, PostedFilter, Published, Put, Tally, Tried,
    TriedPlace,
};
use crate::outbox::Outbox;
use crate::posting;

#[async_trait]
impl Outbox for SqliteStore {
    async fn revision(&self) -> Result<u64, StoreError> {
        self.readers.run(app::revision).await
    }

    async fn changes(&self, since: u64) -> Result<Changes, StoreError> {
        self.readers.run(move |db| app::changes(db, since)).await
    }

    async fn put(
        &self,
        entry: Entry,
        was: u64,
        action: &'static str,
        by: Authority,
        answer: String,
    ) -> Result<Put, StoreError> {
        self.writer
            .write(Whose::Caller, Space::Frees, 0, move |tx| {
                tx.group.catalogue_changes();
                app::put(tx.db, entry, was, action, &by, answer)
            })
            .await
    }

    async fn mark_endpoints(&self, marks: Vec<Mark>, now: Time) -> Result<Vec<Put>, StoreError> {
        self.writer
            .write(Whose::Ours, Space::Frees, 0, move |tx| {
                tx.group.catalogue_changes();
                let marked = marks.iter().map(|one| mark::endpoint(tx.db, one, now));
                marked.collect()
            })
            .await
    }

    async fn publish(&self, message: NewMessage) -> Result<Published, StoreError> {
        posting::sound(&message)?;
        let events = message.arrival.events.iter();
        let bytes = events.map(|event| event.body.len()).sum();
        self.writer
            .write(Whose::Caller, Space::Takes, bytes, move |tx| {
                publish::publish(tx, message)
            })
            .await
    }

    async fn fan_out(&self) -> Result<FannedOut, StoreError> {
        // Mostly there is nothing, and the writer has better things to do than to find that out.
        if !self.readers.run(fan_out::any).await? {
            return Ok(FannedOut::default());
        }
        self.writer
            .write(Whose::Ours, Space::Takes, 0, fan_out::step)
            .await
    }

    async fn message(&self, id: EventId) -> Result<Option<Message>, StoreError> {
        let index = self.index.clone();
        self.readers
            .run(move |db| message::message(db, &index, id))
            .await
    }

    async fn messages(
        &self,
        filter: MessageFilter,
        page: Page,
    ) -> Result<Listed<Message>, StoreError> {
        let index = self.index.clone();
        self.readers
            .run(move |db| post::messages(db, &index, &filter, page))
            .await
    }

    async fn addressed(
        &self,
        id: EventId,
        endpoint: EndpointId,
    ) -> Result<Option<Addressed>, StoreError> {
        self.readers
            .run(move |db| addressed::addressed(db, id, endpoint))
            .await
    }

    async fn deliveries(
        &self,
        which: Deliveries,
        filter: PostedFilter,
        page: Page<EffectId>,
    ) -> Result<Listed<Posted, EffectId>, StoreError> {
        let index = self.index.clone();
        self.readers
            .run(move |db| post::deliveries(db, &index, &which, &filter, page))
            .await
    }

    async fn attempts(
        &self,
        which: Deliveries,
        filter: PostedFilter,
        page: Page<TriedPlace>,
    ) -> Result<Listed<Tried, TriedPlace>, StoreError> {
        let index = self.index.clone();
        self.readers
            .run(move |db| post::attempts(db, &index, &which, &filter, page))
            .await
    }

    async fn tallies(
        &self,
        endpoint: EndpointId,
        since: Time,
        until: Time,
    ) -> Result<Vec<Tally>, StoreError> {
        self.readers
            .run(move |db| tally::read(db, endpoint, since, until))
            .await
    }

    async fn usage(&self, app: AppId, since: Time, until: Time) -> Result<u64, StoreError> {
        let endpoints = self
            .readers
            .run(move |db| tally::endpoints(db, app))
            .await?;
        let mut sum = 0;
        for some in endpoints.chunks(tally::ENDPOINTS_PER_STEP) {
            let some = some.to_vec();
            sum += self
                .readers
                .run(move |db| tally::attempts(db, &some, since, until))
                .await?;
        }
        Ok(sum)
    }

    async fn waiting(&self, endpoint: EndpointId) -> Result<(u64, u64), StoreError> {
        self.readers
            .run(move |db| post::waiting(db, endpoint))
            .await
    }
}
