//! How many a second: the sender alone, and effects from accept to done.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use hapax::clock;
use hapax::config::Config;
use hapax::dispatch::request::{self, BodyMode, EffectPart, EffectRequest, EventPart};
use hapax::dispatch::sender::Outgoing;
use hapax::dispatch::target::{Target, Way};
use hapax::dispatch::{Sender, Settings, Targets};
use hapax_ledger::effect::Repeat;
use hapax_ledger::id::{EffectId, EventId, RawId};
use hapax_ledger::outcome::{Evidence, classify};
use hapax_ledger::time::Span;
use tokio::sync::Semaphore;

use crate::Order;
use crate::arrival::{Maker, body};
use crate::fill::fill;
use crate::round::{Tally, rounds};
use crate::setup::{Bench, Declared, config};

/// Requests under way at a time, the same with and without a ledger.
const CONCURRENCY: u64 = 64;
/// How often the outstanding effects are counted: the finest that tokio's timer has.
const COUNTED_EVERY: Duration = Duration::from_millis(1);
/// How long the first effect may take: it waits for the dispatcher's first look, no longer.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// The effect that is measured.
pub(crate) const EFFECT: &str = "sink";
/// Effects beside it in whose lanes something waits.
const OTHERS: u64 = 100;
/// What waits is due long after the bench.
const FAR: Span = Span::from_days(30);

/// Requests a second that the sender makes with all slots always in use: the request that the dispatcher would send, built anew
/// each time.
pub(crate) async fn bare(order: &Order) -> anyhow::Result<()> {
    let target = target(&declared(order)?)?;
    let sender = Arc::new(Sender::new(Settings::default())?);
    let tally = Arc::new(Tally::default());
    for task in 0..CONCURRENCY {
        let (sender, tally, target) = (sender.clone(), tally.clone(), target.clone());
        let body_bytes = order.body_bytes;
        tokio::spawn(async move {
            for round in 0.. {
                let request = outgoing(&target, round * CONCURRENCY + task, body_bytes);
                let sent = sender.send(request).await;
                match classify(sent.outcome) {
                    Evidence::Applied => tally.done_within(sent.duration),
                    _ => tally.broken(sent.error.unwrap_or_else(|| "not 2xx".to_owned())),
                }
            }
        });
    }
    rounds(order, &[&tally]).await
}

/// The target of the measured effect.
pub(crate) fn target(config: &Config) -> anyhow::Result<Arc<Target>> {
    let targets = Targets::new(&config.effects, &config.sources, 1);
    let target = targets.get(EFFECT).cloned();
    target.ok_or_else(|| anyhow::anyhow!("the bench declares its effects"))
}

/// What the dispatcher would send.
pub(crate) fn outgoing(target: &Target, number: u64, body_bytes: usize) -> Outgoing {
    let now = clock::now();
    let id = RawId::new(now, 0, number);
    let key = format!("evt_0123456789abcdef_{number}");
    let body = body(&key, body_bytes);
    let Way::Effect(to) = &target.way else {
        unreachable!("the targets of a config are effects");
    };
    request::build(EffectRequest {
        url: to.effect.url.uri().clone(),
        timeout: target.timeout,
        headers: &to.effect.headers,
        signer: to.signer.as_ref(),
        secrets: target.secrets.clone(),
        body_mode: BodyMode::Raw,
        event: EventPart {
            id: EventId(id),
            source: &to.effect.source,
            event_type: Some("invoice.paid"),
            key: &key,
            received_at: now,
            content_type: Some("application/json"),
            body: &body,
        },
        effect: EffectPart {
            id: EffectId(id),
            name: EFFECT,
            key: &key,
            generation: 1,
            attempt: 1,
            repeat: Repeat::Keyed,
        },
        snapshot: None,
        now,
    })
}

/// Effects a second from accept to done, durable both times. The latencies are those of the accept.
pub(crate) async fn settled(order: &Order) -> anyhow::Result<()> {
    let mut bench = Bench::open(declared(order)?).await?;
    let maker = Arc::new(Maker::new(order.body_bytes));
    if order.fill > 0 {
        fill(&bench, &maker, waiting(&bench)?, order.fill, FAR).await?;
    }
    bench.dispatch();
    first(&bench, &maker).await?;
    let (bench, tally) = (Arc::new(bench), Arc::new(Tally::default()));
    let room = Arc::new(Semaphore::new(order.outstanding));
    let effect = bench.effect(EFFECT)?;
    let mut accepting = tokio::task::JoinSet::new();
    // As many tasks as there can be outstanding effects: accepting never waits for a task, only for room.
    for _ in 0..order.outstanding {
        let (bench, maker, tally) = (bench.clone(), maker.clone(), tally.clone());
        let (room, effect) = (room.clone(), effect.clone());
        accepting.spawn(async move {
            // The semaphore is closed at the end.
            while let Ok(place) = room.acquire().await {
                let made = maker.due(&effect);
                let began = clock::tick();
                match bench.accept(made.arrival).await {
                    Ok(_) => place.forget(),
                    Err(error) => tally.broken(error.to_string()),
                }
                tally.took(clock::since(began));
            }
        });
    }
    let counting = tokio::spawn(count(bench.clone(), tally.clone(), room.clone()));
    let counted = rounds(order, &[&tally]).await;
    room.close();
    accepting.join_all().await;
    counting.abort();
    // Its end cannot fail otherwise than by the abort.
    let _ = counting.await;
    if let Some(bench) = Arc::into_inner(bench) {
        bench.close().await?;
    }
    counted
}

/// One effect alone, until it is done: before the dispatcher holds its shards everything waits in the store, and a measurement that began
/// with such a queue would go on with it.
async fn first(bench: &Bench, maker: &Maker) -> anyhow::Result<()> {
    let effect = bench.effect(EFFECT)?;
    bench.accept(maker.due(&effect).arrival).await?;
    let began = clock::tick();
    while bench.metrics.effects.done(EFFECT) == 0 {
        ensure!(
            clock::since(began) < FIRST_WAIT,
            "the first effect was not done in time: is the receiver there?"
        );
        tokio::time::sleep(COUNTED_EVERY).await;
    }
    Ok(())
}

/// Counts what is done, and makes room for as many.
async fn count(bench: Arc<Bench>, tally: Arc<Tally>, room: Arc<Semaphore>) {
    let mut known = bench.metrics.effects.done(EFFECT);
    loop {
        tokio::time::sleep(COUNTED_EVERY).await;
        let done = bench.metrics.effects.done(EFFECT);
        tally.done(done - known);
        room.add_permits(usize::try_from(done - known).unwrap_or(usize::MAX));
        known = done;
    }
}

fn declared(order: &Order) -> anyhow::Result<Config> {
    let declared = |name: String| Declared {
        name,
        to: order.sink,
        more: format!("concurrency = {CONCURRENCY}"),
    };
    let others = (0..OTHERS).map(|number| declared(format!("other{number}")));
    let all: Vec<Declared> = others.chain([declared(EFFECT.to_owned())]).collect();
    config(&order.store, &all)
}

/// Where effects wait: every second one in the measured lane, the rest in the others by turns.
fn waiting(bench: &Bench) -> anyhow::Result<Vec<Arc<hapax::config::EffectConfig>>> {
    let measured = bench.effect(EFFECT)?;
    let others = bench
        .effects
        .iter()
        .filter(|effect| &*effect.name != EFFECT);
    let pairs = others.flat_map(|other| [measured.clone(), other.clone()]);
    Ok(pairs.collect())
}
