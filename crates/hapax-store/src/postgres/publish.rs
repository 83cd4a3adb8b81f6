//! Messages, any number of them in one commit.
//!
//! New ones without order and number go by [`super::swift`], in one statement. For the others, and for whom it found a key held, there is
//! one transaction for a group, as for arrivals whose keys may be held: take or lock all keys, read who holds them, give numbers, see
//! whose order is still being fanned out, plan, write, commit. What would be stored and is planned by an older catalogue is left out,
//! and its key is given back.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU32;

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{AppId, EventId};
use hapax_ledger::identity::{self, Sighting};
use tokio_postgres::types::Type;

use super::accept::key_order;
use super::batch::{Job, TooMuch, Work};
use super::decide::{Decisions, Holder, Key};
use super::fan_out::{self, FanOutColumns};
use super::known::{self, Slots, key_columns};
use super::message::MessageColumns;
use super::moment::{LeaseClock, moment};
use super::number::Numbers;
use super::plan::{self, Plan};
use super::pool::{Param, Pool, Statement, Taken};
use super::stored::store_with;
use super::swift::{self, Posts, Swift};
use super::wire::Uuid;
use super::{Entropy, app, called};
use crate::error::StoreError;
use crate::nouns::{
    Arrival, LaterDelivery, NewEvent, NewMessage, Published, Receipt, Receipted, app_of_source,
};
use crate::posting;

/// What the rows of a delivery weigh, about.
const DELIVERY_BYTES: usize = 512;

/// Stores messages, any number of them in one commit.
pub(super) struct Publisher {
    pub(super) pool: Pool,
    pub(super) entropy: Entropy,
    pub(super) clock: LeaseClock,
    /// The store's epoch as it was last seen.
    pub(super) epoch: AtomicU32,
}

impl Work for Publisher {
    type Ask = NewMessage;
    type Answer = Published;
    const ASKS: &'static str = "messages";
    type Way = Taken;
    const BEHIND: Option<usize> = None;

    async fn way(&self, pool: &Pool) -> Result<Taken, StoreError> {
        pool.take().await
    }

    fn too_much(_: &NewMessage) -> TooMuch {
        TooMuch::IsRefused
    }

    fn bytes(message: &NewMessage) -> usize {
        let events = message.arrival.events.iter();
        events
            .map(|event| event.body.len() + event.effects.len() * DELIVERY_BYTES)
            .sum()
    }

    /// One group: what may be swift first; then those that have a key of their own in one commit, and what repeats one of them behind it.
    async fn step(&self, taken: Taken, jobs: Vec<Job<Publisher>>) {
        let (mut free, mut waiting) = self.publish_swiftly(taken, jobs).await;
        while !waiting.is_empty() {
            let (group, rest) = apart(waiting);
            waiting = rest;
            let taken = match free.take() {
                Some(taken) => Ok(taken),
                None => self.pool.take().await,
            };
            let messages: Vec<&NewMessage> = group.iter().map(|job| &job.ask).collect();
            let published = match taken {
                Ok(taken) => publish(taken, &messages, &self.entropy, &self.clock).await,
                Err(error) => Err(error),
            };
            match published {
                Ok(published) => {
                    for (job, published) in group.into_iter().zip(published) {
                        job.answer(Ok(published));
                    }
                }
                Err(error) => refuse(group, &error),
            }
        }
        if let Some(taken) = free {
            taken.give_back();
        }
    }
}

fn refuse(group: Vec<Job<Publisher>>, error: &StoreError) {
    tracing::error!(%error, messages = group.len(), "a group of messages failed");
    Job::refuse(group, error);
}

