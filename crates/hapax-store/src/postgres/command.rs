//! Commands: what an operator decides about an event, in one transaction.
//!
//! All that the decision is about is locked first, in the order of the schema: keys of what it brings, chains, effects, events. Then
//! the facts are read, and nothing moves between them and the deed. Which effects those are is read without a lock; whoever adds one to
//! an event holds the event's lock, so it shows once that is ours, and the command begins again. The audit log comes last.
//!
//! A command that is limited to some effects locks those and not the others, of which a message may have thousands. Where the event stands is
//! read under its lock, as it is when a worker settles one of many (see [`super::status`]).

use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use hapax_ledger::verdict::Verdict;
use tokio_postgres::types::Type;

use super::Entropy;
use super::audit::{self, Entry, RequestLook, Way, to_before};
use super::conflict::Named;
use super::deed::{Locked, carry_out};
use super::facts::{self, Look, STATEMENTS, to_facts};
use super::fault::unavailable;
use super::moment::LeaseClock;
use super::plan::{Calling, fits, too_many};
use super::pool::{Pool, Statement, Taken};
use super::wire::{Uuid, received};
use crate::deeds::{self, Deeds};
use crate::error::StoreError;
use crate::nouns::{
    Arrival, Command, Commanded, Decision, Done, EFFECTS_PER_EVENT_MAX, EventFacts, NewEffect,
    WhyNot,
};

/// So often a command begins again because its event began to call for something meanwhile, which is rare once.
const TRIES_MAX: u32 = 8;

/// Carries out a command, or says why not.
pub(super) async fn command(
    pool: &Pool,
    command: &Command,
    entropy: &Entropy,
    clock: &LeaseClock,
) -> Result<Commanded, StoreError> {
    deeds::sound(command)?;
    if command.dry_run {
        return rehearse(pool, command, clock).await;
    }
    let brought = Brought::of(command)?;
    let mut names = named(command);
    for _ in 0..TRIES_MAX {
        let commanded = attempt(pool, (command, names), &brought, entropy, clock).await?;
        if let Some(commanded) = commanded {
            return Ok(commanded);
        }
        names = None;
    }
    Err(unavailable(
        "the event called for something new each time a command had locked it",
    ))
}

/// The names of those that the command may move, if it may not move all. Whoever names a revision means the event as a whole (E4).
fn named(command: &Command) -> Option<&[String]> {
    match command.decision {
        Decision::Retry | Decision::Replay { .. } if command.if_revision.is_none() => {
            command.only.as_deref()
        }
        _ => None,
    }
}

/// What a command brings along.
#[derive(Default)]
struct Brought {
    /// For an event that calls for nothing yet.
    effects: Vec<NewEffect>,
    /// What a conflict becomes.
    arrival: Option<Arrival>,
}

impl Brought {
    fn of(command: &Command) -> Result<Brought, StoreError> {
        let mut brought = Brought::default();
        match &command.decision {
            Decision::Release { effects } => {
                fits(effects)?;
                brought.effects = deeds::unborn(effects);
            }
            Decision::Deliver { effects } => {
                fits(effects)?;
                brought.effects = deeds::late(effects);
            }
            Decision::Promote { arrival, .. } => {
                let arrival = deeds::promoted(arrival);
                arrival
                    .events
                    .iter()
                    .try_for_each(|event| fits(&event.effects))?;
                brought.arrival = Some(arrival);
            }
            Decision::Retry
            | Decision::Replay { .. }
            | Decision::Reconcile { .. }
            | Decision::Resolve { .. }
            | Decision::Dismiss
            | Decision::Erase
            | Decision::Acknowledge { .. } => {}
        }
        Ok(brought)
    }
}

/// What is known of an event before anything is locked. The first two never change; the others count where effects are brought.
struct Seen {
    received_at: Time,
    event_type: Option<String>,
    calls_for_something: bool,
    /// The next place in its plan.
    next_place: i32,
}

/// The event alone, for whoever brings nothing that would need a place.
const EVENT: &str =
    "SELECT v.at, v.type, true, 0 FROM hapax.event v WHERE v.shard = $1 AND v.id = $2";
const EVENT_AND_PLAN: &str =
    "SELECT v.at, v.type, EXISTS (SELECT FROM hapax.effect WHERE event = $2)
         OR EXISTS (SELECT FROM hapax.effect_link WHERE shard = $1 AND event = $2),
         (SELECT coalesce(max(c.place) + 1, 0) FROM (
             SELECT place FROM hapax.effect WHERE event = $2
             UNION ALL
             SELECT place FROM hapax.effect_link WHERE shard = $1 AND event = $2
         ) AS c (place))
     FROM hapax.event v WHERE v.shard = $1 AND v.id = $2";

async fn see(taken: &Taken, event: EventId, brought: &Brought) -> Result<Option<Seen>, StoreError> {
    let sql = match brought.effects.is_empty() {
        true => EVENT,
        false => EVENT_AND_PLAN,
    };
    let rows = taken
        .query(
            sql,
            &[
                (&(event.0.shard() as i16), Type::INT2),
                (&Uuid(event.bytes()), Type::UUID),
            ],
        )
        .await?;
    Ok(rows.first().map(|row| Seen {
        received_at: Time::from_micros(row.get(0)),
        event_type: row.get::<_, Option<String>>(1).map(received),
        calls_for_something: row.get(2),
        next_place: row.get(3),
    }))
}

