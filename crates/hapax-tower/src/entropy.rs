//! The only place that draws lots.

use hapax_store::vault::Draw;

/// A nonce for one sealed answer, from the operating system.
///
/// # Panics
/// If the operating system has no randomness to give, which no part of the program could survive in safety.
#[expect(clippy::disallowed_methods, reason = "the one door to randomness")]
pub(crate) fn draw() -> Draw {
    let mut draw = Draw::default();
    getrandom::fill(&mut draw).expect("the operating system gives random bytes");
    draw
}
