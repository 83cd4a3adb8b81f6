//! What is kept beside the ledger: tokens, the audit log, replays.

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EventId, RawId, ReplayId, TokenId};
use hapax_ledger::time::Span;

use super::operator::{actions, ada, asking, carried, fitting, log, page};
use super::sample::{Subject, accept, all, at};
use crate::catalog::TOKENS_PER_STEP;
use crate::nouns::{
    AuditFilter, Authority, Before, Changed, Decision, EventFilter, PageFrom, Replay,
    ReplayProgress, ReplayState, Role, Token,
};

fn token(number: u64, name: &str) -> Token {
    Token {
        id: TokenId(RawId::new(at(number as i64), 0, number)),
        name: name.into(),
        role: Role::Operator,
        app: Some("app_1".into()),
        hash: [number as u8; 32],
        created_at: at(number as i64),
        expires_at: Some(at(1_000)),
        last_used_at: None,
        revoked_at: None,
    }
}

async fn create(store: &Subject, token: &Token, by: Authority) -> Changed {
    let created = store.create_token(token.clone(), by, "{\"made\":1}".into());
    created.await.expect("the store keeps it")
}

async fn revoke(store: &Subject, id: TokenId, by: Authority) -> Changed {
    let revoked = store.revoke_token(id, by, "{}".into()).await;
    revoked.expect("the store changes it")
}

async fn tokens(store: &Subject) -> Vec<Token> {
    store.tokens().await.expect("the store lists")
}

fn replay(number: u64) -> Replay {
    Replay {
        id: ReplayId(RawId::new(at(number as i64), 0, number)),
        filter: EventFilter::default(),
        actor: "ada".into(),
        reason: "after the outage".into(),
        created_at: at(number as i64),
        dry_run: false,
        rate: None,
        task: None,
        state: ReplayState::Running,
        progress: ReplayProgress::default(),
    }
}

async fn start(store: &Subject, replay: &Replay) -> Changed {
    let started = store.start_replay(replay.clone(), ada(), "{}".into());
    started.await.expect("the store keeps it")
}

async fn read(store: &Subject, replay: &Replay) -> Replay {
    let read = store.replay(replay.id).await.expect("the store reads");
    read.expect("the replay is there")
}

/// J1: a token comes back whole, newest first, and its making is written down.
pub async fn tokens_come_back_whole_and_newest_first(store: Subject) {
    assert_eq!(tokens(&store).await, []);
    let plain = Token {
        role: Role::Viewer,
        app: None,
        expires_at: None,
        ..token(2, "böb \" \\")
    };
    let first = token(1, "ada");
    assert_eq!(create(&store, &first, ada()).await, Changed::Done);
    assert_eq!(create(&store, &plain, ada()).await, Changed::Done);
    assert_eq!(tokens(&store).await, [plain.clone(), first.clone()]);
    let records = log(&store).await;
    assert_eq!(records[0].action, "token.create");
    assert_eq!(records[0].subject, first.id.to_string());
    assert_eq!(records[1].subject, plain.id.to_string());
    assert_eq!(records[1].detail, "{\"made\":1}");
}

/// A name is taken until its token is revoked; a revoked token stays and keeps its end.
pub async fn a_name_belongs_to_one_token_that_counts(store: Subject) {
    let first = token(1, "ci");
    create(&store, &first, ada()).await;
    let second = token(2, "ci");
    assert_eq!(create(&store, &second, ada()).await, Changed::NameTaken);
    assert_eq!(tokens(&store).await, std::slice::from_ref(&first));
    let stranger = token(9, "x").id;
    assert_eq!(revoke(&store, stranger, ada()).await, Changed::NotFound);
    assert_eq!(revoke(&store, first.id, ada()).await, Changed::Done);
    assert_eq!(revoke(&store, first.id, ada()).await, Changed::NotFound);
    assert_eq!(create(&store, &second, ada()).await, Changed::Done);
    let revoked = Token {
        revoked_at: Some(ada().at),
        ..first
    };
    assert_eq!(tokens(&store).await, [second, revoked]);
    let said = ["token.create", "token.revoke", "token.create"];
    assert_eq!(actions(&store).await, said);
}

