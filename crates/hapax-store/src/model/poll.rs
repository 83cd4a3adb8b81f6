//! Messages in memory, for those who ask for them.

use async_trait::async_trait;
use hapax_ledger::id::EndpointId;
use hapax_ledger::time::Time;

use super::ModelStore;
use super::state::State;
use crate::error::StoreError;
use crate::nouns::{
    Authority, CONSUMERS_KEPT, CONSUMERS_MAX, Consumed, Message, PollAsk, PollPlace, Polled,
    Sought, app_source,
};
use crate::polling::{self, Consumer, Given, Polls, Stream};

impl State {
    /// Gives turns to messages whose time has come.
    fn give_turns(&mut self, ask: &PollAsk) {
        let Some(app) = ask.filter.app else { return };
        let source = app_source(app);
        let mut due: Vec<_> = self
            .events
            .values_mut()
            .filter(|row| *row.event.source == *source && row.turn.is_none())
            .filter_map(|row| {
                let at = row.about.as_ref()?.deliver_at?;
                (at <= ask.now).then_some((at, row.event.id.0.row(), row))
            })
            .collect();
        due.sort_by_key(|(at, row, _)| (*at, *row));
        let last = self.outbox.turns.entry(source).or_default();
        for (at, _, row) in due {
            *last = polling::turn(*last, at.micros());
            row.turn = Some(*last);
        }
    }

    fn poll(&mut self, ask: &PollAsk) -> Polled {
        self.give_turns(ask);
        let limit = polling::limit(ask);
        let (mut at_once, mut later) = (Stream::new(limit), Stream::new(limit));
        let mut rows: Vec<_> = self.events.values().collect();
        rows.sort_by_key(|row| row.event.id.0.row());
        let source = ask.filter.app.map(app_source);
        let fitting = |message: Message, at: Time| {
            let fits = ask.filter.fits(&message) && ask.from.since.is_none_or(|since| at >= since);
            Some(message).filter(|_| fits)
        };
        let mut turns = Vec::new();
        for row in rows {
            let id = row.event.id;
            let of_app = source.as_deref() == Some(&*row.event.source);
            let Some(message) = row.message().filter(|_| of_app) else {
                continue;
            };
            match (message.about.deliver_at, row.turn) {
                (None, _) if id.0.row() > ask.from.at_once.0.row() => {
                    let at = message.event.received_at;
                    at_once.is_over(id, at, fitting(message, at));
                }
                (Some(_), Some(turn)) if turn > ask.from.later => turns.push((turn, message)),
                (None, _) | (Some(_), _) => {}
            }
        }
        turns.sort_by_key(|(turn, _)| *turn);
        for (turn, message) in turns {
            let at = Time::from_micros(turn);
            later.is_over(turn, at, fitting(message, at));
        }
        at_once.end();
        later.end();
        polling::merge(ask.from, at_once, later, Given::All, limit)
    }

    /// Keeps a place, unless there are too many.
    fn keep_consumer(&mut self, endpoint: EndpointId, consumer: &str, kept: Consumer) -> bool {
        let consumers = &mut self.outbox.consumers;
        let key = (endpoint, consumer.to_owned());
        let of_endpoint = consumers.keys().filter(|(of, _)| *of == endpoint);
        let is_room = consumers.contains_key(&key) || of_endpoint.count() < CONSUMERS_MAX;
        if is_room {
            consumers.insert(key, kept);
        }
        is_room
    }

    pub(super) fn reap_consumers(&mut self, now: Time) {
        self.outbox
            .consumers
            .retain(|_, consumer| consumer.seen_at + CONSUMERS_KEPT > now);
    }
}

#[async_trait]
impl Polls for ModelStore {
    async fn poll(&self, ask: PollAsk) -> Result<Polled, StoreError> {
        Ok(self.lock().poll(&ask))
    }

    async fn consume(
        &self,
        endpoint: EndpointId,
        consumer: String,
        read: Option<PollPlace>,
        now: Time,
    ) -> Result<Consumed, StoreError> {
        let mut state = self.lock();
        let key = (endpoint, consumer.clone());
        let known = state.outbox.consumers.get(&key).copied();
        let (consumed, keep) = polling::consume(known, read, now);
        let kept = keep.is_none_or(|keep| state.keep_consumer(endpoint, &consumer, keep));
        Ok(match kept {
            true => consumed,
            false => Consumed::TooMany,
        })
    }

    async fn seek(
        &self,
        endpoint: EndpointId,
        consumer: String,
        place: PollPlace,
        by: Authority,
        answer: String,
    ) -> Result<Sought, StoreError> {
        let mut state = self.lock();
        if let Some(before) = state.catalog.before(&by) {
            return Ok(Sought::Repeated(before));
        }
        let kept = Consumer {
            place,
            seen_at: by.at,
        };
        if !state.keep_consumer(endpoint, &consumer, kept) {
            return Ok(Sought::TooMany);
        }
        let subject = endpoint.to_string();
        state
            .catalog
            .write_down(&by, polling::SOUGHT, subject, answer, None);
        Ok(Sought::Done)
    }
}
