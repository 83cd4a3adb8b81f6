//! Which shards this node looks after, as of its latest beat, and until when it may rely on that; which of them go to other nodes.
//!
//! Nothing is claimed from the lanes of a shard that goes: it has to be idle before another node may send there (G6). So those that are
//! idle go first, and one that does not become so soon stays: the slow target of one lane would stop all others of its shard.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hapax_store::nouns::{Beaten, fair_share};

/// So long a shard may take to become idle, while its lanes claim nothing: at two beats it can be let go of, and most requests end
/// between them.
const IDLE_WITHIN: Duration = Duration::from_secs(2);
/// So long one that did not is left alone: its lanes stand still for a sixteenth of the time at most.
const REST: Duration = Duration::from_secs(30);

/// The node's view of what it holds. Counted from before each beat was sent, so that it ends no later than the store thinks.
#[derive(Debug, Default)]
pub struct Shards {
    held: BTreeSet<u16>,
    /// Those that go to other nodes, and since when.
    closing: BTreeMap<u16, Instant>,
    /// Those that did not become idle in time, and until when they are left alone.
    resting: BTreeMap<u16, Instant>,
    until: Option<Instant>,
    nodes: u32,
}

/// What a node may do with a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Look after it.
    Ours,
    /// Finish what is in memory: it goes to another node.
    Closing,
    /// Nothing.
    NotOurs,
}

impl Shards {
    /// What may be done with a shard now.
    pub fn hold(&self, shard: u16, now: Instant) -> Hold {
        if !self.is_relied_on(now) || !self.held.contains(&shard) {
            return Hold::NotOurs;
        }
        match self.closing.contains_key(&shard) {
            true => Hold::Closing,
            false => Hold::Ours,
        }
    }

    fn is_relied_on(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Are there other nodes?
    pub fn has_company(&self) -> bool {
        self.nodes > 1
    }

    /// All that is held.
    pub fn all(&self) -> Vec<u16> {
        self.held.iter().copied().collect()
    }

    /// Shards to let go of: those that go, as far as nothing of them is in memory. `busy` names those of which something is.
    pub fn to_let_go(&self, busy: impl FnOnce() -> BTreeSet<u16>) -> Vec<u16> {
        if self.closing.is_empty() {
            return Vec::new();
        }
        let busy = busy();
        let closing = self.closing.keys().copied();
        closing.filter(|shard| !busy.contains(shard)).collect()
    }

    /// A beat was answered at this moment. Gives the shards to look at: those that this node begins to look after, be they new to it,
    /// no longer meant for another, or perhaps another's meanwhile, since the beat before was long ago.
    pub fn beaten(
        &mut self,
        beaten: Beaten,
        shards: u16,
        until: Instant,
        now: Instant,
        busy: impl FnOnce() -> BTreeSet<u16>,
    ) -> Vec<u16> {
        let before = match self.is_relied_on(now) {
            true => self.kept(),
            false => BTreeSet::new(),
        };
        self.held = beaten.held.into_iter().collect();
        self.until = Some(until);
        self.nodes = beaten.nodes;
        let share = usize::from(fair_share(shards, beaten.nodes));
        match self.held.len().saturating_sub(share) {
            0 => {
                self.closing.clear();
                self.resting.clear();
            }
            surplus => self.choose(surplus, now, &busy()),
        }
        self.kept().difference(&before).copied().collect()
    }

    /// What is held and stays.
    fn kept(&self) -> BTreeSet<u16> {
        let held = self.held.iter().copied();
        held.filter(|shard| !self.closing.contains_key(shard))
            .collect()
    }

    /// Chooses anew which shards go.
    fn choose(&mut self, surplus: usize, now: Instant, busy: &BTreeSet<u16>) {
        self.resting.retain(|_, until| now < *until);
        for (shard, since) in &self.closing {
            if busy.contains(shard) && now >= *since + IDLE_WITHIN {
                self.resting.insert(*shard, now + REST);
            }
        }
        let mut candidates: Vec<(Readiness, Reverse<u16>)> = self
            .held
            .iter()
            .filter_map(|shard| Some((self.readiness(*shard, busy)?, Reverse(*shard))))
            .collect();
        candidates.sort_unstable();
        let chosen = candidates.iter().take(surplus).map(|(_, shard)| shard.0);
        self.closing = chosen
            .map(|shard| (shard, self.closing.get(&shard).copied().unwrap_or(now)))
            .collect();
    }

    /// How ready a shard is to go; `None` if it stays for now.
    fn readiness(&self, shard: u16, busy: &BTreeSet<u16>) -> Option<Readiness> {
        let (closing, resting) = (
            self.closing.contains_key(&shard),
            self.resting.contains_key(&shard),
        );
        match (busy.contains(&shard), closing, resting) {
            (true, _, true) => None,
            (_, true, _) => Some(Readiness::OnItsWay),
            (false, false, _) => Some(Readiness::Idle),
            (true, false, false) => Some(Readiness::Busy),
        }
    }
}

/// How ready a shard is to go, the readiest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Readiness {
    /// Chosen before: what its lanes have waited for so far is not in vain.
    OnItsWay,
    /// Nothing of it is in memory.
    Idle,
    /// Something is.
    Busy,
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Duration = Duration::from_secs(1);

