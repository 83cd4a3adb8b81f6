//! Guarded keys: claimed by one request, run once, and answered again from what was kept (CONTRACT 5, as a store sees it).

use bytes::Bytes;
use hapax_ledger::fingerprint::Fingerprint;
use hapax_ledger::guard::{Body, GuardRejected, GuardState, OnUnknown, Settlement};
use hapax_ledger::id::{KeyId, RawId};
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};

use super::sample::{Dial, Subject, all, at};
use crate::nouns::{Asking, KeyClaim, KeyClaimed, KeyEnding, KeyRecord};

/// How long a run may take.
pub const LEASE: Span = Span::from_secs(30);
/// How long an answer is kept.
pub const TTL: Span = Span::from_hours(72);
/// How long an expired key is said to have expired.
pub const GRACE: Span = Span::from_hours(24);

/// A request with this key and body.
pub fn wants(key: &str, body: u8) -> KeyClaim {
    KeyClaim {
        guard: "payments".into(),
        principal: "shop".into(),
        method: "POST".into(),
        path: "/charges".into(),
        key: key.into(),
        key_hash: KeyHash::of(KeyKind::Guard, "payments/shop/POST/charges", key),
        fingerprint: Fingerprint::from_bytes([body; 32]),
        on_unknown: OnUnknown::Hold,
        lease: LEASE,
        ttl: TTL,
        grace: GRACE,
        node: "n1".into(),
        at: at(0),
        asking: Asking::First,
    }
}

/// The same on a route with another rule for unknown outcomes.
pub fn wants_by(key: &str, on_unknown: OnUnknown) -> KeyClaim {
    KeyClaim {
        on_unknown,
        ..wants(key, 1)
    }
}

/// What becomes of a request.
pub async fn claim(store: &Subject, claim: KeyClaim) -> KeyClaimed {
    store.claim_key(claim).await.expect("the store claims")
}

/// It runs, as it should: its key, its fence, and whether an earlier run is unknown.
pub async fn runs(store: &Subject, wanted: KeyClaim) -> (KeyId, Fence, bool) {
    match claim(store, wanted).await {
        KeyClaimed::Run { id, fence, again } => (id, fence, again),
        other => panic!("it should run: {other:?}"),
    }
}

/// A run that ended so, with this status.
pub fn ended(settlement: Settlement, answer: Option<&'static [u8]>) -> KeyEnding {
    KeyEnding {
        settlement,
        status: answer.map(|_| 201),
        answer: answer.map(Bytes::from_static),
        ttl: TTL,
        error: None,
        at: at(2),
        asking: Asking::First,
    }
}

/// Said once more: nobody knows whether it was heard.
pub fn said_again(ending: KeyEnding) -> KeyEnding {
    KeyEnding {
        asking: Asking::Again,
        ..ending
    }
}

/// Answered, and kept whole.
pub fn answered(answer: &'static [u8]) -> KeyEnding {
    ended(Settlement::Store(Body::Kept), Some(answer))
}

/// Settles a run.
pub async fn settle(
    store: &Subject,
    (id, fence, _): (KeyId, Fence, bool),
    ending: KeyEnding,
) -> Result<(), GuardRejected> {
    let settled = store.settle_key(id, fence, ending).await;
    let expires_at = settled.expect("the store settles")?;
    // It says what operators see.
    let seen = store.key(id).await.expect("the store reads");
    if let Some(record) = seen {
        assert_eq!(record.expires_at, expires_at);
    }
    Ok(())
}

/// The key, as operators see it.
pub async fn record(store: &Subject, id: KeyId) -> KeyRecord {
    let key = store.key(id).await.expect("the store reads");
    key.expect("the key is there")
}

async fn extend(store: &Subject, id: KeyId, fence: Fence) -> Result<(), GuardRejected> {
    let extended = store.extend_key(id, fence, LEASE).await;
    extended.expect("the store extends")
}

/// H1, H3: the first runs; a retry gets the very bytes that were kept, whatever they are.
pub async fn an_answer_is_given_again_byte_by_byte(store: Subject, dial: Dial) {
    let run = runs(&store, wants("k", 1)).await;
    assert!(run.1 > Fence::NONE && !run.2);
    dial.set(at(2));
    static BYTES: &[u8] = b"\0\xff\x80 {\"id\":\"ch_1\"}\r\n\0";
    assert_eq!(settle(&store, run, answered(BYTES)).await, Ok(()));
    for moment in [3, 3_000] {
        dial.set(at(moment));
        assert_eq!(
            claim(&store, wants("k", 1)).await,
            KeyClaimed::Replay {
                id: run.0,
                answer: Bytes::from_static(BYTES),
                expires_at: at(2) + TTL,
            }
        );
    }
    let empty = runs(&store, wants("empty", 1)).await;
    assert_eq!(settle(&store, empty, answered(b"")).await, Ok(()));
    assert!(matches!(
        claim(&store, wants("empty", 1)).await,
        KeyClaimed::Replay { answer, .. } if answer.is_empty()
    ));
}

