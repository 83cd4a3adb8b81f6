//! The life of a guarded key beside its runs: it expires, is forgotten, resolved, swept and listed.

use hapax_ledger::guard::{Body, GuardState, Settlement};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Span;

use super::keys::{GRACE, TTL, answered, claim, ended, record, runs, settle, wants, wants_by};
use super::operator::{ada, asking};
use super::sample::{Dial, Subject, at, reap_all};
use crate::nouns::{
    Asking, AuditFilter, Authority, Before, Changed, KEYS_PER_STEP_MAX, KeyClaim, KeyClaimed,
    KeyFilter, KeyResolution, Page, PageFrom,
};

const EXECUTED: KeyResolution = KeyResolution::Executed { ttl: TTL };

/// A run, as somebody who knows what became of it names it.
type Named = (KeyId, Fence);

async fn resolve(
    store: &Subject,
    (id, fence): Named,
    how: KeyResolution,
    by: Authority,
) -> Changed {
    let resolved = store.resolve_key(id, fence, how, by, "{\"resolved\":1}".into());
    resolved.await.expect("the store resolves")
}

/// A run of this key whose outcome nobody knows.
async fn unknown(store: &Subject, key: &str) -> Named {
    let run = runs(store, wants(key, 1)).await;
    let settled = settle(store, run, ended(Settlement::Unknown, None)).await;
    assert_eq!(settled, Ok(()));
    (run.0, run.1)
}

async fn forgotten(store: &Subject, id: KeyId) -> bool {
    store.key(id).await.expect("the store reads").is_none()
}

/// I2: an answer runs out at once, is said to have for its grace, and then the key is free; whether or not anything was reaped.
pub async fn an_answer_expires_is_said_to_have_and_is_forgotten(store: Subject, dial: Dial) {
    let run = runs(&store, wants("k", 1)).await;
    assert_eq!(settle(&store, run, answered(b"A")).await, Ok(()));
    let moment = Span::from_micros(1);
    let (id, end) = (run.0, at(0) + TTL);
    dial.set(end - moment);
    let said = claim(&store, wants("k", 1)).await;
    assert!(matches!(said, KeyClaimed::Replay { .. }));
    for expired in [end, end + GRACE - moment] {
        dial.set(expired);
        let said = claim(&store, wants("k", 1)).await;
        assert_eq!(said, KeyClaimed::Expired { id });
        assert_eq!(record(&store, id).await.state, GuardState::Completed);
        assert_eq!(reap_all(&store, expired).await.keys, 0);
    }
    dial.set(end + GRACE);
    assert!(forgotten(&store, id).await);
    let again = runs(&store, wants("k", 2)).await;
    assert!(again.1 > run.1 && !again.2);
}

/// I1, H4: what was answered or released goes when its grace is over; what is running or unknown stays for good.
pub async fn what_is_over_is_reaped_and_nothing_else(store: Subject, dial: Dial) {
    let done = runs(&store, wants("done", 1)).await;
    assert_eq!(settle(&store, done, answered(b"A")).await, Ok(()));
    let bare = runs(&store, wants("bare", 1)).await;
    let large = ended(Settlement::Store(Body::NotKept), None);
    assert_eq!(settle(&store, bare, large).await, Ok(()));
    let free = runs(&store, wants("free", 1)).await;
    let released = ended(Settlement::Release, None);
    assert_eq!(settle(&store, free, released).await, Ok(()));
    let held = unknown(&store, "held").await.0;
    let running = runs(&store, wants("running", 1)).await.0;
    let end = at(0) + TTL + GRACE;
    // A clock on the wall that ran ahead reaps nothing early (I2).
    assert_eq!(reap_all(&store, end).await.keys, 0);
    dial.set(end);
    assert_eq!(reap_all(&store, end).await.keys, 3);
    assert_eq!(reap_all(&store, end).await.keys, 0);
    dial.set(end + Span::from_days(5_000));
    assert_eq!(reap_all(&store, end + Span::from_days(5_000)).await.keys, 0);
    for id in [held, running] {
        assert_eq!(record(&store, id).await.state, GuardState::Unknown);
    }
    for id in [done.0, bare.0, free.0] {
        assert!(forgotten(&store, id).await);
    }
    let anew = runs(&store, wants("done", 2)).await;
    assert_ne!(anew.0, done.0);
    let late = settle(&store, done, answered(b"late")).await;
    assert!(late.is_err(), "what is gone is gone");
    let stats = store.stats().await.expect("the store counts");
    assert_eq!((stats.keys, stats.keys_twice), (3, 0));
}

