//! What is kept beside the ledger. Each change goes through the writer, with its audit record (J1).

use async_trait::async_trait;
use hapax_ledger::id::{ReplayId, TokenId};
use hapax_ledger::time::Time;
use rusqlite::Connection;

use super::audit::{self, Entry};
use super::queue::Whose;
use super::writer::Space;
use super::{SqliteStore, replay, secret, token};
use crate::catalog::Catalog;
use crate::error::StoreError;
use crate::nouns::{
    AuditFilter, AuditRecord, Authority, Changed, Listed, Page, Replay, ReplayProgress,
    ReplayState, SealedSecret, SecretChange, Token,
};

impl SqliteStore {
    /// Makes a change unless the same request came before, and writes down that it was made.
    pub(super) async fn change(
        &self,
        by: Authority,
        action: &'static str,
        subject: String,
        answer: String,
        change: impl FnOnce(&Connection) -> Result<Changed, StoreError> + Send + 'static,
    ) -> Result<Changed, StoreError> {
        let write = move |db: &Connection| {
            if let Some(before) = audit::before(db, &by)? {
                return Ok(Changed::Before(before));
            }
            let changed = change(db)?;
            if changed == Changed::Done {
                let entry = Entry {
                    action,
                    subject,
                    detail: answer,
                    event: None,
                };
                audit::write_down(db, &by, entry)?;
            }
            Ok(changed)
        };
        self.writer
            .write(Whose::Caller, Space::Frees, 0, move |tx| write(tx.db))
            .await
    }
}

#[async_trait]
impl Catalog for SqliteStore {
    async fn create_token(
        &self,
        token: Token,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let subject = token.id.to_string();
        self.change(by, "token.create", subject, answer, move |db| {
            token::create(db, &token)
        })
        .await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.readers.run(token::all).await
    }

    async fn live_tokens(&self, now: Time) -> Result<Vec<Token>, StoreError> {
        self.readers.run(move |db| token::live(db, now)).await
    }

    async fn forget_tokens(&self, begins: &str, ended_before: Time) -> Result<u64, StoreError> {
        let begins = begins.to_owned();
        self.writer
            .write(Whose::Ours, Space::Frees, 0, move |tx| {
                token::forget(tx.db, &begins, ended_before)
            })
            .await
    }

    async fn revoke_token(
        &self,
        id: TokenId,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let at = by.at;
        self.change(by, "token.revoke", id.to_string(), answer, move |db| {
            token::revoke(db, id, at)
        })
        .await
    }

    async fn tokens_used(&self, used: Vec<(TokenId, Time)>) -> Result<(), StoreError> {
        self.writer
            .write(Whose::Ours, Space::Frees, 0, move |tx| {
                token::used(tx.db, &used)
            })
            .await
    }

    async fn audit(
        &self,
        filter: AuditFilter,
        page: Page<u64>,
    ) -> Result<Listed<AuditRecord, u64>, StoreError> {
        self.readers
            .run(move |db| audit::list(db, &filter, page))
            .await
    }

    async fn start_replay(
        &self,
        replay: Replay,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let subject = replay.id.to_string();
        self.change(by, "replay.start", subject, answer, move |db| {
            replay::start(db, &replay)
        })
        .await
    }

    async fn replay(&self, id: ReplayId) -> Result<Option<Replay>, StoreError> {
        self.readers.run(move |db| replay::read(db, id)).await
    }

    async fn replays(&self, state: Option<ReplayState>) -> Result<Vec<Replay>, StoreError> {
        self.readers.run(move |db| replay::all(db, state)).await
    }

    async fn carry_replay(
        &self,
        id: ReplayId,
        from: ReplayProgress,
        to: ReplayProgress,
        state: ReplayState,
    ) -> Result<bool, StoreError> {
        self.writer
            .write(Whose::Ours, Space::Frees, 0, move |tx| {
                replay::carry(tx.db, id, from, to, state, None)
            })
            .await
    }

    async fn carry_finding(
        &self,
        id: ReplayId,
        from: ReplayProgress,
        to: ReplayProgress,
        state: ReplayState,
        found: String,
    ) -> Result<bool, StoreError> {
        self.writer
            .write(Whose::Ours, Space::Takes, found.len(), move |tx| {
                replay::carry(tx.db, id, from, to, state, Some(&found))
            })
            .await
    }

    async fn found(&self, id: ReplayId) -> Result<Option<String>, StoreError> {
        self.readers.run(move |db| replay::found(db, id)).await
    }

    async fn cancel_replay(
        &self,
        id: ReplayId,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        self.change(by, "replay.cancel", id.to_string(), answer, move |db| {
            replay::cancel(db, id)
        })
        .await
    }

    async fn change_secret(
        &self,
        change: SecretChange,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let (action, subject) = (change.word(), change.subject());
        self.change(by, action, subject, answer, move |db| {
            secret::change(db, &change)
        })
        .await
    }

    async fn hold_secret(&self, secret: SealedSecret) -> Result<SealedSecret, StoreError> {
        self.writer
            .write(Whose::Caller, Space::Frees, 0, move |tx| {
                secret::hold(tx.db, &secret)
            })
            .await
    }

    async fn secrets(
        &self,
        under: &str,
        after: Option<String>,
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let under = under.to_owned();
        self.readers
            .run(move |db| secret::under(db, &under, after.as_deref()))
            .await
    }

    async fn reseal(&self, was: SealedSecret, sealed: Vec<u8>) -> Result<bool, StoreError> {
        self.writer
            .write(Whose::Ours, Space::Frees, 0, move |tx| {
                secret::reseal(tx.db, &was, &sealed)
            })
            .await
    }
}
