//! What those who ask for messages may ask of a store, and how two streams become one.

use std::collections::VecDeque;

use async_trait::async_trait;
use hapax_ledger::id::{EndpointId, EventId};
use hapax_ledger::time::Time;

use crate::error::StoreError;
use crate::nouns::{
    Authority, CONSUMER_TOUCHED, Consumed, Message, PAGE_MAX, PollAsk, PollPlace, Polled, Sought,
};

/// What a seek is called in the audit log.
pub(crate) const SOUGHT: &str = "poller.seek";
/// So many messages get their turn in one step: some tens of milliseconds of whoever writes.
pub(crate) const TURNS_PER_STEP: usize = 1_000;

/// Each method is one transaction, but for [`Polls::poll`], which may first give turns in one of its own.
#[async_trait]
pub trait Polls: Send + Sync + 'static {
    /// Messages after a place, the oldest first. One that is to be sent later gets its turn when its time has come and somebody asks:
    /// behind all turns that were given before, so that nobody has read past it. So does every message where commits end in another order
    /// than messages came in.
    async fn poll(&self, ask: PollAsk) -> Result<Polled, StoreError>;

    /// Where a consumer of an endpoint goes on. What it says it has read is kept, unless it has said more before; without a word it goes
    /// on where it stands, or at the beginning.
    async fn consume(
        &self,
        endpoint: EndpointId,
        consumer: String,
        read: Option<PollPlace>,
        now: Time,
    ) -> Result<Consumed, StoreError>;

    /// A consumer goes on elsewhere, before or behind. Audited as `poller.seek`, about the endpoint; `answer` is what is said to
    /// whoever asked.
    async fn seek(
        &self,
        endpoint: EndpointId,
        consumer: String,
        place: PollPlace,
        by: Authority,
        answer: String,
    ) -> Result<Sought, StoreError>;
}

/// How many are asked for.
pub(crate) fn limit(ask: &PollAsk) -> usize {
    ask.limit.clamp(1, PAGE_MAX) as usize
}

/// The turn of a message that was to be sent at this time, after the last that was given.
pub(crate) fn turn(last: i64, deliver_at: i64) -> i64 {
    deliver_at.max(last.saturating_add(1))
}

/// Have all turns been given that were due?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// Yes.
    All,
    /// There may be more.
    Some,
}

impl Given {
    /// After a step that gave so many.
    pub(crate) fn of(turns: usize) -> Given {
        match turns < TURNS_PER_STEP {
            true => Given::All,
            false => Given::Some,
        }
    }
}

/// A consumer as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Consumer {
    pub(crate) place: PollPlace,
    pub(crate) seen_at: Time,
}

/// What a consumer hears, and what is to be kept about it.
pub(crate) fn consume(
    known: Option<Consumer>,
    read: Option<PollPlace>,
    now: Time,
) -> (Consumed, Option<Consumer>) {
    let stands = known.map_or(PollPlace::BEGINNING, |known| known.place);
    let place = match read {
        Some(read) if read.is_behind(&stands) => return (Consumed::Behind(stands), None),
        Some(read) => read,
        None => stands,
    };
    let is_fresh = known.is_some_and(|known| known.seen_at + CONSUMER_TOUCHED > now);
    let kept = Consumer {
        place,
        seen_at: now,
    };
    let changed = place != stands || !is_fresh;
    (Consumed::At(place), changed.then_some(kept))
}

/// One of the two streams, as far as it was looked at.
pub(crate) struct Stream<P> {
    limit: usize,
    found: VecDeque<(P, Time, Message)>,
    /// The last that was looked at, whether it fits or not.
    looked_at: Option<P>,
    ended: bool,
}

impl<P: Copy> Stream<P> {
    pub(crate) fn new(limit: usize) -> Stream<P> {
        Stream {
            limit,
            found: VecDeque::new(),
            looked_at: None,
            ended: false,
        }
    }

    /// One more was looked at, and perhaps fits; it counts for this time. Is there enough?
    pub(crate) fn is_over(&mut self, place: P, at: Time, fitting: Option<Message>) -> bool {
        self.looked_at = Some(place);
        self.found
            .extend(fitting.map(|message| (place, at, message)));
        self.found.len() >= self.limit
    }

    /// There is no more of it.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    fn next_at(&self) -> Option<Time> {
        self.found.front().map(|(_, at, _)| *at)
    }

    /// Where it goes on: behind all that was looked at, if all that was found is given.
    fn place(&self, last_given: P) -> P {
        match self.found.is_empty() {
            true => self.looked_at.unwrap_or(last_given),
            false => last_given,
        }
    }

    fn has_more(&self) -> bool {
        !self.found.is_empty() || !self.ended
    }
}

/// Both streams as one, by time, up to the limit.
pub(crate) fn merge(
    from: PollPlace,
    mut at_once: Stream<EventId>,
    mut later: Stream<i64>,
    given: Given,
    limit: usize,
) -> Polled {
    let mut messages = Vec::new();
    let mut place = from;
    while messages.len() < limit {
        let next = match (at_once.next_at(), later.next_at()) {
            (Some(first), Some(second)) if second < first => None,
            (Some(_), _) => at_once.found.pop_front(),
            (None, _) => None,
        };
        if let Some((last, _, message)) = next {
            place.at_once = last;
            messages.push(message);
        } else if let Some((last, _, message)) = later.found.pop_front() {
            place.later = last;
            messages.push(message);
        } else {
            break;
        }
    }
    place.at_once = at_once.place(place.at_once);
    place.later = later.place(place.later);
    Polled {
        messages,
        place,
        more: at_once.has_more() || later.has_more() || given == Given::Some,
    }
}
