//! What the guard asks. A new key is claimed in one round trip. One that was answered before is answered from a plain read; that something
//! may run once more is decided under the key's lock and nowhere else.

use std::sync::atomic::AtomicU32;

use async_trait::async_trait;
use hapax_ledger::guard::GuardRejected;
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};

use super::batch::Batcher;
use super::catalog::Change;
use super::fault::unknown;
use super::key_group::{BOTH, KeyAsk, KeyTold, KeyWork};
use super::key_settle::{KeyWord, Word};
use super::moment::LeaseClock;
use super::pool::Pool;
use super::road::Road;
use super::{Entropy, PostgresStore, key_read};
use crate::error::StoreError;
use crate::keys::Keys;
use crate::nouns::{
    Authority, Changed, KeyClaim, KeyClaimed, KeyEnding, KeyFilter, KeyRecord, KeyResolution,
    Listed, Page,
};

/// Lanes for groups of asks: groups that follow each other on one connection, and one more than two, so that those that have to wait for
/// somebody do not keep the next one.
pub(super) const LANES: usize = 3;
/// Connections for keys: a lane looks at keys that are held and hears words about others at the same time.
pub(super) const CONNECTIONS: usize = 2 * LANES;

/// The way of the guard's asks.
pub(super) struct KeyLanes {
    lanes: Batcher<KeyWork>,
    pool: Pool,
}

impl KeyLanes {
    pub(super) fn start(pool: Pool, entropy: &Entropy, clock: &LeaseClock, epoch: u32) -> KeyLanes {
        let work = KeyWork {
            pool: pool.clone(),
            road: Road::new(pool.clone(), BOTH),
            entropy: entropy.clone(),
            clock: clock.clone(),
            epoch: AtomicU32::new(epoch),
        };
        KeyLanes {
            lanes: Batcher::start(&pool, LANES, work),
            pool,
        }
    }

    async fn claim(&self, claim: KeyClaim) -> Result<KeyClaimed, StoreError> {
        match self.lanes.ask(KeyAsk::Claim(claim)).await? {
            KeyTold::Claimed(claimed) => Ok(claimed),
            KeyTold::Heard(_) => Err(not_asked()),
        }
    }

    /// When an answer expires, if the run is still the holder of its key.
    async fn hear(&self, word: KeyWord) -> Result<Result<Time, GuardRejected>, StoreError> {
        match self.lanes.ask(KeyAsk::Word(word)).await? {
            KeyTold::Heard(heard) => Ok(heard),
            KeyTold::Claimed(_) => Err(not_asked()),
        }
    }

    /// Finishes what was taken.
    pub(super) async fn stop(&self) {
        self.lanes.stop().await;
        self.pool.close();
    }
}

/// Each ask is answered in kind (see [`super::key_group::Asked`]).
fn not_asked() -> StoreError {
    unknown("the answer was to another ask")
}

#[async_trait]
impl Keys for PostgresStore {
    async fn claim_key(&self, claim: KeyClaim) -> Result<KeyClaimed, StoreError> {
        self.keys.claim(claim).await
    }

    async fn extend_key(
        &self,
        id: KeyId,
        fence: Fence,
        lease: Span,
    ) -> Result<Result<(), GuardRejected>, StoreError> {
        let word = Word::Extend(lease);
        let extended = self.keys.hear(KeyWord { id, fence, word }).await?;
        Ok(extended.map(|_| ()))
    }

    async fn settle_key(
        &self,
        id: KeyId,
        fence: Fence,
        ending: KeyEnding,
    ) -> Result<Result<Time, GuardRejected>, StoreError> {
        let word = Word::Settle(ending);
        self.keys.hear(KeyWord { id, fence, word }).await
    }

    async fn key(&self, id: KeyId) -> Result<Option<KeyRecord>, StoreError> {
        key_read::one(&self.readers, id, &self.clock).await
    }

    async fn keys(
        &self,
        filter: KeyFilter,
        page: Page<KeyId>,
    ) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
        key_read::keys(&self.readers, &filter, page, &self.clock).await
    }

    async fn resolve_key(
        &self,
        id: KeyId,
        fence: Fence,
        resolution: KeyResolution,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let change = Change::ResolveKey((id, fence), resolution, &self.clock);
        change.write_down(&self.readers, &by, &answer).await
    }

    async fn lose_keys(&self) -> Result<Vec<KeyId>, StoreError> {
        self.key_sweep.lose(&self.readers, &self.clock).await
    }
}
