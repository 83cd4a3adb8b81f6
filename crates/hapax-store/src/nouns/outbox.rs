//! The outbox: applications, their endpoints, the types of events, and messages.
//!
//! A message is an event, and a delivery to an endpoint is an effect: they are kept, sent and told like all others. What is here is
//! what the ledger does not know by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{AppId, EffectId, EndpointId, EventId};
use hapax_ledger::outcome::{Evidence, Outcome, classify};
use hapax_ledger::time::{Span, Time};
use hapax_ledger::verdict::Kept;

use super::arrival::{Arrival, Receipt};
use super::audit::Before;
use super::effect::{Attempt, Effect};
use super::event::Event;

/// What stands before an application's id in the source of its messages. No source of a config can be called so.
pub const APP_SOURCE: &str = "~";
/// So many deliveries are made together with their message; of a larger set the rest follows in steps of as many.
pub const FAN_OUT_STEP: usize = 512;
/// Of deliveries that wait, and of those under way, so many are counted: a longer queue is told as one of this length.
pub const WAITING_COUNTED_MAX: u64 = 10_000;
/// So many changes of the catalogue come in one part.
pub const CHANGES_PER_PART: usize = 500;
/// What is deleted from the catalogue is told so long to those who ask for changes: no node that runs has been without them for longer.
pub const DELETED_KEPT: Span = Span::from_days(30);
/// Tallies are kept so long.
pub const TALLIES_KEPT: Span = Span::from_days(90);
/// Old secrets that an endpoint keeps signing with, at most.
pub const OLD_SECRETS_MAX: usize = 10;

/// Whoever messages are sent for: one customer, mostly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Its id.
    pub id: AppId,
    /// What its owner calls it; unique among applications that are there.
    pub uid: Option<Arc<str>>,
    /// What people call it.
    pub name: String,
    /// Messages a second to each of its endpoints, at most.
    pub throttle_rate: Option<u32>,
    /// Whatever its owner wants to know about it.
    pub metadata: BTreeMap<String, String>,
    /// What only Hapax has, as JSON: the envelope, a retry schedule of its own, and what may come.
    pub extra: String,
    /// When it was made.
    pub created_at: Time,
    /// When it was last changed.
    pub updated_at: Time,
    /// When it was deleted.
    pub deleted_at: Option<Time>,
    /// The catalogue's revision that its latest change made. The store sets it.
    pub revision: u64,
}

/// Where messages of an application go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its id. Its text is the name of its deliveries and of their lane.
    pub id: EndpointId,
    /// Whose.
    pub app: AppId,
    /// What its owner calls it; unique among the application's endpoints that are there.
    pub uid: Option<Arc<str>>,
    /// Where to.
    pub url: String,
    /// What it is for.
    pub description: String,
    /// Types that it wants; none: all.
    pub event_types: Vec<String>,
    /// Channels that it listens to; none: all.
    pub channels: Vec<String>,
    /// Messages a second, at most.
    pub throttle_rate: Option<u32>,
    /// Whatever its owner wants to know about it.
    pub metadata: BTreeMap<String, String>,
    /// Headers that go along and the secrets that sign, sealed for this endpoint: whoever reads the store learns nothing. The outbox
    /// knows their form.
    pub sealed: Bytes,
    /// What only Hapax has, as JSON: concurrency, timeout, retry schedule, signature scheme, and what may come.
    pub extra: String,
    /// Is anything sent to it?
    pub standing: Standing,
    /// Since when nothing but failures has come back; `None`: something else has.
    pub failing_since: Option<Time>,
    /// Its owner was told that it is disabled from then on, if it goes on failing; `None`: nobody was told.
    pub disabled_from: Option<Time>,
    /// When it was made.
    pub created_at: Time,
    /// When it was last changed by a person or their program.
    pub updated_at: Time,
    /// When it was deleted.
    pub deleted_at: Option<Time>,
    /// The catalogue's revision that its latest change made. The store sets it.
    pub revision: u64,
}

/// Is anything sent to an endpoint?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Yes.
    Enabled,
    /// Its owner has disabled it.
    Disabled,
    /// It answered that it is gone.
    Gone,
    /// It failed for too long.
    Failed,
}

impl Standing {
    /// Every standing.
    pub const ALL: [Standing; 4] = [
        Standing::Enabled,
        Standing::Disabled,
        Standing::Gone,
        Standing::Failed,
    ];