impl Publisher {
    /// Answers those that were new, and gives back the others; and the connection, if it was not needed.
    async fn publish_swiftly(
        &self,
        taken: Taken,
        jobs: Vec<Job<Publisher>>,
    ) -> (Option<Taken>, Vec<Job<Publisher>>) {
        // Whoever is planned by an older catalogue than another hears so on the careful way.
        let revision = jobs.iter().map(|job| job.ask.revision).max();
        let revision = revision.unwrap_or_default();
        let (swift, mut careful): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .partition(|job| job.ask.revision == revision && may_be_swift(&job.ask));
        if swift.is_empty() {
            return (Some(taken), careful);
        }
        let messages = || swift.iter().filter_map(|job| split(&job.ask));
        let arrivals: Vec<(&Arrival, &NewEvent)> = messages()
            .map(|(message, event, _)| (&message.arrival, event))
            .collect();
        let posts = Posts {
            about: messages()
                .map(|(message, _, app)| (app, &message.about))
                .collect(),
            revision,
        };
        let (entropy, clock) = (&self.entropy, &self.clock);
        let stored = swift::accept(taken, &arrivals, Some(&posts), entropy, clock, &self.epoch);
        match stored.await {
            Ok(Swift::Stored(receipts)) => {
                for (job, receipt) in swift.into_iter().zip(receipts) {
                    match receipt {
                        Some(receipt) => job.answer(Ok(Published::Stored(receipt))),
                        None => careful.push(job),
                    }
                }
            }
            Ok(Swift::Shared | Swift::Elsewhen) => careful.extend(swift),
            Err(error) => refuse(swift, &error),
        }
        (None, careful)
    }
}

/// Nothing about it has to be looked up: neither its number, nor whose turn it is, nor what follows it.
fn may_be_swift(message: &NewMessage) -> bool {
    let plain = message.later.is_empty() && message.about.numbered_by().is_none();
    plain && split(message).is_some_and(|(_, event, _)| swift::fits(event))
}

/// A message, its event, and whose it is.
fn split(message: &NewMessage) -> Option<(&NewMessage, &NewEvent, AppId)> {
    match &message.arrival.events[..] {
        [event] => Some((message, event, app_of_source(&message.arrival.source)?)),
        _ => None,
    }
}

/// Those that share their key with no earlier one, and the others.
fn apart(jobs: Vec<Job<Publisher>>) -> (Vec<Job<Publisher>>, Vec<Job<Publisher>>) {
    let mut keys = BTreeSet::new();
    jobs.into_iter().partition(|job| {
        let arrival = &job.ask.arrival;
        let mut events = arrival.events.iter();
        events.all(|event| keys.insert((arrival.source.clone(), event.key_hash)))
    })
}

/// What a message is, given who holds its key.
enum Seen {
    /// Nobody does.
    New,
    /// It was here before.
    Known,
    /// Another body was.
    Conflict(EventId),
    /// Nobody does, and it is planned by an older catalogue.
    Outdated,
}

/// A message whose deliveries are decided.
struct Posted<'a> {
    /// What it was planned as.
    planned: &'a NewEvent,
    app: AppId,
    /// If it has to wait in line: without its deliveries.
    waits: Option<Arrival>,
    later: Vec<LaterDelivery>,
    sequence: Option<i64>,
}

