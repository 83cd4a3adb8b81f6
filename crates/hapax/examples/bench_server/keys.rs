//! No guarded keys: nothing is kept, so nothing may run under one.

use async_trait::async_trait;
use hapax_ledger::guard::GuardRejected;
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{
    Authority, Changed, KeyClaim, KeyClaimed, KeyEnding, KeyFilter, KeyRecord, KeyResolution,
    Listed, Page,
};
use hapax_store::{Keys, StoreError, StoreErrorKind};

use super::NoStore;

#[async_trait]
impl Keys for NoStore {
    async fn claim_key(&self, _: KeyClaim) -> Result<KeyClaimed, StoreError> {
        Err(no_keys())
    }
    async fn extend_key(
        &self,
        _: KeyId,
        _: Fence,
        _: Span,
    ) -> Result<Result<(), GuardRejected>, StoreError> {
        Ok(Err(GuardRejected::StaleFence))
    }
    async fn settle_key(
        &self,
        _: KeyId,
        _: Fence,
        _: KeyEnding,
    ) -> Result<Result<Time, GuardRejected>, StoreError> {
        Ok(Err(GuardRejected::StaleFence))
    }
    async fn key(&self, _: KeyId) -> Result<Option<KeyRecord>, StoreError> {
        Ok(None)
    }
    async fn keys(
        &self,
        _: KeyFilter,
        _: Page<KeyId>,
    ) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
        Ok(Listed::default())
    }
    async fn resolve_key(
        &self,
        _: KeyId,
        _: Fence,
        _: KeyResolution,
        _: Authority,
        _: String,
    ) -> Result<Changed, StoreError> {
        Ok(Changed::NotFound)
    }
    async fn lose_keys(&self) -> Result<Vec<KeyId>, StoreError> {
        Ok(Vec::new())
    }
}

/// Without a store every guarded request is refused.
fn no_keys() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "no keys are kept here")
}
