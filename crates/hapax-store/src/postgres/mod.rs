//! The store for any number of nodes: PostgreSQL, from one server to what distributes its tables over many.
//!
//! - `open`: where the server is, and how to reach it
//! - `migrate`: the shape of the database
//! - `pool`: connections, each a `session`, what they `begin` with, and what their failures mean, with `tls`, `notice` and `fault`; `kept` statements where
//!   the way is `direct`
//! - `batch`: the batcher; many callers share one commit. `road`: one connection for groups that follow each other
//! - `writer`: arrivals in groups: `accept` for new keys, one statement for all of them; `swift` for new keys that call for effects,
//!   one statement too, of `swift_rows`, and `call` where that is not enough; `known` for keys that somebody holds, decided in `decide`;
//!   `plan` for the effects, with the statements of `called`; all of it is `stored`
//! - `claim`: lanes that have something to do, claims and rescues; `advance`: moves in groups, and `happy` those
//!   that end well. Decided in `held` and `turn`, carried out in `carry`; leases end by `moment`
//! - `status` and `gate`: what a move means for events and for effects that wait; `chain`: what is known of an entity
//! - `command`: what operators decide, from the `facts` and carried out in `deed`, with `run`, `conflict` and `erase`; `own`: effects that the
//!   user's own code carries out, `seated` in the plan of their event
//! - `keys`: what the guard asks, in groups: `key_look` for what is only read, `key_claim` and `key_settle` for what is written, `key` for its
//!   rows, `key_read` for lists, `key_sweep` for runs that were lost
//! - `catalog`: what is kept beside the ledger: `audit`, `token`, `replay`, `secret`
//! - `outbox`: what the outbox asks; `app`, `entry_row`: its catalogue; `publish`: messages in groups, with `message` and `number`;
//!   `fan_out`: deliveries that follow; `tally`: what attempts came to; `post`: its lists
//! - `node`: who looks after which shard; `wake`: nodes telling each other
//! - `effect`, `attempt`, `effect_id`, `order_rule`: effects as rows
//! - `columns`, `effect_columns`, `wire`, `pipeline`: how rows, values and statements travel
//! - `read`, `list`, `effect_read`: details and lists
//! - `reap`: going round in small steps, and deleting what has `expired`; then guarded keys in `key_reap`
//!
//! The schema is called `hapax` and has no other name: a setting for it would have to be built into every statement, or kept
//! in the session, which a transaction pooler does not allow. Two stores on one server are two databases.
//!
//! **Invariant**: an ack follows a commit that the server has reported, in time and without a warning about its standby.
//! Everything else is *nothing written* only if that is certain, and *unknown* if it is not.

mod accept;
mod addressed;
mod advance;
mod app;
mod attempt;
mod audit;
mod batch;
mod begin;
mod call;
mod called;
mod carry;
mod catalog;
mod chain;
mod claim;
mod columns;
mod command;
mod conflict;
mod decide;
mod deed;
mod direct;
mod effect;
mod effect_columns;
mod effect_id;
mod effect_read;
mod entry_row;
mod erase;
mod expired;
mod facts;
mod fan_out;
mod fault;
mod gate;
mod happy;
mod held;
mod kept;
mod key;
mod key_claim;
mod key_end;
mod key_group;
mod key_look;
mod key_read;
mod key_reap;
mod key_settle;
mod key_sweep;
mod keys;
mod known;
mod list;
mod mark;
mod message;
mod migrate;
mod moment;
mod node;
mod notice;
mod number;
mod open;
mod order_rule;
mod outbox;
mod own;
mod pipeline;
mod plan;
#[cfg(all(test, feature = "conformance"))]
mod plans;
mod poll;
mod poll_consumer;
mod poll_turn;
mod pool;
mod post;
mod publish;
mod read;
mod reap;
mod replay;
mod restored;
mod road;
mod run;
mod seated;
mod secret;
mod session;
mod status;
mod stored;
mod swift;
mod swift_rows;
mod tally;
mod tiding;
mod tls;
mod token;
mod turn;
mod wake;
mod wire;
mod writer;

