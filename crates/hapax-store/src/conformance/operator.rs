//! An operator to check stores with: somebody who gives commands, and the audit log that says so.

use std::sync::atomic::{AtomicU64, Ordering};

use hapax_ledger::audit::GENESIS;
use hapax_ledger::id::{EventId, RawId, RunId};
use hapax_ledger::key::{KeyHash, KeyKind};

use super::sample::{Subject, at};
use crate::nouns::{
    AuditFilter, AuditRecord, Authority, Classes, Command, Commanded, Decision, Done, EventFacts,
    PAGE_MAX, Page, PageFrom, RequestKey, WhyNot,
};

/// Ids of runs that were given out.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// Ada, and why she decides.
pub fn ada() -> Authority {
    Authority {
        actor: "ada".into(),
        reason: "the target is back".into(),
        at: at(7),
        request: None,
    }
}

/// The same, in a request with this key that asks for this.
pub fn asking(key: &str, what: u8) -> Authority {
    let key = KeyHash::of(KeyKind::Guard, "ada", key);
    let fingerprint = [what; 32];
    Authority {
        request: Some(RequestKey { key, fingerprint }),
        ..ada()
    }
}

/// A command of hers, under a new run id.
pub fn command(event: EventId, decision: Decision) -> Command {
    Command {
        event,
        decision,
        only: None,
        by: ada(),
        if_revision: None,
        dry_run: false,
        run: RunId(RawId::new(at(7), 0, RUNS.fetch_add(1, Ordering::Relaxed))),
        classes: Classes::new(),
    }
}

/// Gives a command.
pub async fn give(store: &Subject, command: Command) -> Commanded {
    store.command(command).await.expect("the store obeys")
}

/// Gives a command that has to be carried out.
pub async fn carried(store: &Subject, event: EventId, decision: Decision) -> Done {
    match give(store, command(event, decision)).await {
        Commanded::Done(done) => done,
        other => panic!("not carried out: {other:?}"),
    }
}

/// Gives a command that has to be refused, and must leave no trace; why.
pub async fn refused(store: &Subject, command: Command) -> WhyNot {
    let (event, before) = (command.event, log(store).await);
    let (facts_before, detail_before) = (facts(store, event).await, store.event(event).await);
    let Commanded::Refused { why, verdict } = give(store, command).await else {
        panic!("it was not refused");
    };
    assert_eq!(log(store).await, before, "a refusal is not written down");
    assert_eq!(facts(store, event).await, facts_before);
    let detail = store.event(event).await;
    assert_eq!(detail.ok(), detail_before.ok());
    assert!(!verdict.reasons.is_empty());
    why
}

/// What a verdict on an event that has to be there depends on.
pub async fn facts(store: &Subject, event: EventId) -> EventFacts {
    let facts = store.facts(event).await.expect("the store reads");
    facts.expect("the event is there")
}

/// A page of the audit log.
pub async fn page(
    store: &Subject,
    filter: AuditFilter,
    from: PageFrom<u64>,
    limit: u32,
) -> (Vec<AuditRecord>, Option<u64>) {
    let listed = store.audit(filter, Page { limit, from }).await;
    let listed = listed.expect("the store lists");
    (listed.rows, listed.next)
}

/// What of the audit log fits, oldest first.
pub async fn fitting(store: &Subject, filter: AuditFilter) -> Vec<AuditRecord> {
    let (mut records, next) = page(store, filter, PageFrom::Newest, PAGE_MAX).await;
    assert_eq!(next, None, "a short log");
    records.reverse();
    records
}

/// The whole audit log, oldest first, after a look at its chain: whole, and without a gap (J1).
pub async fn log(store: &Subject) -> Vec<AuditRecord> {
    let records = fitting(store, AuditFilter::default()).await;
    let mut previous = GENESIS;
    for (number, record) in (1..).zip(&records) {
        assert_eq!((record.seq, record.previous), (number, previous));
        assert!(record.is_whole(), "{record:?}");
        previous = record.hash;
    }
    records
}

/// What the audit log says was done, oldest first.
pub async fn actions(store: &Subject) -> Vec<String> {
    let records = log(store).await.into_iter();
    records.map(|record| record.action).collect()
}