/// Small steps come to an end, beside those of events.
pub async fn many_keys_are_reaped_in_steps(store: Subject, dial: Dial) {
    let many = 1_100;
    let runs = (0..many).map(|number| {
        let (store, wanted) = (store.clone(), wants(&format!("k{number}"), 1));
        async move {
            let run = runs(&store, wanted).await;
            settle(&store, run, answered(b"A")).await
        }
    });
    for settled in super::sample::all(runs).await {
        assert_eq!(settled, Ok(()));
    }
    let end = at(0) + TTL + GRACE;
    dial.set(end);
    assert_eq!(reap_all(&store, end).await.keys, many);
    assert_eq!(store.stats().await.expect("the store counts").keys, 0);
}

/// J1: somebody who knows settles what is unknown; their word is written down, once per request.
pub async fn an_unknown_outcome_is_resolved_both_ways(store: Subject, dial: Dial) {
    let (done, not_done) = (unknown(&store, "a").await, unknown(&store, "b").await);
    dial.set(at(10));
    assert_eq!(
        resolve(&store, done, EXECUTED, asking("1", 1)).await,
        Changed::Done
    );
    let repeated = resolve(&store, done, EXECUTED, asking("1", 1)).await;
    let before = Before::Same("{\"resolved\":1}".into());
    assert_eq!(repeated, Changed::Before(before));
    let other = resolve(&store, not_done, EXECUTED, asking("1", 2)).await;
    assert_eq!(other, Changed::Before(Before::Other));
    assert_eq!(
        claim(&store, wants("a", 1)).await,
        KeyClaimed::NotKept {
            id: done.0,
            answer: None,
            expires_at: at(10) + TTL,
        }
    );
    let freed = resolve(&store, not_done, KeyResolution::NotExecuted, ada()).await;
    assert_eq!(freed, Changed::Done);
    let read = record(&store, not_done.0).await;
    assert_eq!(
        (read.state, read.ended_at),
        (GuardState::Released, Some(ada().at))
    );
    assert!(!runs(&store, wants("b", 2)).await.2);
    let page = Page {
        limit: 10,
        from: PageFrom::Newest,
    };
    let log = store.audit(AuditFilter::default(), page).await;
    let log = log.expect("the store lists").rows;
    let said: Vec<(&str, &str)> = log
        .iter()
        .map(|record| (record.action.as_str(), record.subject.as_str()))
        .collect();
    let (done, not_done) = (done.0.to_string(), not_done.0.to_string());
    assert_eq!(said, [("key.resolve", &*not_done), ("key.resolve", &*done)]);
}

/// E4, H1: what somebody knows of one run frees no key that has run again since, and says nothing of what became of that.
pub async fn what_is_known_of_one_run_does_not_resolve_the_next(store: Subject, dial: Dial) {
    let first = unknown(&store, "k").await;
    let free = KeyResolution::NotExecuted;
    let said = resolve(&store, first, free, asking("1", 1)).await;
    assert_eq!(said, Changed::Done);
    let second = unknown(&store, "k").await;
    assert!(second.0 == first.0 && second.1 > first.1);
    for how in [free, EXECUTED] {
        assert_eq!(resolve(&store, first, how, ada()).await, Changed::NotFound);
        let state = record(&store, second.0).await.state;
        assert_eq!(state, GuardState::Unknown);
    }
    // The request that freed the key hears what it heard, whatever has run since.
    let again = resolve(&store, first, free, asking("1", 1)).await;
    assert_eq!(
        again,
        Changed::Before(Before::Same("{\"resolved\":1}".into()))
    );
    dial.set(at(1));
    assert_eq!(resolve(&store, second, free, ada()).await, Changed::Done);
    assert!(!runs(&store, wants("k", 1)).await.2);
}