    /// The word users see.
    pub const fn word(self) -> &'static str {
        match self {
            Standing::Enabled => "enabled",
            Standing::Disabled => "disabled",
            Standing::Gone => "gone",
            Standing::Failed => "failed",
        }
    }

    /// The number stores keep.
    pub const fn code(self) -> u8 {
        match self {
            Standing::Enabled => 0,
            Standing::Disabled => 1,
            Standing::Gone => 2,
            Standing::Failed => 3,
        }
    }

    /// The standing with this number.
    pub fn from_code(code: u8) -> Option<Standing> {
        let mut all = Standing::ALL.into_iter();
        all.find(|standing| standing.code() == code)
    }
}

/// A type of events that may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventType {
    /// Its name.
    pub name: Arc<str>,
    /// What it means.
    pub description: String,
    /// Not offered any more.
    pub archived: bool,
    /// Should not be used any more.
    pub deprecated: bool,
    /// Which group it is shown in.
    pub group_name: Option<String>,
    /// Shown only to those that have one of these.
    pub feature_flags: Vec<String>,
    /// A JSON Schema per version, as JSON.
    pub schemas: Option<String>,
    /// What only Hapax has, as JSON: a retry schedule of its own, and what may come.
    pub extra: String,
    /// When it was made.
    pub created_at: Time,
    /// When it was last changed.
    pub updated_at: Time,
    /// When it was deleted.
    pub deleted_at: Option<Time>,
    /// The catalogue's revision that its latest change made. The store sets it.
    pub revision: u64,
}

/// Something in the catalogue of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// An application. One that is deleted takes its endpoints along, each at the next revision.
    App(App),
    /// An endpoint.
    Endpoint(Box<Endpoint>),
    /// A type of events.
    EventType(EventType),
}

/// What became of a change of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is made.
    Done {
        /// The catalogue's revision from now on; what took others along has raised it by more than one.
        revision: u64,
    },
    /// It was made before, by the same request, or the key of the request belongs to another.
    Repeated(Before),
    /// It was decided on a state that is not the latest any more: look again, and decide again.
    Moved,
    /// Another application, or another endpoint of the application, has this uid, or there is a type of this name.
    Taken,
}

/// A part of the catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What has changed, by revision: each as it is now, deleted ones too.
    pub entries: Vec<Entry>,
    /// Everything up to this revision is known with it.
    pub revision: u64,
    /// There is more after that revision.
    pub more: bool,
}

/// A message that wants to be sent.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// The event: one, of the application's source, with the deliveries that are made with it. Each is named after its endpoint, as is its
    /// lane, waits for no other of them, and is ordered by the ordering key or not at all. The store takes the provider's id from
    /// `about`.
    pub arrival: Arrival,
    /// The catalogue's revision that its deliveries were planned by.
    pub revision: u64,
    /// What its publisher said about it. The store sets `sequence`.
    pub about: About,
    /// Deliveries of a large set that are made after it, each like the first of the arrival's effects but for the endpoint. Frozen
    /// with the message: each is made exactly once, whatever happens in between (G1).
    pub later: Vec<LaterDelivery>,
}

/// A delivery that is made after its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaterDelivery {
    /// Where to.
    pub endpoint: EndpointId,
    /// Attempts that its schedule allows.
    pub attempts_max: u32,
}

/// What its publisher said about a message, beside type and payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The publisher's id for it; also its key.
    pub event_id: Option<String>,
    /// Which channels it belongs to.
    pub channels: Vec<String>,
    /// What it can be found by.
    pub tags: Vec<String>,
    /// Not to be sent before.
    pub deliver_at: Option<Time>,
    /// The version of its payload's schema.
    pub api_version: Option<String>,
    /// Messages of one application and key are delivered one after the other, and numbered.
    pub ordering_key: Option<String>,
    /// Messages of one application and key are numbered.
    pub sequence_key: Option<String>,
    /// Its number among those of its key: rises by one, without a gap, in the order in which they were accepted.
    pub sequence: Option<u64>,
    /// The only endpoint that it is for: an example. No other has missed it, and nobody else is given it who asks.
    pub only_to: Option<EndpointId>,
}

impl About {
    /// The key that it is numbered under.
    pub fn numbered_by(&self) -> Option<&str> {
        self.ordering_key
            .as_deref()
            .or(self.sequence_key.as_deref())
    }
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// It is stored: new, or known by its key; a conflict is another body under the same key, and changes nothing.
    Stored(Receipt),
    /// Its deliveries were planned by a catalogue that is not the latest: look again, and plan again.
    Outdated,
}

/// Deliveries that were made after their message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FannedOut {
    /// Lanes in which something can be claimed now.
    pub lanes: Vec<Arc<str>>,
    /// There may be more to do.
    pub more: bool,
}

/// A message as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The event that it is.
    pub event: Event,
    /// What its publisher said about it.
    pub about: About,
}

