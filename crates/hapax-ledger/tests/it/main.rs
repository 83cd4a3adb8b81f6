//! Stories of the ledger, told in its script language and played on the pure functions over a map.

mod effect;
mod guard;
mod identity;

use hapax_ledger::lease::Fence;
use hapax_ledger::script::{Line, ScriptError, play};

/// Plays one script, and shows every line that went wrong.
fn tell(name: &str, text: &str, perform: impl FnMut(&Line) -> Result<String, ScriptError>) {
    if let Err(wrong) = play(text, perform) {
        let lines: Vec<String> = wrong
            .iter()
            .map(|error| format!("{name} {error}"))
            .collect();
        panic!("\n{}\n", lines.join("\n"));
    }
}

/// Scripts count the claims of one epoch from 1; a fence has the epoch inside.
fn fence_in_epoch(epoch: u32, claims: u64) -> Fence {
    Fence::from_u64(Fence::NONE.next(epoch).as_u64() - 1 + claims)
}

/// How many claims of this epoch a fence counts.
fn claims_in_epoch(epoch: u32, fence: Fence) -> u64 {
    fence.as_u64() + 1 - Fence::NONE.next(epoch).as_u64()
}
