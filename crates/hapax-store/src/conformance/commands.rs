//! Commands: retry, replay, reconcile and resolve; what they need, what they leave behind, and what they refuse.

use bytes::Bytes;
use hapax_ledger::effect::{EffectState, Repeat, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EffectId, EventId, RawId, RunId};
use hapax_ledger::retry::Next;
use hapax_ledger::run::RunKind;
use hapax_ledger::time::Span;
use hapax_ledger::transition::{Rejected, Resolution};
use hapax_ledger::verdict::{Action, VerdictKind, Would};

use super::operator::{actions, ada, asking, carried, command, facts, fitting, give, log, refused};
use super::sample::{Dial, Subject, all, at, detail};
use super::worker::{
    BROKEN, GIVEN_UP, LEASE, OK, SETTLED, START, accept_effects, claim, claim_lanes, done,
    effect_detail, ended, names, planned, start_one,
};
use crate::nouns::{
    AuditFilter, Before, Classes, Command, Commanded, Decision, Effect, NewEffect, PayloadAnswer,
    Receipt, WhyNot,
};

/// Carries out the one effect that is due, to this end.
async fn end_one(store: &Subject, end: crate::nouns::Move) -> Effect {
    let effect = start_one(store).await;
    done(store, &effect, end).await;
    effect
}

/// An event with one effect of this class that was given up; for `once`, one that is uncertain.
async fn failed(store: &Subject, repeat: Repeat) -> (Receipt, Effect) {
    let receipt = accept_effects(store, "k", vec![planned("e", "1", repeat)]).await;
    let effect = end_one(store, GIVEN_UP).await;
    (receipt, effect)
}

fn force(names: &[&str]) -> Decision {
    Decision::Replay {
        force: names.iter().map(ToString::to_string).collect(),
    }
}

/// All that a verdict depends on is read in one picture: states, keys, what comes first.
pub async fn facts_say_what_a_verdict_depends_on(store: Subject, dial: Dial) {
    let after = NewEffect {
        after: vec![0],
        ..planned("mail", "1", Repeat::Once)
    };
    let effects = vec![planned("pay", "1", Repeat::Keyed), after];
    let receipt = accept_effects(&store, "k", effects).await;
    dial.set(at(3));
    let read = facts(&store, receipt.event).await;
    assert_eq!((read.now, read.held, read.conflicts_open), (at(3), None, 0));
    let effects = detail(&store, receipt.event).await.effects;
    let [pay, mail] = read.effects.try_into().expect("two effects");
    assert_eq!(vec![pay.effect, mail.effect], effects);
    assert_eq!((pay.after, mail.after), (vec![], vec!["pay".to_owned()]));
    end_one(&store, SETTLED).await;
    let read = facts(&store, receipt.event).await;
    let verdict = read.verdict(Action::Retry, &Classes::new());
    assert_eq!(verdict.verdict, VerdictKind::Safe);
    let would: Vec<Would> = verdict.effects.iter().map(|line| line.would).collect();
    assert_eq!(would, [Would::Skip, Would::Send]);
    let nowhere = EventId(RawId::new(at(0), 0, 77));
    assert_eq!(store.facts(nowhere).await.expect("the store reads"), None);
}

