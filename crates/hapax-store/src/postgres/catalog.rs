//! What is kept beside the ledger. Whoever changes it enters the audit log first: the log's head is the lock of all of it, and the
//! change and its record are one transaction (J1).

use async_trait::async_trait;
use hapax_ledger::id::{KeyId, ReplayId, TokenId};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Time;

use super::audit::{self, Entry, Way};
use super::moment::LeaseClock;
use super::pool::{Pool, Taken};
use super::{PostgresStore, key_settle, replay, secret, token};
use crate::catalog::Catalog;
use crate::error::StoreError;
use crate::nouns::{
    AuditFilter, AuditRecord, Authority, Changed, KeyResolution, Listed, Page, Replay,
    ReplayProgress, ReplayState, SealedSecret, SecretChange, Token,
};

/// What somebody wants changed.
pub(super) enum Change<'a> {
    CreateToken(&'a Token),
    RevokeToken(TokenId),
    StartReplay(&'a Replay),
    CancelReplay(ReplayId),
    ResolveKey((KeyId, Fence), KeyResolution, &'a LeaseClock),
    Secret(&'a SecretChange),
}

impl Change<'_> {
    /// What it is called in the audit log.
    fn word(&self) -> &'static str {
        match self {
            Change::CreateToken(_) => "token.create",
            Change::RevokeToken(_) => "token.revoke",
            Change::StartReplay(_) => "replay.start",
            Change::CancelReplay(_) => "replay.cancel",
            Change::ResolveKey(..) => "key.resolve",
            Change::Secret(change) => change.word(),
        }
    }

    /// What it is about.
    fn subject(&self) -> String {
        match self {
            Change::CreateToken(token) => token.id.to_string(),
            Change::RevokeToken(id) => id.to_string(),
            Change::StartReplay(replay) => replay.id.to_string(),
            Change::CancelReplay(id) => id.to_string(),
            Change::ResolveKey((id, _), ..) => id.to_string(),
            Change::Secret(change) => change.subject(),
        }
    }

    /// Makes it, in an open transaction.
    async fn make(&self, taken: &Taken, at: Time) -> Result<Changed, StoreError> {
        let (made, otherwise) = match self {
            Change::CreateToken(token) => (token::insert(taken, token).await?, Changed::NameTaken),
            Change::RevokeToken(id) => (token::revoke(taken, *id, at).await?, Changed::NotFound),
            Change::StartReplay(replay) => {
                replay::insert(taken, replay).await?;
                (true, Changed::NotFound)
            }
            Change::CancelReplay(id) => (replay::cancel(taken, *id).await?, Changed::NotFound),
            Change::ResolveKey(run, resolution, clock) => {
                let resolved = key_settle::resolve(taken, *run, *resolution, at, clock).await?;
                (resolved, Changed::NotFound)
            }
            Change::Secret(change) => return secret::change(taken, change).await,
        };
        Ok(if made { Changed::Done } else { otherwise })
    }

    /// Makes it and writes it down, unless the request came before or there is nothing to change.
    pub(super) async fn write_down(
        self,
        pool: &Pool,
        by: &Authority,
        answer: &str,
    ) -> Result<Changed, StoreError> {
        let taken = pool.take().await?;
        let ((), way) = tokio::try_join!(biased; taken.open(), audit::enter(&taken, by))?;
        let head = match way {
            Way::Free(head) => head,
            Way::Taken(before) => {
                taken.roll_back().await;
                return Ok(Changed::Before(before));
            }
        };
        let changed = self.make(&taken, by.at).await?;
        if changed != Changed::Done {
            taken.roll_back().await;
            return Ok(changed);
        }
        let entry = Entry {
            by,
            action: self.word(),
            subject: self.subject(),
            event: None,
            detail: answer,
        };
        head.commit(taken, &entry).await?;
        Ok(changed)
    }
}

#[async_trait]
impl Catalog for PostgresStore {
    async fn create_token(
        &self,
        token: Token,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let change = Change::CreateToken(&token);
        change.write_down(&self.readers, &by, &answer).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        token::all(&self.readers).await
    }

    async fn live_tokens(&self, now: Time) -> Result<Vec<Token>, StoreError> {
        token::live(&self.readers, now).await
    }

    async fn forget_tokens(&self, begins: &str, ended_before: Time) -> Result<u64, StoreError> {
        token::forget(&self.readers, begins, ended_before).await
    }

    async fn revoke_token(
        &self,
        id: TokenId,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let change = Change::RevokeToken(id);
        change.write_down(&self.readers, &by, &answer).await
    }

    async fn tokens_used(&self, used: Vec<(TokenId, Time)>) -> Result<(), StoreError> {
        if used.is_empty() {
            return Ok(());
        }
        token::used(&self.readers, &used).await
    }

    async fn audit(
        &self,
        filter: AuditFilter,
        page: Page<u64>,
    ) -> Result<Listed<AuditRecord, u64>, StoreError> {
        audit::list(&self.readers, &filter, page).await
    }

    async fn start_replay(
        &self,
        replay: Replay,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let change = Change::StartReplay(&replay);
        change.write_down(&self.readers, &by, &answer).await
    }

    async fn replay(&self, id: ReplayId) -> Result<Option<Replay>, StoreError> {
        replay::one(&self.readers, id).await
    }

    async fn replays(&self, state: Option<ReplayState>) -> Result<Vec<Replay>, StoreError> {
        replay::all(&self.readers, state).await
    }

    async fn carry_replay(
        &self,
        id: ReplayId,
        from: ReplayProgress,
        to: ReplayProgress,
        state: ReplayState,
    ) -> Result<bool, StoreError> {
        replay::carry(&self.readers, id, &from, &to, state, None).await
    }

    async fn carry_finding(
        &self,
        id: ReplayId,
        from: ReplayProgress,
        to: ReplayProgress,
        state: ReplayState,
        found: String,
    ) -> Result<bool, StoreError> {
        replay::carry(&self.readers, id, &from, &to, state, Some(&found)).await
    }

    async fn found(&self, id: ReplayId) -> Result<Option<String>, StoreError> {
        replay::found(&self.readers, id).await
    }

    async fn cancel_replay(
        &self,
        id: ReplayId,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let change = Change::CancelReplay(id);
        change.write_down(&self.readers, &by, &answer).await
    }

    async fn change_secret(
        &self,
        change: SecretChange,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let change = Change::Secret(&change);
        change.write_down(&self.readers, &by, &answer).await
    }

    async fn hold_secret(&self, secret: SealedSecret) -> Result<SealedSecret, StoreError> {
        secret::hold(&self.readers, &secret).await
    }

    async fn secrets(
        &self,
        under: &str,
        after: Option<String>,
    ) -> Result<Vec<SealedSecret>, StoreError> {
        secret::under(&self.readers, under, after.as_deref()).await
    }

    async fn reseal(&self, was: SealedSecret, sealed: Vec<u8>) -> Result<bool, StoreError> {
        secret::reseal(&self.readers, &was, &sealed).await
    }
}
