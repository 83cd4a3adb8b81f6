//! The dispatcher: what the doors tell it, and the loops that carry effects out.
//!
//! Three ways lead to an attempt. An effect is *born claimed* in the accept commit and goes out from memory; it is claimed from the
//! store when its time has come; or it is rescued from a worker that was lost. From the claim on they are the same.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::lane_shard;
use hapax_store::{Store, StoreError, StoreErrorKind};
use hapax_tower::outlive::Outliving;
use http::{HeaderMap, Uri};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use super::directory::{Directory, Found};
use super::drift::Drift;
use super::lane::{Caps, ShownLane};
use super::lanes::{Lanes, Standing};
use super::probes::Probes;
use super::sender::Sender;
use super::shards::{Hold, Shards};
use super::target::Targets;
use super::{ask, breaker};
use crate::clock;
use crate::metrics::Metrics;

/// How long requests under way may take to end when the server stops. Longer than the usual time-out of a target.
const DRAIN_WAIT: Duration = Duration::from_secs(15);

/// Starts that are written at a time. Thousands of lanes that have something to do at once wait here, not in front of the
/// settlements of those that are well.
const STARTS_MAX: usize = 256;

/// How much of what is only skipped is claimed at a time.
const SKIPPING: Caps = Caps {
    concurrency: 8,
    rate: None,
};

/// How much may be done in a lane, and where it is.
struct Allowed {
    caps: Caps,
    shard: u16,
    timeout: Duration,
}

/// What a dispatcher is made of.
pub struct Parts {
    /// Where the ledger is kept.
    pub store: Arc<dyn Store>,
    /// The way out.
    pub sender: Sender,
    /// Where effects go.
    pub targets: Targets,
    /// Where deliveries go.
    pub directory: Arc<dyn Directory>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// This process, as others see it: a name that no other start of any process has.
    pub node: Arc<str>,
    /// How long claims and shards are held.
    pub lease: Span,
}

