//! Lanes: the unit of isolation. Which have something to do, how much room a node has for them, and who looks after which.
//!
//! A lane lives in one shard, and a shard is looked after by one node at a time. So whatever holds for a lane (its cap, its rate,
//! its breaker) holds over all nodes.

use std::sync::Arc;

use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::time::{Span, Time};

/// Lanes that one look at a shard names at most; the next look goes on after the last of them.
pub const LANES_PER_LOOK_MAX: u32 = 1_000;

/// The shard in which a lane's effects wait.
pub fn lane_shard(lane: &str, shards: u16) -> u16 {
    KeyHash::of(KeyKind::Lane, "", lane).shard(shards)
}

/// A lane and how many more of its effects a node can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRoom {
    /// The lane.
    pub lane: Arc<str>,
    /// At most so many.
    pub room: u32,
}

/// A lane that has something to do, and from when on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneDue {
    /// The lane.
    pub lane: Arc<str>,
    /// When the earliest of its claimable effects is due.
    pub at: Time,
}

/// A node saying that it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Its name, different for every start of every process.
    pub node: Arc<str>,
    /// For how long it is believed, and holds its shards.
    pub lease: Span,
    /// Shards it has finished with and gives to others.
    pub let_go: Vec<u16>,
    /// Does it go on?
    pub stay: Stay,
}

/// Does a node go on?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// Yes.
    Stays,
    /// Not for long: it keeps what it has until it lets go of it, is given nothing, and does not count among those that share.
    Leaves,
}

/// What a node hears in return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beaten {
    /// What time it is by the store's clock.
    pub now: Time,
    /// How many nodes are there, this one included.
    pub nodes: u32,
    /// The shards that this node looks after until its lease ends. Beyond its fair share it may keep what it has, but should
    /// finish and let go; below, it is given what is free.
    pub held: Vec<u16>,
}

/// The most shards that one of so many nodes is given.
pub fn fair_share(shards: u16, nodes: u32) -> u16 {
    let nodes = u16::try_from(nodes.max(1)).unwrap_or(u16::MAX);
    shards.div_ceil(nodes)
}
