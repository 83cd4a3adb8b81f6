//! What the outbox asks of PostgreSQL.

use async_trait::async_trait;
use hapax_ledger::id::{AppId, EffectId, EndpointId, EventId};
use hapax_ledger::time::Time;

use super::{PostgresStore, addressed, app, fan_out, mark, post, tally};
use crate::error::StoreError;
use crate::nouns::{
    Addressed, Authority, Changes, Deliveries, Entry, FannedOut, Listed, Mark, Message,
    MessageFilter, NewMessage, Page, Posted, PostedFilter, Published, Put, Tally, Tried,
    TriedPlace,
};
use crate::outbox::Outbox;
use crate::posting;

#[async_trait]
impl Outbox for PostgresStore {
    async fn revision(&self) -> Result<u64, StoreError> {
        app::revision(&self.readers).await
    }

    async fn changes(&self, since: u64) -> Result<Changes, StoreError> {
        app::changes(&self.readers, since).await
    }

    async fn put(
        &self,
        entry: Entry,
        was: u64,
        action: &'static str,
        by: Authority,
        answer: String,
    ) -> Result<Put, StoreError> {
        app::put(&self.readers, entry, was, action, &by, &answer).await
    }

    async fn mark_endpoints(&self, marks: Vec<Mark>, now: Time) -> Result<Vec<Put>, StoreError> {
        mark::endpoints(&self.readers, &marks, now).await
    }

    async fn publish(&self, mut message: NewMessage) -> Result<Published, StoreError> {
        posting::sound(&message)?;
        posting::arrival(&mut message);
        self.messages.ask(message).await
    }

    async fn fan_out(&self) -> Result<FannedOut, StoreError> {
        fan_out::step(&self.deciders, &self.entropy, &self.clock).await
    }

    async fn message(&self, id: EventId) -> Result<Option<Message>, StoreError> {
        post::message(&self.readers, id).await
    }

    async fn messages(
        &self,
        filter: MessageFilter,
        page: Page,
    ) -> Result<Listed<Message>, StoreError> {
        post::messages(&self.readers, &filter, page).await
    }

    async fn addressed(
        &self,
        id: EventId,
        endpoint: EndpointId,
    ) -> Result<Option<Addressed>, StoreError> {
        addressed::addressed(&self.readers, id, endpoint).await
    }

    async fn deliveries(
        &self,
        which: Deliveries,
        filter: PostedFilter,
        page: Page<EffectId>,
    ) -> Result<Listed<Posted, EffectId>, StoreError> {
        post::deliveries(&self.readers, &which, &filter, page).await
    }

    async fn attempts(
        &self,
        which: Deliveries,
        filter: PostedFilter,
        page: Page<TriedPlace>,
    ) -> Result<Listed<Tried, TriedPlace>, StoreError> {
        post::attempts(&self.readers, &which, &filter, page).await
    }

    async fn tallies(
        &self,
        endpoint: EndpointId,
        since: Time,
        until: Time,
    ) -> Result<Vec<Tally>, StoreError> {
        tally::read(&self.readers, endpoint, since, until).await
    }

    async fn usage(&self, app: AppId, since: Time, until: Time) -> Result<u64, StoreError> {
        let endpoints = tally::endpoints(&self.readers, app).await?;
        let mut sum = 0;
        for some in endpoints.chunks(tally::ENDPOINTS_PER_STEP) {
            sum += tally::attempts(&self.readers, some, since, until).await?;
        }
        Ok(sum)
    }

    async fn waiting(&self, endpoint: EndpointId) -> Result<(u64, u64), StoreError> {
        post::waiting(&self.readers, endpoint).await
    }
}
