//! Tokens, from memory: whoever shows a wrong one costs the store nothing.
//!
//! The tokens that count are read at start, every few seconds, and at once after a change on this node. So another node hears of a
//! revoked token within five seconds. Those of the portal are many and short-lived: [`super::upkeep`] deletes them some time after
//! their end.

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

use crate::clock;

/// How long another node may go on believing a token that was revoked here.
const REFRESH_EVERY: Duration = Duration::from_secs(5);
/// Last uses are written once in so many refreshes: once a minute.
const USES_EVERY: u32 = 12;

/// How the names of tokens for the portal begin. No other token has such a name by chance: it goes on with an application, and ends
/// in a lot.
pub const PORTAL: &str = "portal ";

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
    /// Their token, unless it is the config's.
    pub token: Option<TokenId>,
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
                token: None,
            });
        }
        // How long the search takes says something about a hash at most, and nobody can choose the hash of what they show.
        let table = self.by_hash.load();
        let token = table.get(&hash)?;
        let same = bool::from(hash.ct_eq(&token.hash));
        if !same || !token.counts(now) {
            return None;
        }
        self.uses().insert(token.id, now);
        Some(Actor {
            name: token.name.clone(),
            role: token.role,
            app: token.app.clone(),
            token: Some(token.id),
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
        let live = self.store.live_tokens(clock::now()).await?.into_iter();
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
