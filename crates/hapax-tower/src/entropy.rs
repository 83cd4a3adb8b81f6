//! The only place that draws lots.

use std::sync::{Arc, OnceLock};

use hapax_store::vault::Draw;

/// A name for this process, with a lot in it that no other draws: in containers many processes have the same number.
pub(crate) fn node_name() -> Arc<str> {
    static NAME: OnceLock<Arc<str>> = OnceLock::new();
    NAME.get_or_init(|| {
        let drawn = draw();
        let lot = u64::from_be_bytes(std::array::from_fn(|nth| drawn[nth]));
        format!("process-{}-{lot:016x}", std::process::id()).into()
    })
    .clone()
}

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
