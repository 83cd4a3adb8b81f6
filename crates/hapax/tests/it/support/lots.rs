//! Randomness from a seed: a run that failed can be run again.

/// Numbers that look random (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Lots(u64);

impl Lots {
    pub(crate) fn new(seed: u64) -> Lots {
        Lots(seed)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut lot = self.0;
        lot = (lot ^ (lot >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        lot = (lot ^ (lot >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        lot ^ (lot >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.draw() % bound as u64).expect("below a usize")
    }

    /// Lets a random, small amount of time pass by doing nothing useful: up to about `steps` additions. So that a crash hits any
    /// step of what goes on meanwhile.
    pub(crate) fn linger(&mut self, steps: usize) {
        for _ in 0..self.below(steps) {
            std::hint::spin_loop();
        }
    }
}
