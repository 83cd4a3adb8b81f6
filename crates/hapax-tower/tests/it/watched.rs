//! A store's keys with somebody watching, who can also make them fail.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use hapax_ledger::guard::GuardRejected;
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{
    Authority, Changed, KeyClaim, KeyClaimed, KeyEnding, KeyFilter, KeyRecord, KeyResolution,
    Listed, Page,
};
use hapax_store::{Keys, StoreError, StoreErrorKind};
use tokio::sync::watch;

use crate::server::Door;

/// How a call fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Nothing is written.
    Down,
    /// It is written, and nobody hears of it.
    WrittenUnheard,
    /// It is not written, and nobody knows.
    LostUnheard,
    /// A settlement is refused, as if the key were another's. Nothing is written.
    Refused,
}

/// The keys, watched.
pub(crate) struct Watched {
    keys: Arc<dyn Keys>,
    claim_door: Mutex<Option<Door>>,
    claimed_door: Mutex<Option<Door>>,
    claim_faults: Mutex<VecDeque<Fault>>,
    settle_faults: Mutex<VecDeque<Fault>>,
    /// Settlements fail like this once the queue is empty.
    settle_always: Mutex<Option<Fault>>,
    extended: watch::Sender<usize>,
    answers: Mutex<Vec<Bytes>>,
    wall_off: Mutex<Span>,
}

impl Watched {
    pub(crate) fn new(keys: Arc<dyn Keys>) -> Watched {
        Watched {
            keys,
            claim_door: Mutex::default(),
            claimed_door: Mutex::default(),
            claim_faults: Mutex::default(),
            settle_faults: Mutex::default(),
            settle_always: Mutex::default(),
            extended: watch::Sender::new(0),
            answers: Mutex::default(),
            wall_off: Mutex::new(Span::ZERO),
        }
    }

    /// The clock on the wall is set: it now goes wrong by so much. All that the layer knows of it is in what it asks the store.
    pub(crate) fn set_wall(&self, off: Span) {
        *self.wall_off.lock().expect("whole") = off;
    }

    fn by_the_wall(&self, at: Time) -> Time {
        at + *self.wall_off.lock().expect("whole")
    }

    /// Claims stop here before they are written.
    pub(crate) fn stop_claims_at(&self, door: Option<Door>) {
        *self.claim_door.lock().expect("whole") = door;
    }

    /// Claims stop here after they are written, and before anybody hears of them.
    pub(crate) fn stop_claimed_at(&self, door: Option<Door>) {
        *self.claimed_door.lock().expect("whole") = door;
    }

    /// The next claim fails.
    pub(crate) fn fail_claim(&self, fault: Fault) {
        self.claim_faults.lock().expect("whole").push_back(fault);
    }

    /// The next settlement fails.
    pub(crate) fn fail_settle(&self, fault: Fault) {
        self.settle_faults.lock().expect("whole").push_back(fault);
    }

    /// All settlements fail.
    pub(crate) fn fail_settles(&self, fault: Option<Fault>) {
        *self.settle_always.lock().expect("whole") = fault;
    }

    /// How many leases have been extended.
    pub(crate) fn extensions(&self) -> usize {
        *self.extended.borrow()
    }

    /// Waits until so many leases have been extended.
    pub(crate) async fn extended(&self, times: usize) {
        let mut extended = self.extended.subscribe();
        let enough = extended.wait_for(|count| *count >= times).await;
        enough.expect("the sender lives");
    }

    /// Everything that was given to be stored.
    pub(crate) fn answers(&self) -> Vec<Bytes> {
        self.answers.lock().expect("whole").clone()
    }
}

fn error(fault: Fault) -> StoreError {
    match fault {
        Fault::Down => StoreError::new(StoreErrorKind::Unavailable, "unplugged by a test"),
        Fault::WrittenUnheard | Fault::LostUnheard | Fault::Refused => {
            StoreError::new(StoreErrorKind::CommitUnknown, "cut off by a test")
        }
    }
}

#[async_trait]
impl Keys for Watched {
    async fn claim_key(&self, mut claim: KeyClaim) -> Result<KeyClaimed, StoreError> {
        claim.at = self.by_the_wall(claim.at);
        let door = self.claim_door.lock().expect("whole").clone();
        if let Some(door) = door {
            door.pass().await;
        }
        let fault = self.claim_faults.lock().expect("whole").pop_front();
        match fault {
            None => {
                let claimed = self.keys.claim_key(claim).await;
                let door = self.claimed_door.lock().expect("whole").clone();
                if let Some(door) = door {
                    door.pass().await;
                }
                claimed
            }
            Some(fault) => {
                if matches!(fault, Fault::WrittenUnheard) {
                    self.keys.claim_key(claim).await?;
                }
                Err(error(fault))
            }
        }
    }

    async fn extend_key(
        &self,
        id: KeyId,
        fence: Fence,
        lease: Span,
    ) -> Result<Result<(), GuardRejected>, StoreError> {
        let extended = self.keys.extend_key(id, fence, lease).await;
        self.extended.send_modify(|count| *count += 1);
        extended
    }

    async fn settle_key(
        &self,
        id: KeyId,
        fence: Fence,
        mut ending: KeyEnding,
    ) -> Result<Result<Time, GuardRejected>, StoreError> {
        ending.at = self.by_the_wall(ending.at);
        let fault = self.settle_faults.lock().expect("whole").pop_front();
        let fault = fault.or(*self.settle_always.lock().expect("whole"));
        let answer = ending.answer.clone();
        self.answers.lock().expect("whole").extend(answer);
        match fault {
            None => self.keys.settle_key(id, fence, ending).await,
            Some(Fault::Refused) => Ok(Err(GuardRejected::StaleFence)),
            Some(fault) => {
                if matches!(fault, Fault::WrittenUnheard) {
                    let settled = self.keys.settle_key(id, fence, ending).await?;
                    settled.expect("the first settlement counts");
                }
                Err(error(fault))
            }
        }
    }

    async fn key(&self, id: KeyId) -> Result<Option<KeyRecord>, StoreError> {
        self.keys.key(id).await
    }

    async fn keys(
        &self,
        filter: KeyFilter,
        page: Page<KeyId>,
    ) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
        self.keys.keys(filter, page).await
    }

    async fn resolve_key(
        &self,
        id: KeyId,
        fence: Fence,
        resolution: KeyResolution,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let resolved = self.keys.resolve_key(id, fence, resolution, by, answer);
        resolved.await
    }

    async fn lose_keys(&self) -> Result<Vec<KeyId>, StoreError> {
        self.keys.lose_keys().await
    }
}
