//! Tokens, the audit log, replays and sealed secrets in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use hapax_ledger::id::{EventId, ReplayId, TokenId};
use hapax_ledger::time::Time;

use super::{ModelStore, listing};
use crate::catalog::TOKENS_PER_STEP;
use crate::error::StoreError;
use crate::nouns::{
    AuditFilter, AuditRecord, Authority, Before, Changed, Listed, PAGE_MAX, Page, Replay,
    ReplayProgress, ReplayState, RequestKey, SECRETS_PER_LOOK_MAX, SealedSecret, SecretChange,
    Token,
};

/// What is kept beside the ledger.
#[derive(Default)]
pub(super) struct Catalog {
    tokens: BTreeMap<TokenId, Token>,
    audit: BTreeMap<u64, Entry>,
    replays: BTreeMap<ReplayId, Replay>,
    found: BTreeMap<ReplayId, String>,
    secrets: BTreeMap<String, SealedSecret>,
}

/// A record of the audit log with what it is found by.
struct Entry {
    record: AuditRecord,
    event: Option<EventId>,
    request: Option<RequestKey>,
}

impl Catalog {
    /// What an earlier request with the same key was.
    pub(super) fn before(&self, by: &Authority) -> Option<Before> {
        let request = by.request?;
        let mut entries = self.audit.values();
        entries.find_map(|entry| {
            let earlier = entry.request.filter(|earlier| earlier.key == request.key)?;
            Some(request.before(earlier.fingerprint, entry.record.detail.clone()))
        })
    }

    /// The next record of the audit log.
    pub(super) fn write_down(
        &mut self,
        by: &Authority,
        action: &str,
        subject: String,
        detail: String,
        event: Option<EventId>,
    ) {
        let last = self.audit.last_key_value();
        let last = last.map(|(seq, entry)| (*seq, entry.record.hash));
        let record = AuditRecord::following(last, by, action, subject, detail);
        let entry = Entry {
            record,
            event,
            request: by.request,
        };
        self.audit.insert(entry.record.seq, entry);
    }

    /// Makes a change unless the same request came before, and writes down that it was made.
    pub(super) fn change(
        &mut self,
        by: &Authority,
        action: &str,
        subject: String,
        answer: String,
        change: impl FnOnce(&mut Catalog) -> Changed,
    ) -> Changed {
        if let Some(before) = self.before(by) {
            return Changed::Before(before);
        }
        let changed = change(self);
        if changed == Changed::Done {
            self.write_down(by, action, subject, answer, None);
        }
        changed
    }
}

impl Catalog {
    fn change_secret(&mut self, change: &SecretChange) -> Changed {
        match change {
            SecretChange::Expect(secret) => {
                self.secrets.insert(secret.place.clone(), secret.clone());
            }
            SecretChange::Keep { secret, .. } if self.secrets.contains_key(&secret.place) => {
                return Changed::NameTaken;
            }
            SecretChange::Keep { secret, expected } => {
                if self.secrets.get(&expected.place) != Some(expected) {
                    return Changed::NotFound;
                }
                self.secrets.remove(&expected.place);
                self.secrets.insert(secret.place.clone(), secret.clone());
            }
            SecretChange::Drop(place) if self.secrets.remove(place).is_none() => {
                return Changed::NotFound;
            }
            SecretChange::Drop(_) => {}
        }
        Changed::Done
    }
}

#[async_trait]
impl crate::Catalog for ModelStore {
    async fn create_token(
        &self,
        token: Token,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let catalog = &mut self.lock().catalog;
        let subject = token.id.to_string();
        Ok(
            catalog.change(&by, "token.create", subject, answer, |catalog| {
                let mut others = catalog.tokens.values();
                if others.any(|other| other.revoked_at.is_none() && other.name == token.name) {
                    return Changed::NameTaken;
                }
                catalog.tokens.insert(token.id, token);
                Changed::Done
            }),
        )
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let state = self.lock();
        Ok(state.catalog.tokens.values().rev().cloned().collect())
    }

    async fn live_tokens(&self, now: Time) -> Result<Vec<Token>, StoreError> {
        let state = self.lock();
        let tokens = state.catalog.tokens.values().rev();
        let live = tokens.filter(|token| token.counts(now));
        Ok(live.cloned().collect())
    }

    async fn forget_tokens(&self, begins: &str, ended_before: Time) -> Result<u64, StoreError> {
        let tokens = &mut self.lock().catalog.tokens;
        let over = |token: &Token| {
            let ends = token.revoked_at.into_iter().chain(token.expires_at);
            token.app.is_some()
                && token.name.starts_with(begins)
                && ends.min().is_some_and(|end| end < ended_before)
        };
        let ids: Vec<TokenId> = tokens
            .values()
            .filter(|token| over(token))
            .map(|token| token.id)
            .take(TOKENS_PER_STEP as usize)
            .collect();
        for id in &ids {
            tokens.remove(id);
        }
        Ok(ids.len() as u64)
    }