/// One try, with those of these names, or with all. `None`: something is not locked that should be; the event may call for it only by now.
async fn attempt(
    pool: &Pool,
    (command, names): (&Command, Option<&[String]>),
    brought: &Brought,
    entropy: &Entropy,
    clock: &LeaseClock,
) -> Result<Option<Commanded>, StoreError> {
    let taken = pool.take().await?;
    let earlier = audit::earlier(&taken, &command.by);
    let ((), earlier, seen) =
        tokio::try_join!(biased; taken.open(), earlier, see(&taken, command.event, brought))?;
    let seen = match (earlier, seen) {
        (Some(before), _) => return give_up(taken, Commanded::Before(before)).await,
        (None, None) => return give_up(taken, Commanded::NoEvent).await,
        (None, Some(seen)) => seen,
    };
    let joins = matches!(command.decision, Decision::Deliver { .. });
    let planned = !brought.effects.is_empty() && !seen.calls_for_something && !joins;
    let calls = planned || joins && !brought.effects.is_empty();
    if seen.next_place as usize + brought.effects.len() > EFFECTS_PER_EVENT_MAX {
        taken.roll_back().await;
        return Err(too_many());
    }
    let calling = calls.then(|| Calling {
        event: command.event,
        at: seen.received_at,
        event_type: seen.event_type.as_deref(),
        effects: &brought.effects,
        from: seen.next_place as usize,
    });
    let arrival = brought.arrival.as_ref();
    let whose = (command.event, names);
    let locked = Locked::take(&taken, whose, calling, arrival, entropy, clock).await?;
    let Some(facts) = facts::of_locked(&taken, command.event, clock).await? else {
        return give_up(taken, Commanded::NoEvent).await;
    };
    if !locked.covers(&facts, names) || planned && !facts.effects.is_empty() {
        taken.roll_back().await;
        return Ok(None);
    }
    let deeds = match judge(&taken, command, &facts).await? {
        Ok(deeds) => deeds,
        Err(refused) => return give_up(taken, refused).await,
    };
    let done = carry_out(&taken, command, locked, deeds, clock).await?;
    let entry = Entry {
        by: &command.by,
        action: command.decision.word(),
        subject: command.subject(),
        event: Some(command.event),
        detail: &done.answer,
    };
    match audit::enter(&taken, &command.by).await? {
        Way::Free(head) => head.commit(taken, &entry).await?,
        Way::Taken(before) => return give_up(taken, Commanded::Before(before)).await,
    }
    Ok(Some(Commanded::Done(done)))
}

/// Nothing is written, and this is why.
async fn give_up(taken: Taken, why: Commanded) -> Result<Option<Commanded>, StoreError> {
    taken.roll_back().await;
    Ok(Some(why))
}

/// What the ledger allows. Locks the delivery that the command is about, if it is about one.
async fn judge(
    taken: &Taken,
    command: &Command,
    facts: &EventFacts,
) -> Result<Result<Deeds, Commanded>, StoreError> {
    let deeds = match deeds::decide(facts, command) {
        Ok(deeds) => deeds,
        Err((why, verdict)) => return Ok(Err(refused(why, verdict))),
    };
    if let Some(number) = command.decision.delivery() {
        let open = Named::of(command.event, number).lock(taken).await?;
        if open.is_empty() {
            return Ok(Err(refused(WhyNot::NoConflict, deeds.verdict)));
        }
    }
    Ok(Ok(deeds))
}

fn refused(why: WhyNot, verdict: Verdict) -> Commanded {
    Commanded::Refused {
        why,
        verdict: Box::new(verdict),
    }
}

/// Says what would happen, from one picture, and locks nothing.
async fn rehearse(
    pool: &Pool,
    command: &Command,
    clock: &LeaseClock,
) -> Result<Commanded, StoreError> {
    let look = Look::at(command.event, clock);
    let request = command.by.request.as_ref();
    let asked = request.map(RequestLook::of);
    let delivery = command.decision.delivery();
    let named = delivery.map(|number| Named::of(command.event, number));
    let mut all: Vec<Statement<'_>> = look.statements().into();
    all.extend(named.as_ref().map(Named::look));
    all.extend(asked.as_ref().map(RequestLook::statement));
    let found = pool.read_all(&all).await?;
    let earlier = found.last().zip(request);
    if let Some(before) = earlier.and_then(|(rows, request)| to_before(rows, request)) {
        return Ok(Commanded::Before(before));
    }
    let Some(facts) = to_facts(&found)? else {
        return Ok(Commanded::NoEvent);
    };
    let deeds = match deeds::decide(&facts, command) {
        Ok(deeds) => deeds,
        Err((why, verdict)) => return Ok(refused(why, verdict)),
    };
    if named.is_some() && found.get(STATEMENTS).is_none_or(Vec::is_empty) {
        return Ok(refused(WhyNot::NoConflict, deeds.verdict));
    }
    Ok(Commanded::Done(Done {
        run: None,
        answer: deeds::answer(command, None, None, &deeds.verdict),
        verdict: deeds.verdict,
        promoted: None,
        opened: Vec::new(),
    }))
}