/// Of many at once one gets the name.
pub async fn racing_tokens_do_not_share_a_name(store: Subject) {
    let racing = (0..12).map(|n| {
        let store = store.clone();
        async move { create(&store, &token(n, "ci"), ada()).await }
    });
    let answers = all(racing).await;
    let made = answers.iter().filter(|one| **one == Changed::Done).count();
    assert_eq!((made, tokens(&store).await.len()), (1, 1));
    assert_eq!(log(&store).await.len(), 1);
}

/// I2: what is revoked or expired is left out, at the very moment of its end.
pub async fn only_tokens_that_count_are_live(store: Subject) {
    let unending = Token {
        expires_at: None,
        ..token(1, "unending")
    };
    let (expiring, revoked) = (token(2, "expiring"), token(3, "revoked"));
    for each in [&unending, &expiring, &revoked] {
        create(&store, each, ada()).await;
    }
    revoke(&store, revoked.id, ada()).await;
    let live = async |now| store.live_tokens(now).await.expect("the store lists");
    assert_eq!(live(at(999)).await, [expiring, unending.clone()]);
    assert_eq!(live(at(1_000)).await, [unending]);
    assert_eq!(tokens(&store).await.len(), 3, "all are kept");
}

/// J1: what ended is forgotten after its time, by whom it was for and what it is called; what was written down about it is not.
pub async fn tokens_that_ended_are_forgotten_and_their_records_are_not(store: Subject) {
    let of_all = Token {
        app: None,
        ..token(1, "portal of all")
    };
    let unending = Token {
        expires_at: None,
        ..token(2, "portal unending")
    };
    let (expiring, other) = (token(3, "portal expiring"), token(4, "port%"));
    let revoked = Token {
        expires_at: None,
        ..token(5, "portal revoked")
    };
    for each in [&of_all, &unending, &expiring, &other, &revoked] {
        create(&store, each, ada()).await;
    }
    revoke(&store, revoked.id, ada()).await;
    let records = log(&store).await;
    let end = ada().at;
    assert!(end < at(1_000), "it was revoked before the others expire");
    let forget = async |before| {
        let forgotten = store.forget_tokens("portal ", before).await;
        forgotten.expect("the store forgets")
    };
    assert_eq!(forget(end).await, 0, "not at its end");
    assert_eq!(forget(end + Span::from_micros(1)).await, 1);
    assert_eq!(forget(at(1_000)).await, 0);
    assert_eq!(forget(at(1_001)).await, 1);
    assert_eq!(forget(at(9_000)).await, 0);
    assert_eq!(tokens(&store).await, [other, unending, of_all]);
    assert_eq!(log(&store).await, records);
    let again = Token {
        id: token(6, "x").id,
        ..expiring
    };
    assert_eq!(create(&store, &again, ada()).await, Changed::Done);
}

/// However many there are, nobody waits long for it.
pub async fn many_tokens_are_forgotten_step_by_step(store: Subject) {
    let many = u64::from(TOKENS_PER_STEP) + 1;
    let all_of_them = (0..many).map(|n| {
        let store = store.clone();
        async move { create(&store, &token(n, &format!("portal {n}")), ada()).await }
    });
    all(all_of_them).await;
    for expected in [many - 1, 1, 0] {
        let forgotten = store.forget_tokens("portal ", at(2_000)).await;
        assert_eq!(forgotten.expect("the store forgets"), expected);
    }
}

/// When a token was used moves forward only, and is nobody's decision.
pub async fn the_last_use_only_moves_forward(store: Subject) {
    let (one, other) = (token(1, "one"), token(2, "other"));
    create(&store, &one, ada()).await;
    create(&store, &other, ada()).await;
    let stranger = token(9, "x").id;
    let steps = [
        (vec![(one.id, at(50)), (stranger, at(60))], at(50)),
        (vec![(one.id, at(40))], at(50)),
        (vec![], at(50)),
        (vec![(one.id, at(51)), (one.id, at(45))], at(51)),
    ];
    for (used, expected) in steps {
        let said = store.tokens_used(used).await;
        said.expect("the store keeps it");
        let kept = tokens(&store).await;
        assert_eq!(kept[0].last_used_at, None);
        assert_eq!(kept[1].last_used_at, Some(expected));
    }
    assert_eq!(log(&store).await.len(), 2);
}

