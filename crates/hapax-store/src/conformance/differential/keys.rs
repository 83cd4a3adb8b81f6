//! Guarded keys on both sides: claimed, extended, settled with right and with stale fences, swept, resolved, listed. Ids differ, so each of
//! the store's stands for the model's that was given in its place.

use std::collections::HashMap;

use bytes::Bytes;
use hapax_ledger::guard::{Body, GuardState, OnUnknown, Settlement};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Span;
use proptest::prelude::*;

use super::super::keys::wants;
use super::super::operator::ada;
use super::Pair;
use crate::nouns::{
    Asking, KeyClaim, KeyClaimed, KeyEnding, KeyFilter, KeyRecord, KeyResolution, PAGE_MAX, Page,
    PageFrom,
};

/// Few, so that most come again.
const KEYS: usize = 3;
/// How long answers are kept, and expired keys said to have expired.
const TTLS: [i64; 2] = [5, 30];
const GRACE: Span = Span::from_secs(10);
/// Longer than most waits, and shorter than some.
const LEASE: Span = Span::from_secs(8);
/// How far back a run is still remembered, so that some are stale.
const LATEST_RUNS: usize = 6;
const STATES: [Option<GuardState>; 4] = [
    None,
    Some(GuardState::Running),
    Some(GuardState::Unknown),
    Some(GuardState::Completed),
];

/// One thing to do to keys.
#[derive(Clone, Debug)]
pub(super) enum KeyCommand {
    Claim {
        key: usize,
        body: u8,
        rule: usize,
        ttl: usize,
    },
    Extend {
        latest: usize,
    },
    Settle {
        latest: usize,
        ending: usize,
    },
    Lose,
    Resolve {
        latest: usize,
        executed: bool,
    },
    List {
        state: usize,
    },
}

pub(super) fn key_command() -> impl Strategy<Value = KeyCommand> {
    let latest = || 0..LATEST_RUNS;
    prop_oneof![
        8 => (0..KEYS, 1..3u8, 0..OnUnknown::ALL.len(), 0..TTLS.len())
            .prop_map(|(key, body, rule, ttl)| KeyCommand::Claim { key, body, rule, ttl }),
        1 => latest().prop_map(|latest| KeyCommand::Extend { latest }),
        5 => (latest(), 0..5usize).prop_map(|(latest, ending)| KeyCommand::Settle { latest, ending }),
        1 => Just(KeyCommand::Lose),
        1 => (latest(), any::<bool>()).prop_map(|(latest, executed)| KeyCommand::Resolve { latest, executed }),
        2 => (0..STATES.len()).prop_map(|state| KeyCommand::List { state }),
    ]
}

/// What is known of keys on both sides.
#[derive(Default)]
pub(super) struct KnownKeys {
    names: HashMap<KeyId, KeyId>,
    /// Every run there was, oldest first: the store's id, the model's, and the fence.
    runs: Vec<(KeyId, KeyId, Fence)>,
    /// What was answered last, so that no two answers are the same.
    answers: u32,
}

impl KnownKeys {
    pub(super) fn id(&self, id: KeyId) -> KeyId {
        *self
            .names
            .get(&id)
            .expect("the store names a key that no claim has given")
    }

    fn latest(&self, latest: usize) -> Option<(KeyId, KeyId, Fence)> {
        self.runs.iter().rev().nth(latest).copied()
    }

    /// What was said, with the model's id.
    fn named(&self, said: KeyClaimed) -> KeyClaimed {
        let mut said = said;
        match &mut said {
            KeyClaimed::Run { id, .. }
            | KeyClaimed::Replay { id, .. }
            | KeyClaimed::NotKept { id, .. }
            | KeyClaimed::InProgress { id, .. }
            | KeyClaimed::OutcomeUnknown { id }
            | KeyClaimed::Expired { id }
            | KeyClaimed::Mismatch { id } => *id = self.id(*id),
        }
        said
    }

    fn named_record(&self, record: KeyRecord) -> KeyRecord {
        KeyRecord {
            id: self.id(record.id),
            ..record
        }
    }
}

