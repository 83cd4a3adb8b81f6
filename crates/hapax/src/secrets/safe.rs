//! The safe: keys in force, and whether they are the store's.
//!
//! A store remembers which keys it belongs to by a value that was sealed with one of them. A server that cannot open it does not
//! start: it would keep secrets that no other node can read, and fail to read theirs.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hapax_store::nouns::SealedSecret;
use hapax_store::vault::{Vault, VaultError};
use hapax_store::{Store, StoreError};
use tokio::sync::Notify;

use super::keys::{self, VaultKeys};
use crate::config::Config;
use crate::{clock, entropy};

/// Where the store keeps what tells whose it is.
const CHECK: &str = "vault/check";
/// What is sealed there. It is no secret.
const CHECK_TEXT: &[u8] = b"these are the keys of this store";

/// Why there is no way to a secret.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The store has sealed secrets, and nobody brought a key.
    #[error("the store holds sealed secrets, and no vault key is configured")]
    Missing,
    /// The keys are not those of the store.
    #[error("the vault key is not the one that this store's secrets are sealed with")]
    Wrong,
    /// There is no key to seal with.
    #[error("no vault key is configured, and secrets are not stored without one")]
    None,
    /// A sealed value does not open.
    #[error(transparent)]
    Sealed(#[from] VaultError),
    /// The key file cannot be read or made.
    #[error("the vault key cannot be read or made: {0}")]
    File(#[from] std::io::Error),
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How many secrets are kept, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// All of them.
    pub total: u64,
    /// Those that are not sealed with the first key.
    pub older: u64,
}

/// Seals and opens with the keys in force.
#[derive(Default)]
pub struct Safe {
    vault: ArcSwapOption<Vault>,
    changed: Notify,
}

impl Safe {
    /// Finds the keys, makes some for a new SQLite store, and finds out whether they are this store's.
    ///
    /// # Errors
    /// If they are not, or a store with secrets comes without keys.
    pub async fn open(config: &Config, store: &dyn Store) -> Result<Safe, Unusable> {
        let safe = Safe::default();
        let known = !store.secrets(CHECK, None).await?.is_empty();
        let found = VaultKeys::find(config)?;
        let keys = match (found, keys::file_of(&config.store)) {
            (Some(keys), _) => keys,
            (None, _) if known => return Err(Unusable::Missing),
            (None, Some(path)) => {
                let made = keys::make(&path)?;
                tracing::info!(
                    file = %path.display(),
                    "made a vault key: secrets in the store open with nothing else, so keep a copy apart from its backups"
                );
                made
            }
            // Nothing is sealed yet, and a key that only this node had would be none.
            (None, None) => return Ok(safe),
        };
        safe.set(&keys, store).await?;
        Ok(safe)
    }

    /// Takes the keys of a config that was read again.
    ///
    /// # Errors
    /// If they are not this store's; those before stay in force.
    pub async fn reload(&self, config: &Config, store: &dyn Store) -> Result<(), Unusable> {
        match VaultKeys::find(config)? {
            Some(keys) => self.set(&keys, store).await,
            None if self.vault.load().is_some() => Err(Unusable::Missing),
            None => Ok(()),
        }
    }

    async fn set(&self, keys: &VaultKeys, store: &dyn Store) -> Result<(), Unusable> {
        let vault = Vault::new(keys.all())?;
        let ours = SealedSecret {
            place: CHECK.to_owned(),
            sealed: vault.seal(CHECK.as_bytes(), entropy::bytes(), CHECK_TEXT),
            at: clock::now(),
        };
        let held = store.hold_secret(ours).await?;
        match vault.open(CHECK.as_bytes(), &held.sealed) {
            Ok(text) if text == CHECK_TEXT => {}
            Ok(_) | Err(_) => return Err(Unusable::Wrong),
        }
        self.vault.store(Some(Arc::new(vault)));
        self.changed.notify_one();
        Ok(())
    }

    /// The keys in force, if there are any: for what is sealed outside of the table of secrets.
    pub fn vault(&self) -> Option<Arc<Vault>> {
        self.vault.load_full()
    }

    /// Seals a secret for the place that it is kept at.
    ///
    /// # Errors
    /// If there is no key.
    pub fn seal(&self, place: &str, plain: &[u8]) -> Result<Vec<u8>, Unusable> {
        let vault = self.vault.load();
        let vault = vault.as_ref().ok_or(Unusable::None)?;
        Ok(vault.seal(place.as_bytes(), entropy::bytes(), plain))
    }

    /// Opens a secret that was sealed for this place.
    ///
    /// # Errors
    /// If there is no key, or it is another's, or the value was changed or moved.
    pub fn unseal(&self, secret: &SealedSecret) -> Result<Vec<u8>, Unusable> {
        let vault = self.vault.load();
        let vault = vault.as_ref().ok_or(Unusable::Missing)?;
        Ok(vault.open(secret.place.as_bytes(), &secret.sealed)?)
    }

    /// Is it sealed with the key that seals now?
    pub fn is_current(&self, secret: &SealedSecret) -> bool {
        let vault = self.vault.load();
        vault
            .as_ref()
            .is_some_and(|vault| vault.is_current(&secret.sealed))
    }

    /// Waits until other keys are in force.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Counts what is kept, and how much of it an older key has sealed.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn census(&self, store: &dyn Store) -> Result<Census, StoreError> {
        let mut census = Census::default();
        let mut after = None;
        loop {
            let page = store.secrets("", after.take()).await?;
            census.total += page.len() as u64;
            census.older += page.iter().filter(|one| !self.is_current(one)).count() as u64;
            match page.last() {
                Some(last) => after = Some(last.place.clone()),
                None => return Ok(census),
            }
        }
    }

    /// Seals anew what an older key has sealed, a page at a time. Says how many.
    ///
    /// # Errors
    /// If a secret does not open or the store does not answer; what was sealed anew until then stays so.
    pub async fn rekey(&self, store: &dyn Store) -> Result<u64, Unusable> {
        let mut anew = 0;
        let mut after = None;
        loop {
            let page = store.secrets("", after.take()).await?;
            let Some(last) = page.last().map(|last| last.place.clone()) else {
                return Ok(anew);
            };
            for secret in page {
                if !self.is_current(&secret) {
                    let sealed = self.seal(&secret.place, &self.unseal(&secret)?)?;
                    anew += u64::from(store.reseal(secret, sealed).await?);
                }
            }
            after = Some(last);
        }
    }
}

#[cfg(test)]
mod tests;
