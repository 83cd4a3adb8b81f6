//! The model, through the suite that it is the measure of.

use std::sync::Arc;

use hapax_store::Store;
use hapax_store::conformance::sample::{Dial, still_clock};
use hapax_store::model::ModelStore;

fn run<F, Fut>(check: F)
where
    F: FnOnce(Arc<dyn Store>) -> Fut,
    Fut: Future<Output = ()>,
{
    crate::runtime().block_on(check(Arc::new(ModelStore::new(still_clock()))));
}

hapax_store::conformance_tests!(crate::model::run);

fn run_effects<F, Fut>(check: F)
where
    F: FnOnce(Arc<dyn Store>, Dial) -> Fut,
    Fut: Future<Output = ()>,
{
    let dial = Dial::default();
    crate::runtime().block_on(check(Arc::new(ModelStore::new(dial.clock())), dial));
}

hapax_store::conformance_tests!(effects crate::model::run_effects);

/// The comparison itself: the model agrees with itself.
#[test]
fn the_model_agrees_with_itself() {
    use hapax_store::conformance::differential::agrees_with_the_model;
    let dial = Dial::default();
    let fresh = || async { Arc::new(ModelStore::new(dial.clock())) as Arc<dyn Store> };
    agrees_with_the_model(
        &crate::runtime(),
        crate::differential_cases(64),
        &dial,
        fresh,
    );
}
