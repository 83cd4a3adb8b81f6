//! Which shards this node looks after, as of its latest beat, and until when it may rely on that.

use std::collections::BTreeSet;
use std::time::Instant;

use hapax_store::nouns::{Beaten, fair_share};

/// The node's view of what it holds. Counted from before each beat was sent, so that it ends no later than the store thinks.
#[derive(Debug, Default)]
pub struct Shards {
    held: BTreeSet<u16>,
    closing: BTreeSet<u16>,
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
        let relied_on = self.until.is_some_and(|until| now < until);
        if !relied_on || !self.held.contains(&shard) {
            return Hold::NotOurs;
        }
        match self.closing.contains(&shard) {
            true => Hold::Closing,
            false => Hold::Ours,
        }
    }

    /// Until when the shards are held, as of the latest beat.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Are there other nodes?
    pub fn has_company(&self) -> bool {
        self.nodes > 1
    }

    /// All that is held.
    pub fn all(&self) -> Vec<u16> {
        self.held.iter().copied().collect()
    }

    /// Shards to let go of, as far as nothing of them is in memory.
    pub fn to_let_go(&self, is_idle: impl Fn(u16) -> bool) -> Vec<u16> {
        let closing = self.closing.iter().copied();
        closing.filter(|shard| is_idle(*shard)).collect()
    }

    /// A beat was answered. Gives the shards to look at: those that this node begins to look after, be they new to it or no longer
    /// meant for another.
    pub fn beaten(&mut self, beaten: Beaten, shards: u16, until: Instant) -> Vec<u16> {
        let held: BTreeSet<u16> = beaten.held.into_iter().collect();
        let before = &self.held - &self.closing;
        // The highest numbers go first: any rule will do, as long as it is the same at each beat.
        let share = usize::from(fair_share(shards, beaten.nodes));
        self.closing = held.iter().copied().skip(share).collect();
        self.held = held;
        self.until = Some(until);
        self.nodes = beaten.nodes;
        let kept = &self.held - &self.closing;
        kept.difference(&before).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_node_gives_up_what_is_beyond_its_share_once_it_is_idle() {
        let now = crate::clock::tick();
        let until = now + Duration::from_secs(1);
        let mut shards = Shards::default();
        let beaten = |nodes, held: std::ops::Range<u16>| Beaten {
            nodes,
            held: held.collect(),
            now: hapax_ledger::time::Time::from_secs(0),
        };
        assert_eq!(shards.beaten(beaten(1, 0..4), 4, until), [0, 1, 2, 3]);
        assert_eq!(shards.hold(3, now), Hold::Ours);
        assert!(shards.beaten(beaten(2, 0..4), 4, until).is_empty());
        assert_eq!(shards.hold(1, now), Hold::Ours);
        assert_eq!(shards.hold(3, now), Hold::Closing);
        assert_eq!(shards.to_let_go(|shard| shard == 3), [3]);
        // The other node has gone before it got them: what was not looked after meanwhile is looked at.
        assert_eq!(shards.beaten(beaten(1, 0..4), 4, until), [2, 3]);
        assert_eq!(shards.hold(1, until), Hold::NotOurs);
    }
}