/// Nobody resolves what is known, what is still running, or what is not there; and nothing is written down then.
pub async fn only_what_is_unknown_is_resolved(store: Subject, dial: Dial) {
    let answered_key = runs(&store, wants("a", 1)).await;
    assert_eq!(settle(&store, answered_key, answered(b"A")).await, Ok(()));
    let running = runs(&store, wants("r", 1)).await;
    for how in [EXECUTED, KeyResolution::NotExecuted] {
        for run in [answered_key, running] {
            let refused = resolve(&store, (run.0, run.1), how, ada()).await;
            assert_eq!(refused, Changed::NotFound);
        }
    }
    // Lost, and somebody knows before the sweep has come by.
    dial.set(at(35));
    let resolved = resolve(
        &store,
        (running.0, running.1),
        KeyResolution::NotExecuted,
        ada(),
    )
    .await;
    assert_eq!(resolved, Changed::Done);
    let late = settle(&store, running, answered(b"late")).await;
    assert!(late.is_err(), "whoever ran it was given up");
    let page = Page {
        limit: 10,
        from: PageFrom::Newest,
    };
    let log = store.audit(AuditFilter::default(), page).await;
    assert_eq!(log.expect("the store lists").rows.len(), 1);
}

/// H4: the sweep finds every run that was lost, in steps, and no other.
pub async fn the_sweep_finds_what_was_lost(store: Subject, dial: Dial) {
    let many = KEYS_PER_STEP_MAX + 10;
    let mut lost = Vec::new();
    for number in 0..many {
        lost.push(runs(&store, wants(&format!("k{number}"), 1)).await.0);
    }
    dial.set(at(10));
    let alive = runs(&store, wants("alive", 1)).await;
    let done = runs(&store, wants("done", 1)).await;
    assert_eq!(settle(&store, done, answered(b"A")).await, Ok(()));
    dial.set(at(34));
    assert_eq!(store.lose_keys().await.expect("it sweeps"), []);
    dial.set(at(35));
    let mut found = store.lose_keys().await.expect("it sweeps");
    assert_eq!(found.len(), KEYS_PER_STEP_MAX);
    found.extend(store.lose_keys().await.expect("it sweeps"));
    found.sort();
    lost.sort();
    assert_eq!(found, lost);
    assert_eq!(store.lose_keys().await.expect("it sweeps"), []);
    assert_eq!(record(&store, alive.0).await.state, GuardState::Running);
}

/// A clock that is set back hides nothing from the sweep: what begins after that is found when its lease has ended, and so is what began
/// before it.
pub async fn the_sweep_finds_what_was_lost_after_the_clock_was_set_back(
    store: Subject,
    dial: Dial,
) {
    dial.set(at(1000));
    let before = runs(&store, wants("before", 1)).await.0;
    dial.set(at(900));
    assert_eq!(store.lose_keys().await.expect("it sweeps"), []);
    dial.set(at(500));
    assert_eq!(store.lose_keys().await.expect("it sweeps"), []);
    let after = runs(&store, wants("after", 1)).await.0;
    dial.set(at(600));
    assert_eq!(store.lose_keys().await.expect("it sweeps"), [after]);
    dial.set(at(2000));
    assert_eq!(store.lose_keys().await.expect("it sweeps"), [before]);
    assert_eq!(store.lose_keys().await.expect("it sweeps"), []);
    // Set back between two looks, with a run that came to its end in between.
    dial.set(at(100));
    let between = runs(&store, wants("between", 1)).await.0;
    dial.set(at(200));
    assert_eq!(store.lose_keys().await.expect("it sweeps"), [between]);
}

