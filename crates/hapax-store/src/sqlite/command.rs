//! What operators decide: the facts, the decision, its deeds, its run and its audit record, in one transaction (E1, J1).

use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::EventId;
use hapax_ledger::order::Gate;
use hapax_ledger::verdict::Verdict;
use rusqlite::{Connection, params};

use super::conflict::{self, Conflict};
use super::effect::{PLACE_BITS, PLACE_MAX};
use super::gate::Opened;
use super::read::row_of;
use super::writer::Tx;
use super::{
    accept, advance, attempt, audit, claim, effect, erase, facts, gate, plan, run, sql_error,
};
use crate::deeds::{self, Deed, Deeds};
use crate::error::StoreError;
use crate::nouns::{Command, Commanded, ConflictDecision, Decision, Done, EventFacts, WhyNot};

/// Carries out a command, if the ledger allows it.
pub(super) fn command(tx: &mut Tx<'_>, command: &Command) -> Result<Commanded, StoreError> {
    if let Some(before) = audit::before(tx.db, &command.by)? {
        return Ok(Commanded::Before(before));
    }
    let Some(facts) = read_facts(tx, command.event)? else {
        return Ok(Commanded::NoEvent);
    };
    let refused = |why, verdict: Verdict| {
        let verdict = Box::new(verdict);
        Ok(Commanded::Refused { why, verdict })
    };
    let deeds = match deeds::decide(&facts, command) {
        Ok(deeds) => deeds,
        Err((why, verdict)) => return refused(why, verdict),
    };
    let conflict = match command.decision.delivery() {
        None => None,
        Some(delivery) => match find_conflict(tx, command.event, delivery)? {
            Some(conflict) => Some(conflict),
            None => return refused(WhyNot::NoConflict, deeds.verdict),
        },
    };
    if command.dry_run {
        return Ok(Commanded::Done(Done {
            run: None,
            answer: deeds::answer(command, None, None, &deeds.verdict),
            verdict: deeds.verdict,
            promoted: None,
            opened: Vec::new(),
        }));
    }
    let mut opened = Opened::new();
    carry_out(tx, command, &deeds, &mut opened)?;
    let promoted = match (&command.decision, conflict) {
        (Decision::Release { effects }, _) if facts.effects.is_empty() => {
            plan::join(tx, command.event, &deeds::unborn(effects))?;
            None
        }
        (Decision::Deliver { effects }, _) => {
            plan::join(tx, command.event, &deeds::late(effects))?;
            None
        }
        (Decision::Erase, _) => {
            erase::erase(tx, row_of(command.event))?;
            None
        }
        (decision, Some(conflict)) => decide_on(tx, decision, &conflict)?,
        (_, None) => None,
    };
    finish(tx, command, deeds, promoted, opened).map(Commanded::Done)
}

fn read_facts(tx: &Tx<'_>, event: EventId) -> Result<Option<EventFacts>, StoreError> {
    let latest = tx.group.latest(tx.index, row_of(event))?;
    facts::facts(tx.db, latest, event, tx.now)
}

/// The delivery of this number, if it is a conflict that nobody has decided on.
fn find_conflict(
    tx: &Tx<'_>,
    event: EventId,
    delivery: u32,
) -> Result<Option<Conflict>, StoreError> {
    let latest = tx.group.latest(tx.index, row_of(event))?;
    let mut open = conflict::open(tx.db, latest)?.into_iter();
    Ok(open.find(|conflict| conflict.number == delivery))
}

/// The steps, and what they mean for the event.
fn carry_out(
    tx: &mut Tx<'_>,
    command: &Command,
    deeds: &Deeds,
    opened: &mut Opened,
) -> Result<(), StoreError> {
    let event = row_of(command.event);
    if deeds.frees_event {
        tx.db
            .prepare_cached(
                "UPDATE event SET review_code = NULL, review_message = NULL WHERE seq = ?1",
            )
            .and_then(|mut update| update.execute([event]))
            .map_err(sql_error)?;
    }
    for deed in &deeds.steps {
        do_one(tx, deed, &command.decision, opened)?;
    }
    match deeds.frees_event {
        true => gate::settle_status(tx.db, event),
        false => Ok(()),
    }
}