/// E3: the same request makes one change and hears the same; another under its key makes none, whatever it is about.
pub async fn a_change_is_made_once_per_request(store: Subject) {
    let first = token(1, "ada");
    assert_eq!(create(&store, &first, asking("r1", 1)).await, Changed::Done);
    let same = Changed::Before(Before::Same("{\"made\":1}".into()));
    let again = token(2, "ada");
    assert_eq!(create(&store, &again, asking("r1", 1)).await, same);
    let other = Changed::Before(Before::Other);
    assert_eq!(revoke(&store, first.id, asking("r1", 2)).await, other);
    assert_eq!(tokens(&store).await, std::slice::from_ref(&first));
    // What was not made leaves its key free.
    let taken = create(&store, &again, asking("r2", 1)).await;
    assert_eq!(taken, Changed::NameTaken);
    assert_eq!(
        revoke(&store, first.id, asking("r2", 3)).await,
        Changed::Done
    );
    assert_eq!(actions(&store).await, ["token.create", "token.revoke"]);
}

/// The log is read newest first, page by page, by whom and about what; its chain is whole.
pub async fn the_audit_log_is_read_by_page_and_filter(store: Subject) {
    let event = accept(&store, at(0), "k", "A").await.event;
    let bob = || Authority {
        actor: "bob".into(),
        reason: "routine \u{1f511}".into(),
        ..ada()
    };
    for number in 1..=5 {
        let by = if number % 2 == 0 { bob() } else { ada() };
        create(&store, &token(number, &format!("t{number}")), by).await;
    }
    carried(&store, event, Decision::Retry).await;
    let whole = log(&store).await;
    assert_eq!(whole.len(), 6);
    let all = AuditFilter::default;
    let (newest, next) = page(&store, all(), PageFrom::Newest, 4).await;
    let numbers = |records: &[crate::nouns::AuditRecord]| -> Vec<u64> {
        records.iter().map(|record| record.seq).collect()
    };
    assert_eq!((numbers(&newest), next), (vec![6, 5, 4, 3], Some(3)));
    let (rest, next) = page(&store, all(), PageFrom::OlderThan(3), 4).await;
    assert_eq!((numbers(&rest), next), (vec![2, 1], None));
    let (newer, _) = page(&store, all(), PageFrom::NewerThan(4), 4).await;
    assert_eq!(numbers(&newer), [6, 5]);
    let by_bob = AuditFilter {
        actor: Some("bob".into()),
        ..all()
    };
    assert_eq!(numbers(&fitting(&store, by_bob.clone()).await), [2, 4]);
    let about = AuditFilter {
        event: Some(event),
        ..all()
    };
    assert_eq!(numbers(&fitting(&store, about).await), [6]);
    let neither = AuditFilter {
        event: Some(event),
        ..by_bob
    };
    assert_eq!(fitting(&store, neither).await, []);
}

/// A replay comes back whole, filter and all.
pub async fn replays_come_back_whole_and_newest_first(store: Subject) {
    let every = EventFilter {
        source: Some("billing".into()),
        event_type: Some("invoice.paid".into()),
        status: Some(EventStatus::Dead),
        key: Some("[\"a\\\"\",\"b\"]".into()),
        // What is replayed is named by what it is: a text in a key is for looking.
        key_contains: None,
        entity: Some("in_1".into()),
        since: Some(at(-50)),
        until: Some(at(3)),
    };
    let whole = Replay {
        filter: every,
        dry_run: true,
        rate: Some(u32::MAX / 2),
        task: Some("{\"task\":\"endpoint.recover\"}".into()),
        ..replay(1)
    };
    let plain = replay(2);
    assert_eq!(start(&store, &whole).await, Changed::Done);
    assert_eq!(start(&store, &plain).await, Changed::Done);
    assert_eq!(read(&store, &whole).await, whole);
    let listed = store.replays(None).await.expect("the store lists");
    assert_eq!(listed, [plain.clone(), whole.clone()]);
    for status in EventStatus::ALL {
        let narrowed = Replay {
            filter: EventFilter {
                status: Some(*status),
                ..EventFilter::default()
            },
            ..replay(10 + u64::from(status.code()))
        };
        start(&store, &narrowed).await;
        assert_eq!(read(&store, &narrowed).await, narrowed);
    }
    let unknown = store.replay(replay(9).id).await.expect("the store reads");
    assert_eq!(unknown, None);
    let records = log(&store).await;
    assert_eq!(records[0].action, "replay.start");
    assert_eq!(records[0].subject, whole.id.to_string());
}