async fn listed(store: &Subject, filter: &KeyFilter, limit: u32) -> Vec<KeyId> {
    let mut from = PageFrom::Newest;
    let mut found = Vec::new();
    loop {
        let page = store.keys(filter.clone(), Page { limit, from }).await;
        let page = page.expect("the store lists");
        found.extend(page.rows.iter().map(|record| record.id));
        match page.next {
            Some(next) => from = PageFrom::OlderThan(next),
            None => return found,
        }
    }
}

/// Nine keys, one a second: of each three one is answered, one unknown and one running.
async fn nine_keys(store: &Subject, dial: &Dial) -> Vec<KeyId> {
    let mut ids = Vec::new();
    for number in 0..9_i64 {
        dial.set(at(number));
        let wanted = KeyClaim {
            at: at(number),
            guard: if number < 5 { "payments" } else { "orders" }.into(),
            principal: if number % 2 == 0 { "shop" } else { "till" }.into(),
            ..wants(&format!("k{number}"), 1)
        };
        let run = runs(store, wanted).await;
        let ending = match number % 3 {
            0 => Some(answered(b"A")),
            1 => Some(ended(Settlement::Unknown, None)),
            _ => None,
        };
        if let Some(ending) = ending {
            assert_eq!(settle(store, run, ending).await, Ok(()));
        }
        ids.push(run.0);
    }
    ids
}

fn in_state(state: GuardState) -> KeyFilter {
    KeyFilter {
        state: Some(state),
        ..KeyFilter::default()
    }
}

/// Pages meet without gap or overlap, newest first.
pub async fn pages_of_keys_meet_both_ways(store: Subject, dial: Dial) {
    let ids = nine_keys(&store, &dial).await;
    let of = |numbers: &[usize]| -> Vec<KeyId> { numbers.iter().map(|n| ids[*n]).collect() };
    for limit in [1, 2, 9, 250] {
        let found = listed(&store, &KeyFilter::default(), limit).await;
        assert_eq!(found, of(&[8, 7, 6, 5, 4, 3, 2, 1, 0]));
        let unknown = listed(&store, &in_state(GuardState::Unknown), limit).await;
        assert_eq!(unknown, of(&[7, 4, 1]));
    }
    let newer = |filter| {
        let (store, from) = (store.clone(), PageFrom::NewerThan(ids[4]));
        async move {
            let page = store.keys(filter, Page { limit: 3, from }).await;
            let rows = page.expect("the store lists").rows;
            rows.iter().map(|record| record.id).collect::<Vec<KeyId>>()
        }
    };
    assert_eq!(newer(KeyFilter::default()).await, of(&[7, 6, 5]));
    assert_eq!(newer(in_state(GuardState::Running)).await, of(&[8, 5]));
}

/// Each filter narrows to what fits.
pub async fn keys_are_listed_by_every_filter(store: Subject, dial: Dial) {
    let ids = nine_keys(&store, &dial).await;
    let guard = KeyFilter {
        guard: Some("orders".into()),
        ..KeyFilter::default()
    };
    let principal = KeyFilter {
        principal: Some("till".into()),
        ..KeyFilter::default()
    };
    let key = KeyFilter {
        key: Some("k4".into()),
        ..KeyFilter::default()
    };
    let both = KeyFilter {
        principal: Some("till".into()),
        ..in_state(GuardState::Unknown)
    };
    let table: [(KeyFilter, &[usize]); 7] = [
        (guard, &[8, 7, 6, 5]),
        (principal, &[7, 5, 3, 1]),
        (key, &[4]),
        (both, &[7, 1]),
        (in_state(GuardState::Completed), &[6, 3, 0]),
        (in_state(GuardState::Running), &[8, 5, 2]),
        (in_state(GuardState::Released), &[]),
    ];
    for (filter, numbers) in table {
        let expected: Vec<KeyId> = numbers.iter().map(|n| ids[*n]).collect();
        assert_eq!(listed(&store, &filter, 2).await, expected, "{filter:?}");
    }
}

