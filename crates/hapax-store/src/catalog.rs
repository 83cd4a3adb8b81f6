//! What a store keeps beside the ledger: tokens, the audit log, replays of many events.

use async_trait::async_trait;
use hapax_ledger::id::{ReplayId, TokenId};
use hapax_ledger::time::Time;

use crate::error::StoreError;
use crate::nouns::{
    AuditFilter, AuditRecord, Authority, Changed, Listed, Page, Replay, ReplayProgress,
    ReplayState, Token,
};

/// Each method is one transaction. Every change that somebody decided comes with its audit record (J1); `answer` is what is said to
/// whoever asked, as JSON: it becomes the record's detail, and is said again to a repeat of the request.
#[async_trait]
pub trait Catalog: Send + Sync + 'static {
    /// Keeps a new token. Audited as `token.create`, about its id. The answer must not contain the secret.
    async fn create_token(
        &self,
        token: Token,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError>;

    /// All tokens, newest first, revoked ones too. There are few.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

    /// A token does not count any more. Audited as `token.revoke`.
    async fn revoke_token(
        &self,
        id: TokenId,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError>;

    /// These tokens were used then. Not audited.
    async fn tokens_used(&self, used: Vec<(TokenId, Time)>) -> Result<(), StoreError>;

    /// A page of the audit log, newest first; its places are the records' numbers.
    async fn audit(
        &self,
        filter: AuditFilter,
        page: Page<u64>,
    ) -> Result<Listed<AuditRecord, u64>, StoreError>;

    /// Keeps a new replay. Audited as `replay.start`, about its id.
    async fn start_replay(
        &self,
        replay: Replay,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError>;

    /// One replay.
    async fn replay(&self, id: ReplayId) -> Result<Option<Replay>, StoreError>;

    /// Replays in this state, newest first: at most [`crate::nouns::PAGE_MAX`].
    async fn replays(&self, state: Option<ReplayState>) -> Result<Vec<Replay>, StoreError>;

    /// A running replay has come from here to there, and perhaps to its end. `false`, and nothing changes, if it is not running any
    /// more or somebody else has carried it further.
    async fn carry_replay(
        &self,
        id: ReplayId,
        from: ReplayProgress,
        to: ReplayProgress,
        state: ReplayState,
    ) -> Result<bool, StoreError>;

    /// Stops a running replay. Audited as `replay.cancel`.
    async fn cancel_replay(
        &self,
        id: ReplayId,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError>;
}
