//! Chance that can be had again: everything that the demo leaves to chance follows from one seed and from what it is about, never from
//! who came first.

/// Lots of one seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lots {
    seed: u64,
}

impl Lots {
    pub(super) fn new(seed: u64) -> Lots {
        Lots { seed }
    }

    pub(super) fn seed(self) -> u64 {
        self.seed
    }

    /// A lot below `end`, the same for the same words.
    pub(super) fn below(self, end: u64, about: &[&str]) -> u64 {
        let mut state = mix(self.seed);
        for word in about {
            for byte in word.bytes().chain([0xff]) {
                state = mix(state ^ u64::from(byte));
            }
        }
        state % end.max(1)
    }
}

/// SplitMix64: short, and good enough to look like chance.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn the_same_seed_gives_the_same_lots_and_another_gives_others() {
    let draw = |seed: u64| -> Vec<u64> {
        let lots = Lots::new(seed);
        (0..50)
            .map(|number: u64| lots.below(6, &["mail", &number.to_string()]))
            .collect()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert!((0..6).all(|lot| draw(1).contains(&lot)));
}