/// I2: what was lost is listed as unknown and what is free is not listed, whether or not anybody has swept or reaped.
pub async fn keys_are_listed_as_they_stand_now(store: Subject, dial: Dial) {
    let ids = nine_keys(&store, &dial).await;
    let of = |numbers: &[usize]| -> Vec<KeyId> { numbers.iter().map(|n| ids[*n]).collect() };
    // Two of the three that were running.
    dial.set(at(41));
    let unknown = listed(&store, &in_state(GuardState::Unknown), 2).await;
    assert_eq!(unknown, of(&[7, 5, 4, 2, 1]));
    let running = listed(&store, &in_state(GuardState::Running), 2).await;
    assert_eq!(running, of(&[8]));
    // Two of the three that were answered.
    dial.set(at(3) + TTL + GRACE);
    let completed = listed(&store, &in_state(GuardState::Completed), 2).await;
    assert_eq!(completed, of(&[6]));
    let all = listed(&store, &KeyFilter::default(), 2).await;
    assert_eq!(all, of(&[8, 7, 6, 5, 4, 2, 1]));
}

/// A key on a route that was declared repeatable is run again however often its outcome is unknown.
pub async fn a_repeatable_route_runs_again_after_every_unknown_end(store: Subject, _dial: Dial) {
    use hapax_ledger::guard::OnUnknown;
    let mut last = None;
    for number in 0..3 {
        let run = runs(&store, wants_by("k", OnUnknown::Keyed)).await;
        assert_eq!(run.2, number > 0);
        assert!(last.is_none_or(|last| run.1 > last));
        last = Some(run.1);
        let settled = settle(&store, run, ended(Settlement::Unknown, None)).await;
        assert_eq!(settled, Ok(()));
    }
}

/// H1: a claim that is asked for once more, since nobody knows whether it was heard, is the run that it began; and nobody else's is.
pub async fn a_claim_that_was_in_doubt_is_known_again(store: Subject, dial: Dial) {
    let again = |wanted: KeyClaim| KeyClaim {
        asking: Asking::Again,
        ..wanted
    };
    // It was not heard: it is now.
    let run = runs(&store, again(wants("k", 1))).await;
    assert_eq!(runs(&store, again(wants("k", 1))).await, run);
    let running = |said: &KeyClaimed| matches!(said, KeyClaimed::InProgress { .. });
    let other_node = KeyClaim {
        node: "n2".into(),
        ..wants("k", 1)
    };
    let other_time = KeyClaim {
        at: at(0) + Span::from_micros(1),
        ..wants("k", 1)
    };
    for other in [again(other_node), again(other_time), wants("k", 1)] {
        let said = claim(&store, other.clone()).await;
        assert!(running(&said), "{other:?}: {said:?}");
    }
    let said = claim(&store, again(wants("k", 2))).await;
    assert_eq!(said, KeyClaimed::Mismatch { id: run.0 });
    // A run that ended is not begun anew.
    assert_eq!(settle(&store, run, answered(b"A")).await, Ok(()));
    let said = claim(&store, again(wants("k", 1))).await;
    assert!(matches!(said, KeyClaimed::Replay { .. }), "{said:?}");
    // Where a run was before, it may have an unknown outcome.
    let freed = runs(&store, wants("freed", 1)).await;
    let released = ended(Settlement::Release, None);
    assert_eq!(settle(&store, freed, released).await, Ok(()));
    let second = runs(&store, wants("freed", 1)).await;
    let known = runs(&store, again(wants("freed", 1))).await;
    assert_eq!((known.0, known.1, known.2), (second.0, second.1, true));
    // A run that counts as lost is lost, whoever began it.
    dial.set(at(1_000));
    let said = claim(&store, again(wants("freed", 1))).await;
    assert_eq!(said, KeyClaimed::OutcomeUnknown { id: second.0 });
}
