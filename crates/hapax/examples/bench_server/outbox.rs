//! Nothing to send either: no applications, no messages.

use async_trait::async_trait;
use hapax_ledger::id::{AppId, EffectId, EndpointId, EventId};
use hapax_ledger::time::Time;
use hapax_store::nouns::{
    Addressed, Authority, Changes, Consumed, Deliveries, Entry, FannedOut, Listed, Mark, Message,
    MessageFilter, NewMessage, Page, PollAsk, PollPlace, Polled, Posted, PostedFilter, Published,
    Put, Sought, Tally, Tried, TriedPlace, Untold,
};
use hapax_store::{Outbox, Polls, StoreError, Tidings};

use super::NoStore;

fn nothing<R, I>() -> Listed<R, I> {
    Listed::default()
}

#[async_trait]
impl Outbox for NoStore {
    async fn revision(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
    async fn changes(&self, _: u64) -> Result<Changes, StoreError> {
        Ok(Changes::default())
    }
    async fn put(
        &self,
        _: Entry,
        _: u64,
        _: &'static str,
        _: Authority,
        _: String,
    ) -> Result<Put, StoreError> {
        Ok(Put::Moved)
    }
    async fn mark_endpoints(&self, marks: Vec<Mark>, _: Time) -> Result<Vec<Put>, StoreError> {
        Ok(vec![Put::Moved; marks.len()])
    }
    async fn publish(&self, _: NewMessage) -> Result<Published, StoreError> {
        Ok(Published::Outdated)
    }
    async fn fan_out(&self) -> Result<FannedOut, StoreError> {
        Ok(FannedOut::default())
    }
    async fn message(&self, _: EventId) -> Result<Option<Message>, StoreError> {
        Ok(None)
    }
    async fn messages(&self, _: MessageFilter, _: Page) -> Result<Listed<Message>, StoreError> {
        Ok(nothing())
    }
    async fn addressed(&self, _: EventId, _: EndpointId) -> Result<Option<Addressed>, StoreError> {
        Ok(None)
    }
    async fn deliveries(
        &self,
        _: Deliveries,
        _: PostedFilter,
        _: Page<EffectId>,
    ) -> Result<Listed<Posted, EffectId>, StoreError> {
        Ok(nothing())
    }
    async fn attempts(
        &self,
        _: Deliveries,
        _: PostedFilter,
        _: Page<TriedPlace>,
    ) -> Result<Listed<Tried, TriedPlace>, StoreError> {
        Ok(nothing())
    }
    async fn tallies(&self, _: EndpointId, _: Time, _: Time) -> Result<Vec<Tally>, StoreError> {
        Ok(Vec::new())
    }
    async fn usage(&self, _: AppId, _: Time, _: Time) -> Result<u64, StoreError> {
        Ok(0)
    }
    async fn waiting(&self, _: EndpointId) -> Result<(u64, u64), StoreError> {
        Ok((0, 0))
    }
}

#[async_trait]
impl Polls for NoStore {
    async fn poll(&self, ask: PollAsk) -> Result<Polled, StoreError> {
        Ok(Polled {
            messages: Vec::new(),
            place: ask.from,
            more: false,
        })
    }
    async fn consume(
        &self,
        _: EndpointId,
        _: String,
        _: Option<PollPlace>,
        _: Time,
    ) -> Result<Consumed, StoreError> {
        Ok(Consumed::TooMany)
    }
    async fn seek(
        &self,
        _: EndpointId,
        _: String,
        _: PollPlace,
        _: Authority,
        _: String,
    ) -> Result<Sought, StoreError> {
        Ok(Sought::TooMany)
    }
}

#[async_trait]
impl Tidings for NoStore {
    async fn untold(&self, _: i64) -> Result<Vec<Untold>, StoreError> {
        Ok(Vec::new())
    }
    async fn told(&self, _: Vec<i64>) -> Result<(), StoreError> {
        Ok(())
    }
}
