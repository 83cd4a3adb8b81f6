//! What a store keeps beside the ledger: tokens, the audit log, replays of many events, sealed secrets.

use async_trait::async_trait;
use hapax_ledger::id::{ReplayId, TokenId};
use hapax_ledger::time::Time;

use crate::error::StoreError;
use crate::nouns::{
    AuditFilter, AuditRecord, Authority, Changed, Listed, Page, Replay, ReplayProgress,
    ReplayState, SealedSecret, SecretChange, Token,
};

/// Tokens that are deleted at a time: few, so that nobody waits long for it.
pub const TOKENS_PER_STEP: u32 = 500;

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

    /// All tokens that are kept, newest first, revoked ones too.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

    /// Those of them that count at this time, newest first: not revoked, and not expired.
    async fn live_tokens(&self, now: Time) -> Result<Vec<Token>, StoreError>;

    /// Deletes tokens of one app whose names begin so and that were revoked, or expired, before a time: at most [`TOKENS_PER_STEP`].
    /// Says how many. Nobody decides it, so that it is not audited; what was written down about them stays.
    async fn forget_tokens(&self, begins: &str, ended_before: Time) -> Result<u64, StoreError>;

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

    /// The same for one that finds something out: what it has found so far is kept, in place of what was kept before.
    async fn carry_finding(
        &self,
        id: ReplayId,
        from: ReplayProgress,
        to: ReplayProgress,
        state: ReplayState,
        found: String,
    ) -> Result<bool, StoreError>;

    /// What a replay has found out.
    async fn found(&self, id: ReplayId) -> Result<Option<String>, StoreError>;

    /// Stops a running replay. Audited as `replay.cancel`.
    async fn cancel_replay(
        &self,
        id: ReplayId,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError>;

    /// Keeps, expects or drops a secret. Audited under the change's word, about its place.
    async fn change_secret(
        &self,
        change: SecretChange,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError>;

    /// Keeps a secret unless one is kept at its place already; says which one holds. Nobody decides on it, and so it is not audited.
    async fn hold_secret(&self, secret: SealedSecret) -> Result<SealedSecret, StoreError>;

    /// Secrets whose place begins with `under`, by place and beginning after `after`: at most
    /// [`crate::nouns::SECRETS_PER_LOOK_MAX`].
    async fn secrets(
        &self,
        under: &str,
        after: Option<String>,
    ) -> Result<Vec<SealedSecret>, StoreError>;

    /// The same secret, sealed anew. `false`, and nothing changes, if it is not sealed as `was` any more. Not audited: what it says
    /// stays the same.
    async fn reseal(&self, was: SealedSecret, sealed: Vec<u8>) -> Result<bool, StoreError>;
}
