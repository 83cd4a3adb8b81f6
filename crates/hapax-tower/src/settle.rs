//! Settling a run: what is kept of it is durable before anyone hears of it.

use std::time::Duration;

use hapax_ledger::guard::Settlement;
use hapax_ledger::key::KeyHash;
use hapax_ledger::time::Time;
use hapax_store::StoreErrorKind;
use hapax_store::nouns::{Asking, KeyEnding};
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
    let mut ending = KeyEnding {
        settlement: ended.settlement,
        status: ended.status.map(|status| status.as_u16()),
        answer: ended
            .stored
            .as_ref()
            .map(|stored| stored.encode(key_hash, guard.vault.as_deref())),
        ttl: guard.policy.ttl,
        error: ended.error.as_deref().map(short),
        at: clock::now(),
        asking: Asking::First,
    };
    let (start, patience) = (clock::tick(), clock::duration(guard.lease));
    let mut pause = PAUSE_MIN;
    loop {
        let said = shared
            .keys
            .settle_key(right.id, right.fence, ending.clone());
        let error = match said.await {
            Ok(Ok(expires_at)) => return Settled::Durable(expires_at),
            Ok(Err(rejected)) => {
                tracing::warn!(guard = %guard.name, key = %right.id, %rejected, "a run was settled without its answer");
                return Settled::Superseded;
            }
            Err(error) => error,
        };
        // It may be there all the same. That it can be read would not make it durable; that it is written once more does.
        if error.kind() == StoreErrorKind::CommitUnknown {
            ending.asking = Asking::Again;
        }
        if clock::since(start) + pause > patience {
            tracing::error!(guard = %guard.name, key = %right.id, %error, "a run could not be settled");
            return Settled::Failed;
        }
        tracing::warn!(guard = %guard.name, key = %right.id, %error, "a run could not be settled yet");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn short(text: &str) -> String {
    let mut end = ERROR_BYTES_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
