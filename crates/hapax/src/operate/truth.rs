//! Asks the source of truth how an event's object stands now.

use std::time::Duration;

use bytes::Bytes;

use crate::config::effect::ReconcileConfig;
use crate::dispatch::Dispatcher;

/// How long the source of truth may take: an operator waits for the answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The state now, or why it cannot be had.
pub(super) async fn ask(
    dispatcher: &Dispatcher,
    reconcile: &ReconcileConfig,
    body: &[u8],
) -> Result<Bytes, String> {
    let url = reconcile.url_for(body).map_err(|error| error.to_string())?;
    dispatcher
        .snapshot(url, reconcile.headers.clone(), TIMEOUT)
        .await
}
