//! Order: may an effect start now, given what became of the others of its entity?
//!
//! Off unless declared. An entity is one business object; unrelated entities never wait for each other (F3), because
//! nothing here ever sees more than one.

use crate::condition::Condition;
use crate::effect::EffectState;
use crate::event::words;
use crate::extract::Slot;
use crate::glob::Glob;
use crate::id::EffectId;
use crate::version::is_stale;

/// The order that a source or an effect declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRule {
    /// The business object that order is about.
    pub entity: Slot,
    /// How attempts of one entity follow each other.
    pub sequence: Sequence,
    /// Types after which other types of the entity need review.
    pub terminal: Vec<Glob>,
    /// Types that open an ended entity again.
    pub reopen: Vec<Glob>,
    /// Fetch the current state before the first attempt and send it along.
    pub snapshot: bool,
    /// Asks for a person where it holds.
    pub review: Option<Condition>,
}

/// How attempts of one entity follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// They do not.
    Free,
    /// One at a time, in the order of acceptance.
    Serial,
    /// Serial, and what is older than the newest started is stale.
    Versioned(Slot),
}

/// What an event's type means for the life of its entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeStep {
    /// It goes on. After the end, a person has to look.
    Ordinary,
    /// It ends.
    Ends,
    /// It begins again.
    Reopens,
}

impl OrderRule {
    /// What a type means for its entity. A type that both ends and reopens ends: the stricter reading.
    pub fn life_step(&self, event_type: &str) -> LifeStep {
        let any = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(event_type));
        if any(&self.terminal) {
            LifeStep::Ends
        } else if any(&self.reopen) {
            LifeStep::Reopens
        } else {
            LifeStep::Ordinary
        }
    }
}

/// What of an effect's order was frozen at accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedOrder {
    /// The business object.
    pub entity: String,
    /// One attempt at a time, in the order of acceptance?
    pub serial: bool,
    /// The version it carries, if versions count.
    pub version: Option<String>,
    /// What its type means for the entity.
    pub life_step: LifeStep,
    /// Fetch a snapshot first?
    pub snapshot: bool,
    /// Did the review condition hold over the payload?
    pub review: bool,
}

/// What the store knows of an effect's entity at this moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntityKnown<'a> {
    /// The same effect's earlier ones for this entity, in the order of acceptance.
    pub predecessors: &'a [(EffectId, EffectState)],
    /// A later one that somebody holds, and that was started before: this one has come back since.
    pub under_way: Option<EffectId>,
    /// A later accepted one that was already started.
    pub later_started: Option<EffectId>,
    /// The highest version that was started.
    pub highest_started: Option<&'a str>,
    /// The type that ended the entity, if it was accepted before this event and nothing reopened the entity since.
    pub ended_by: Option<&'a str>,
    /// A person has looked and let it go ahead.
    pub released: bool,
}

/// May it start?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderVerdict {
    /// Yes.
    Go,
    /// Not before this one is done, dead or skipped; a later one may also go back to waiting.
    Wait {
        /// The nearest one in the way.
        behind: EffectId,
    },
    /// Never: something newer was started. Skipped, and visible as stale (F2).
    Stale,
    /// Not without a person.
    Review {
        /// What the person has to weigh.
        why: ReviewWhy,
    },
}

/// Why order asks for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewWhy {
    /// The entity had ended.
    Ended {
        /// The type that ended it.
        by: String,
    },
    /// A later one of the entity was already sent; this one would come out of order.
    LaterRan {
        /// Which.
        effect: EffectId,
    },
    /// The review condition holds.
    Asked,
}

/// Decides whether an effect may start. First what is certain, then what needs a person, then what needs time.
pub fn decide(order: &PlannedOrder, known: &EntityKnown<'_>) -> OrderVerdict {
    let stale = match (&order.version, known.highest_started) {
        (Some(version), Some(highest)) => is_stale(version, highest),
        _ => false,
    };
    if stale && !known.released {
        return OrderVerdict::Stale;
    }
    if let Some(why) = review(order, known).filter(|_| !known.released) {
        return OrderVerdict::Review { why };
    }
    let in_the_way = known
        .predecessors
        .iter()
        .rev()
        .find(|(_, state)| !is_out_of_the_way(*state));
    match in_the_way {
        Some((behind, _)) if order.serial => OrderVerdict::Wait { behind: *behind },
        // Not even a person lets two go at once.
        _ => match known.under_way.filter(|_| order.serial) {
            Some(behind) => OrderVerdict::Wait { behind },
            None => OrderVerdict::Go,
        },
    }
}

fn review(order: &PlannedOrder, known: &EntityKnown<'_>) -> Option<ReviewWhy> {
    match (order.life_step, known.ended_by, known.later_started) {
        (LifeStep::Ordinary, Some(by), _) => Some(ReviewWhy::Ended { by: by.to_owned() }),
        (_, _, Some(effect)) if order.serial => Some(ReviewWhy::LaterRan { effect }),
        _ => order.review.then_some(ReviewWhy::Asked),
    }
}

/// F1: the next one may start once this one is done, dead or skipped.
const fn is_out_of_the_way(state: EffectState) -> bool {
    match state {
        EffectState::Done | EffectState::Dead | EffectState::Skipped => true,
        EffectState::Pending | EffectState::Claimed | EffectState::Uncertain => false,
    }
}

words!(
    /// May an effect be claimed, as far as others are concerned?
    Gate {
        /// Yes.
        Open = 0, "open";
        /// Not before others have ended: those it comes `after`, or earlier ones of its entity.
        Waiting = 1, "waiting";
        /// Not before a person has looked.
        Review = 2, "review";
    }
);

/// The gate of an effect that nobody holds: it opens once all that it comes `after` is done or skipped and it is the earliest
/// of its chain that has not ended. What waits for a person goes on waiting.
pub fn gate(
    current: Gate,
    after_states: impl IntoIterator<Item = EffectState>,
    place: ChainPlace,
) -> Gate {
    match (current, after(after_states), place) {
        (Gate::Review, _, _) => Gate::Review,
        (_, AfterVerdict::Go, ChainPlace::First | ChainPlace::Free) => Gate::Open,
        (_, AfterVerdict::Go | AfterVerdict::Wait | AfterVerdict::Blocked, _) => Gate::Waiting,
    }
}

/// Where an effect stands among those of its entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainPlace {
    /// Its order does not make it wait.
    Free,
    /// The earliest that has not ended.
    First,
    /// Behind another; or a person let it go while a later one was under way, and they do not go at once.
    Behind,
}

/// May an effect start, given those of the same event that it comes `after`? Best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AfterVerdict {
    /// All are done, or skipped for a reason.
    Go,
    /// One is still on its way.
    Wait,
    /// One is dead or uncertain: nothing moves until somebody acts (D7).
    Blocked,
}

/// Decides by the states of the effects that must come first: the worst of them counts.
pub fn after(predecessors: impl IntoIterator<Item = EffectState>) -> AfterVerdict {
    let one = |state| match state {
        EffectState::Done | EffectState::Skipped => AfterVerdict::Go,
        EffectState::Pending | EffectState::Claimed => AfterVerdict::Wait,
        EffectState::Dead | EffectState::Uncertain => AfterVerdict::Blocked,
    };
    predecessors
        .into_iter()
        .map(one)
        .max()
        .unwrap_or(AfterVerdict::Go)
}

#[cfg(test)]
mod tests;
