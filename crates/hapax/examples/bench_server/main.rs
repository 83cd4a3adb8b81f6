//! The server of `cargo xt bench intake`: the real one, over a store named on the command line, or over nothing.
//!
//! `bench_server PORT none|sqlite:PATH|postgres://... [FILL]` serves `/in/bench` until its stdin is closed. With FILL it
//! first stores that many events.

mod catalog;
mod keys;
mod outbox;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use hapax::config::{Config, Limits, StoreTarget};
use hapax::http::listen;
use hapax::http::serve::open;
use hapax::http::setup::Server;
use hapax_ledger::event::KeyOrigin;
use hapax_ledger::id::{EffectId, EventId, RawId};
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};
use hapax_ledger::transition::{Resolution, Resolver};
use hapax_store::nouns::{
    Advanced, Arrival, Beat, Beaten, ClaimAsk, Claims, Command, Commanded, Effect, EffectCounts,
    EffectDetail, EffectFilter, Event, EventDetail, EventFacts, EventFilter, Keep, LaneDue, Listed,
    Move, Moved, NewEvent, OnFailed, OwnClaim, OwnClaimed, Page, Parcel, PayloadAnswer, Proof,
    Reaped, Receipt, Receipted, Rescued, StoreStats,
};
use hapax_store::{Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Calls that fill the store at a time.
const FILLERS: u64 = 512;

/// There is nothing to move.
const NOT_MOVED: Advanced = Advanced {
    moved: Moved::NoEffect,
    opened: Vec::new(),
};

/// Keeps nothing and answers at once: the ceiling.
#[derive(Default)]
struct NoStore {
    rows: AtomicU64,
}

#[async_trait]
impl Store for NoStore {
    async fn accept(&self, arrival: Arrival) -> Result<Vec<Receipt>, StoreError> {
        let receipt = |_: &NewEvent| {
            let row = self.rows.fetch_add(1, Ordering::Relaxed);
            let event = EventId(RawId::new(arrival.at, 0, row));
            Receipt {
                event,
                sighting: Receipted::New,
                needs_review: false,
                claims: Vec::new(),
                revived: Vec::new(),
            }
        };
        Ok(arrival.events.iter().map(receipt).collect())
    }
    async fn sighted(&self, _: &str, _: &str, _: Time) -> Result<Option<EventId>, StoreError> {
        Ok(None)
    }
    async fn event(&self, _: EventId) -> Result<Option<EventDetail>, StoreError> {
        Ok(None)
    }
    async fn payload(&self, _: EventId) -> Result<PayloadAnswer, StoreError> {
        Ok(PayloadAnswer::NoEvent)
    }
    async fn events(&self, _: EventFilter, _: Page) -> Result<Listed<Event>, StoreError> {
        Ok(Listed::default())
    }
    fn shards(&self) -> u16 {
        1
    }
    async fn beat(&self, _: Beat) -> Result<Beaten, StoreError> {
        Ok(Beaten {
            now: hapax::clock::now(),
            nodes: 1,
            held: vec![0],
        })
    }
    async fn leave(&self, _: &str) -> Result<(), StoreError> {
        Ok(())
    }
    async fn due(&self, _: u16, _: Option<&str>) -> Result<Vec<LaneDue>, StoreError> {
        Ok(Vec::new())
    }
    async fn wake(&self, _: Vec<Arc<str>>) {}
    async fn woken(&self) -> Vec<u16> {
        std::future::pending().await
    }
    async fn claim(&self, ask: ClaimAsk) -> Result<Claims, StoreError> {
        Ok(Claims {
            claimed: Vec::new(),
            next: vec![None; ask.lanes.len()],
        })
    }
    async fn advance(&self, _: EffectId, _: Fence, _: Move) -> Result<Advanced, StoreError> {
        Ok(NOT_MOVED)
    }
    async fn resolve(
        &self,
        _: EffectId,
        _: Resolution,
        _: Resolver,
    ) -> Result<Advanced, StoreError> {
        Ok(NOT_MOVED)
    }
    async fn rescue(&self, _: Vec<u16>) -> Result<Rescued, StoreError> {
        Ok(Rescued::default())
    }
    async fn parcels(&self, events: Vec<EventId>) -> Result<Vec<Option<Parcel>>, StoreError> {
        Ok(vec![None; events.len()])
    }
    async fn effect(&self, _: EffectId) -> Result<Option<EffectDetail>, StoreError> {
        Ok(None)
    }
    async fn effects(
        &self,
        _: EffectFilter,
        _: Page<EffectId>,
    ) -> Result<Listed<Effect, EffectId>, StoreError> {
        Ok(Listed::default())
    }
    async fn effect_counts(&self) -> Result<EffectCounts, StoreError> {
        Ok(EffectCounts::default())
    }
    async fn facts(&self, _: EventId) -> Result<Option<EventFacts>, StoreError> {
        Ok(None)
    }
    async fn command(&self, _: Command) -> Result<Commanded, StoreError> {
        Ok(Commanded::NoEvent)
    }
    async fn conflict_body(&self, _: EventId, _: u32) -> Result<Option<Bytes>, StoreError> {
        Ok(None)
    }
    async fn claim_own(&self, _: OwnClaim) -> Result<OwnClaimed, StoreError> {
        Ok(OwnClaimed::NoEvent)
    }
    async fn reapable(&self, _: Time) -> Result<Reaped, StoreError> {
        Ok(Reaped::default())
    }
    async fn reap(&self, _: Time) -> Result<Reaped, StoreError> {
        Ok(Reaped::default())
    }
    async fn ready(&self) -> Result<(), StoreError> {
        Ok(())
    }
    async fn keep_admin_token(&self, hash: [u8; 32]) -> Result<[u8; 32], StoreError> {
        Ok(hash)
    }
    async fn close(&self) {}
    async fn stats(&self) -> Result<StoreStats, StoreError> {
        Ok(StoreStats::default())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| {
        arguments
            .next()
            .ok_or_else(|| anyhow::anyhow!("expected {what}"))
    };
    let port: u16 = next("PORT")?.parse()?;
    let target = next("STORE")?;
    let fill: u64 = next("FILL").map_or(Ok(0), |fill| fill.parse())?;
    let text = format!(
        "store = \"{}\"\n[[source]]\nname = \"bench\"\nprovider = \"stripe\"\nsecrets = [\"a secret of the bench\"]\n",
        if target == "none" {
            "sqlite:none.db"
        } else {
            &target
        }
    );
    let parsed = hapax::config::parse(
        &text,
        "bench.toml",
        &hapax::config::System::beside("bench.toml".as_ref()),
    );
    let config: Config = parsed
        .map_err(|problems| anyhow::anyhow!("{problems}"))?
        .config;
    let store: Arc<dyn Store> = match target.as_str() {
        "none" => Arc::new(NoStore::default()),
        _ => open(&config.store).await?,
    };
    if fill > 0 {
        fill_up(&store, fill).await?;
    }
    let config = Config {
        listen: ([127, 0, 0, 1], port).into(),
        limits: Limits::default(),
        ..config
    };
    let _: &StoreTarget = &config.store;
    let server = Server::new(config, store.clone()).await?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let (stop, stopping) = watch::channel(false);
    let serving = tokio::spawn(listen::run(listener, server.doors.clone(), stopping));
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    stop.send_replace(true);
    serving.await?;
    store.close().await;
    Ok(())
}

/// Stores `count` events with random keys, in no particular order of keys.
async fn fill_up(store: &Arc<dyn Store>, count: u64) -> anyhow::Result<()> {
    let tasks = (0..FILLERS).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in (task..count).step_by(FILLERS as usize) {
                let arrival = arrival(number);
                store.accept(arrival).await?;
                if number % 100_000 == 0 {
                    eprintln!("filled {number} of {count}");
                }
            }
            Ok::<(), StoreError>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await??;
    }
    Ok(())
}

fn arrival(number: u64) -> Arrival {
    let body = Bytes::from(format!(
        "{{\"id\":\"fill-{number}\",\"pad\":\"{:0>980}\"}}",
        number
    ));
    let body_hash = BodyHash::of(&body);
    let key = format!("body:{body_hash}");
    let keep = Keep {
        payload: Span::from_days(30),
        ledger: Span::from_days(90),
        identity: Span::from_days(90),
        retry_window: Span::from_days(3),
    };
    let event = NewEvent {
        event_type: Some("push".into()),
        key_hash: KeyHash::of(KeyKind::Identity, "bench", &key),
        key,
        key_origin: KeyOrigin::Body,
        body,
        content_type: Some("application/json".into()),
        body_hash,
        compare_hash: body_hash,
        provider_event_id: None,
        object_id: None,
        entity: None,
        version: None,
        keep,
        review: None,
        on_failed: OnFailed::Link,
        effects: Vec::new(),
    };
    let proof = Proof {
        scheme: "hmac".into(),
        secret_index: Some(0),
        signed_at: None,
        remote: None,
    };
    Arrival {
        source: "bench".into(),
        at: hapax::clock::now(),
        proof,
        events: vec![event],
    }
}