/// E1, J1: a retry revives what was given up, as a run with a parent and one audit record.
pub async fn a_retry_carries_out_what_is_not_done(store: Subject, dial: Dial) {
    let effects = vec![
        planned("done", "1", Repeat::Keyed),
        NewEffect {
            lane: "other".into(),
            ..planned("dead", "1", Repeat::Keyed)
        },
    ];
    let receipt = accept_effects(&store, "k", effects).await;
    let before = detail(&store, receipt.event).await;
    for effect in claim(&store).await {
        done(&store, &effect, START).await;
        let end = if *effect.name == *"done" {
            SETTLED
        } else {
            GIVEN_UP
        };
        done(&store, &effect, end).await;
    }
    dial.set(at(5));
    let wanted = command(receipt.event, Decision::Retry);
    let Commanded::Done(carried_out) = give(&store, wanted.clone()).await else {
        panic!("a retry of what is dead is safe");
    };
    assert_eq!(carried_out.run, Some(wanted.run));
    assert_eq!(names(carried_out.opened), ["other"]);
    assert_eq!(carried_out.verdict.verdict, VerdictKind::Safe);
    assert_eq!(carried_out.verdict.effects[1].state, EffectState::Dead);
    let after = detail(&store, receipt.event).await;
    assert_eq!(after.event.status, EventStatus::Pending);
    assert_eq!(after.effects[0].record.state, EffectState::Done);
    let revived = after.effects[1].record;
    assert_eq!((revived.generation, revived.next_attempt_at), (1, at(5)));
    let [run] = after.runs.try_into().expect("one run");
    assert_eq!((run.id, run.kind), (wanted.run, RunKind::Retry));
    assert_eq!(run.parent, RunId::initial(receipt.event));
    assert_eq!((&*run.actor, run.at), ("ada", at(7)));
    assert_eq!((run.reason, run.snapshot), (ada().reason, None));
    let [record] = log(&store).await.try_into().expect("one record");
    assert_eq!(record.action, "event.retry");
    assert_eq!(record.subject, receipt.event.to_string());
    assert_eq!((&*record.actor, record.at), ("ada", at(7)));
    assert_eq!(
        (record.reason, record.detail),
        (ada().reason, carried_out.answer)
    );
    // E2: what came in is as it was.
    assert_eq!(before.deliveries, after.deliveries);
    assert_eq!(before.event.body_hash, after.event.body_hash);
    assert_eq!(before.event.received_at, after.event.received_at);
    let due = claim(&store).await;
    assert_eq!(due.len(), 1, "what is done is not sent again (D2)");
    assert_eq!(&*due[0].name, "dead");
}

