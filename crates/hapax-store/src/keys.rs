//! What the guard may ask of a store: the keys of guarded requests.

use async_trait::async_trait;
use hapax_ledger::guard::GuardRejected;
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};

use crate::error::StoreError;
use crate::nouns::{
    Authority, Changed, KeyClaim, KeyClaimed, KeyEnding, KeyFilter, KeyRecord, KeyResolution,
    Listed, Page,
};

/// Each method is one transaction; claims, extensions and endings of many callers share one commit. What a key's state
/// allows is decided by `hapax_ledger::guard` and nobody else.
#[async_trait]
pub trait Keys: Send + Sync + 'static {
    /// A request arrives with a key. `Run` means that its claim is durable: the work may begin (H1). Everything but `Run`, and a lost
    /// run that becomes known here, is answered without a write. So is a claim that is asked for once more ([`crate::nouns::Asking`]).
    async fn claim_key(&self, claim: KeyClaim) -> Result<KeyClaimed, StoreError>;

    /// The run needs longer: its lease now ends this much after the store's now.
    async fn extend_key(
        &self,
        id: KeyId,
        fence: Fence,
        lease: Span,
    ) -> Result<Result<(), GuardRejected>, StoreError>;

    /// The run ended. `Ok(Ok(_))` means that this is durable, and says when an answer expires, by the store's clock. That its row can be
    /// read means no such thing, so whoever does not know whether it was heard says it again ([`crate::nouns::Asking`]).
    async fn settle_key(
        &self,
        id: KeyId,
        fence: Fence,
        ending: KeyEnding,
    ) -> Result<Result<Time, GuardRejected>, StoreError>;

    /// One key.
    async fn key(&self, id: KeyId) -> Result<Option<KeyRecord>, StoreError>;

    /// A page of keys, newest first.
    async fn keys(
        &self,
        filter: KeyFilter,
        page: Page<KeyId>,
    ) -> Result<Listed<KeyRecord, KeyId>, StoreError>;

    /// Settles a key whose outcome is unknown, if it is and the run that this fence names is still its latest: what is known of one run
    /// says nothing of the next (E4). Audited as `key.resolve`, about its id. `by` a person; or a probe, whose name is the actor.
    async fn resolve_key(
        &self,
        id: KeyId,
        fence: Fence,
        resolution: KeyResolution,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError>;

    /// Marks runs whose lease and grace are over as unknown, so that operators see them without anybody asking for the key. Small
    /// steps: fewer than [`crate::nouns::KEYS_PER_STEP_MAX`] means that there is no more. Names those that became unknown.
    async fn lose_keys(&self) -> Result<Vec<KeyId>, StoreError>;
}
