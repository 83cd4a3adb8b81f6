//! Leases and fences: who may write, and until when.
//!
//! A claim gives a worker a lease that ends by the store's clock, and a fence. The fence rises on every claim of
//! the same effect and never falls (invariant C1); every write names its fence, so that a worker that was
//! paused beyond its lease changes nothing when it wakes (C2).

use crate::time::{Span, Time};

/// Bits of a fence that count claims; the store's epoch stands above them. An epoch lasts for one start of the process, and
/// a million claims of one effect within it will not happen; both together stay exact in a JSON number.
const COUNTER_BITS: u32 = 20;

/// A rising number that a worker must show with every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(u64);

impl Fence {
    /// No claim yet.
    pub const NONE: Fence = Fence(0);

    /// The fence with this number.
    pub const fn from_u64(value: u64) -> Fence {
        Fence(value)
    }

    /// Its number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The next higher fence. A restored store has a higher epoch, and so outruns every fence given before.
    pub fn next(self, epoch: u32) -> Fence {
        let floor = u64::from(epoch) << COUNTER_BITS;
        Fence(self.0.max(floor) + 1)
    }
}

/// The right to work on something until a time, shown by a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Shown with every write.
    pub fence: Fence,
    /// From here on another worker may take over, by the store's clock.
    pub until: Time,
}

impl Lease {
    /// Has the lease run out? It has at `until` itself: two workers never both hold it.
    pub fn expired(&self, now: Time) -> bool {
        now >= self.until
    }

    /// Is there room for work of length `needed`? A worker starts nothing it cannot finish (C4).
    pub fn covers(&self, now: Time, needed: Span) -> bool {
        now + needed < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_rises_on_every_claim_and_over_a_restore() {
        let first = Fence::NONE.next(1);
        let second = first.next(1);
        let restored = first.next(2);
        assert!(Fence::NONE < first && first < second);
        assert!(
            second < restored,
            "a restored store forgets `second` but outruns it"
        );
    }

    #[test]
    fn a_lease_ends_at_its_last_instant() {
        let lease = Lease {
            fence: Fence::NONE.next(1),
            until: Time::from_secs(30),
        };
        assert!(!lease.expired(Time::from_micros(29_999_999)));
        assert!(lease.expired(Time::from_secs(30)));
        assert!(lease.covers(Time::from_secs(10), Span::from_secs(19)));
        assert!(!lease.covers(Time::from_secs(10), Span::from_secs(20)));
    }
}