    async fn revoke_token(
        &self,
        id: TokenId,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let catalog = &mut self.lock().catalog;
        let at = by.at;
        Ok(
            catalog.change(&by, "token.revoke", id.to_string(), answer, |catalog| {
                let token = catalog.tokens.get_mut(&id);
                match token.filter(|token| token.revoked_at.is_none()) {
                    Some(token) => {
                        token.revoked_at = Some(at);
                        Changed::Done
                    }
                    None => Changed::NotFound,
                }
            }),
        )
    }

    async fn tokens_used(&self, used: Vec<(TokenId, Time)>) -> Result<(), StoreError> {
        let catalog = &mut self.lock().catalog;
        for (id, at) in used {
            if let Some(token) = catalog.tokens.get_mut(&id) {
                token.last_used_at = token.last_used_at.max(Some(at));
            }
        }
        Ok(())
    }

    async fn audit(
        &self,
        filter: AuditFilter,
        page: Page<u64>,
    ) -> Result<Listed<AuditRecord, u64>, StoreError> {
        let state = self.lock();
        Ok(listing::page(&state.catalog.audit, page, |entry| {
            let by_them = filter.actor.as_deref();
            let fits = by_them.is_none_or(|actor| *entry.record.actor == *actor)
                && (filter.event.is_none() || entry.event == filter.event);
            fits.then(|| entry.record.clone())
        }))
    }

    async fn start_replay(
        &self,
        replay: Replay,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let catalog = &mut self.lock().catalog;
        let subject = replay.id.to_string();
        Ok(
            catalog.change(&by, "replay.start", subject, answer, |catalog| {
                catalog.replays.insert(replay.id, replay);
                Changed::Done
            }),
        )
    }

    async fn replay(&self, id: ReplayId) -> Result<Option<Replay>, StoreError> {
        Ok(self.lock().catalog.replays.get(&id).cloned())
    }

    async fn replays(&self, state: Option<ReplayState>) -> Result<Vec<Replay>, StoreError> {
        let catalog = &self.lock().catalog;
        let newest_first = catalog.replays.values().rev();
        let fitting = newest_first.filter(|replay| state.is_none_or(|state| replay.state == state));
        Ok(fitting.take(PAGE_MAX as usize).cloned().collect())
    }

    async fn carry_replay(
        &self,
        id: ReplayId,
        from: ReplayProgress,
        to: ReplayProgress,
        state: ReplayState,
    ) -> Result<bool, StoreError> {
        let catalog = &mut self.lock().catalog;
        let replay = catalog
            .replays
            .get_mut(&id)
            .filter(|replay| replay.state == ReplayState::Running && replay.progress == from);
        let Some(replay) = replay else {
            return Ok(false);
        };
        replay.progress = to;
        replay.state = state;
        Ok(true)
    }

    async fn carry_finding(
        &self,
        id: ReplayId,
        from: ReplayProgress,
        to: ReplayProgress,
        state: ReplayState,
        found: String,
    ) -> Result<bool, StoreError> {
        let carried = self.carry_replay(id, from, to, state).await?;
        if carried {
            self.lock().catalog.found.insert(id, found);
        }
        Ok(carried)
    }

    async fn found(&self, id: ReplayId) -> Result<Option<String>, StoreError> {
        Ok(self.lock().catalog.found.get(&id).cloned())
    }

    async fn cancel_replay(
        &self,
        id: ReplayId,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let catalog = &mut self.lock().catalog;
        Ok(
            catalog.change(&by, "replay.cancel", id.to_string(), answer, |catalog| {
                let replay = catalog.replays.get_mut(&id);
                match replay.filter(|replay| replay.state == ReplayState::Running) {
                    Some(replay) => {
                        replay.state = ReplayState::Cancelled;
                        Changed::Done
                    }
                    None => Changed::NotFound,
                }
            }),
        )
    }

    async fn change_secret(
        &self,
        change: SecretChange,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let catalog = &mut self.lock().catalog;
        let (action, subject) = (change.word(), change.subject());
        Ok(catalog.change(&by, action, subject, answer, |catalog| {
            catalog.change_secret(&change)
        }))
    }

    async fn hold_secret(&self, secret: SealedSecret) -> Result<SealedSecret, StoreError> {
        let secrets = &mut self.lock().catalog.secrets;
        let held = secrets.entry(secret.place.clone()).or_insert(secret);
        Ok(held.clone())
    }

    async fn secrets(
        &self,
        under: &str,
        after: Option<String>,
    ) -> Result<Vec<SealedSecret>, StoreError> {
        let secrets = &self.lock().catalog.secrets;
        let fitting = secrets.values().filter(|secret| {
            let later = after.as_ref().is_none_or(|after| secret.place > *after);
            secret.place.starts_with(under) && later
        });
        Ok(fitting
            .take(SECRETS_PER_LOOK_MAX as usize)
            .cloned()
            .collect())
    }

    async fn reseal(&self, was: SealedSecret, sealed: Vec<u8>) -> Result<bool, StoreError> {
        let secrets = &mut self.lock().catalog.secrets;
        let held = secrets.get_mut(&was.place);
        let Some(held) = held.filter(|held| held.sealed == was.sealed) else {
            return Ok(false);
        };
        held.sealed = sealed;
        Ok(true)
    }
}
