//! The loops that keep a node in the picture: beats, rescues, looks at shards that are new to it, hints from other nodes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use hapax_store::StoreError;
use hapax_store::nouns::{
    Beat, Effect, EffectFilter, LANES_PER_LOOK_MAX, Move, Moved, PAGE_MAX, Page, PageFrom,
    lane_shard,
};
use tokio::task::JoinSet;

use super::dispatcher::{Shared, lock};
use super::log::{Origin, of_effect};
use crate::clock;

/// How often a node says that it is there, and looks for claims whose worker is lost: an effect is claimed again within its lease
/// and this.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// How often effects are counted for the metrics.
const COUNT_EVERY: Duration = Duration::from_secs(10);
/// Pages of uncertain effects that are read when a shard is new to this node. More than this is no longer for probes.
const UNCERTAIN_PAGES_MAX: u32 = 40;
/// Claims that are extended at a time.
const EXTENDED_AT_A_TIME: usize = 256;
/// Effects that are read at a time for lines about them: their events' bodies come along.
const TOLD_AT_A_TIME: usize = 32;

impl Shared {
    /// Says that this node is there, and does what that brings with it.
    pub(super) async fn look_after_shards(self: Arc<Self>) {
        let mut unlooked: Vec<u16> = Vec::new();
        let mut looked = clock::tick();
        loop {
            // Whatever was not heard of, for whatever reason, waits no longer than a claim whose worker is lost.
            if clock::since(looked) >= self.lease_length() {
                looked = clock::tick();
                self.look_at_store();
            }
            match self.beat().await {
                Ok(gained) => {
                    unlooked.extend(gained);
                    if let Err(error) = self.round(&mut unlooked).await {
                        tracing::warn!(%error, "the store could not be looked at; trying again");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the store does not hear this node; nothing new is claimed once its lease ends");
                }
            }
            tokio::time::sleep(BEAT_EVERY).await;
        }
    }

    /// One beat. Gives the shards that are new to this node.
    pub(super) async fn beat(&self) -> Result<Vec<u16>, StoreError> {
        let let_go = {
            let lanes = lock(&self.lanes);
            lock(&self.shards).to_let_go(|shard| lanes.shard_is_idle(shard))
        };
        let sent = clock::tick();
        let beat = Beat {
            node: self.node.clone(),
            lease: self.lease,
            let_go,
        };
        let beaten = self.store.beat(beat).await?;
        self.drift.correct(beaten.now, sent);
        let until = sent + self.lease_length();
        let gained = lock(&self.shards).beaten(beaten, self.store.shards(), until);
        Ok(gained)
    }

    /// How long claims and shards are held.
    pub(super) fn lease_length(&self) -> Duration {
        Duration::from_micros(self.lease.micros().unsigned_abs())
    }

    /// What a beat brings with it. Shards stay in `unlooked` until they have been looked at.
    async fn round(&self, unlooked: &mut Vec<u16>) -> Result<(), StoreError> {
        let (held, company) = {
            let shards = lock(&self.shards);
            (shards.all(), shards.has_company())
        };
        self.rescue(&held).await?;
        // Hints between nodes may get lost; alone, this node hears of nearly everything itself.
        let anew = self.look_anew.swap(false, Ordering::Relaxed) || company;
        let looked = match anew {
            true => self.look_at(&held).await,
            false => Ok(()),
        };
        looked.inspect_err(|_| self.look_anew.store(true, Ordering::Relaxed))?;
        unlooked.retain(|shard| held.contains(shard));
        if !unlooked.is_empty() {
            for shard in unlooked.iter() {
                self.look(*shard).await?;
            }
            self.find_uncertain(unlooked).await?;
            unlooked.clear();
        }
        if self.ask_anew.swap(false, Ordering::Relaxed) {
            let found = self.find_uncertain(&held).await;
            found.inspect_err(|_| self.ask_anew.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    }

    /// What endpoints are there, and which lanes of these shards have something to do?
    async fn look_at(&self, shards: &[u16]) -> Result<(), StoreError> {
        self.directory.refresh().await?;
        for shard in shards {
            self.look(*shard).await?;
        }
        Ok(())
    }

    /// Frees what lost workers held.
    async fn rescue(&self, held: &[u16]) -> Result<(), StoreError> {
        loop {
            let rescued = self.store.rescue(held.to_vec()).await;
            let rescued = rescued.inspect_err(|error| self.doubt(error))?;
            if rescued.effects.is_empty() {
                return Ok(());
            }
            let now = self.drift.theirs(clock::tick());
            for effect in &rescued.effects {
                self.metrics.effects.rescued(&effect.lane);
                if effect.record.state == EffectState::Uncertain {
                    self.ask_probe(effect);
                }
            }
            let freed = rescued
                .effects
                .iter()
                .filter(|effect| effect.record.state == EffectState::Pending)
                .map(|effect| (effect.lane.clone(), effect.record.next_attempt_at));
            let opened = rescued.opened.iter().map(|lane| (lane.clone(), now));
            self.hear(freed.chain(opened).collect::<Vec<_>>());
            self.tell_of_rescued(&rescued.effects).await;
        }
    }

    /// Says of each what it is about, some at a time.
    async fn tell_of_rescued(&self, effects: &[Effect]) {
        for effects in effects.chunks(TOLD_AT_A_TIME) {
            let events = effects.iter().map(|effect| effect.event).collect();
            let parcels = self.store.parcels(events).await.unwrap_or_default();
            // What the store cannot say now is left out of the lines.
            let origins = parcels.into_iter().map(|parcel| parcel.map(Origin::from));
            let origins = origins.chain(std::iter::repeat_with(|| None));
            for (effect, origin) in effects.iter().zip(origins) {
                of_effect!(warn, effect.into(), origin.as_ref(), state = %effect.record.state,
                    "a claim ran out and was taken over");
            }
        }
    }

    /// Keeps claims that were born started and wait in memory, for a rate or behind a slow target: one that ran out would be told as
    /// lost although nothing was sent.
    pub(super) async fn keep_waiting(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.lease_length() / 4).await;
            self.extend_waiting().await;
        }
    }

    async fn extend_waiting(self: &Arc<Self>) {
        let before = clock::tick() + self.lease_length() / 2;
        let ageing = lock(&self.lanes).ageing(before);
        for some in ageing.chunks(EXTENDED_AT_A_TIME) {
            let mut extending = JoinSet::new();
            for (lane, effect, fence) in some.iter().cloned() {
                extending.spawn(self.clone().extend_one(lane, effect, fence));
            }
            extending.join_all().await;
        }
    }

    async fn extend_one(self: Arc<Self>, lane: Arc<str>, effect: EffectId, fence: Fence) {
        let until = clock::tick() + self.lease_length();
        let extend = Move::Extend(self.lease);
        match self.store.advance(effect, fence, extend).await {
            Ok(extended) => {
                let held = matches!(extended.moved, Moved::Done(_));
                lock(&self.lanes).extended(&lane, effect, held.then_some(until));
            }
            Err(error) => tracing::debug!(%error, "a claim that waits could not be extended"),
        }
    }

    /// Finds out which lanes of a shard have something to do.
    async fn look(&self, shard: u16) -> Result<(), StoreError> {
        let mut after: Option<Arc<str>> = None;
        loop {
            let due = self.store.due(shard, after.as_deref()).await?;
            let full = due.len() as u32 == LANES_PER_LOOK_MAX;
            after = due.last().map(|due| due.lane.clone());
            self.hear(
                due.into_iter()
                    .map(|due| (due.lane, due.at))
                    .collect::<Vec<_>>(),
            );
            if !full {
                return Ok(());
            }
        }
    }

    /// Finds effects of these shards that wait for a probe.
    async fn find_uncertain(&self, shards: &[u16]) -> Result<(), StoreError> {
        if !self.targets.load().have_probes() {
            return Ok(());
        }
        let filter = EffectFilter {
            state: Some(EffectState::Uncertain),
            ..EffectFilter::default()
        };
        let mut from: PageFrom<EffectId> = PageFrom::Newest;
        for _ in 0..UNCERTAIN_PAGES_MAX {
            let page = Page {
                limit: PAGE_MAX,
                from,
            };
            let listed = self.store.effects(filter.clone(), page).await?;
            for effect in &listed.rows {
                if shards.contains(&lane_shard(&effect.lane, self.store.shards())) {
                    self.ask_probe(effect);
                }
            }
            match listed.next {
                Some(next) => from = PageFrom::OlderThan(next),
                None => break,
            }
        }
        Ok(())
    }

    /// Hears from other nodes that there is something to do.
    pub(super) async fn listen(self: Arc<Self>) {
        loop {
            let shards = self.store.woken().await;
            let held = lock(&self.shards).all();
            for shard in shards.into_iter().filter(|shard| held.contains(shard)) {
                if let Err(error) = self.look(shard).await {
                    tracing::debug!(%error, "a hint could not be followed; the next round will");
                }
            }
        }
    }

    /// Counts effects that have not ended well.
    pub(super) async fn count(self: Arc<Self>) {
        loop {
            match self.store.effect_counts().await {
                Ok(counts) => self.metrics.effects.counted(counts),
                Err(error) => tracing::debug!(%error, "effects could not be counted"),
            }
            tokio::time::sleep(COUNT_EVERY).await;
        }
    }
}
