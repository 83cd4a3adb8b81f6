//! What is kept of attempts: answers, snapshots, how the latest ended, and who settled what was uncertain.

use bytes::Bytes;
use hapax_ledger::effect::{EffectState, Repeat, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EffectId;
use hapax_ledger::outcome::{Lost, NotSent, Outcome};
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_ledger::transition::{Did, PROBE_GRACE, Rejected, Resolution, Resolver};

use super::sample::{Dial, Subject, at, detail};
use super::worker::{
    BROKEN, LEASE, OK, SETTLED, START, accept_effects, advance, claim, claim_lanes, claim_one,
    done, effect_detail, ended, names, planned, rescued, resolve, start_one,
};
use crate::nouns::{
    Advanced, Claimed, EXCERPT_BYTES_MAX, Move, Moved, NewEffect, Said, Settlement,
};

/// What a receiver said is kept with the attempt, up to a limit.
pub async fn what_was_said_is_kept_with_the_attempt(store: Subject, _dial: Dial) {
    accept_effects(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let answers = [
        Said {
            excerpt: Some(Bytes::from_static(b"\0\xff not text")),
            body_bytes: Some(12),
            error: None,
        },
        Said {
            excerpt: Some(Bytes::from(vec![b'x'; EXCERPT_BYTES_MAX + 1])),
            body_bytes: Some(1 << 40),
            error: Some("the connection broke: ü".into()),
        },
        Said::default(),
    ];
    for said in &answers {
        let effect = start_one(&store).await;
        let settlement = Settlement {
            outcome: BROKEN,
            next: Next::At(Span::ZERO),
            said: said.clone(),
        };
        done(&store, &effect, Move::Settle(settlement)).await;
    }
    let effect = claim_one(&store).await;
    let attempts = effect_detail(&store, &effect).await.attempts;
    let kept: Vec<Said> = attempts.into_iter().map(|attempt| attempt.said).collect();
    let [first, second, third] = answers;
    let cut = Some(Bytes::from(vec![b'x'; EXCERPT_BYTES_MAX]));
    let second = Said {
        excerpt: cut,
        ..second
    };
    assert_eq!(kept, [first, second, third]);
}

/// The effect itself says how its latest attempt ended, while the next one runs, too.
pub async fn an_effect_says_how_its_latest_attempt_ended(store: Subject, dial: Dial) {
    let receipt = accept_effects(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let later = Outcome::Answered {
        status: 429,
        retry_after: Some(Span::from_secs(7)),
    };
    let no_snapshot = Outcome::NotSent {
        why: NotSent::Snapshot,
    };
    let mut expected = None;
    for outcome in [later, BROKEN, no_snapshot] {
        let effect = start_one(&store).await;
        assert_eq!(effect.last, expected);
        done(&store, &effect, ended(outcome, Next::At(Span::ZERO))).await;
        expected = Some(outcome);
    }
    let lost = start_one(&store).await;
    dial.set(at(30));
    let freed = rescued(&store).await.effects;
    let why = Lost::LostLease;
    assert_eq!(freed[0].last, Some(Outcome::Lost { why }));
    done(&store, &start_one(&store).await, SETTLED).await;
    // A late report is evidence about its attempt, not the latest word.
    advance(&store, &lost, ended(BROKEN, Next::Exhausted)).await;
    let [effect] = detail(&store, receipt.event)
        .await
        .effects
        .try_into()
        .expect("one effect");
    assert_eq!(effect.last, Some(OK));
}

async fn claimed(store: &Subject) -> Claimed {
    let claims = claim_lanes(store, "node", &[("lane", 9)], LEASE).await;
    let [claimed] = claims.try_into().expect("one effect is due");
    claimed
}

/// A snapshot is frozen at the first attempt; one that converges may bring a newer one.
pub async fn a_snapshot_is_frozen_unless_the_effect_converges(store: Subject, _dial: Dial) {
    for (repeat, expected) in [(Repeat::Keyed, "one"), (Repeat::Converges, "two")] {
        let name = repeat.word();
        accept_effects(&store, name, vec![planned(name, "1", repeat)]).await;
        let first = claimed(&store).await;
        assert_eq!(first.snapshot, None);
        let retry = || ended(BROKEN, Next::At(Span::ZERO));
        let with = |text: &'static str| Move::Start(Some(Bytes::from_static(text.as_bytes())));
        done(&store, &first.effect, with("one")).await;
        done(&store, &first.effect, retry()).await;
        let second = claimed(&store).await;
        assert_eq!(second.snapshot.as_deref(), Some(&b"one"[..]));
        done(&store, &second.effect, with("two")).await;
        done(&store, &second.effect, retry()).await;
        let third = claimed(&store).await;
        assert_eq!(third.snapshot.as_deref(), Some(expected.as_bytes()));
        // One without leaves what is kept.
        done(&store, &third.effect, START).await;
        let read = effect_detail(&store, &third.effect).await;
        assert_eq!(read.snapshot.as_deref(), Some(expected.as_bytes()));
        done(&store, &third.effect, SETTLED).await;
    }
}

/// C3: a rescue says what it freed, as it is now.
pub async fn a_rescue_names_what_it_freed(store: Subject, dial: Dial) {
    let one_try = NewEffect {
        attempts_max: 1,
        ..planned("dead", "1", Repeat::Keyed)
    };
    let effects = vec![
        one_try,
        planned("pending", "1", Repeat::Keyed),
        planned("uncertain", "1", Repeat::Once),
    ];
    accept_effects(&store, "k", effects).await;
    for effect in claim(&store).await {
        done(&store, &effect, START).await;
    }
    dial.set(at(30));
    let mut freed = rescued(&store).await.effects;
    freed.sort_by_key(|effect| effect.name.clone());
    assert_eq!(freed.len(), 3);
    for effect in freed {
        assert_eq!(effect.record.state.word(), &*effect.name);
        assert_eq!(effect, effect_detail(&store, &effect).await.effect);
    }
}

/// A worker that does not hear that its settlement came through says it again. That is no evidence of anything late.
pub async fn a_settlement_that_is_said_again_is_no_late_one(store: Subject, dial: Dial) {
    accept_effects(&store, "k", vec![planned("e", "1", Repeat::Keyed)]).await;
    let said = |outcome| {
        let mut settlement = Settlement::new(outcome, Next::At(Span::from_secs(5)));
        settlement.said.error = Some("in its own words".to_owned());
        Move::Settle(settlement)
    };
    let refused = said(BROKEN);
    let first = claim_one(&store).await;
    done(&store, &first, START).await;
    done(&store, &first, refused.clone()).await;
    let again = advance(&store, &first, refused.clone()).await;
    assert_eq!(again, Moved::Refused(Rejected::StaleFence));
    // Nor is it after somebody else has made the next attempt; but another word is.
    dial.set(at(5));
    let second = claim_one(&store).await;
    done(&store, &second, START).await;
    done(&store, &second, refused.clone()).await;
    let again = advance(&store, &first, refused.clone()).await;
    assert_eq!(again, Moved::Refused(Rejected::StaleFence));
    let late = async || {
        let attempts = effect_detail(&store, &first).await.attempts.into_iter();
        attempts.map(|attempt| attempt.late).collect::<Vec<_>>()
    };
    assert_eq!(late().await, [None, None]);
    let other = advance(&store, &first, SETTLED).await;
    assert_eq!(other, Moved::Refused(Rejected::StaleFence));
    assert_eq!(late().await, [Some((at(5), OK)), None]);
    // That its lease is lost, the store says itself. If the worker says so, too, it was there after all.
    dial.set(at(10));
    let third = claim_one(&store).await;
    done(&store, &third, START).await;
    dial.set(at(41));
    assert_eq!(rescued(&store).await.effects.len(), 1);
    let why = Lost::LostLease;
    let lost = advance(&store, &third, said(Outcome::Lost { why })).await;
    assert_eq!(lost, Moved::Refused(Rejected::StaleFence));
    let told = Some((at(41), Outcome::Lost { why }));
    assert_eq!(late().await, [Some((at(5), OK)), None, told]);
}

/// D4: a probe's "no" counts only when nothing can be on its way any more; a person's does at once, and everything else is refused.
pub async fn what_is_uncertain_is_resolved_by_a_probe_or_a_person(store: Subject, dial: Dial) {
    let once = |name: &str| planned(name, "1", Repeat::Once);
    let receipt = accept_effects(&store, "k", vec![once("a"), once("b"), once("c")]).await;
    let claims = claim(&store).await;
    let timeout = Span::from_secs(10);
    let by_probe = async |effect, resolution, asked| {
        let probe = Resolver::Probe { timeout, asked };
        resolve(&store, effect, resolution, probe).await.moved
    };
    let held = by_probe(claims[0].id, Resolution::Applied, at(0)).await;
    assert!(
        matches!(held, Moved::Refused(Rejected::InFlight { .. })),
        "{held:?}"
    );
    for effect in &claims {
        done(&store, effect, START).await;
        done(&store, effect, ended(BROKEN, Next::Exhausted)).await;
    }
    let until = at(30) + timeout + PROBE_GRACE;
    let before = until - Span::from_micros(1);
    dial.set(before);
    let early = by_probe(claims[0].id, Resolution::NotApplied, until).await;
    assert_eq!(early, Moved::Refused(Rejected::TooEarly { until }));
    dial.set(until);
    // Its answer is about when it was asked.
    let early = by_probe(claims[0].id, Resolution::NotApplied, before).await;
    assert_eq!(early, Moved::Refused(Rejected::TooEarly { until }));
    let answers = [
        (
            Resolution::NotApplied,
            Did::Waits { until },
            EffectState::Pending,
        ),
        (Resolution::Applied, Did::Done, EffectState::Done),
        (
            Resolution::Skip,
            Did::Skipped(SkipReason::Operator),
            EffectState::Skipped,
        ),
    ];
    for (effect, (resolution, did, state)) in claims.iter().zip(answers) {
        let moved = by_probe(effect.id, resolution, until).await;
        assert!(
            matches!(moved, Moved::Done(change) if change.did == did),
            "{moved:?}"
        );
        let read = effect_detail(&store, effect).await.effect.record.state;
        assert_eq!(read, state);
    }
    let twice = by_probe(claims[1].id, Resolution::Applied, until).await;
    assert_eq!(twice, Moved::Refused(Rejected::AlreadyDone));
    let event = detail(&store, receipt.event).await.event;
    assert_eq!(event.status, EventStatus::Pending);
    let record = claim_one(&store).await.record;
    assert!(!record.ambiguous && record.attempts_in_pass() == 0);
}

/// What was never there cannot be resolved.
pub async fn an_unknown_effect_cannot_be_resolved(store: Subject, _dial: Dial) {
    let unknown = EffectId::from_bytes([9; 16]);
    let resolved = resolve(&store, unknown, Resolution::Applied, Resolver::Person).await;
    let nothing = Advanced {
        moved: Moved::NoEffect,
        opened: Vec::new(),
    };
    assert_eq!(resolved, nothing);
}

/// D3: a stricter class counts from now on, and what may have been applied under the old one is held back.
pub async fn a_stricter_class_holds_back_what_may_have_been_applied(store: Subject, _dial: Dial) {
    let effects = vec![
        planned("fresh", "1", Repeat::Converges),
        planned("unsure", "1", Repeat::Keyed),
        NewEffect {
            after: vec![1],
            lane: "next".into(),
            ..planned("next", "1", Repeat::Keyed)
        },
    ];
    let receipt = accept_effects(&store, "k", effects).await;
    let first = claim(&store).await;
    let unsure = first.iter().find(|effect| &*effect.name == "unsure");
    let unsure = unsure.expect("it is due");
    done(&store, unsure, START).await;
    assert_eq!(
        advance(&store, unsure, Move::Tighten(Repeat::Once)).await,
        Moved::Refused(Rejected::AlreadyStarted)
    );
    done(&store, unsure, ended(BROKEN, Next::At(Span::ZERO))).await;
    let unsure = claim_one(&store).await;
    let fresh = first.iter().find(|effect| &*effect.name == "fresh");
    let fresh = fresh.expect("it is due");
    for effect in [fresh, &unsure] {
        assert_eq!(
            done(&store, effect, Move::Tighten(Repeat::Once)).await,
            [""; 0]
        );
    }
    let record = effect_detail(&store, fresh).await.effect.record;
    assert_eq!(
        (record.repeat, record.state),
        (Repeat::Once, EffectState::Claimed)
    );
    let record = effect_detail(&store, &unsure).await.effect.record;
    assert_eq!(
        (record.repeat, record.state),
        (Repeat::Once, EffectState::Uncertain)
    );
    let event = detail(&store, receipt.event).await.event;
    assert_eq!(event.status, EventStatus::NeedsReview);
    let resolved = resolve(&store, unsure.id, Resolution::Applied, Resolver::Person).await;
    assert_eq!(names(resolved.opened), ["next"]);
}
