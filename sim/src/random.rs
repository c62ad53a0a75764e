//! A small deterministic generator, so that a seed gives the same run on every machine.
//!
//! xoshiro256**, seeded by SplitMix64. Not for secrets.

/// Pseudo-random numbers of one seed.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of a seed.
    pub fn seeded(seed: u64) -> Random {
        let mut mixer = seed;
        let state = [(); 4].map(|()| split_mix(&mut mixer));
        Random { state }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        let [first, second, third, fourth] = &mut self.state;
        let result = second.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *second << 17;
        *third ^= *first;
        *fourth ^= *second;
        *second ^= *third;
        *first ^= *fourth;
        *third ^= shifted;
        *fourth = fourth.rotate_left(45);
        result
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of the remainder is far below what a simulation could notice.
        self.number() % bound.max(1)
    }

    /// An index into a list of `length`.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// A number from `least` up to and including `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True with a probability of `percent`.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of a list that is not empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn a_seed_has_one_row_and_bounds_hold() {
    let row = |seed| {
        let mut random = Random::seeded(seed);
        [(); 8].map(|()| random.number())
    };
    assert_eq!(row(7), row(7));
    assert_ne!(row(7), row(8));
    let mut random = Random::seeded(1);
    for _ in 0..1000 {
        assert!(random.below(3) < 3);
        assert!((5..=9).contains(&random.between(5, 9)));
    }
    assert_eq!(random.below(0), 0);
}
