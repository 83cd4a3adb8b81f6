//! The API behind the guard. It remembers nothing: whenever it is asked, it charges.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::deed::{CHARGE, Deed, Mishap};
use super::tell::{Who, tell};
use super::world::{Act, Seen, World};

/// Longer than its client waits.
const SLOW: Duration = Duration::from_millis(400);

/// One request.
pub(super) async fn charge(world: &World, seen: &Seen) -> Act {
    let order = String::from_utf8_lossy(&seen.body).into_owned();
    let order = order.strip_prefix("order=").unwrap_or(&order).to_owned();
    // Refused before the work: the guard gives the key free, and the next try runs.
    if world.refuses_first(&order) {
        return Act::Busy;
    }
    let mut number = 0;
    world.log.decide((CHARGE, &order), |asked, _| {
        number = asked;
        Deed::Charged {
            order: order.clone(),
        }
    });
    match world.lots.below(8, &[CHARGE, &order]) {
        0 => {
            tell(
                Who::World,
                &format!("charge for {order}: done, then hung up"),
            );
            return Act::of(Mishap::HangsUp);
        }
        1..=3 => tokio::time::sleep(SLOW).await,
        _ => {}
    }
    Act::Answer(
        201,
        format!("{{\"order\":\"{order}\",\"charge\":{number}}}"),
    )
}

impl World {
    fn refuses_first(&self, order: &str) -> bool {
        let refuses = self.lots.below(8, &[CHARGE, order]) == 4;
        refuses && self.charges_refused.first_time(order)
    }
}

/// Orders that were refused before.
#[derive(Default)]
pub(super) struct Refused(Mutex<HashSet<String>>);

impl Refused {
    fn first_time(&self, order: &str) -> bool {
        let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        orders.insert(order.to_owned())
    }
}