    /// A node that holds these of four shards, and hears so at each beat.
    struct Node {
        shards: Shards,
        now: Instant,
    }

    impl Node {
        fn new() -> Node {
            let mut node = Node {
                shards: Shards::default(),
                now: crate::clock::tick(),
            };
            assert_eq!(node.beat(1, &[0, 1, 2, 3], &[]), [0, 1, 2, 3]);
            node
        }

        /// A second later.
        fn beat(&mut self, nodes: u32, held: &[u16], busy: &[u16]) -> Vec<u16> {
            self.now += BEAT;
            let beaten = Beaten {
                nodes,
                held: held.to_vec(),
                now: hapax_ledger::time::Time::from_secs(0),
            };
            let busy = busy.iter().copied().collect();
            let until = self.now + 3 * BEAT;
            self.shards.beaten(beaten, 4, until, self.now, || busy)
        }

        fn closing(&self) -> Vec<u16> {
            let closing = |shard: &u16| self.shards.hold(*shard, self.now) == Hold::Closing;
            (0..4).filter(closing).collect()
        }
    }

    #[test]
    fn a_node_gives_up_what_is_beyond_its_share_once_it_is_idle() {
        let mut node = Node::new();
        assert_eq!(node.shards.hold(3, node.now), Hold::Ours);
        assert!(node.beat(2, &[0, 1, 2, 3], &[2]).is_empty());
        assert_eq!(node.closing(), [1, 3]);
        assert_eq!(node.shards.to_let_go(|| [3].into()), [1]);
        // The other node has gone before it got them: what was not looked after meanwhile is looked at.
        assert_eq!(node.beat(1, &[0, 1, 2, 3], &[]), [1, 3]);
        assert_eq!(node.shards.hold(1, node.now + 3 * BEAT), Hold::NotOurs);
    }

    /// Another node may have looked after them in between, and have gone.
    #[test]
    fn what_was_not_relied_on_any_more_is_gained_anew() {
        let mut node = Node::new();
        assert!(node.beat(1, &[0, 1, 2, 3], &[]).is_empty());
        node.now += 3 * BEAT;
        assert_eq!(node.beat(1, &[0, 1, 2, 3], &[]), [0, 1, 2, 3]);
    }

    #[test]
    fn idle_shards_go_before_busy_ones() {
        let mut node = Node::new();
        node.beat(2, &[0, 1, 2, 3], &[2, 3]);
        assert_eq!(node.closing(), [0, 1]);
        let mut node = Node::new();
        node.beat(2, &[0, 1, 2, 3], &[1, 2, 3]);
        assert_eq!(node.closing(), [0, 3], "one is idle, and another has to go");
    }

    /// A request that takes minutes stops nobody for longer than two beats, and the next in turn goes instead.
    #[test]
    fn one_that_does_not_become_idle_stays_and_another_goes() {
        let mut node = Node::new();
        let all = [0, 1, 2, 3];
        node.beat(2, &all, &all);
        assert_eq!(node.closing(), [2, 3]);
        assert!(node.beat(2, &[0, 1, 3], &[0, 1, 3]).is_empty(), "2 is gone");
        assert_eq!(node.closing(), [3]);
        assert_eq!(
            node.beat(2, &[0, 1, 3], &[0, 1, 3]),
            [3],
            "it took too long"
        );
        assert_eq!(node.closing(), [1]);
        // It is idle before its time is over, and goes.
        node.beat(2, &[0, 1, 3], &[0, 3]);
        assert_eq!(node.shards.to_let_go(|| [0, 3].into()), [1]);
        assert!(node.beat(2, &[0, 3], &[0, 3]).is_empty());
        assert!(node.closing().is_empty(), "the share is reached");
    }

    /// Where all of them are busy for long, they take turns at being tried; what has become idle goes at once.
    #[test]
    fn those_that_were_tried_are_left_alone_for_a_while() {
        let mut node = Node::new();
        let all = [0, 1, 2, 3];
        let mut stood_still = [0; 4];
        for _ in 0..32 {
            node.beat(2, &all, &all);
            for shard in node.closing() {
                stood_still[usize::from(shard)] += 1;
            }
        }
        assert_eq!(stood_still, [2; 4], "beats without a claim");
        assert!(node.closing().is_empty());
        node.beat(2, &all, &[0, 2, 3]);
        assert_eq!(node.closing(), [1, 3], "idle, and rested long enough");
    }
}