/// Carries effects out.
#[derive(Clone)]
pub struct Dispatcher {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) sender: Sender,
    pub(super) targets: ArcSwap<Targets>,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) node: Arc<str>,
    pub(super) lease: Span,
    pub(super) lanes: Mutex<Lanes>,
    pub(super) shards: Mutex<Shards>,
    pub(super) probes: Mutex<Probes>,
    pub(super) drift: Drift,
    /// Shards that this node began to look after and has not looked at yet.
    pub(super) gained: Mutex<BTreeSet<u16>>,
    /// Changes with every beat that was answered.
    pub(super) beaten: watch::Sender<()>,
    /// Something may have become possible: look at the lanes.
    pub(super) work: Notify,
    /// The server is stopping: nothing more is claimed.
    pub(super) closing: AtomicBool,
    /// Something may be due in lanes that have not heard of it: the targets have changed, or we could not rely on our shards, or a
    /// commit did not say what became of it.
    pub(super) look_anew: AtomicBool,
    /// Probes may have become due earlier.
    pub(super) probing: Notify,
    /// Places for starts.
    pub(super) starts: Semaphore,
    /// Work that carries something out, or that ends in something to be carried out.
    pub(super) live: AtomicUsize,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Dispatcher {
    /// A dispatcher that does nothing before [`Dispatcher::run`].
    pub fn new(parts: Parts) -> Dispatcher {
        let shards = parts.store.shards();
        let shared = Shared {
            store: parts.store,
            sender: parts.sender,
            targets: ArcSwap::from_pointee(parts.targets),
            directory: parts.directory,
            metrics: parts.metrics,
            node: parts.node,
            lease: parts.lease,
            lanes: Mutex::new(Lanes::new(shards)),
            shards: Mutex::new(Shards::default()),
            probes: Mutex::new(Probes::default()),
            drift: Drift::new(clock::now(), clock::tick()),
            gained: Mutex::default(),
            beaten: watch::Sender::new(()),
            work: Notify::new(),
            closing: AtomicBool::new(false),
            look_anew: AtomicBool::new(false),
            probing: Notify::new(),
            starts: Semaphore::new(STARTS_MAX),
            live: AtomicUsize::new(0),
        };
        Dispatcher {
            shared: Arc::new(shared),
        }
    }

    /// Puts other targets in force; requests under way finish with the old ones.
    pub fn reload(&self, targets: Targets) {
        self.shared.targets.store(Arc::new(targets));
        lock(&self.shared.lanes).look_at_all(clock::tick());
        self.shared.look_at_store();
        self.shared.work.notify_one();
    }

    /// Does this node hold the shard of this name? One node does at a time, so that work that only one should do has an owner.
    pub fn looks_after(&self, name: &str) -> bool {
        let shared = &self.shared;
        let shard = lane_shard(name, shared.store.shards());
        let until = clock::tick() + shared.lease_length() / 4;
        lock(&shared.shards).hold(shard, until) == Hold::Ours
    }

    /// What is known of a lane: `None` if another node looks after it.
    pub fn shown(&self, lane: &str) -> Option<ShownLane> {
        let now = clock::tick();
        let quiet = ShownLane {
            breaker: breaker::Allowed::All,
            failures: 0,
            in_flight: 0,
            late: None,
        };
        let ours = self.looks_after(lane);
        ours.then(|| lock(&self.shared.lanes).shown(lane, now).unwrap_or(quiet))
    }

    /// Lanes of this node whose breaker is not closed, those with the most failures first; at most so many.
    pub fn broken(&self, most: usize) -> Vec<(Arc<str>, ShownLane)> {
        lock(&self.shared.lanes).broken(clock::tick(), most)
    }

    /// How much may be done in a lane; `None` if nobody knows where it leads.
    pub fn caps(&self, lane: &str) -> Option<Caps> {
        self.shared.caps(lane)
    }

    /// Something in these lanes can be claimed now: a command set it free.
    pub fn opened(&self, lanes: &[Arc<str>]) {
        if !lanes.is_empty() {
            let now = self.shared.drift.theirs(clock::tick());
            let opened = lanes.iter().map(|lane| (lane.clone(), now));
            self.shared.hear(opened.collect::<Vec<_>>());
        }
    }

    /// Work around a commit that the lanes have to hear of. It is done in the task of whoever waits for it; if they go, as a sender
    /// does who hangs up, it goes on without them: what is committed all the same would otherwise wait for a lane that knows nothing of it.
    pub fn outliving<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Outliving<T> {
        // Counted, so that the server does not stop before it has ended.
        let live = self.shared.live();
        Outliving::new(async move {
            let done = work.await;
            drop(live);
            done
        })
    }

    /// The store failed somebody. If it did not say what became of the commit, that may have set something free.
    pub fn doubt(&self, error: &StoreError) {
        self.shared.doubt(error);
    }

    /// Asks an operator's own service for the state of something: the bytes, or why there are none.
    ///
    /// # Errors
    /// Says in a few words why there is no snapshot.
    pub async fn snapshot(
        &self,
        url: Uri,
        headers: HeaderMap,
        timeout: Duration,
    ) -> Result<Bytes, String> {
        let get = ask::get(url, headers, timeout);
        ask::snapshot(&self.shared.sender.send(get).await)
    }

    /// Carries effects out until told to stop, then lets what is under way end.
    pub async fn run(self, mut stopping: watch::Receiver<bool>) {
        let mut loops = JoinSet::new();
        loops.spawn(self.shared.clone().beats());
        loops.spawn(self.shared.clone().look_after_shards());
        loops.spawn(self.shared.clone().look_after_lanes());
        loops.spawn(self.shared.clone().listen());
        loops.spawn(self.shared.clone().keep_waiting());
        loops.spawn(self.shared.clone().find_uncertain());
        loops.spawn(self.shared.clone().probe());
        loops.spawn(self.shared.clone().count());
        // An error means that whoever could tell us to stop is gone.
        let _ = stopping.wait_for(|stop| *stop).await;
        loops.shutdown().await;
        self.shared.drain().await;
    }
}

impl Shared {
    /// May this node send in a lane, and how much?
    pub(super) fn standing(&self, lane: &str, now: Instant) -> Standing {
        let Some(Allowed {
            caps,
            shard,
            timeout,
        }) = self.allowed(lane)
        else {
            return Standing::NotOurs;
        };
        // Nothing is started that may still be under way when another node takes over: its requests and ours would be more than
        // the cap (G6). What takes longer is stopped in time; see `attempt`.
        let needed = timeout.min(self.lease_length() / 2);
        match lock(&self.shards).hold(shard, now + needed) {
            Hold::Ours if self.closing.load(Ordering::Relaxed) => Standing::Closing(caps),
            Hold::Ours => Standing::Ours(caps),
            Hold::Closing => Standing::Closing(caps),
            Hold::NotOurs => {
                // Whatever was known or heard of the lane is forgotten now. If only a beat is late and the shard stays ours, nobody
                // else looks after it.
                self.look_anew.store(true, Ordering::Relaxed);
                Standing::NotOurs
            }
        }
    }