use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Time;
use hapax_ledger::transition::{Resolution, Resolver};
use tokio_postgres::types::Type;

use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{
    Advanced, Arrival, Beat, Beaten, ClaimAsk, Claims, Command, Commanded, Effect, EffectCounts,
    EffectDetail, EffectFilter, Event, EventDetail, EventFacts, EventFilter, LaneDue, Listed,
    Migrated, Move, OwnClaim, OwnClaimed, Page, Parcel, PayloadAnswer, Reaped, Receipt, Rescued,
    StoreStats, lane_shard,
};
use crate::store::{Clock, Store};
use advance::{MoveAsk, Moves, Wish};
use batch::Batcher;
use key_reap::Reapers;
use key_sweep::KeySweep;
use keys::KeyLanes;
use moment::LeaseClock;
pub use open::COMMIT_WAIT;
use pool::Pool;
use publish::Publisher;
use reap::Reaper;
use wake::Bell;
use writer::Writer;

/// Into how many shards rows are placed. Fixed: the number is in every row's key and in every id. Enough for as many
/// machines, few enough to visit one by one.
pub const SHARDS: u16 = 64;

/// Where randomness comes from: the store draws no lots of its own.
pub type Entropy = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How to reach a store.
#[derive(Clone)]
pub struct Options {
    /// `postgres://user:password@host:port/database?sslmode=...`, or libpq's `key=value` form.
    pub url: String,
    /// The id that a new store gets; ignored by one that exists.
    pub new_store_id: [u8; 16],
    /// Randomness for ids.
    pub entropy: Entropy,
    /// PEM of the roots that `sslmode=require` trusts, instead of the machine's.
    pub root_certificates: Option<Vec<u8>>,
    /// How long a commit may take; see [`COMMIT_WAIT`].
    pub commit_wait: Duration,
    /// The clock by which leases end, for tests. `None`: the database's, as it has to be with more than one node (C3).
    pub clock: Option<Clock>,
}

impl Options {
    /// The usual settings.
    pub fn new(url: impl Into<String>, new_store_id: [u8; 16], entropy: Entropy) -> Options {
        Options {
            url: url.into(),
            new_store_id,
            entropy,
            root_certificates: None,
            commit_wait: COMMIT_WAIT,
            clock: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may hold a password (J2).
        f.debug_struct("Options")
            .field("commit_wait", &self.commit_wait)
            .finish_non_exhaustive()
    }
}

/// The store on PostgreSQL.
pub struct PostgresStore {
    arrivals: Batcher<Writer>,
    messages: Batcher<Publisher>,
    moves: Batcher<Moves>,
    writers: Pool,
    effects: Pool,
    movers: Pool,
    deciders: Pool,
    beats: Pool,
    readers: Pool,
    keys: KeyLanes,
    key_sweep: KeySweep,
    reaper: Reapers,
    bell: Bell,
    entropy: Entropy,
    clock: LeaseClock,
}

impl PostgresStore {
    /// Brings a database to the shape that this version needs.
    pub async fn migrate(options: &Options) -> Result<Migrated, StoreError> {
        Ok(open::open(options).await?.migrated)
    }

    /// Takes note that a database was brought back to an earlier time, in a way that it cannot tell from a restart: fences outrun those that
    /// it does not know, and what is unfinished is ambiguous (C1). While no node runs. Says how many effects that were.
    pub async fn restored(options: Options) -> Result<u64, StoreError> {
        let opened = open::open(&options).await?;
        restored::declare(&opened.deciders).await?;
        restored::go_through(&opened.deciders, &LeaseClock(options.clock)).await
    }

