//! Beats: a node says that it is there, hears which shards it holds, and lets go of those that are for others.
//!
//! Requests under way rely on them: nobody goes on in a shard that may be another's by now. So beats wait for nothing but the store's
//! answer, whatever else the node has to look at.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hapax_store::StoreError;
use hapax_store::nouns::{Beat, Beaten, Stay};

use super::dispatcher::{Shared, lock};
use crate::clock;

/// How often a node says that it is there, and looks for claims whose worker is lost: an effect is claimed again within its lease
/// and this.
const BEAT_EVERY: Duration = Duration::from_secs(1);

impl Shared {
    /// Says again and again that this node is there.
    pub(super) async fn beats(self: Arc<Self>) {
        loop {
            match self.beat().await {
                Ok(gained) => {
                    self.directory.gained(&gained);
                    self.find_uncertain_in(&gained);
                    lock(&self.gained).extend(gained);
                    self.beaten.send_replace(());
                }
                Err(error) => {
                    tracing::warn!(%error, "the store does not hear this node; nothing new is claimed once its lease ends");
                }
            }
            tokio::time::sleep(BEAT_EVERY).await;
        }
    }

    /// One beat. Gives the shards that this node begins to look after.
    async fn beat(&self) -> Result<Vec<u16>, StoreError> {
        let let_go = {
            let lanes = lock(&self.lanes);
            lock(&self.shards).to_let_go(|| lanes.busy_shards())
        };
        self.say(let_go, Stay::Stays).await
    }

    async fn say(&self, let_go: Vec<u16>, stay: Stay) -> Result<Vec<u16>, StoreError> {
        let sent = clock::tick();
        let beat = Beat {
            node: self.node.clone(),
            lease: self.lease,
            let_go,
            stay,
        };
        let beaten: Beaten = self.store.beat(beat).await?;
        self.drift.correct(beaten.now, sent);
        let until = sent + self.lease_length();
        let lanes = lock(&self.lanes);
        let busy = || lanes.busy_shards();
        let mut shards = lock(&self.shards);
        Ok(shards.beaten(beaten, self.store.shards(), until, clock::tick(), busy))
    }

    /// How long claims and shards are held.
    pub(super) fn lease_length(&self) -> Duration {
        Duration::from_micros(self.lease.micros().unsigned_abs())
    }

    /// Keeps the shards of which something is still under way while this node stops, and gives the others away: their lanes need not
    /// wait for the slowest request of this node.
    pub(super) async fn give_shards_away(&self) {
        // Not with the first of these beats: somebody may just have looked whether a shard is ours.
        let mut idle = Vec::new();
        loop {
            if let Err(error) = self.say(idle, Stay::Leaves).await {
                tracing::debug!(%error, "the store does not hear that this node leaves");
            }
            tokio::time::sleep(BEAT_EVERY).await;
            let busy: BTreeSet<u16> = lock(&self.lanes).busy_shards();
            let held = lock(&self.shards).all().into_iter();
            idle = held.filter(|shard| !busy.contains(shard)).collect();
        }
    }
}