/// All that is known of a key is read back.
pub async fn a_key_is_read_back_whole(store: Subject, dial: Dial) {
    let odd = KeyClaim {
        key: "k \"1\" \\ \u{1f511}".into(),
        ..wants("odd", 1)
    };
    let run = runs(&store, odd.clone()).await;
    let expected = KeyRecord {
        id: run.0,
        guard: "payments".into(),
        principal: "shop".into(),
        method: "POST".into(),
        path: "/charges".into(),
        key: odd.key.clone(),
        state: GuardState::Running,
        runs: 1,
        fence: run.1,
        node: "n1".into(),
        first_at: at(0),
        started_at: at(0),
        ended_at: None,
        status: None,
        error: None,
        expires_at: at(0) + TTL,
    };
    assert_eq!(record(&store, run.0).await, expected);
    dial.set(at(2));
    let failed = KeyEnding {
        error: Some("connection reset".into()),
        ..ended(Settlement::Unknown, None)
    };
    assert_eq!(settle(&store, run, failed).await, Ok(()));
    let expected = KeyRecord {
        state: GuardState::Unknown,
        ended_at: Some(at(2)),
        error: Some("connection reset".into()),
        expires_at: at(2) + TTL,
        ..expected
    };
    assert_eq!(record(&store, run.0).await, expected);
    // Where callers share their keys, the latest counts.
    let later = KeyClaim {
        on_unknown: OnUnknown::Keyed,
        principal: "till".into(),
        path: "/charges/".into(),
        node: "n2".into(),
        at: at(5),
        ..odd
    };
    dial.set(at(5));
    let again = runs(&store, later).await;
    assert_eq!((again.0, again.2), (run.0, true));
    let expected = KeyRecord {
        state: GuardState::Running,
        principal: "till".into(),
        path: "/charges/".into(),
        runs: 2,
        fence: again.1,
        node: "n2".into(),
        started_at: at(5),
        ended_at: None,
        error: None,
        expires_at: at(5) + TTL,
        ..expected
    };
    assert_eq!(record(&store, run.0).await, expected);
}

/// H2: another request under the key is refused in every state that holds it, also while the first is running.
pub async fn another_request_under_the_key_is_refused_throughout(store: Subject, dial: Dial) {
    let run = runs(&store, wants("k", 1)).await;
    let id = run.0;
    let refused = KeyClaimed::Mismatch { id };
    assert_eq!(claim(&store, wants("k", 2)).await, refused);
    dial.set(at(35));
    assert_eq!(claim(&store, wants("k", 2)).await, refused, "lost");
    assert_eq!(settle(&store, run, answered(b"A")).await, Ok(()));
    assert_eq!(claim(&store, wants("k", 2)).await, refused);
    dial.set(at(35) + TTL);
    assert_eq!(claim(&store, wants("k", 2)).await, refused, "expired");
    let other = KeyClaim {
        key_hash: KeyHash::of(KeyKind::Guard, "another caller", "k"),
        principal: "another".into(),
        ..wants("k", 2)
    };
    assert_ne!(runs(&store, other).await.0, id, "H3: keys are per caller");
}

/// H1: a request that is still running is not run a second time; its caller hears for how long at most.
pub async fn a_running_request_is_in_progress_until_it_is_lost(store: Subject, dial: Dial) {
    let run = runs(&store, wants("k", 1)).await;
    let id = run.0;
    let in_progress = |until: Time, seconds| KeyClaimed::InProgress {
        id,
        until,
        remaining: Span::from_secs(seconds),
    };
    dial.set(at(1));
    assert_eq!(claim(&store, wants("k", 1)).await, in_progress(at(35), 34));
    dial.set(at(20));
    assert_eq!(extend(&store, id, run.1).await, Ok(()));
    dial.set(at(54));
    assert_eq!(claim(&store, wants("k", 1)).await, in_progress(at(55), 1));
    assert_eq!(
        extend(&store, id, run.1).await,
        Err(GuardRejected::LeaseOver)
    );
    dial.set(at(55));
    assert_eq!(
        claim(&store, wants("k", 1)).await,
        KeyClaimed::OutcomeUnknown { id }
    );
}

