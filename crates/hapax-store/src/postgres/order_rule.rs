//! What of an effect's order was frozen, as one number beside its entity and version.

use hapax_ledger::order::PlannedOrder;

use crate::order_code::{life_code, life_step};

const SERIAL: i16 = 1;
const SNAPSHOT: i16 = 2;
const REVIEW: i16 = 4;
/// What the type means for the entity stands above the flags.
const LIFE_SHIFT: u32 = 3;

/// The number that is kept.
pub(super) fn rule_code(order: &PlannedOrder) -> i16 {
    let flags = [
        (order.serial, SERIAL),
        (order.snapshot, SNAPSHOT),
        (order.review, REVIEW),
    ];
    let set = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag);
    set.sum::<i16>() | life_code(order.life_step) << LIFE_SHIFT
}

/// The order that was kept.
pub(super) fn to_order(rule: i16, entity: String, version: Option<String>) -> PlannedOrder {
    PlannedOrder {
        entity,
        serial: rule & SERIAL != 0,
        version,
        life_step: life_step(rule >> LIFE_SHIFT),
        snapshot: rule & SNAPSHOT != 0,
        review: rule & REVIEW != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_back() {
        for code in 0..3 << LIFE_SHIFT {
            let order = to_order(code, "inv_1".into(), Some("7".into()));
            assert_eq!(rule_code(&order), code);
        }
    }
}
