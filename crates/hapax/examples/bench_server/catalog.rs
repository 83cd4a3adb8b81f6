//! Nothing beside the ledger either: no tokens, no audit log, no replays.

use async_trait::async_trait;
use hapax_ledger::id::{ReplayId, TokenId};
use hapax_ledger::time::Time;
use hapax_store::nouns::{
    AuditFilter, AuditRecord, Authority, Changed, Listed, Page, Replay, ReplayProgress,
    ReplayState, SealedSecret, SecretChange, Token,
};
use hapax_store::{Catalog, StoreError};

use super::NoStore;

#[async_trait]
impl Catalog for NoStore {
    async fn create_token(&self, _: Token, _: Authority, _: String) -> Result<Changed, StoreError> {
        Ok(Changed::NotFound)
    }
    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        Ok(Vec::new())
    }
    async fn live_tokens(&self, _: Time) -> Result<Vec<Token>, StoreError> {
        Ok(Vec::new())
    }
    async fn forget_tokens(&self, _: &str, _: Time) -> Result<u64, StoreError> {
        Ok(0)
    }
    async fn revoke_token(
        &self,
        _: TokenId,
        _: Authority,
        _: String,
    ) -> Result<Changed, StoreError> {
        Ok(Changed::NotFound)
    }
    async fn tokens_used(&self, _: Vec<(TokenId, Time)>) -> Result<(), StoreError> {
        Ok(())
    }
    async fn audit(
        &self,
        _: AuditFilter,
        _: Page<u64>,
    ) -> Result<Listed<AuditRecord, u64>, StoreError> {
        Ok(Listed::default())
    }
    async fn start_replay(
        &self,
        _: Replay,
        _: Authority,
        _: String,
    ) -> Result<Changed, StoreError> {
        Ok(Changed::NotFound)
    }
    async fn replay(&self, _: ReplayId) -> Result<Option<Replay>, StoreError> {
        Ok(None)
    }
    async fn replays(&self, _: Option<ReplayState>) -> Result<Vec<Replay>, StoreError> {
        Ok(Vec::new())
    }
    async fn carry_replay(
        &self,
        _: ReplayId,
        _: ReplayProgress,
        _: ReplayProgress,
        _: ReplayState,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn carry_finding(
        &self,
        _: ReplayId,
        _: ReplayProgress,
        _: ReplayProgress,
        _: ReplayState,
        _: String,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }
    async fn found(&self, _: ReplayId) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
    async fn cancel_replay(
        &self,
        _: ReplayId,
        _: Authority,
        _: String,
    ) -> Result<Changed, StoreError> {
        Ok(Changed::NotFound)
    }
    async fn change_secret(
        &self,
        _: SecretChange,
        _: Authority,
        _: String,
    ) -> Result<Changed, StoreError> {
        Ok(Changed::NotFound)
    }
    async fn hold_secret(&self, secret: SealedSecret) -> Result<SealedSecret, StoreError> {
        Ok(secret)
    }
    async fn secrets(&self, _: &str, _: Option<String>) -> Result<Vec<SealedSecret>, StoreError> {
        Ok(Vec::new())
    }
    async fn reseal(&self, _: SealedSecret, _: Vec<u8>) -> Result<bool, StoreError> {
        Ok(false)
    }
}