/// E3: a replay is carried on from where it stands by one, and not at all once it has ended.
pub async fn a_replay_is_carried_on_from_where_it_stands(store: Subject) {
    let running = replay(1);
    start(&store, &running).await;
    let one = ReplayProgress {
        after: Some(EventId(RawId::new(at(0), 3, 77))),
        total: 9,
        done: 4,
        skipped: 3,
        blocked: 1,
        failed: 1,
    };
    let two = ReplayProgress { total: 10, ..one };
    let carry = async |from, to, state| {
        let carried = store.carry_replay(running.id, from, to, state).await;
        carried.expect("the store keeps it")
    };
    let none = ReplayProgress::default();
    assert!(carry(none, one, ReplayState::Running).await);
    assert!(
        !carry(none, two, ReplayState::Running).await,
        "it has gone on"
    );
    assert_eq!(read(&store, &running).await.progress, one);
    assert!(carry(one, two, ReplayState::Completed).await);
    assert!(!carry(two, one, ReplayState::Running).await, "it has ended");
    let ended = read(&store, &running).await;
    assert_eq!((ended.progress, ended.state), (two, ReplayState::Completed));
    let unknown = store
        .carry_replay(replay(9).id, none, one, ReplayState::Running)
        .await;
    assert!(!unknown.expect("the store reads"));
    assert_eq!(log(&store).await.len(), 1, "progress is nobody's decision");
}

/// What a replay finds out is kept with how far it has come, or not at all.
pub async fn what_a_replay_finds_out_is_kept(store: Subject) {
    let running = replay(1);
    start(&store, &running).await;
    let found = async || store.found(running.id).await.expect("the store reads");
    let carry = async |from, to, state, found: &str| {
        let carried = store.carry_finding(running.id, from, to, state, found.into());
        carried.await.expect("the store keeps it")
    };
    assert_eq!(found().await, None);
    let none = ReplayProgress::default();
    let one = ReplayProgress { total: 1, ..none };
    assert!(carry(none, one, ReplayState::Running, "[1]\0ü").await);
    assert_eq!(found().await.as_deref(), Some("[1]\0ü"));
    assert!(
        !carry(none, one, ReplayState::Running, "[2]").await,
        "it has gone on"
    );
    assert_eq!(found().await.as_deref(), Some("[1]\0ü"));
    assert!(carry(one, one, ReplayState::Completed, "[1,2]").await);
    assert!(
        !carry(one, one, ReplayState::Running, "[3]").await,
        "it has ended"
    );
    assert_eq!(found().await.as_deref(), Some("[1,2]"));
    let unknown = store.found(replay(9).id).await.expect("the store reads");
    assert_eq!(unknown, None);
}

/// E3: a running replay can be stopped, once, and goes no further.
pub async fn a_replay_can_be_stopped(store: Subject) {
    let (running, other) = (replay(1), replay(2));
    start(&store, &running).await;
    start(&store, &other).await;
    let cancel = async |id| {
        let cancelled = store.cancel_replay(id, ada(), "{}".into()).await;
        cancelled.expect("the store changes it")
    };
    assert_eq!(cancel(replay(9).id).await, Changed::NotFound);
    assert_eq!(cancel(running.id).await, Changed::Done);
    assert_eq!(cancel(running.id).await, Changed::NotFound);
    let none = ReplayProgress::default();
    let carried = store.carry_replay(running.id, none, none, ReplayState::Running);
    assert!(!carried.await.expect("the store reads"));
    let stopped = Replay {
        state: ReplayState::Cancelled,
        ..running
    };
    let table = [
        (ReplayState::Running, vec![other]),
        (ReplayState::Cancelled, vec![stopped]),
        (ReplayState::Completed, vec![]),
    ];
    for (state, expected) in table {
        let listed = store.replays(Some(state)).await;
        assert_eq!(listed.expect("the store lists"), expected);
    }
    let said = ["replay.start", "replay.start", "replay.cancel"];
    assert_eq!(actions(&store).await, said);
}
