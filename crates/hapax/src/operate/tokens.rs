//! Tokens, from memory: whoever shows a wrong one costs the store nothing.
//!
//! The table is read at start, every few seconds, and at once after a change on this node. So another node hears of a revoked token
//! within five seconds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use hapax_ledger::id::TokenId;
use hapax_ledger::time::Time;
use hapax_store::nouns::{Role, Token};
use hapax_store::{Store, StoreError};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

/// How long another node may go on believing a token that was revoked here.
const REFRESH_EVERY: Duration = Duration::from_secs(5);
/// Last uses are written once in so many refreshes: once a minute.
const USES_EVERY: u32 = 12;

/// The name of whoever holds the admin token of the config. No other token can have it.
pub const ADMIN: &str = "admin";

/// Who is asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The token's name: what is recorded with all that they decide.
    pub name: Arc<str>,
    /// What they may do.
    pub role: Role,
    /// The one app that they may do it to; `None`: all.
    pub app: Option<String>,
}

/// The tokens that count.
pub struct Tokens {
    store: Arc<dyn Store>,
    /// The hash of the config's admin token.
    admin: ArcSwap<[u8; 32]>,
    by_hash: ArcSwap<HashMap<[u8; 32], Token>>,
    used: Mutex<HashMap<TokenId, Time>>,
    /// One reads at a time, so that what was read last is what was asked for last.
    reading: tokio::sync::Mutex<()>,
}

impl Tokens {
    /// A table with the admin token alone; [`Tokens::refresh`] reads the others.
    pub fn new(store: Arc<dyn Store>, admin: [u8; 32]) -> Tokens {
        Tokens {
            store,
            admin: ArcSwap::from_pointee(admin),
            by_hash: ArcSwap::default(),
            used: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// Another admin token counts from now on.
    pub fn set_admin(&self, hash: [u8; 32]) {
        self.admin.store(Arc::new(hash));
    }

    /// Whose token has this hash, if it counts now.
    pub fn find(&self, hash: [u8; 32], now: Time) -> Option<Actor> {
        if bool::from(hash.ct_eq(&**self.admin.load())) {
            return Some(Actor {
                name: ADMIN.into(),
                role: Role::Admin,
                app: None,
            });
        }
        // How long the search takes says something about a hash at most, and nobody can choose the hash of what they show.
        let table = self.by_hash.load();
        let token = table.get(&hash)?;
        let same = bool::from(hash.ct_eq(&token.hash));
        if !same || !counts(token, now) {
            return None;
        }
        self.uses().insert(token.id, now);
        Some(Actor {
            name: token.name.clone(),
            role: token.role,
            app: token.app.clone(),
        })
    }

    fn uses(&self) -> std::sync::MutexGuard<'_, HashMap<TokenId, Time>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the table again.
    ///
    /// # Errors
    /// If the store cannot say; what was read before counts on.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let reading = self.reading.lock().await;
        let tokens = self.store.tokens().await?.into_iter();
        // What is revoked is left out, so that the name of a revoked token can be given anew.
        let live = tokens.filter(|token| token.revoked_at.is_none());
        let table = live.map(|token| (token.hash, token)).collect();
        self.by_hash.store(Arc::new(table));
        drop(reading);
        Ok(())
    }

    /// Writes down when tokens were last used.
    async fn keep_uses(&self) {
        let used: Vec<(TokenId, Time)> = self.uses().drain().collect();
        if used.is_empty() {
            return;
        }
        if let Err(error) = self.store.tokens_used(used).await {
            tracing::debug!(%error, "when tokens were last used could not be kept");
        }
    }

    /// Keeps the table fresh until told to stop.
    pub async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut round: u32 = 0;
        loop {
            let stop = stopping.wait_for(|stop| *stop);
            let stopped = tokio::time::timeout(REFRESH_EVERY, stop).await.is_ok();
            round = round.wrapping_add(1);
            if stopped || round.is_multiple_of(USES_EVERY) {
                self.keep_uses().await;
            }
            if stopped {
                return;
            }
            if let Err(error) = self.refresh().await {
                tracing::warn!(%error, "tokens could not be read again; those read before count on");
            }
        }
    }
}

/// Expired means expired at once (I2).
fn counts(token: &Token, now: Time) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|until| now < until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hapax_ledger::id::RawId;

    const AT: Time = Time::from_secs(1_000);

    fn token() -> Token {
        Token {
            id: TokenId(RawId::new(AT, 0, 1)),
            name: "ada".into(),
            role: Role::Operator,
            app: None,
            hash: [7; 32],
            created_at: AT,
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        }
    }

    #[test]
    fn what_is_expired_or_revoked_does_not_count() {
        let until = Time::from_secs(2_000);
        let expires = Token {
            expires_at: Some(until),
            ..token()
        };
        let revoked = Token {
            revoked_at: Some(AT),
            ..token()
        };
        assert!(counts(&token(), AT));
        assert!(counts(&expires, AT));
        assert!(!counts(&expires, until), "expired means expired at once");
        assert!(!counts(&revoked, AT));
    }
}