    pub(super) fn caps(&self, lane: &str) -> Option<Caps> {
        self.allowed(lane).map(|allowed| allowed.caps)
    }

    /// What is known of a lane. The config's word comes first.
    pub(super) fn find(&self, lane: &str) -> Found {
        match self.targets.load().get(lane) {
            Some(target) => Found::Target(target.clone()),
            None => self.directory.find(lane),
        }
    }

    fn allowed(&self, lane: &str) -> Option<Allowed> {
        match self.find(lane) {
            Found::Target(target) => Some(Allowed {
                caps: target.caps,
                shard: target.shard,
                timeout: target.timeout,
            }),
            // What is claimed from it is skipped, or found out about: no request.
            Found::Closed(_) | Found::Unknown => Some(Allowed {
                caps: SKIPPING,
                shard: lane_shard(lane, self.store.shards()),
                timeout: Duration::ZERO,
            }),
            // What waits for it stays where it is, and costs nothing until it can be sent.
            Found::Unready | Found::Nobody => None,
        }
    }

    /// Something in these lanes can be claimed from a time on. Lanes of other nodes: they are told.
    pub(super) fn hear(&self, lanes: impl IntoIterator<Item = (Arc<str>, Time)>) {
        let now = clock::tick();
        let (mut heard, mut elsewhere) = (false, Vec::new());
        for (lane, at) in lanes {
            match (self.standing(&lane, now), self.caps(&lane)) {
                (Standing::NotOurs, Some(_)) => elsewhere.push(lane),
                (Standing::Ours(caps) | Standing::Closing(caps), _) => {
                    let at = self.drift.local(at);
                    lock(&self.lanes).hear(&lane, caps, at, now);
                    heard = true;
                }
                // Nobody here knows where to send it. It waits, and is seen waiting; or the user's own code carries it out.
                (Standing::NotOurs, None) => {}
            }
        }
        if heard {
            self.work.notify_one();
        }
        if !elsewhere.is_empty() {
            let store = self.store.clone();
            tokio::spawn(async move { store.wake(elsewhere).await });
        }
    }

    /// Sends what is in memory, waits for what is under way, and gives the shards to others.
    async fn drain(self: Arc<Self>) {
        self.closing.store(true, Ordering::Relaxed);
        lock(&self.lanes).look_at_all(clock::tick());
        // The first looks first: where nothing is in memory, nothing is said any more but that this node has left.
        let emptied = async {
            tokio::select! {
                biased;
                () = self.empty() => {}
                () = self.give_shards_away() => {}
            }
        };
        if tokio::time::timeout(DRAIN_WAIT, emptied).await.is_err() {
            let left = self.live.load(Ordering::Relaxed);
            tracing::warn!(
                left,
                "requests are still under way; whoever starts next finds them in the ledger"
            );
        }
        if let Err(error) = self.store.leave(&self.node).await {
            tracing::debug!(%error, "the shards are free once the lease ends");
        }
    }

    /// Until nothing is in memory.
    async fn empty(self: &Arc<Self>) {
        loop {
            let work = self.work.notified();
            self.step();
            if self.live.load(Ordering::Acquire) == 0 && lock(&self.lanes).is_idle() {
                return;
            }
            work.await;
        }
    }

    /// A task that counts while it lives.
    pub(super) fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        let live = self.live();
        tokio::spawn(async move {
            work.await;
            drop(live);
        });
    }

    fn live(self: &Arc<Self>) -> Live {
        self.live.fetch_add(1, Ordering::Relaxed);
        Live(self.clone())
    }

    /// Something may be due or uncertain that we have not heard of: the next round asks the store.
    pub(super) fn look_at_store(&self) {
        self.look_anew.store(true, Ordering::Relaxed);
        let held = lock(&self.shards).all();
        self.find_uncertain_in(&held);
    }

    /// A commit whose outcome is unknown may have moved something, and what it set free was not told to anybody.
    pub(super) fn doubt(&self, error: &StoreError) {
        if error.kind() == StoreErrorKind::CommitUnknown {
            self.look_at_store();
        }
    }
}

/// Counts work, also if it ends in a panic.
struct Live(Arc<Shared>);

impl Drop for Live {
    fn drop(&mut self) {
        let others = self.0.live.fetch_sub(1, Ordering::Release) - 1;
        if others == 0 && self.0.closing.load(Ordering::Relaxed) {
            self.0.work.notify_one();
        }
    }
}