/// A lost run is held, or run again where the route says that it may be.
pub async fn a_lost_run_is_read_by_the_routes_rule(store: Subject, dial: Dial) {
    for on_unknown in OnUnknown::ALL {
        let wanted = || wants_by(on_unknown.word(), *on_unknown);
        dial.set(at(0));
        let first = runs(&store, wanted()).await;
        dial.set(at(34));
        let waits = claim(&store, wanted()).await;
        assert!(matches!(waits, KeyClaimed::InProgress { .. }));
        dial.set(at(35));
        match on_unknown {
            OnUnknown::Hold => {
                let id = first.0;
                for _ in 0..2 {
                    let held = claim(&store, wanted()).await;
                    assert_eq!(held, KeyClaimed::OutcomeUnknown { id });
                }
                assert_eq!(record(&store, id).await.state, GuardState::Unknown);
            }
            OnUnknown::Keyed | OnUnknown::Atomic => {
                let second = runs(&store, wanted()).await;
                assert!(second.0 == first.0 && second.1 > first.1 && second.2);
                // C2: the first one wakes up, and is too late.
                let late = settle(&store, first, answered(b"late")).await;
                assert_eq!(late, Err(GuardRejected::StaleFence));
                assert_eq!(settle(&store, second, answered(b"B")).await, Ok(()));
                let said = claim(&store, wanted()).await;
                assert!(matches!(said, KeyClaimed::Replay { answer, .. } if answer == "B"));
            }
        }
    }
}

/// An answer that comes late is the answer, as long as nobody has run again.
pub async fn a_late_answer_counts_until_somebody_ran_again(store: Subject, dial: Dial) {
    let run = runs(&store, wants("k", 1)).await;
    dial.set(at(40));
    assert_eq!(store.lose_keys().await.expect("it sweeps"), [run.0]);
    assert_eq!(record(&store, run.0).await.state, GuardState::Unknown);
    assert_eq!(settle(&store, run, answered(b"A")).await, Ok(()));
    let said = claim(&store, wants("k", 1)).await;
    assert!(matches!(said, KeyClaimed::Replay { answer, .. } if answer == "A"));
    let twice = settle(&store, run, answered(b"B")).await;
    assert_eq!(twice, Err(GuardRejected::StaleFence));
    assert_eq!(
        extend(&store, run.0, run.1).await,
        Err(GuardRejected::StaleFence)
    );
}

/// H3: whoever does not know whether an ending was heard says it again, and hears that it was. It changes nothing.
pub async fn an_ending_in_doubt_is_said_again(store: Subject, dial: Dial) {
    for (key, settlement) in [
        ("kept", Settlement::Store(Body::Kept)),
        ("not kept", Settlement::Store(Body::NotKept)),
        ("released", Settlement::Release),
        ("unknown", Settlement::Unknown),
    ] {
        dial.set(at(0));
        let run = runs(&store, wants(key, 1)).await;
        let ending = |answer| {
            let stored = matches!(settlement, Settlement::Store(_));
            said_again(ended(settlement, stored.then_some(answer)))
        };
        // As if the first time had not been heard.
        assert_eq!(settle(&store, run, ending(b"A")).await, Ok(()), "{key}");
        let heard = record(&store, run.0).await;
        dial.set(at(9));
        assert_eq!(settle(&store, run, ending(b"B")).await, Ok(()), "{key}");
        if settlement != Settlement::Unknown {
            assert_eq!(record(&store, run.0).await, heard, "{key}");
            let other = match settlement {
                Settlement::Release => answered(b"C"),
                _ => ended(Settlement::Release, None),
            };
            let other = settle(&store, run, said_again(other)).await;
            assert_eq!(other, Err(GuardRejected::StaleFence), "{key}");
        }
    }
    let said = claim(&store, wants("kept", 1)).await;
    assert!(matches!(said, KeyClaimed::Replay { answer, .. } if answer == "A"));
    // C2: another run's ending is not its own.
    let old = runs(&store, wants("again", 1)).await;
    let released = ended(Settlement::Release, None);
    assert_eq!(settle(&store, old, released).await, Ok(()));
    let new = runs(&store, wants("again", 1)).await;
    assert_eq!(settle(&store, new, answered(b"A")).await, Ok(()));
    let late = settle(&store, old, said_again(answered(b"A"))).await;
    assert_eq!(late, Err(GuardRejected::StaleFence));
}