async fn publish(
    taken: Taken,
    messages: &[&NewMessage],
    entropy: &Entropy,
    clock: &LeaseClock,
) -> Result<Vec<Published>, StoreError> {
    let arrivals: Vec<&Arrival> = messages.iter().map(|message| &message.arrival).collect();
    let posted: Vec<Option<Posted<'_>>>;
    let take = known::take_keys(&taken, &arrivals, entropy);
    let ((), mut slots, revision) =
        tokio::try_join!(biased; taken.open(), take, app::revision_now(&taken))?;
    known::read_holders(&taken, &mut slots).await?;
    let seen: Vec<Seen> = messages
        .iter()
        .map(|message| see(message, revision, &slots))
        .collect();
    posted = post(&taken, messages, &seen).await?;
    let mut decisions = Decisions::default();
    let mut published = Vec::with_capacity(messages.len());
    for ((message, seen), posted) in messages.iter().zip(&seen).zip(&posted) {
        let waiting = posted.as_ref().and_then(|posted| posted.waits.as_ref());
        let arrival = waiting.unwrap_or(&message.arrival);
        published.push(match seen {
            Seen::Outdated => Published::Outdated,
            Seen::Conflict(event) => Published::Stored(conflict(*event)),
            Seen::New | Seen::Known => {
                let receipts = decisions.arrive(arrival, &mut slots, entropy)?;
                let receipt = receipts.into_iter().next();
                Published::Stored(receipt.ok_or_else(posting::not_one_event)?)
            }
        });
    }
    let group = Group {
        messages,
        seen: &seen,
        posted: &posted,
    };
    let receipts = published.iter_mut().map(|published| match published {
        Published::Stored(receipt) => Some(receipt),
        Published::Outdated => None,
    });
    let receipts = receipts.collect();
    group
        .store(taken, decisions, receipts, &slots, entropy, clock)
        .await?;
    Ok(published)
}

fn see(message: &NewMessage, revision: u64, slots: &Slots<'_>) -> Seen {
    let arrival = &message.arrival;
    let Some(event) = arrival.events.first() else {
        return Seen::Outdated;
    };
    let slot = slots.get(&key_order(arrival, event));
    let holder = slot.and_then(|slot| slot.holder.as_ref());
    let known = holder.map(Holder::identity);
    match (
        identity::decide(known.as_ref(), event.compare_hash, arrival.at),
        holder,
    ) {
        (Sighting::Duplicate { conflict: true }, Some(holder)) => Seen::Conflict(holder.event),
        (Sighting::Duplicate { .. }, Some(_)) => Seen::Known,
        _ if message.revision != revision => Seen::Outdated,
        _ => Seen::New,
    }
}

fn conflict(event: EventId) -> Receipt {
    Receipt {
        event,
        sighting: Receipted::Conflict,
        needs_review: false,
        claims: Vec::new(),
        revived: Vec::new(),
    }
}

/// Numbers new messages, and says whose deliveries have to wait in line. The numbers are ours by then, so whoever has one of the same
/// order before us has committed, and what it fans out is seen.
async fn post<'a>(
    taken: &Taken,
    messages: &[&'a NewMessage],
    seen: &[Seen],
) -> Result<Vec<Option<Posted<'a>>>, StoreError> {
    let new = || {
        let both = messages.iter().zip(seen);
        let new = both.filter(|(_, seen)| matches!(seen, Seen::New));
        new.filter_map(|(message, _)| Some((*message, app_of_source(&message.arrival.source)?)))
    };
    let numbered = new().filter_map(|(message, app)| Some((app, message.about.numbered_by()?)));
    let mut numbers = Numbers::take(taken, numbered).await?;
    let ordered = new().filter_map(|(message, _)| {
        let event = message.arrival.events.first()?;
        Some((&*message.arrival.source, posting::entity(event)?))
    });
    let mut under_way = fan_out::under_way(taken, ordered.collect()).await?;
    let mut posted = Vec::with_capacity(messages.len());
    for (message, seen) in messages.iter().zip(seen) {
        let app = app_of_source(&message.arrival.source);
        let event = message.arrival.events.first();
        let (Seen::New, Some(app), Some(planned)) = (seen, app, event) else {
            posted.push(None);
            continue;
        };
        let order = posting::entity(planned)
            .map(|entity| (message.arrival.source.to_string(), entity.to_owned()));
        let in_line = order
            .as_ref()
            .is_some_and(|order| under_way.contains(order));
        let (waits, later) = match in_line {
            true => {
                let (arrival, later) = posting::in_line(message);
                (Some(arrival), later)
            }
            false => (None, message.later.clone()),
        };
        if !later.is_empty() {
            // The next one of this order in the group waits behind this one.
            under_way.extend(order);
        }
        let under = message.about.numbered_by();
        posted.push(Some(Posted {
            planned,
            app,
            waits,
            later,
            sequence: under.and_then(|key| numbers.next(app, key)),
        }));
    }
    Ok(posted)
}