    /// Connects, brings the schema up to date, and starts the batcher. Needs a Tokio runtime for as long as the store lives.
    pub async fn open(options: Options) -> Result<PostgresStore, StoreError> {
        let opened = open::open(&options).await?;
        let clock = LeaseClock(options.clock);
        restored::go_through(&opened.deciders, &clock).await?;
        let epoch = moment::epoch(&opened.deciders, &clock).await?;
        let writer = Writer {
            pool: opened.writers.clone(),
            entropy: options.entropy.clone(),
            clock: clock.clone(),
            epoch: AtomicU32::new(epoch),
            shared: Mutex::default(),
        };
        let publisher = Publisher {
            pool: opened.writers.clone(),
            entropy: options.entropy.clone(),
            clock: clock.clone(),
            epoch: AtomicU32::new(epoch),
        };
        let moves = Moves {
            pool: opened.movers.clone(),
            clock: clock.clone(),
        };
        Ok(PostgresStore {
            arrivals: Batcher::start(&opened.writers, open::WRITERS, writer),
            messages: Batcher::start(&opened.writers, open::PUBLISHERS, publisher),
            moves: Batcher::start(&opened.movers, open::MOVERS, moves),
            writers: opened.writers,
            effects: opened.effects,
            movers: opened.movers,
            deciders: opened.deciders,
            beats: opened.beats,
            bell: Bell::new(opened.readers.clone(), opened.line, (options.entropy)()),
            keys: KeyLanes::start(opened.keys, &options.entropy, &clock, epoch),
            key_sweep: KeySweep::default(),
            reaper: Reapers::new(
                Reaper::new(opened.readers.clone(), &options.entropy),
                opened.readers.clone(),
                clock.clone(),
            ),
            readers: opened.readers,
            entropy: options.entropy,
            clock,
        })
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn accept(&self, arrival: Arrival) -> Result<Vec<Receipt>, StoreError> {
        let mut events = arrival.events.iter();
        events.try_for_each(|event| plan::fits(&event.effects))?;
        self.arrivals.ask(arrival).await
    }

    async fn sighted(
        &self,
        source: &str,
        key: &str,
        now: Time,
    ) -> Result<Option<EventId>, StoreError> {
        read::sighted(&self.readers, source, key, now).await
    }

    async fn event(&self, id: EventId) -> Result<Option<EventDetail>, StoreError> {
        read::event(&self.readers, id).await
    }

    async fn payload(&self, id: EventId) -> Result<PayloadAnswer, StoreError> {
        read::payload(&self.readers, id).await
    }

    async fn events(&self, filter: EventFilter, page: Page) -> Result<Listed<Event>, StoreError> {
        list::events(&self.readers, &filter, page).await
    }

    fn shards(&self) -> u16 {
        SHARDS
    }

    async fn beat(&self, beat: Beat) -> Result<Beaten, StoreError> {
        node::beat(&self.beats, &beat, &self.clock).await
    }

    async fn leave(&self, node: &str) -> Result<(), StoreError> {
        node::leave(&self.beats, node).await
    }

    async fn due(&self, shard: u16, after: Option<&str>) -> Result<Vec<LaneDue>, StoreError> {
        claim::due(&self.readers, shard, after).await
    }

    async fn wake(&self, lanes: Vec<Arc<str>>) {
        if !lanes.is_empty() {
            let shards = lanes.iter().map(|lane| lane_shard(lane, SHARDS));
            self.bell.tell(shards);
        }
    }

    async fn woken(&self) -> Vec<u16> {
        self.bell.woken().await
    }

    async fn claim(&self, ask: ClaimAsk) -> Result<Claims, StoreError> {
        let claimed = claim::claim(&self.effects, &ask, &self.clock).await?;
        let next = claim::next_due(&self.readers, &ask).await?;
        Ok(Claims { claimed, next })
    }

    async fn advance(
        &self,
        effect: EffectId,
        fence: Fence,
        what: Move,
    ) -> Result<Advanced, StoreError> {
        let wish = Wish::Advance(fence, what);
        self.moves.ask(MoveAsk { effect, wish }).await
    }

    async fn resolve(
        &self,
        effect: EffectId,
        resolution: Resolution,
        by: Resolver,
    ) -> Result<Advanced, StoreError> {
        let wish = Wish::Resolve(resolution, by);
        self.moves.ask(MoveAsk { effect, wish }).await
    }

    async fn rescue(&self, shards: Vec<u16>) -> Result<Rescued, StoreError> {
        match claim::overdue(&self.readers, &shards, &self.clock).await? {
            Some(shard) => claim::rescue(&self.effects, shard, &self.clock).await,
            None => Ok(Rescued::default()),
        }
    }

    async fn parcels(&self, events: Vec<EventId>) -> Result<Vec<Option<Parcel>>, StoreError> {
        effect_read::parcels(&self.readers, &events).await
    }

    async fn effect(&self, id: EffectId) -> Result<Option<EffectDetail>, StoreError> {
        effect::detail(&self.readers, id).await
    }

    async fn effects(
        &self,
        filter: EffectFilter,
        page: Page<EffectId>,
    ) -> Result<Listed<Effect, EffectId>, StoreError> {
        effect_read::effects(&self.readers, &filter, page).await
    }

    async fn effect_counts(&self) -> Result<EffectCounts, StoreError> {
        effect_read::counts(&self.readers).await
    }

    async fn facts(&self, id: EventId) -> Result<Option<EventFacts>, StoreError> {
        facts::facts(&self.readers, id, &self.clock).await
    }

    async fn command(&self, command: Command) -> Result<Commanded, StoreError> {
        command::command(&self.deciders, &command, &self.entropy, &self.clock).await
    }

    async fn conflict_body(&self, id: EventId, delivery: u32) -> Result<Option<Bytes>, StoreError> {
        conflict::body(&self.readers, id, delivery).await
    }

    async fn claim_own(&self, claim: OwnClaim) -> Result<OwnClaimed, StoreError> {
        own::claim(&self.deciders, &claim, &self.entropy, &self.clock).await
    }

    async fn reap(&self, now: Time) -> Result<Reaped, StoreError> {
        self.reaper.step(now).await
    }

    async fn reapable(&self, now: Time) -> Result<Reaped, StoreError> {
        Ok(Reaped {
            keys: key_reap::due(&self.readers, now, &self.clock).await?,
            ..reap::due(&self.readers, now).await?
        })
    }

    async fn ready(&self) -> Result<(), StoreError> {
        // In a transaction, for its lock_timeout: a check that hangs must not make the next one hang behind it.
        let taken = self.readers.take().await?;
        taken
            .begin(
                "UPDATE hapax.store SET touched = touched + 1 WHERE one = 1",
                &[],
            )
            .await?;
        taken.commit().await
    }

    async fn keep_admin_token(&self, hash: [u8; 32]) -> Result<[u8; 32], StoreError> {
        let rows = self
            .readers
            .take()
            .await?
            .query_and_commit(
                "UPDATE hapax.store SET admin_token = coalesce(admin_token, $1) WHERE one = 1 RETURNING admin_token",
                &[(&wire::Hash(hash), Type::BYTEA)],
            )
            .await?;
        let kept = rows.first().map(|row| row.get::<_, wire::Hash>(0).0);
        kept.ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                "the store's own row cannot be read",
            )
        })
    }

    async fn close(&self) {
        self.arrivals.stop().await;
        self.messages.stop().await;
        self.moves.stop().await;
        self.keys.stop().await;
        self.bell.close().await;
        self.writers.close();
        self.effects.close();
        self.movers.close();
        self.deciders.close();
        self.beats.close();
        self.readers.close();
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        let [events, keys_twice, bytes, payloads] = read::count(&self.readers).await?;
        Ok(StoreStats {
            events,
            keys: key_read::count(&self.readers).await?,
            payloads,
            bytes,
            keys_twice,
        })
    }
}