/// What provably did not run frees the key at once, for any request; each run has a higher fence (C1).
pub async fn a_released_key_is_free_and_its_fence_rises(store: Subject, _dial: Dial) {
    let mut fence = Fence::NONE;
    let mut id = None;
    for body in 1..=4 {
        let run = runs(&store, wants("k", body)).await;
        assert!(run.1 > fence && !run.2, "a released run is not unknown");
        assert!(id.is_none_or(|id| id == run.0));
        (id, fence) = (Some(run.0), run.1);
        let released = ended(Settlement::Release, None);
        assert_eq!(settle(&store, run, released).await, Ok(()));
        let read = record(&store, run.0).await;
        assert_eq!(
            (read.state, read.runs),
            (GuardState::Released, u32::from(body))
        );
    }
    // C2: nobody has the fence of another run, or of no run at all.
    let run = runs(&store, wants("k", 1)).await;
    for fence in [Fence::NONE, fence, run.1.next(0)] {
        let stale = settle(&store, (run.0, fence, false), answered(b"A")).await;
        assert_eq!(stale, Err(GuardRejected::StaleFence));
    }
    assert_eq!(record(&store, run.0).await.state, GuardState::Running);
}

/// Too large to keep: never run again, and what was kept of it is given back.
pub async fn an_answer_that_was_not_kept_is_said_to_be(store: Subject, _dial: Dial) {
    let run = runs(&store, wants("k", 1)).await;
    let large = ended(Settlement::Store(Body::NotKept), Some(b"201"));
    assert_eq!(settle(&store, run, large).await, Ok(()));
    assert_eq!(
        claim(&store, wants("k", 1)).await,
        KeyClaimed::NotKept {
            id: run.0,
            answer: Some(Bytes::from_static(b"201")),
            expires_at: at(0) + TTL,
        }
    );
    let read = record(&store, run.0).await;
    assert_eq!((read.state, read.status), (GuardState::NotKept, Some(201)));
}

/// What ran without an answer leaves none of an earlier run behind.
pub async fn a_new_run_leaves_no_old_answer(store: Subject, dial: Dial) {
    let first = runs(&store, wants("k", 1)).await;
    assert_eq!(settle(&store, first, answered(b"old")).await, Ok(()));
    dial.set(at(0) + TTL + GRACE);
    let second = runs(&store, wants("k", 2)).await;
    let bare = ended(Settlement::Store(Body::NotKept), None);
    assert_eq!(settle(&store, second, bare).await, Ok(()));
    let said = claim(&store, wants("k", 2)).await;
    assert!(matches!(said, KeyClaimed::NotKept { answer: None, .. }));
}

/// H1: of two hundred at once one runs, and the others hear of it.
pub async fn two_hundred_at_once_run_once(store: Subject, _dial: Dial) {
    let claims = (0..200).map(|_| {
        let store = store.clone();
        async move { claim(&store, wants("k", 1)).await }
    });
    let said = all(claims).await;
    let ran: Vec<KeyId> = said
        .iter()
        .filter_map(|said| match said {
            KeyClaimed::Run { id, .. } => Some(*id),
            _ => None,
        })
        .collect();
    let [id] = ran.as_slice() else {
        panic!("{} ran", ran.len());
    };
    let waiting =
        |said: &&KeyClaimed| matches!(said, KeyClaimed::InProgress { id: of, .. } if of == id);
    assert_eq!(said.iter().filter(waiting).count(), 199);
    // And once more over a key that is there: several of several keys, each of them free.
    let released = |key: u32| {
        let store = store.clone();
        async move {
            let run = runs(&store, wants(&format!("r{key}"), 1)).await;
            settle(&store, run, ended(Settlement::Release, None)).await
        }
    };
    assert_eq!(all((0..10).map(released)).await, [Ok(()); 10]);
    let claims = (0..200).map(|number| {
        let store = store.clone();
        let wanted = wants(&format!("r{}", number % 10), 1);
        async move { claim(&store, wanted).await }
    });
    let said = all(claims).await;
    let runs = said
        .iter()
        .filter(|said| matches!(said, KeyClaimed::Run { .. }));
    assert_eq!(runs.count(), 10);
    let stats = store.stats().await.expect("the store counts");
    assert_eq!((stats.keys, stats.keys_twice), (11, 0));
}

/// Ids that were never given name nothing.
pub async fn a_key_that_was_never_given_is_nobodys(store: Subject, _dial: Dial) {
    let run = runs(&store, wants("k", 1)).await;
    let row = run.0.0.row();
    let (shard, millis) = (run.0.0.shard(), at(0));
    for nobody in [
        RawId::new(millis, shard, row + 1),
        RawId::new(millis + Span::from_millis(1), shard, row),
    ] {
        let nobody = KeyId(nobody);
        assert_eq!(store.key(nobody).await.expect("the store reads"), None);
        let stale = settle(&store, (nobody, run.1, false), answered(b"A")).await;
        assert_eq!(stale, Err(GuardRejected::StaleFence));
        assert_eq!(
            extend(&store, nobody, run.1).await,
            Err(GuardRejected::StaleFence)
        );
    }
}
