//! Effects that are there before the measurement.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hapax::config::EffectConfig;
use hapax_ledger::time::Span;
use hapax_store::StoreError;

use crate::arrival::Maker;
use crate::setup::Bench;

/// Calls that fill the store at a time: large groups, and still within the writer's queue.
const FILLERS: u64 = 512;
/// How often the progress is said.
const SAID_EVERY: u64 = 100_000;

/// Stores `count` effects, one after the other in each of `lanes`, due after `wait`. Must come before the dispatcher runs.
pub(crate) async fn fill(
    bench: &Bench,
    maker: &Arc<Maker>,
    lanes: Vec<Arc<EffectConfig>>,
    count: u64,
    wait: Span,
) -> anyhow::Result<()> {
    let (lanes, next) = (Arc::new(lanes), Arc::new(AtomicU64::new(0)));
    let fillers = (0..FILLERS).map(|_| {
        let (store, maker) = (bench.store.clone(), maker.clone());
        let (lanes, next) = (lanes.clone(), next.clone());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let lane = number % lanes.len() as u64;
                let Some(effect) = lanes.get(lane as usize).filter(|_| number < count) else {
                    return Ok::<(), StoreError>(());
                };
                store.accept(maker.with(effect, wait).arrival).await?;
                if (number + 1).is_multiple_of(SAID_EVERY) {
                    eprintln!("filled {} of {count}", number + 1);
                }
            }
        })
    });
    for filler in fillers.collect::<Vec<_>>() {
        filler.await??;
    }
    Ok(())
}
