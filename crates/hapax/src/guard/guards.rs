//! All guards of a config: start, reload, stop.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use arc_swap::ArcSwap;
use hapax_ledger::time::Span;
use hapax_store::Store;
use hapax_tower::{AnswerBody, Guard, IdempotencyLayer, Idempotent};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower_layer::Layer;

use super::caller::Caller;
use super::proxy::{Proxy, ProxyBody};
use super::tunnel::Tunnels;
use super::upstream::Upstreams;
use super::{door, head};
use crate::config::{GuardConfig, HostRule, Limits};
use crate::http::listen::LAST_REQUESTS;
use crate::metrics::Metrics;
use crate::secrets::{Safe, Unusable};

/// The body of a guard's answer.
pub type ServedBody = AnswerBody<ProxyBody>;
/// Bytes of a request that wait in memory; what is longer waits on disk.
const MEMORY_BYTES_MAX: usize = 64 * 1024;

/// What guards work with.
#[derive(Clone)]
pub struct Parts {
    /// Where keys are kept.
    pub store: Arc<dyn Store>,
    /// Seals stored answers.
    pub safe: Arc<Safe>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// This process, as other nodes see it.
    pub node: Arc<str>,
    /// How long a run lives without a heartbeat.
    pub lease: Span,
    /// What bounds connections.
    pub limits: Limits,
}

/// One guard as it is now.
pub struct Served {
    live: ArcSwap<Live>,
}

struct Live {
    config: Arc<GuardConfig>,
    layer: IdempotencyLayer,
    service: Idempotent<Proxy>,
}

impl Served {
    /// Answers one request; and how long its body may stand still.
    pub fn service(&self) -> (Idempotent<Proxy>, Duration) {
        let live = self.live.load();
        (live.service.clone(), live.config.idle_timeout)
    }

    /// TLS as it is now: a new certificate counts from the next connection on.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.live.load().config.tls.clone()
    }

    /// The guard's config.
    pub fn config(&self) -> Arc<GuardConfig> {
        self.live.load().config.clone()
    }
}

/// All guards.
pub struct Guards {
    parts: Parts,
    upstreams: Upstreams,
    served: Vec<Arc<Served>>,
    listeners: Mutex<Vec<TcpListener>>,
    tunnels: Tunnels,
    /// Layers of configs before this one, as long as something runs in them.
    before: Mutex<Vec<IdempotencyLayer>>,
}

impl Guards {
    /// Sets guards up: each takes its address, and answers when [`Guards::run`] runs.
    ///
    /// # Errors
    /// If an address is taken, or TLS cannot be set up.
    pub async fn start(configs: &[Arc<GuardConfig>], parts: Parts) -> anyhow::Result<Guards> {
        let upstreams = Upstreams::new(Vec::new())?;
        let tunnels = Tunnels::default();
        let mut served = Vec::with_capacity(configs.len());
        let mut listeners = Vec::with_capacity(configs.len());
        for config in configs {
            let name = &config.name;
            let listener = TcpListener::bind(config.listen)
                .await
                .with_context(|| format!("guard {name} cannot listen on {}", config.listen))?;
            let live = live(config, &parts, &upstreams, &tunnels)?;
            served.push(Arc::new(Served {
                live: ArcSwap::from_pointee(live),
            }));
            listeners.push(listener);
        }
        Ok(Guards {
            parts,
            upstreams,
            served,
            listeners: Mutex::new(listeners),
            tunnels,
            before: Mutex::default(),
        })
    }