/// Which messages to list; what is `None` or empty does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Of this application.
    pub app: Option<AppId>,
    /// Of one of these types.
    pub event_types: Vec<String>,
    /// In this channel.
    pub channel: Option<String>,
    /// With this tag.
    pub tag: Option<String>,
    /// Accepted at or after.
    pub since: Option<Time>,
    /// Accepted before.
    pub until: Option<Time>,
    /// That this endpoint may have: all but those that are only for another.
    pub may_have: Option<EndpointId>,
}

impl MessageFilter {
    /// Does the message fit?
    pub fn fits(&self, message: &Message) -> bool {
        self.fits_event(&message.event) && self.fits_about(&message.about)
    }

    /// The same as far as the event tells.
    pub(crate) fn fits_event(&self, event: &Event) -> bool {
        let of_type = |wanted: &String| event.event_type.as_deref() == Some(wanted);
        self.app.is_none_or(|app| *event.source == *app_source(app))
            && (self.event_types.is_empty() || self.event_types.iter().any(of_type))
            && self.since.is_none_or(|since| event.received_at >= since)
            && self.until.is_none_or(|until| event.received_at < until)
    }

    /// The same as far as its publisher's words tell.
    pub(crate) fn fits_about(&self, about: &About) -> bool {
        let names = |all: &[String], wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| all.contains(wanted))
        };
        let others = |only: EndpointId| self.may_have.is_some_and(|endpoint| endpoint != only);
        names(&about.channels, &self.channel)
            && names(&about.tags, &self.tag)
            && !about.only_to.is_some_and(others)
    }
}

impl PostedFilter {
    /// Does the delivery fit? One whose message is reaped fits nothing that asks about the message.
    pub fn fits(&self, posted: &Posted) -> bool {
        let state = posted.effect.record.state;
        let message = match &posted.message {
            Some(message) => self.message.fits(message),
            None => self.message == MessageFilter::default(),
        };
        (self.states.is_empty() || self.states.contains(&state)) && message
    }
}

/// The source of an application's messages.
pub fn app_source(app: AppId) -> String {
    format!("{APP_SOURCE}{app}")
}

/// The application whose messages have this source.
pub fn app_of_source(source: &str) -> Option<AppId> {
    source.strip_prefix(APP_SOURCE)?.parse().ok()
}

/// Is this a name that only deliveries to endpoints may have? Theirs are ids of endpoints; all that look alike are kept free.
pub fn is_endpoint_name(name: &str) -> bool {
    let rest = name.strip_prefix(EndpointId::PREFIX);
    rest.is_some_and(|rest| rest.starts_with('_'))
}

/// Is this the lane of an endpoint?
pub fn is_endpoint_lane(lane: &str) -> bool {
    lane.parse::<EndpointId>().is_ok()
}

/// Which deliveries to list: those to one endpoint, or those of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deliveries {
    /// To this endpoint, newest message first.
    To(EndpointId),
    /// Of this message.
    Of(EventId),
}

/// A delivery as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The effect that it is.
    pub effect: Effect,
    /// Of this message; `None` once that is reaped.
    pub message: Option<Message>,
}

/// A message as far as one endpoint is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressed {
    /// Could it be sent?
    pub payload: Kept,
    /// Its delivery to the endpoint, if it ever went there.
    pub delivery: Option<Effect>,
}

/// One attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Its delivery.
    pub posted: Posted,
    /// The attempt.
    pub attempt: Attempt,
}

/// Which of the deliveries or attempts to list; what is `None` or empty does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostedFilter {
    /// Of messages that fit.
    pub message: MessageFilter,
    /// Standing in one of these states. (For attempts: the delivery.)
    pub states: Vec<EffectState>,
}

/// Where a list of attempts goes on: after this attempt of this effect, by its fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TriedPlace {
    /// The effect.
    pub effect: EffectId,
    /// The attempt's fence.
    pub fence: u64,
}

/// What attempts of one lane came to within one hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// When the hour began.
    pub hour: Time,
    /// Attempts that ended well.
    pub done: u64,
    /// Attempts that did not.
    pub failed: u64,
    /// Effects that were given up.
    pub dead: u64,
}

impl Tally {
    /// Nothing yet, in the hour that this time is in.
    pub fn of(at: Time) -> Tally {
        let hour = Span::from_hours(1).micros();
        Tally {
            hour: Time::from_micros(at.micros().div_euclid(hour) * hour),
            ..Tally::default()
        }
    }

    /// One attempt more.
    pub fn count(&mut self, outcome: Outcome, gave_up: bool) {
        match classify(outcome) {
            Evidence::Applied => self.done += 1,
            Evidence::Refused { .. } | Evidence::NotApplied | Evidence::Ambiguous => {
                self.failed += 1;
            }
        }
        self.dead += u64::from(gave_up);
    }
}
