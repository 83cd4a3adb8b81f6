//! What the inbox and the dispatcher say to each other around an accept commit.

use std::sync::Arc;
use std::time::Instant;

use hapax_ledger::effect::Repeat;
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{About, Arrival, Born, NewEvent, NewMessage, Parcel, Receipt, Receipted};

use super::dispatcher::{Dispatcher, Shared, lock};
use super::job::Job;
use super::lanes::Standing;
use crate::clock;

/// What an arrival's effects were promised. Dropped, the slots are free again: also if the commit failed or its outcome is
/// unknown. In the last case the store may say that we hold claims that nobody carries out; their lease ends. So whoever has some
/// waits for the commit to its end, whoever else has gone: see [`Dispatcher::outliving`].
pub struct Promises {
    shared: Arc<Shared>,
    events: Vec<PromisedEvent>,
    asked: Instant,
}

struct PromisedEvent {
    /// Only where something is born claimed.
    parcel: Option<Arc<Parcel>>,
    effects: Vec<PromisedEffect>,
}

struct PromisedEffect {
    lane: Arc<str>,
    wait: Span,
    slot: Slot,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Promised,
    None,
}

impl Dispatcher {
    /// Says which effects of an arrival are born claimed: those that may go out at once, in a lane of this node that has room.
    pub fn promise(&self, arrival: &mut Arrival) -> Promises {
        let shared = &self.shared;
        let now = clock::tick();
        let source = arrival.source.clone();
        let at = arrival.at;
        let events = arrival
            .events
            .iter_mut()
            .map(|event| shared.promise_event(event, None, &source, at, now));
        Promises {
            events: events.collect(),
            shared: shared.clone(),
            asked: now,
        }
    }

    /// The same for a message. One that gets a number is not born claimed: the number is given by the commit, and goes along.
    pub fn promise_message(&self, message: &mut NewMessage) -> Promises {
        let shared = &self.shared;
        let now = clock::tick();
        let (source, at) = (message.arrival.source.clone(), message.arrival.at);
        let about = &message.about;
        let numbered = about.numbered_by().is_some();
        let events = message
            .arrival
            .events
            .iter_mut()
            .map(|event| match numbered {
                true => unpromised(event),
                false => shared.promise_event(event, Some(about), &source, at, now),
            });
        Promises {
            events: events.collect(),
            shared: shared.clone(),
            asked: now,
        }
    }
}

impl Shared {
    fn promise_event(
        &self,
        event: &mut NewEvent,
        about: Option<&About>,
        source: &Arc<str>,
        at: Time,
        now: Instant,
    ) -> PromisedEvent {
        let mut effects = Vec::with_capacity(event.effects.len());
        for effect in &mut event.effects {
            let free = effect.after.is_empty() && effect.order.is_none();
            let quick = free && effect.repeat != Repeat::Once && effect.wait <= Span::ZERO;
            let standing = match quick {
                true => self.standing(&effect.lane, now),
                false => Standing::NotOurs,
            };
            let slot = match standing {
                Standing::Ours(caps) if lock(&self.lanes).promise(&effect.lane, caps, now) => {
                    effect.born = Some(Born {
                        node: self.node.clone(),
                        lease: self.lease,
                    });
                    Slot::Promised
                }
                Standing::Ours(_) | Standing::Closing(_) | Standing::NotOurs => Slot::None,
            };
            effects.push(PromisedEffect {
                lane: effect.lane.clone(),
                wait: effect.wait,
                slot,
            });
        }
        let any = effects.iter().any(|effect| effect.slot == Slot::Promised);
        PromisedEvent {
            parcel: any.then(|| Arc::new(parcel(event, about, source, at))),
            effects,
        }
    }
}

/// Nothing goes out from memory; the lanes hear of it after the commit.
fn unpromised(event: &NewEvent) -> PromisedEvent {
    let effects = event.effects.iter().map(|effect| PromisedEffect {
        lane: effect.lane.clone(),
        wait: effect.wait,
        slot: Slot::None,
    });
    PromisedEvent {
        parcel: None,
        effects: effects.collect(),
    }
}

fn parcel(event: &NewEvent, about: Option<&About>, source: &Arc<str>, at: Time) -> Parcel {
    Parcel {
        source: source.clone(),
        event_type: event.event_type.clone(),
        key: event.key.clone(),
        object_id: event.object_id.clone(),
        received_at: at,
        content_type: event.content_type.clone(),
        body: event.body.clone(),
        about: about.cloned(),
    }
}

impl Promises {
    /// The commit went through: what was born claimed goes out, and the rest is looked after when its time comes.
    pub fn keep(mut self, receipts: &[Receipt]) {
        let now = clock::tick();
        let held_until = self.asked + self.shared.lease_length();
        let mut heard = Vec::new();
        let theirs = self.shared.drift.theirs(now);
        for (event, receipt) in std::mem::take(&mut self.events).into_iter().zip(receipts) {
            heard.extend(receipt.revived.iter().map(|lane| (lane.clone(), theirs)));
            let mut claims = receipt.claims.iter();
            for effect in event.effects {
                let claim = claims.next().and_then(Option::as_ref);
                match (effect.slot, claim, &event.parcel) {
                    (Slot::Promised, Some(claimed), Some(parcel)) => {
                        let job = Job {
                            effect: claimed.effect.clone(),
                            parcel: parcel.clone(),
                            snapshot: None,
                            held_until,
                            due: now,
                        };
                        lock(&self.shared.lanes).fill(&effect.lane, job, now);
                    }
                    (Slot::Promised, _, _) => {
                        lock(&self.shared.lanes).unpromise(&effect.lane, now);
                    }
                    (Slot::None, _, _) if receipt.sighting == Receipted::New => {
                        heard.push((effect.lane, theirs + effect.wait));
                    }
                    (Slot::None, _, _) => {}
                }
            }
        }
        self.shared.step();
        if !heard.is_empty() {
            self.shared.hear(heard);
        }
        self.shared.work.notify_one();
    }
}

impl Drop for Promises {
    fn drop(&mut self) {
        let now = clock::tick();
        let events = std::mem::take(&mut self.events);
        for effect in events.iter().flat_map(|event| &event.effects) {
            if effect.slot == Slot::Promised {
                lock(&self.shared.lanes).unpromise(&effect.lane, now);
            }
        }
    }
}