impl Pair {
    pub(super) async fn run_keys(&mut self, command: &KeyCommand) {
        match command {
            KeyCommand::Claim {
                key,
                body,
                rule,
                ttl,
            } => {
                let claim = KeyClaim {
                    on_unknown: OnUnknown::ALL[*rule],
                    lease: LEASE,
                    ttl: Span::from_secs(TTLS[*ttl]),
                    grace: GRACE,
                    at: self.clock,
                    ..wants(&format!("k{key}"), *body)
                };
                self.claim_key(claim).await;
            }
            KeyCommand::Extend { latest } => {
                if let Some((theirs, ours, fence)) = self.keys.latest(*latest) {
                    let theirs = self.store.extend_key(theirs, fence, LEASE).await;
                    let ours = self.model.extend_key(ours, fence, LEASE).await;
                    assert_eq!(
                        theirs.expect("the store extends"),
                        ours.expect("the model extends")
                    );
                }
            }
            KeyCommand::Settle { latest, ending } => self.settle_key(*latest, *ending).await,
            KeyCommand::Lose => self.lose_keys().await,
            KeyCommand::Resolve { latest, executed } => {
                self.resolve_key(*latest, *executed).await;
            }
            KeyCommand::List { state } => self.list_keys(STATES[*state]).await,
        }
    }

    async fn claim_key(&mut self, claim: KeyClaim) {
        let theirs = self.store.claim_key(claim.clone()).await;
        let ours = self.model.claim_key(claim).await;
        let (theirs, ours) = (
            theirs.expect("the store claims"),
            ours.expect("the model claims"),
        );
        if let (KeyClaimed::Run { id, fence, .. }, KeyClaimed::Run { id: known, .. }) =
            (&theirs, &ours)
        {
            self.keys.names.insert(*id, *known);
            self.keys.runs.push((*id, *known, *fence));
        }
        assert_eq!(self.keys.named(theirs), ours);
    }

    async fn settle_key(&mut self, latest: usize, ending: usize) {
        let Some((theirs, ours, fence)) = self.keys.latest(latest) else {
            return;
        };
        self.keys.answers += 1;
        let settlement = [
            Settlement::Store(Body::Kept),
            Settlement::Store(Body::Kept),
            Settlement::Store(Body::NotKept),
            Settlement::Release,
            Settlement::Unknown,
        ][ending];
        let stored = matches!(settlement, Settlement::Store(_));
        let asking = match ending {
            1 | 2 => Asking::Again,
            _ => Asking::First,
        };
        let ending = KeyEnding {
            settlement,
            status: stored.then_some(200),
            answer: stored.then(|| Bytes::from(self.keys.answers.to_string())),
            ttl: Span::from_secs(TTLS[ending % TTLS.len()]),
            error: (!stored).then(|| "reset".into()),
            at: self.clock,
            asking,
        };
        let theirs = self.store.settle_key(theirs, fence, ending.clone()).await;
        let ours = self.model.settle_key(ours, fence, ending).await;
        assert_eq!(
            theirs.expect("the store settles"),
            ours.expect("the model settles")
        );
    }

    /// Of runs that were lost at the same moment no store is the first to say which comes first.
    async fn lose_keys(&self) {
        let theirs = self.store.lose_keys().await.expect("the store sweeps");
        let mut ours = self.model.lose_keys().await.expect("the model sweeps");
        let mut theirs: Vec<KeyId> = theirs.into_iter().map(|id| self.keys.id(id)).collect();
        theirs.sort();
        ours.sort();
        assert_eq!(theirs, ours, "lost");
    }

    async fn resolve_key(&self, latest: usize, executed: bool) {
        let Some((theirs, ours, fence)) = self.keys.latest(latest) else {
            return;
        };
        let ttl = Span::from_secs(TTLS[0]);
        let how = match executed {
            true => KeyResolution::Executed { ttl },
            false => KeyResolution::NotExecuted,
        };
        let answer = || "{}".to_owned();
        let theirs = self
            .store
            .resolve_key(theirs, fence, how, ada(), answer())
            .await;
        let ours = self
            .model
            .resolve_key(ours, fence, how, ada(), answer())
            .await;
        assert_eq!(
            theirs.expect("the store resolves"),
            ours.expect("the model resolves")
        );
    }

    /// Whole lists, in the order of the model's ids: after a jump back what is newer is the store's choice.
    pub(super) async fn list_keys(&self, state: Option<GuardState>) {
        let filter = KeyFilter {
            state,
            ..KeyFilter::default()
        };
        let page = Page {
            limit: PAGE_MAX,
            from: PageFrom::Newest,
        };
        let theirs = self.store.keys(filter.clone(), page).await;
        let ours = self.model.keys(filter.clone(), page).await;
        let theirs = theirs.expect("the store lists").rows.into_iter();
        let mut theirs: Vec<KeyRecord> = theirs.map(|key| self.keys.named_record(key)).collect();
        let mut ours = ours.expect("the model lists").rows;
        theirs.sort_by_key(|key| key.id);
        ours.sort_by_key(|key| key.id);
        assert_eq!(theirs, ours, "keys {state:?}");
    }
}
