//! The only place that draws lots.

/// A lot between -1 and 1: how far a wait is spread.
pub fn jitter() -> f64 {
    f64::from(i32::from_be_bytes(bytes())) / f64::from(i32::MAX)
}

/// `N` random bytes from the operating system.
///
/// # Panics
/// If the operating system has no randomness to give, which no part of the program could survive in safety.
#[expect(clippy::disallowed_methods, reason = "the one door to randomness")]
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
