//! What the guard asks of the embedded store. A request whose key was answered before is answered by a reader, without waiting for a commit;
//! that something may run is decided by the writer and by nobody else.

use async_trait::async_trait;
use hapax_ledger::guard::GuardRejected;
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};

use super::queue::Whose;
use super::writer::Space;
use super::{SqliteStore, key, key_claim, key_look, key_read, key_settle, key_sweep};
use crate::error::StoreError;
use crate::keys::Keys;
use crate::nouns::{
    Authority, Changed, KeyClaim, KeyClaimed, KeyEnding, KeyFilter, KeyRecord, KeyResolution,
    Listed, Page,
};

#[async_trait]
impl Keys for SqliteStore {
    async fn claim_key(&self, claim: KeyClaim) -> Result<KeyClaimed, StoreError> {
        // Most keys are new, and the index alone says so of nearly all of them.
        let puts = self.index.puts();
        let (claim, absent_after) = match self.index.get(claim.key_hash)? {
            None => (claim, Some(puts)),
            Some(_) => {
                let (index, clock) = (self.index.clone(), self.clock.clone());
                let looked = self.key_readers.run(move |db| {
                    let said = key_look::look(db, &index, &claim, clock())?;
                    Ok((said, claim))
                });
                match looked.await? {
                    (Some(said), _) => return Ok(said),
                    (None, claim) => (claim, None),
                }
            }
        };
        self.writer
            .write(Whose::Caller, Space::Takes, 0, move |tx| {
                key_claim::claim(tx, &claim, absent_after)
            })
            .await
    }

    async fn extend_key(
        &self,
        id: KeyId,
        fence: Fence,
        lease: Span,
    ) -> Result<Result<(), GuardRejected>, StoreError> {
        self.writer
            .write(Whose::Ours, Space::Frees, 0, move |tx| {
                key_settle::extend(tx, id, fence, lease)
            })
            .await
    }

    async fn settle_key(
        &self,
        id: KeyId,
        fence: Fence,
        ending: KeyEnding,
    ) -> Result<Result<Time, GuardRejected>, StoreError> {
        // Evidence about work that was done is written even when the disk is nearly full, and waits for its turn where a caller would be
        // refused: without it nobody knows what became of the run.
        let bytes = ending.answer.as_ref().map_or(0, bytes::Bytes::len);
        self.writer
            .write(Whose::Ours, Space::Frees, bytes, move |tx| {
                key_settle::settle(tx, id, fence, &ending)
            })
            .await
    }

    async fn key(&self, id: KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let now = (self.clock)();
        let key = self.readers.run(move |db| key::of_id(db, id)).await?;
        Ok(key.and_then(|key| key.seen(now)))
    }

    async fn keys(
        &self,
        filter: KeyFilter,
        page: Page<KeyId>,
    ) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
        let now = (self.clock)();
        self.readers
            .run(move |db| key_read::keys(db, &filter, page, now))
            .await
    }

    async fn resolve_key(
        &self,
        id: KeyId,
        fence: Fence,
        resolution: KeyResolution,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let (clock, decided) = (self.clock.clone(), by.clone());
        self.change(by, "key.resolve", id.to_string(), answer, move |db| {
            key_settle::resolve(db, (id, fence), resolution, &decided, clock())
        })
        .await
    }

    async fn lose_keys(&self) -> Result<Vec<KeyId>, StoreError> {
        let now = (self.clock)();
        // Mostly there are none, and the writer has better things to do than to find that out.
        let overdue = self
            .readers
            .run(move |db| key_sweep::overdue(db, now))
            .await?;
        if overdue.is_empty() {
            return Ok(Vec::new());
        }
        self.writer
            .write(Whose::Ours, Space::Frees, 0, key_sweep::lose)
            .await
    }
}
