//! Lanes that would claim from the store stand in line, shard by shard; those that only failed wait for a trial before they may.
//!
//! A claim, a start and a settlement cost the store the same whether the target is well or not. So however many lanes have something to do,
//! few claims are under way at a time, and lanes that only failed are let in some at a time.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_store::nouns::lane_shard;

/// Claims of one shard under way at a time: one is put together while the other commits.
pub(super) const CLAIMS_PER_SHARD_MAX: u32 = 2;
/// Claims under way at a time, whatever their shards.
const CLAIMS_UNDER_WAY_MAX: u32 = 8;
/// Of lanes that only failed so many are tried, where many wait in commits that they share,
pub(super) const TRIALS_MAX: usize = 16;
/// within this time: all at once and then a while none, so that of what is sent to others few wait for them. A lane that only fails is left
/// alone for up to a minute, so up to a thousand of them have their turns as if there were no limit; of ten thousand each has its turn within
/// eleven minutes. Without a limit their trials would be most of what the store does.
pub(super) const TRIALS_EVERY: Duration = Duration::from_secs(1);

/// Those who would claim.
pub(super) struct Lines {
    /// By shard.
    lines: Vec<Line>,
    /// The shard whose line is served next.
    next: usize,
    /// Claims under way, of all shards.
    claims: u32,
    /// Lanes that only failed, those that wait longest first.
    trials: VecDeque<Arc<str>>,
    /// So many more may be tried
    trials_left: usize,
    /// until then, when it begins anew.
    trials_until: Option<Instant>,
    /// All that stand in line or wait for a trial.
    names: HashSet<Arc<str>>,
}

/// Lanes of one shard, those that wait longest first.
#[derive(Default)]
struct Line {
    lanes: VecDeque<Arc<str>>,
    /// Claims under way.
    claims: u32,
}

impl Line {
    fn can_be_served(&self) -> bool {
        !self.lanes.is_empty() && self.claims < CLAIMS_PER_SHARD_MAX
    }
}

impl Lines {
    /// Nobody yet, in so many shards.
    pub(super) fn new(shards: u16) -> Lines {
        Lines {
            lines: (0..shards).map(|_| Line::default()).collect(),
            next: 0,
            claims: 0,
            trials: VecDeque::new(),
            trials_left: TRIALS_MAX,
            trials_until: None,
            names: HashSet::new(),
        }
    }

    /// Does it stand in line, or wait for a trial?
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// A lane joins its line, at the end.
    pub(super) fn join(&mut self, name: &Arc<str>) {
        if self.names.insert(name.clone()) {
            let shard = self.shard_of(name);
            self.lines[shard].lanes.push_back(name.clone());
        }
    }

    /// A lane that only failed waits for its trial.
    pub(super) fn wait_for_trial(&mut self, name: &Arc<str>) {
        if self.names.insert(name.clone()) {
            self.trials.push_back(name.clone());
        }
    }

    /// Those that wait for a trial join their lines, as many as may.
    pub(super) fn let_trials_in(&mut self, now: Instant) {
        if self.trials.is_empty() {
            return;
        }
        if self.trials_until.is_none_or(|until| until <= now) {
            self.trials_until = Some(now + TRIALS_EVERY);
            self.trials_left = TRIALS_MAX;
        }
        let some = self.trials.len().min(self.trials_left);
        self.trials_left -= some;
        let next = self.trials.drain(..some);
        for name in next.collect::<Vec<_>>() {
            let shard = self.shard_of(&name);
            self.lines[shard].lanes.push_back(name);
        }
    }

    /// A shard for whose line a claim can be made, each in turn.
    pub(super) fn next_shard(&mut self) -> Option<u16> {
        if self.claims >= CLAIMS_UNDER_WAY_MAX {
            return None;
        }
        let all = self.lines.len();
        let mut turns = (self.next..self.next + all).map(|turn| turn % all);
        let shard = turns.find(|shard| self.lines[*shard].can_be_served())?;
        self.next = (shard + 1) % all;
        Some(shard as u16)
    }

    /// The lane that stands first in a shard's line leaves it.
    pub(super) fn take(&mut self, shard: u16) -> Option<Arc<str>> {
        let name = self.lines[usize::from(shard)].lanes.pop_front()?;
        self.names.remove(&name);
        Some(name)
    }

    /// A claim from this shard is under way.
    pub(super) fn claim_begins(&mut self, shard: u16) {
        self.claims += 1;
        self.lines[usize::from(shard)].claims += 1;
    }

    /// It has been answered.
    pub(super) fn claim_ended(&mut self, shard: u16) {
        let line = &mut self.lines[usize::from(shard)];
        line.claims = line.claims.saturating_sub(1);
        self.claims = self.claims.saturating_sub(1);
    }

    /// Can a claim be made for anybody?
    pub(super) fn can_be_served(&self) -> bool {
        self.claims < CLAIMS_UNDER_WAY_MAX && self.lines.iter().any(Line::can_be_served)
    }

    /// When the next trial may be, if anybody waits for one.
    pub(super) fn next_trial(&self, now: Instant) -> Option<Instant> {
        match self.trials.is_empty() {
            true => None,
            false if self.trials_left > 0 => Some(now),
            false => Some(self.trials_until.map_or(now, |until| until.max(now))),
        }
    }

    fn shard_of(&self, name: &str) -> usize {
        usize::from(lane_shard(name, self.lines.len() as u16))
    }
}