/// A group of which all is decided but its effects.
struct Group<'a> {
    messages: &'a [&'a NewMessage],
    seen: &'a [Seen],
    posted: &'a [Option<Posted<'a>>],
}

impl Group<'_> {
    /// Plans, writes and commits; completes what is said of the messages.
    async fn store(
        &self,
        taken: Taken,
        mut decisions: Decisions<'_>,
        receipts: Vec<Option<&mut Receipt>>,
        slots: &Slots<'_>,
        entropy: &Entropy,
        clock: &LeaseClock,
    ) -> Result<(), StoreError> {
        let wanted = plan::wanted(decisions.calling(), entropy);
        let take = called::take_keys(&taken, &wanted);
        let (fresh, moment) = tokio::try_join!(biased; take, moment(&taken, clock))?;
        let mut plan = called::plan(&taken, &mut decisions, &wanted, &fresh, moment).await?;
        let (mut about, mut fan_outs) = (MessageColumns::default(), FanOutColumns::default());
        // Receipts are counted as they were decided: of what is new or known.
        let mut number = 0;
        let both = self.messages.iter().zip(self.seen).zip(self.posted);
        for (((message, seen), posted), receipt) in both.zip(receipts) {
            let (Seen::New | Seen::Known, Some(receipt)) = (seen, receipt) else {
                continue;
            };
            plan.complete(number, receipt);
            number += 1;
            let Some(posted) = posted else {
                continue;
            };
            receipt.claims.resize(posted.planned.effects.len(), None);
            about.push(receipt.event, posted.app, &message.about, posted.sequence);
            if !posted.later.is_empty() {
                wait_for_more(&mut plan, &mut decisions, receipt.event);
                let planned = posted.planned;
                let source = &message.arrival.source;
                fan_outs.push(receipt.event, source, planned, &posted.later, moment.now);
            }
        }
        let unused = UnusedKeys::of(slots);
        let mut more: Vec<Statement<'_>> = Vec::new();
        more.extend(about.statement());
        more.extend(fan_outs.statements());
        more.extend(unused.statement());
        store_with(taken, decisions, Some(&plan), slots, more).await
    }
}

/// What is still to be made waits like any other, and nothing that is made is all that the message calls for.
fn wait_for_more(plan: &mut Plan, decisions: &mut Decisions<'_>, event: EventId) {
    plan.joined.insert(event);
    let rows = decisions.events.iter_mut();
    for row in rows.filter(|row| row.id == event) {
        row.status = row.status.max(EventStatus::Pending);
    }
}

/// Keys that were taken for messages which are not stored after all.
struct UnusedKeys {
    shard: Vec<i16>,
    source: Vec<String>,
    key_hash: Vec<Uuid>,
}

impl UnusedKeys {
    fn of(slots: &Slots<'_>) -> UnusedKeys {
        let unused = slots
            .iter()
            .filter(|(_, slot)| slot.reserved.is_some() && slot.holder.is_none());
        let keys: Vec<&Key<'_>> = unused.map(|(key, _)| key).collect();
        let (shard, source, key_hash) = key_columns(keys.into_iter());
        UnusedKeys {
            shard,
            source,
            key_hash,
        }
    }

    /// `None` if there are none.
    fn statement(&self) -> Option<Statement<'_>> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.source, Type::TEXT_ARRAY),
            (&self.key_hash, Type::UUID_ARRAY),
        ];
        let sql = "DELETE FROM hapax.identity i
             USING (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::uuid[])) AS k (shard, source, key_hash)
             WHERE i.shard = k.shard AND i.source = k.source COLLATE \"C\" AND i.key_hash = k.key_hash";
        (!self.source.is_empty()).then_some((sql, params))
    }
}
