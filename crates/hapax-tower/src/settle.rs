//! Settling a run: what is kept of it is durable before anyone hears of it.

use std::time::Duration;

use hapax_ledger::guard::{Body, GuardState, Settlement};
use hapax_ledger::key::KeyHash;
use hapax_ledger::time::Time;
use hapax_store::StoreErrorKind;
use hapax_store::nouns::KeyEnding;
use http::StatusCode;

use crate::clock;
use crate::layer::Shared;
use crate::run::Right;
use crate::stored::Stored;

/// A store that does not answer is asked again this soon,
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// and then ever more seldom, down to this.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Bytes of the reason that are kept.
const ERROR_BYTES_MAX: usize = 200;

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) settlement: Settlement,
    pub(crate) status: Option<StatusCode>,
    pub(crate) stored: Option<Stored>,
    pub(crate) error: Option<String>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It is on disk. An answer is given again until then, by the store's clock.
    Durable(Time),
    /// The key was decided about without this run: it ran again, or somebody resolved it.
    Superseded,
    /// The store did not take it for as long as the lease lasted. Whoever asks for the key hears that its outcome is unknown.
    Failed,
}

/// Settles a run, and tries for as long as its lease lasts.
pub(crate) async fn settle(
    shared: &Shared,
    key_hash: KeyHash,
    right: Right,
    ended: &Ended,
) -> Settled {
    let guard = &shared.guard;
    let ending = KeyEnding {
        settlement: ended.settlement,
        status: ended.status.map(|status| status.as_u16()),
        answer: ended
            .stored
            .as_ref()
            .map(|stored| stored.encode(key_hash, guard.vault.as_deref())),
        ttl: guard.policy.ttl,
        error: ended.error.as_deref().map(short),
        at: clock::now(),
    };
    let (start, patience) = (clock::tick(), clock::duration(guard.lease));
    let (mut pause, mut unsure) = (PAUSE_MIN, false);
    loop {
        let error = match settle_once(shared, right, &ending, unsure).await {
            Ok(settled) => return settled,
            Err(error) => error,
        };
        // It may be on disk all the same: then the next try is refused as stale.
        unsure |= error.kind() == StoreErrorKind::CommitUnknown;
        if clock::since(start) + pause > patience {
            tracing::error!(guard = %guard.name, key = %right.id, %error, "a run could not be settled");
            return Settled::Failed;
        }
        tracing::warn!(guard = %guard.name, key = %right.id, %error, "a run could not be settled yet");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn settle_once(
    shared: &Shared,
    right: Right,
    ending: &KeyEnding,
    unsure: bool,
) -> Result<Settled, hapax_store::StoreError> {
    let rejected = match shared
        .keys
        .settle_key(right.id, right.fence, ending.clone())
        .await?
    {
        Ok(expires_at) => return Ok(Settled::Durable(expires_at)),
        Err(rejected) => rejected,
    };
    // Refused, and perhaps because an earlier try of ours went through.
    if unsure
        && let Some(record) = shared.keys.key(right.id).await?
        && record.fence == right.fence
        && record.state == state_of(ending.settlement)
    {
        return Ok(Settled::Durable(record.expires_at));
    }
    let guard = &shared.guard.name;
    tracing::warn!(%guard, key = %right.id, %rejected, "a run was settled without its answer");
    Ok(Settled::Superseded)
}

const fn state_of(settlement: Settlement) -> GuardState {
    match settlement {
        Settlement::Store(Body::Kept) => GuardState::Completed,
        Settlement::Store(Body::NotKept) => GuardState::NotKept,
        Settlement::Release => GuardState::Released,
        Settlement::Unknown => GuardState::Unknown,
    }
}

fn short(text: &str) -> String {
    let mut end = ERROR_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
