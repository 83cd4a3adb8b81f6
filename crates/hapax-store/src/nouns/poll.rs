//! Messages that somebody asks for, instead of having them sent.

use hapax_ledger::id::EventId;
use hapax_ledger::time::{Span, Time};

use super::audit::Before;
use super::outbox::{Message, MessageFilter};

/// So many consumers of one endpoint have a place that is kept. Each is a program that somebody runs, and there are not many.
pub const CONSUMERS_MAX: usize = 100;
/// The place of a consumer that has not asked for so long is forgotten: as long as messages are kept by default.
pub const CONSUMERS_KEPT: Span = Span::from_days(90);
/// That a consumer still asks is written down when it was last for so long: who only looks costs no commit.
pub const CONSUMER_TOUCHED: Span = Span::from_days(1);

/// How far somebody has read. Messages come in two streams, since one that is to be sent later has its turn when its time has come,
/// wherever those who ask have got to by then: those that are sent at once, in the order in which they were accepted, and those that were
/// sent later, in the order of their turns. A store whose commits end in another order than its messages came in gives a turn to each, and
/// has only the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollPlace {
    /// The last that was read of those that are sent at once.
    pub at_once: EventId,
    /// The turn of the last that was read of those that have one. A turn is a time in microseconds that no other has, hardly later
    /// than the time that the message came, or was to be sent, at.
    pub later: i64,
    /// Only what came, or was to be sent, at or after this.
    pub since: Option<Time>,
}

impl PollPlace {
    /// Before everything.
    pub const BEGINNING: PollPlace = PollPlace {
        at_once: EventId::from_bytes([0; 16]),
        later: 0,
        since: None,
    };

    /// Before what came, or was to be sent, at this time.
    pub const fn since(at: Time) -> PollPlace {
        PollPlace {
            since: Some(at),
            ..PollPlace::BEGINNING
        }
    }

    /// Has less been read of one of the streams than there? What is sent at once is read by its row, whatever the clock said.
    pub(crate) fn is_behind(&self, other: &PollPlace) -> bool {
        self.at_once.0.row() < other.at_once.0.row()
            || self.later < other.later
            || self.since < other.since
    }
}

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollAsk {
    /// Of these messages; the application has to be named.
    pub filter: MessageFilter,
    /// What comes after this.
    pub from: PollPlace,
    /// At most so many; see [`super::PAGE_MAX`].
    pub limit: u32,
    /// What is to be sent later than this is not there yet.
    pub now: Time,
}

/// What somebody is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polled {
    /// The oldest first.
    pub messages: Vec<Message>,
    /// What comes next comes after this: nothing is left out and nothing comes twice.
    pub place: PollPlace,
    /// There may be more already.
    pub more: bool,
}

/// Where a consumer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumed {
    /// It goes on after this.
    At(PollPlace),
    /// It has said before that it has read further than it says now: two of them share a name.
    Behind(PollPlace),
    /// The endpoint has as many consumers as it may have.
    TooMany,
}

/// What became of a consumer's wish to go on elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sought {
    /// It goes on there.
    Done,
    /// It was made before, by the same request, or the key of the request belongs to another.
    Repeated(Before),
    /// The endpoint has as many consumers as it may have.
    TooMany,
}
