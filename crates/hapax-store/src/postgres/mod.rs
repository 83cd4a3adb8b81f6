//! The store for any number of nodes: PostgreSQL, from one server to what distributes its tables over many.
//!
//! - `open`: where the server is, and how to reach it
//! - `migrate`: the shape of the database
//! - `pool`: connections, each a `session`, and what their failures mean, with `tls`, `notice` and `fault`; `kept` statements where
//!   the way is `direct`
//! - `batch`: the batcher; many callers share one commit
//! - `writer`: arrivals in groups: `accept` for new keys, one statement for all of them; `known` for keys that somebody holds,
//!   decided in `decide`; `plan` for the effects that events call for
//! - `claim`: claims, moves in groups, and rescues, decided in `held`; leases end by `moment`
//! - `effect`: effects as rows; `status`: where that leaves their events
//! - `columns`, `effect_columns`, `wire`: how rows and values travel
//! - `read`: lists and details
//! - `reap`: going round in small steps, and deleting what has `expired`
//!
//! The schema is called `hapax` and has no other name: a setting for it would have to be built into every statement, or kept
//! in the session, which a transaction pooler does not allow. Two stores on one server are two databases.
//!
//! **Invariant**: an ack follows a commit that the server has reported, in time and without a warning about its standby.
//! Everything else is *nothing written* only if that is certain, and *unknown* if it is not.

mod accept;
mod batch;
mod claim;
mod columns;
mod decide;
mod direct;
mod effect;
mod effect_columns;
mod expired;
mod fault;
mod held;
mod kept;
mod known;
mod migrate;
mod moment;
mod notice;
mod open;
mod plan;
mod pool;
mod read;
mod reap;
mod session;
mod status;
mod tls;
mod wire;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{
    Arrival, ClaimAsk, Claimed, EFFECTS_PER_EVENT_MAX, EffectDetail, Event, EventDetail,
    EventFilter, Listed, Move, Moved, NewEvent, Page, PayloadAnswer, Reaped, Receipt, StoreStats,
};
use crate::store::{Clock, Store};
use batch::Batcher;
use claim::{MoveAsk, Moves};
use moment::LeaseClock;
pub use open::COMMIT_WAIT;
use pool::Pool;
use reap::Reaper;
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
    moves: Batcher<Moves>,
    writers: Pool,
    effects: Pool,
    readers: Pool,
    reaper: Reaper,
    clock: LeaseClock,
}

impl PostgresStore {
    /// Connects, brings the schema up to date, and starts the batcher. Needs a Tokio runtime for as long as the store lives.
    pub async fn open(options: Options) -> Result<PostgresStore, StoreError> {
        let opened = open::open(&options).await?;
        let clock = LeaseClock(options.clock);
        let writer = Writer {
            pool: opened.writers.clone(),
            entropy: options.entropy.clone(),
            clock: clock.clone(),
        };
        let moves = Moves {
            clock: clock.clone(),
        };
        Ok(PostgresStore {
            arrivals: Batcher::start(&opened.writers, open::WRITERS, writer),
            moves: Batcher::start(&opened.effects, open::MOVERS, moves),
            writers: opened.writers,
            effects: opened.effects,
            reaper: Reaper::new(opened.readers.clone(), &options.entropy),
            readers: opened.readers,
            clock,
        })
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn accept(&self, arrival: Arrival) -> Result<Vec<Receipt>, StoreError> {
        let too_many = |event: &NewEvent| event.effects.len() > EFFECTS_PER_EVENT_MAX;
        if arrival.events.iter().any(too_many) {
            return Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "an event calls for more effects than fit",
            ));
        }
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
        read::events(&self.readers, &filter, page).await
    }

    fn shards(&self) -> u16 {
        SHARDS
    }

    async fn claim(&self, ask: ClaimAsk) -> Result<Vec<Claimed>, StoreError> {
        claim::claim(&self.effects, &ask, &self.clock).await
    }

    async fn advance(
        &self,
        effect: EffectId,
        fence: Fence,
        what: Move,
    ) -> Result<Moved, StoreError> {
        let ask = MoveAsk {
            effect,
            fence,
            what,
        };
        self.moves.ask(ask).await
    }

    async fn rescue(&self, shard: u16) -> Result<u32, StoreError> {
        claim::rescue(&self.effects, shard, &self.clock).await
    }

    async fn effect(&self, id: EffectId) -> Result<Option<EffectDetail>, StoreError> {
        effect::detail(&self.readers, id).await
    }

    async fn reap(&self, now: Time) -> Result<Reaped, StoreError> {
        self.reaper.step(now).await
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
        self.moves.stop().await;
        self.writers.close();
        self.effects.close();
        self.readers.close();
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        let (events, keys_twice, bytes) = read::count(&self.readers).await?;
        Ok(StoreStats {
            events,
            bytes,
            keys_twice,
        })
    }
}
