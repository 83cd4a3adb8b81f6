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
use super::key_claim::KeyClaims;
use super::key_settle::{self, KeyAsk, KeySettles, Word};
use super::moment::LeaseClock;
use super::pool::Pool;
use super::{Entropy, PostgresStore, key_read};
use crate::error::StoreError;
use crate::keys::Keys;
use crate::nouns::{
    Authority, Changed, KeyClaim, KeyClaimed, KeyEnding, KeyFilter, KeyRecord, KeyResolution,
    Listed, Page,
};

/// Lanes that claim keys, and that settle them: two of each, so that a group that has to wait for somebody does not keep the next one.
const LANES: usize = 2;
/// Connections for keys: one for each lane.
pub(super) const CONNECTIONS: usize = 2 * LANES;

/// The ways of the guard's asks.
pub(super) struct KeyLanes {
    claims: Batcher<KeyClaims>,
    settles: Batcher<KeySettles>,
    pool: Pool,
}

impl KeyLanes {
    pub(super) fn start(pool: Pool, entropy: &Entropy, clock: &LeaseClock, epoch: u32) -> KeyLanes {
        let claims = KeyClaims {
            pool: pool.clone(),
            entropy: entropy.clone(),
            clock: clock.clone(),
            epoch: AtomicU32::new(epoch),
        };
        let settles = KeySettles {
            pool: pool.clone(),
            clock: clock.clone(),
        };
        KeyLanes {
            claims: Batcher::start(&pool, LANES, claims),
            settles: Batcher::start(&pool, LANES, settles),
            pool,
        }
    }

    /// Finishes what was taken.
    pub(super) async fn stop(&self) {
        self.claims.stop().await;
        self.settles.stop().await;
        self.pool.close();
    }
}

#[async_trait]
impl Keys for PostgresStore {
    async fn claim_key(&self, claim: KeyClaim) -> Result<KeyClaimed, StoreError> {
        self.keys.claims.ask(claim).await
    }

    async fn extend_key(
        &self,
        id: KeyId,
        fence: Fence,
        lease: Span,
    ) -> Result<Result<(), GuardRejected>, StoreError> {
        let word = Word::Extend(lease);
        let extended = self.keys.settles.ask(KeyAsk { id, fence, word }).await?;
        Ok(extended.map(|_| ()))
    }

    async fn settle_key(
        &self,
        id: KeyId,
        fence: Fence,
        ending: KeyEnding,
    ) -> Result<Result<Time, GuardRejected>, StoreError> {
        let word = Word::Settle(ending);
        self.keys.settles.ask(KeyAsk { id, fence, word }).await
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
        key_settle::lose(&self.readers, &self.clock).await
    }
}
