//! What a type means for its entity's life, as numbers, the same in every store.

use hapax_ledger::order::LifeStep;

const ORDINARY: i16 = 0;
const ENDS: i16 = 1;
const REOPENS: i16 = 2;

/// The number that stores keep.
pub(crate) const fn life_code(step: LifeStep) -> i16 {
    match step {
        LifeStep::Ordinary => ORDINARY,
        LifeStep::Ends => ENDS,
        LifeStep::Reopens => REOPENS,
    }
}

/// What the number means; what cannot be read is ordinary, which after an end asks for a person.
pub(crate) const fn life_step(code: i16) -> LifeStep {
    match code {
        ENDS => LifeStep::Ends,
        REOPENS => LifeStep::Reopens,
        _ => LifeStep::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_comes_back() {
        for step in [LifeStep::Ordinary, LifeStep::Ends, LifeStep::Reopens] {
            assert_eq!(life_step(life_code(step)), step);
        }
    }
}