    /// Where they listen, until they run.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let listeners = lock(&self.listeners);
        let addresses = listeners.iter().map(TcpListener::local_addr);
        addresses.filter_map(Result::ok).collect()
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<Served>] {
        &self.served
    }

    /// What they work with.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The way to upstreams and probes.
    pub fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// The guard of this name, as keys name it.
    pub fn named(&self, scope: &str) -> Option<Arc<GuardConfig>> {
        let configs = self.served.iter().map(|served| served.config());
        configs.into_iter().find(|config| *config.scope() == *scope)
    }

    /// Answers until `stop` says so, then waits for what runs: also for runs whose callers have gone.
    pub async fn run(self: Arc<Self>, stop: watch::Receiver<bool>) {
        let listeners = std::mem::take(&mut *lock(&self.listeners));
        let mut doors = tokio::task::JoinSet::new();
        for (listener, served) in listeners.into_iter().zip(&self.served) {
            if let Ok(address) = listener.local_addr() {
                tracing::info!(guard = &*served.config().scope(), %address, "guarding");
            }
            let limits = self.parts.limits.clone();
            doors.spawn(door::run(listener, served.clone(), limits, stop.clone()));
        }
        let mut stopping = stop.clone();
        // It cannot be closed before it has said so.
        let _ = stopping.wait_for(|stop| *stop).await;
        self.tunnels.end().await;
        while doors.join_next().await.is_some() {}
        let now = self
            .served
            .iter()
            .map(|served| served.live.load().layer.clone());
        let layers: Vec<IdempotencyLayer> = now.chain(lock(&self.before).drain(..)).collect();
        let draining = async {
            for layer in &layers {
                layer.drain().await;
            }
        };
        if tokio::time::timeout(LAST_REQUESTS, draining).await.is_err() {
            let left: usize = layers.iter().map(IdempotencyLayer::running).sum();
            tracing::warn!(
                left,
                "some guarded requests did not end in time: their outcome is unknown"
            );
        }
    }

    /// Puts another config in force. Says whether a restart is needed for all of it: guards that come or go, and addresses.
    ///
    /// # Errors
    /// If a guard of it cannot be set up; then all stay as they are.
    pub fn reload(&self, configs: &[Arc<GuardConfig>]) -> anyhow::Result<bool> {
        let places = |configs: &mut dyn Iterator<Item = Arc<GuardConfig>>| {
            configs
                .map(|config| (config.scope(), config.listen))
                .collect::<BTreeSet<(Arc<str>, SocketAddr)>>()
        };
        let old = places(&mut self.served.iter().map(|served| served.config()));
        let new = places(&mut configs.iter().cloned());
        let mut changes = Vec::new();
        for served in &self.served {
            let scope = served.config().scope();
            if let Some(config) = configs.iter().find(|config| config.scope() == scope) {
                changes.push((
                    served,
                    live(config, &self.parts, &self.upstreams, &self.tunnels)?,
                ));
            }
        }
        let mut before = lock(&self.before);
        before.retain(|layer| layer.running() > 0);
        for (served, live) in changes {
            before.push(served.live.swap(Arc::new(live)).layer.clone());
        }
        Ok(old != new)
    }
}

fn live(
    config: &Arc<GuardConfig>,
    parts: &Parts,
    upstreams: &Upstreams,
    tunnels: &Tunnels,
) -> anyhow::Result<Live> {
    let caller = Caller::new(config.clone(), upstreams.clone());
    let span =
        |time: Duration| Span::from_micros(i64::try_from(time.as_micros()).unwrap_or(i64::MAX));
    let mut guard = Guard::new(config.scope(), caller)
        .policy(config.policy.clone())
        // Whether it is long enough was decided when the config was read.
        .short_ttl(config.policy.ttl)
        .methods(config.methods.iter().cloned())
        .lease(parts.lease)
        .grace(config.grace)
        .wait_max(span(config.wait_max))
        .request_bytes_max(
            MEMORY_BYTES_MAX.min(config.body_bytes_max) as u64,
            config.body_bytes_max as u64,
        )
        .answer_bytes_max(config.answer_bytes_max as u64)
        .headers(config.headers.iter().cloned())
        .publish_expiry(config.publish_expiry)
        .observer(Arc::new(parts.metrics.guards.of(&config.scope())))
        .node(parts.node.clone());
    if config.required {
        guard = guard.required();
    }
    if config.host == HostRule::Keep {
        guard = guard.route(head::place);
    }
    // Answers are not stored in the open.
    guard = guard.vault(parts.safe.vault().ok_or(Unusable::None)?);
    let keys: Arc<dyn Store> = parts.store.clone();
    let layer = IdempotencyLayer::new(keys, guard)
        .with_context(|| format!("guard {} cannot be set up", config.name))?;
    let proxy = Proxy::new(config.clone(), upstreams.clone(), tunnels.clone());
    Ok(Live {
        config: config.clone(),
        service: layer.layer(proxy),
        layer,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
