//! The only place that draws lots.

use std::cell::RefCell;
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

/// So many are drawn at a time.
const DRAWS: usize = 32;

thread_local! {
    /// Drawn, and not given out yet.
    static DRAWN: RefCell<Vec<Draw>> = const { RefCell::new(Vec::new()) };
}

/// A nonce for one sealed answer, from the operating system, which is asked for many at a time. Each thread has its own, and gives none out twice.
pub(crate) fn draw() -> Draw {
    DRAWN.with_borrow_mut(|drawn| match drawn.pop() {
        Some(draw) => draw,
        None => {
            let [draw, rest @ ..] = draws();
            drawn.extend(rest);
            draw
        }
    })
}

/// # Panics
/// If the operating system has no randomness to give, which no part of the program could survive in safety.
#[expect(clippy::disallowed_methods, reason = "the one door to randomness")]
fn draws() -> [Draw; DRAWS] {
    let mut draws = [Draw::default(); DRAWS];
    getrandom::fill(draws.as_flattened_mut()).expect("the operating system gives random bytes");
    draws
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{DRAWS, draw};

    #[test]
    fn no_draw_comes_twice() {
        let draw_many = || (0..3 * DRAWS + 1).map(|_| draw()).collect::<HashSet<_>>();
        let elsewhere = std::thread::spawn(draw_many).join();
        let mut all = elsewhere.expect("it does not panic");
        all.extend(draw_many());
        assert_eq!(all.len(), 2 * (3 * DRAWS + 1));
    }
}