fn do_one(
    tx: &mut Tx<'_>,
    deed: &Deed,
    decision: &Decision,
    opened: &mut Opened,
) -> Result<(), StoreError> {
    let Some(mut held) = effect::find(tx.db, deed.effect)? else {
        return Ok(());
    };
    if deed.release {
        tx.db
            .prepare_cached("UPDATE effect SET released = 1 WHERE seq = ?1 AND chain IS NOT NULL")
            .and_then(|mut update| update.execute([held.row]))
            .map_err(sql_error)?;
        held.effect.released = held.place.is_some();
    }
    if deed.anew {
        held.effect.gate = Gate::Waiting;
        held.effect.gate = gate::of(tx.db, &held)?;
    }
    if let (true, Some(snapshot)) = (deed.with_snapshot, decision.snapshot()) {
        attempt::replace_snapshot(tx.db, held.row, snapshot)?;
    }
    match &deed.step {
        // What the ledger does not allow was not decided either.
        Some(step) => advance::take(tx, &mut held, step, opened).map(drop),
        None => gate::set(tx.db, held.row, held.effect.gate),
    }
}

/// A conflict was looked at; the event that it became, if it became one.
fn decide_on(
    tx: &mut Tx<'_>,
    decision: &Decision,
    conflict: &Conflict,
) -> Result<Option<EventId>, StoreError> {
    let promoted = match decision {
        Decision::Promote { arrival, .. } => {
            let receipts = accept::accept(tx, &deeds::promoted(arrival))?;
            receipts.first().map(|receipt| receipt.event)
        }
        Decision::Retry
        | Decision::Replay { .. }
        | Decision::Deliver { .. }
        | Decision::Reconcile { .. }
        | Decision::Resolve { .. }
        | Decision::Release { .. }
        | Decision::Dismiss
        | Decision::Erase
        | Decision::Acknowledge { .. } => None,
    };
    let decided = promoted.map_or(ConflictDecision::Acknowledged, ConflictDecision::Promoted);
    conflict::decide(tx.db, conflict, decided)?;
    Ok(promoted)
}

/// The run, the verdict to show, and the audit record.
fn finish(
    tx: &mut Tx<'_>,
    command: &Command,
    deeds: Deeds,
    promoted: Option<EventId>,
    mut opened: Opened,
) -> Result<Done, StoreError> {
    for event in [Some(command.event), promoted].into_iter().flatten() {
        claimable(tx.db, event, &mut opened)?;
    }
    // A later step may have closed what an earlier one opened.
    let mut lanes = Vec::with_capacity(opened.len());
    for lane in opened {
        if claim::next_due(tx, &lane)?.is_some() {
            lanes.push(lane);
        }
    }
    let run = run::add(tx.db, command)?;
    let facts = match run {
        // What is shown is what the run began with.
        Some(_) => None,
        None => read_facts(tx, command.event)?,
    };
    let verdict = match facts {
        Some(facts) => facts.verdict(command.decision.action(), &command.classes),
        None => deeds.verdict,
    };
    let answer = deeds::answer(command, run, promoted, &verdict);
    let entry = audit::Entry {
        action: command.decision.word(),
        subject: command.subject(),
        detail: answer.clone(),
        event: Some(command.event),
    };
    audit::write_down(tx.db, &command.by, entry)?;
    Ok(Done {
        run,
        verdict,
        promoted,
        answer,
        opened: lanes,
    })
}

/// Lanes in which something that the event calls for can be claimed.
fn claimable(db: &Connection, event: EventId, lanes: &mut Opened) -> Result<(), StoreError> {
    let row = row_of(event);
    let first = row << PLACE_BITS;
    // By their rows: the index of what is due has that of all events.
    let found: rusqlite::Result<Vec<Arc<str>>> = db
        .prepare_cached(
            "SELECT lane FROM effect NOT INDEXED WHERE seq BETWEEN ?1 AND ?2 AND state = ?4 AND gate = ?5
             UNION ALL
             SELECT e.lane FROM effect_link l CROSS JOIN effect e NOT INDEXED ON e.seq = l.effect
             WHERE l.event = ?3 AND e.state = ?4 AND e.gate = ?5",
        )
        .and_then(|mut find| {
            let (state, gate) = (EffectState::Pending.code(), Gate::Open.code());
            let params = params![first, first | PLACE_MAX, row, state, gate];
            find.query_map(params, |row| row.get(0))?.collect()
        });
    lanes.extend(found.map_err(sql_error)?);
    Ok(())
}