/// A retry makes due at once what waits for its next attempt, and runs follow each other.
pub async fn what_waits_for_its_time_is_due_at_once(store: Subject, _dial: Dial) {
    let receipt = accept_effects(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    end_one(&store, ended(BROKEN, Next::At(Span::from_hours(10)))).await;
    assert_eq!(claim(&store).await, []);
    let first = carried(&store, receipt.event, Decision::Retry).await;
    assert_eq!(names(first.opened), ["lane"]);
    end_one(&store, ended(BROKEN, Next::At(Span::from_hours(10)))).await;
    let second = carried(&store, receipt.event, force(&[])).await;
    let runs = detail(&store, receipt.event).await.runs;
    let shown: Vec<_> = runs.iter().map(|run| (run.kind, Some(run.id))).collect();
    assert_eq!(
        shown,
        [(RunKind::Retry, first.run), (RunKind::Replay, second.run)]
    );
    assert_eq!(Some(runs[1].parent), first.run);
    assert_eq!(actions(&store).await, ["event.retry", "event.replay"]);
}

/// E1, D2: a replay sends nothing that is done, but what is forced: once more, as a new generation under the same key.
pub async fn a_replay_sends_nothing_that_is_done_unless_it_is_forced(store: Subject, dial: Dial) {
    let effects = vec![
        planned("a", "1", Repeat::Keyed),
        planned("b", "1", Repeat::Once),
    ];
    let receipt = accept_effects(&store, "k", effects).await;
    for effect in claim(&store).await {
        done(&store, &effect, START).await;
        done(&store, &effect, SETTLED).await;
    }
    let plain = carried(&store, receipt.event, force(&[])).await;
    assert_eq!(plain.verdict.verdict, VerdictKind::NothingToDo);
    assert_eq!(names(plain.opened), [""; 0]);
    assert_eq!(claim(&store).await, []);
    dial.set(at(9));
    let forced = carried(&store, receipt.event, force(&["b"])).await;
    assert_eq!(forced.verdict.verdict, VerdictKind::NeedsDecision);
    assert_eq!(names(forced.opened), ["lane"]);
    let after = detail(&store, receipt.event).await;
    assert_eq!(after.event.status, EventStatus::Pending);
    let (untouched, again) = (&after.effects[0], &after.effects[1]);
    assert_eq!(untouched.record.state, EffectState::Done);
    assert_eq!((again.record.generation, again.key.as_str()), (2, "1"));
    assert_eq!(again.record.next_attempt_at, at(9));
    assert_eq!(again.record.attempts, 0);
    let sent = end_one(&store, SETTLED).await;
    assert_eq!((&*sent.name, sent.record.generation), ("b", 2));
    let attempts = effect_detail(&store, &sent).await.attempts;
    let made: Vec<_> = attempts
        .iter()
        .map(|one| (one.generation, one.number))
        .collect();
    assert_eq!(made, [(1, 1), (2, 1)]);
    assert!(attempts[0].fence < attempts[1].fence, "C1");
    assert_eq!(claim(&store).await, []);
    let status = detail(&store, receipt.event).await.event.status;
    assert_eq!(status, EventStatus::Completed);
}

/// What comes after a forced effect waits for it again, if it is not done; what is done stays so.
pub async fn a_forced_effect_holds_up_what_comes_after_it(store: Subject, _dial: Dial) {
    let second = NewEffect {
        after: vec![0],
        ..planned("second", "1", Repeat::Keyed)
    };
    let effects = vec![planned("first", "1", Repeat::Converges), second];
    let receipt = accept_effects(&store, "k", effects).await;
    end_one(&store, SETTLED).await;
    carried(&store, receipt.event, force(&["first"])).await;
    let due = claim(&store).await;
    let due: Vec<&str> = due.iter().map(|effect| &*effect.name).collect();
    assert_eq!(due, ["first"]);
}

/// E5: a reconcile sends converging effects again with the snapshot, done or not, and touches nothing else.
pub async fn a_reconcile_sends_converging_effects_with_the_snapshot(store: Subject, _dial: Dial) {
    let effects = vec![
        planned("sets", "1", Repeat::Converges),
        planned("mails", "1", Repeat::Keyed),
        NewEffect {
            lane: "later".into(),
            ..planned("waits", "1", Repeat::Converges)
        },
    ];
    let receipt = accept_effects(&store, "k", effects).await;
    for claimed in claim_lanes(&store, "node", &[("lane", 9)], LEASE).await {
        let start = crate::nouns::Move::Start(Some(Bytes::from_static(b"old")));
        done(&store, &claimed.effect, start).await;
        done(&store, &claimed.effect, SETTLED).await;
    }
    let snapshot = Bytes::from_static(b"{\"paid\":true}\0");
    let decision = Decision::Reconcile {
        snapshot: snapshot.clone(),
    };
    let reconciled = carried(&store, receipt.event, decision).await;
    assert_eq!(names(reconciled.opened), ["lane", "later"]);
    let after = detail(&store, receipt.event).await;
    let run = &after.runs[0];
    assert_eq!(run.kind, RunKind::Reconcile);
    assert_eq!(run.snapshot, Some(snapshot.clone()));
    let lanes = [("lane", 9), ("later", 9)];
    let mut again = claim_lanes(&store, "node", &lanes, LEASE).await;
    again.sort_by(|one, other| one.effect.name.cmp(&other.effect.name));
    let seen: Vec<_> = again
        .iter()
        .map(|claimed| (&*claimed.effect.name, claimed.effect.record.generation))
        .collect();
    assert_eq!(seen, [("sets", 2), ("waits", 1)]);
    assert!(
        again
            .iter()
            .all(|claimed| claimed.snapshot == Some(snapshot.clone()))
    );
}

/// An uncertain effect is settled by hand; one that is not cannot be; and what is not done can be given up.
pub async fn an_operator_resolves_what_is_uncertain(store: Subject, _dial: Dial) {
    let (receipt, effect) = failed(&store, Repeat::Once).await;
    let resolve = |effect, resolution| Decision::Resolve { effect, resolution };
    let event = receipt.event;
    let retry = refused(&store, command(event, Decision::Retry)).await;
    assert_eq!(retry, WhyNot::NeedsDecision);
    let stranger = EffectId(RawId::new(at(0), 0, 1 << 40));
    let unknown = command(event, resolve(stranger, Resolution::Applied));
    assert_eq!(refused(&store, unknown).await, WhyNot::NoEffect);
    let not_applied = resolve(effect.id, Resolution::NotApplied);
    let settled = carried(&store, event, not_applied).await;
    assert_eq!(
        (settled.run, names(settled.opened)),
        (None, vec!["lane".into()])
    );
    assert_eq!(
        settled.verdict.effects[0].state,
        EffectState::Pending,
        "as it is now"
    );
    let [record] = log(&store).await.try_into().expect("one record");
    assert_eq!(record.action, "effect.resolve");
    assert_eq!(record.subject, effect.id.to_string());
    let filter = AuditFilter {
        event: Some(event),
        ..AuditFilter::default()
    };
    assert_eq!(fitting(&store, filter).await, [record]);
    let again = command(event, resolve(effect.id, Resolution::Applied));
    let rejected = WhyNot::Rejected(Rejected::NotApplicable);
    assert_eq!(refused(&store, again).await, rejected);
    carried(&store, event, resolve(effect.id, Resolution::Skip)).await;
    let after = detail(&store, event).await;
    assert_eq!(after.event.status, EventStatus::Completed);
    assert_eq!(after.effects[0].record.skip, Some(SkipReason::Operator));
    assert_eq!(after.runs, [], "no run was asked for");
}

/// E4: an action that names a revision is refused once the ledger has moved, and told where it stands now.
pub async fn a_command_on_an_outdated_verdict_is_refused(store: Subject, _dial: Dial) {
    let receipt = accept_effects(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let seen = facts(&store, receipt.event).await;
    let seen = seen.verdict(Action::Retry, &Classes::new()).revision;
    end_one(&store, GIVEN_UP).await;
    let named = |revision| Command {
        if_revision: Some(revision),
        ..command(receipt.event, Decision::Retry)
    };
    assert_eq!(refused(&store, named(seen)).await, WhyNot::Moved);
    let Commanded::Refused { verdict, .. } = give(&store, named(seen)).await else {
        panic!("the ledger has moved");
    };
    assert_ne!(verdict.revision, seen);
    let now = give(&store, named(verdict.revision)).await;
    assert!(matches!(now, Commanded::Done(_)), "{now:?}");
}

/// What needs a decision is not run without one, and what is not there is not forced.
pub async fn what_cannot_be_done_is_refused(store: Subject, _dial: Dial) {
    let (receipt, _) = failed(&store, Repeat::Once).await;
    let event = receipt.event;
    let snapshot = Bytes::from_static(b"{}");
    let needs_decision = [Decision::Retry, force(&[])];
    for decision in needs_decision {
        let why = refused(&store, command(event, decision)).await;
        assert_eq!(why, WhyNot::NeedsDecision);
    }
    let table = [
        (force(&["nobody"]), WhyNot::NoEffect),
        (Decision::Dismiss, WhyNot::NotHeld),
        (Decision::Release { effects: vec![] }, WhyNot::NotHeld),
        (Decision::Acknowledge { delivery: 0 }, WhyNot::NoConflict),
        (Decision::Acknowledge { delivery: 9 }, WhyNot::NoConflict),
    ];
    for (decision, why) in table {
        let said = format!("{decision:?}");
        assert_eq!(
            refused(&store, command(event, decision)).await,
            why,
            "{said}"
        );
    }
    let nowhere = EventId(RawId::new(at(0), 0, 77));
    let lost = give(&store, command(nowhere, Decision::Reconcile { snapshot })).await;
    assert_eq!(lost, Commanded::NoEvent);
    assert_eq!(log(&store).await, []);
}

/// A class that the config has made stricter counts: what may have been applied is not sent again.
pub async fn a_stricter_class_of_the_config_counts(store: Subject, _dial: Dial) {
    let (receipt, _) = failed(&store, Repeat::Keyed).await;
    let stricter = Command {
        classes: Classes::from([("e".into(), Repeat::Once)]),
        ..command(receipt.event, Decision::Retry)
    };
    assert_eq!(refused(&store, stricter).await, WhyNot::NeedsDecision);
    carried(&store, receipt.event, Decision::Retry).await;
}

/// A dry run says what would happen and changes nothing.
pub async fn a_dry_run_changes_nothing(store: Subject, _dial: Dial) {
    let (receipt, _) = failed(&store, Repeat::Keyed).await;
    let before = (detail(&store, receipt.event).await, log(&store).await);
    let dry = Command {
        dry_run: true,
        by: asking("dry", 1),
        ..command(receipt.event, force(&["e"]))
    };
    for _ in 0..2 {
        let Commanded::Done(would) = give(&store, dry.clone()).await else {
            panic!("it would be done");
        };
        assert_eq!((would.run, would.promoted), (None, None));
        assert_eq!(names(would.opened), [""; 0]);
        assert_eq!(would.verdict.effects[0].would, Would::Send);
        assert!(!would.answer.contains("runId"), "{}", would.answer);
    }
    let after = (detail(&store, receipt.event).await, log(&store).await);
    assert_eq!(after, before);
}

/// E3: the same request is carried out once and answered alike; another one under its key is not carried out.
pub async fn a_request_is_carried_out_once(store: Subject, _dial: Dial) {
    let (receipt, _) = failed(&store, Repeat::Keyed).await;
    let request = |key: &str, what| Command {
        by: asking(key, what),
        ..command(receipt.event, force(&["e"]))
    };
    let Commanded::Done(first) = give(&store, request("r1", 1)).await else {
        panic!("the first is carried out");
    };
    let same = Commanded::Before(Before::Same(first.answer.clone()));
    assert_eq!(give(&store, request("r1", 1)).await, same);
    let other = Commanded::Before(Before::Other);
    assert_eq!(give(&store, request("r1", 2)).await, other);
    // Before anything else: an event that is not there is not even looked for.
    let nowhere = Command {
        event: EventId(RawId::new(at(0), 0, 77)),
        ..request("r1", 1)
    };
    assert_eq!(give(&store, nowhere).await, same);
    let after = detail(&store, receipt.event).await;
    assert_eq!((after.runs.len(), log(&store).await.len()), (1, 1));
    assert_eq!(after.effects[0].record.generation, 2);
    // A refused request leaves its key free.
    let refused_first = Command {
        by: asking("r2", 1),
        ..command(receipt.event, Decision::Dismiss)
    };
    assert_eq!(refused(&store, refused_first).await, WhyNot::NotHeld);
    let freed = give(&store, request("r2", 5)).await;
    assert!(matches!(freed, Commanded::Done(_)), "{freed:?}");
}

/// E3, J1: of many at once one is carried out, and each that was has its record.
pub async fn racing_commands_leave_one_record_each(store: Subject, _dial: Dial) {
    let (receipt, _) = failed(&store, Repeat::Converges).await;
    let racing = (0..12).map(|n| {
        let by = asking(&format!("r{}", n % 3), 1);
        let wanted = Command {
            by,
            ..command(receipt.event, Decision::Retry)
        };
        let store = store.clone();
        async move { give(&store, wanted).await }
    });
    let answers = all(racing).await;
    let done = answers
        .iter()
        .filter(|one| matches!(one, Commanded::Done(_)));
    assert_eq!(done.count(), 3);
    assert_eq!(log(&store).await.len(), 3);
    assert_eq!(detail(&store, receipt.event).await.runs.len(), 3);
}

/// What is on its way is left alone, and its event's bytes stay what they were.
pub async fn what_is_under_way_is_left_alone(store: Subject, dial: Dial) {
    let receipt = accept_effects(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let effect = start_one(&store).await;
    let run = carried(&store, receipt.event, force(&["e"])).await;
    assert_eq!(run.verdict.effects[0].would, Would::Blocked);
    assert_eq!(claim(&store).await, []);
    done(&store, &effect, ended(OK, Next::Exhausted)).await;
    dial.set(at(60));
    assert_eq!(claim(&store).await, []);
    let kept = store.payload(receipt.event).await.expect("the store reads");
    assert!(matches!(kept, PayloadAnswer::Kept(_)));
}
