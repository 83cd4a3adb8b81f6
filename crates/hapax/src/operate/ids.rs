//! Ids of what operators make: runs, replays, tokens. They sort by time, and a lot tells two of the same moment apart.

use hapax_ledger::id::RawId;
use hapax_ledger::time::Time;

use crate::entropy;

/// A new id.
pub fn fresh(at: Time) -> RawId {
    RawId::new(at, 0, u64::from_be_bytes(entropy::bytes()))
}
