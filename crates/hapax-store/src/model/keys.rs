//! Guarded keys in memory.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use bytes::Bytes;
use hapax_ledger::guard::GuardRejected;
use hapax_ledger::id::{KeyId, RawId};
use hapax_ledger::key::KeyHash;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};

use super::effects::EPOCH;
use super::{ModelStore, listing};
use crate::error::StoreError;
use crate::guarded::{Guarded, Ruling, rule};
use crate::nouns::{
    Authority, Changed, KEYS_PER_STEP_MAX, KeyClaim, KeyClaimed, KeyEnding, KeyFilter, KeyRecord,
    KeyResolution, Listed, Page,
};

/// All keys, and which one has which hash.
#[derive(Default)]
pub(super) struct Keys {
    rows: BTreeMap<KeyId, Row>,
    held: HashMap<KeyHash, KeyId>,
    /// Numbers given out.
    last: u64,
}

struct Row {
    key: Guarded,
    answer: Option<Bytes>,
}

impl Keys {
    fn claim(&mut self, claim: &KeyClaim, now: Time) -> KeyClaimed {
        let held = self.held.get(&claim.key_hash);
        let Some(row) = held.and_then(|id| self.rows.get_mut(id)) else {
            return self.insert(claim, now);
        };
        match rule(&row.key, claim, now, EPOCH) {
            Ruling::Run { record, again } => {
                row.key.runs(claim, record);
                row.answer = None;
                row.key.begun(again)
            }
            Ruling::Lost(record) => {
                row.key.record = record;
                let id = row.key.shown.id;
                KeyClaimed::OutcomeUnknown { id }
            }
            Ruling::Answered(body) => row.key.told(body, row.answer.clone()),
            Ruling::Said(said) => said,
        }
    }

    fn insert(&mut self, claim: &KeyClaim, now: Time) -> KeyClaimed {
        self.last += 1;
        let id = KeyId(RawId::new(claim.at, 0, self.last));
        let key = Guarded::first(id, claim, now, EPOCH);
        let begun = key.begun(false);
        self.held.insert(claim.key_hash, id);
        self.rows.insert(id, Row { key, answer: None });
        begun
    }

    fn extend(
        &mut self,
        id: KeyId,
        fence: Fence,
        lease: Span,
        now: Time,
    ) -> Result<(), GuardRejected> {
        let row = self.rows.get_mut(&id).ok_or(GuardRejected::StaleFence)?;
        row.key.extend(fence, lease, now)
    }

    fn settle(
        &mut self,
        id: KeyId,
        fence: Fence,
        ending: &KeyEnding,
        now: Time,
    ) -> Result<Time, GuardRejected> {
        let row = self.rows.get_mut(&id).ok_or(GuardRejected::StaleFence)?;
        let kept = row.key.settle(fence, ending, now)?;
        row.answer = kept.or(row.answer.take());
        Ok(row.key.record.expires_at)
    }

    fn resolve(
        &mut self,
        id: KeyId,
        fence: Fence,
        resolution: KeyResolution,
        at: Time,
        now: Time,
    ) -> Result<(), GuardRejected> {
        let row = self.rows.get_mut(&id).ok_or(GuardRejected::NotApplicable)?;
        row.key.resolve(fence, resolution, at, now)
    }

    /// The runs that were lost first come first.
    fn lose(&mut self, now: Time) -> Vec<KeyId> {
        let mut running: Vec<&mut Row> = self.rows.values_mut().collect();
        running.sort_by_key(|row| row.key.record.lease_until);
        let lost = running.into_iter().filter_map(|row| {
            let lost = row.key.lose(now);
            lost.is_ok().then_some(row.key.shown.id)
        });
        lost.take(KEYS_PER_STEP_MAX).collect()
    }

    /// Forgets keys that are free; says how many.
    pub(super) fn reap(&mut self, now: Time) -> u32 {
        let before = self.rows.len();
        self.rows.retain(|_, row| !row.key.record.is_over(now));
        let rows = &self.rows;
        self.held.retain(|_, id| rows.contains_key(id));
        (before - self.rows.len()) as u32
    }

    /// How many it would forget.
    pub(super) fn reapable(&self, now: Time) -> u32 {
        let rows = self.rows.values();
        rows.filter(|row| row.key.record.is_over(now)).count() as u32
    }

    pub(super) fn count(&self) -> u64 {
        self.rows.len() as u64
    }
}

#[async_trait]
impl crate::Keys for ModelStore {
    async fn claim_key(&self, claim: KeyClaim) -> Result<KeyClaimed, StoreError> {
        Ok(self.lock().guarded.claim(&claim, (self.clock)()))
    }

    async fn extend_key(
        &self,
        id: KeyId,
        fence: Fence,
        lease: Span,
    ) -> Result<Result<(), GuardRejected>, StoreError> {
        let now = (self.clock)();
        Ok(self.lock().guarded.extend(id, fence, lease, now))
    }

    async fn settle_key(
        &self,
        id: KeyId,
        fence: Fence,
        ending: KeyEnding,
    ) -> Result<Result<Time, GuardRejected>, StoreError> {
        let now = (self.clock)();
        Ok(self.lock().guarded.settle(id, fence, &ending, now))
    }

    async fn key(&self, id: KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let now = (self.clock)();
        let state = self.lock();
        let row = state.guarded.rows.get(&id);
        Ok(row.and_then(|row| row.key.clone().seen(now)))
    }

    async fn keys(
        &self,
        filter: KeyFilter,
        page: Page<KeyId>,
    ) -> Result<Listed<KeyRecord, KeyId>, StoreError> {
        let now = (self.clock)();
        Ok(listing::page(&self.lock().guarded.rows, page, |row| {
            let seen = row.key.clone().seen(now);
            seen.filter(|record| filter.fits(record))
        }))
    }

    async fn resolve_key(
        &self,
        id: KeyId,
        fence: Fence,
        resolution: KeyResolution,
        by: Authority,
        answer: String,
    ) -> Result<Changed, StoreError> {
        let now = (self.clock)();
        let state = &mut *self.lock();
        let guarded = &mut state.guarded;
        let change = |_: &mut _| match guarded.resolve(id, fence, resolution, by.at, now) {
            Ok(()) => Changed::Done,
            Err(_) => Changed::NotFound,
        };
        let subject = id.to_string();
        Ok(state
            .catalog
            .change(&by, "key.resolve", subject, answer, change))
    }

    async fn lose_keys(&self) -> Result<Vec<KeyId>, StoreError> {
        let now = (self.clock)();
        Ok(self.lock().guarded.lose(now))
    }
}
