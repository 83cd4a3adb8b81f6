//! Claims of guarded keys and what their runs say, any number of them in one group. New keys and runs that ended are one statement, and one
//! commit: while some requests begin others end, and a flush of the log costs as much as many rows.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

use hapax_ledger::guard::GuardRejected;
use hapax_ledger::id::{KeyId, RawId};
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::batch::{Job, Reply, TooMuch, Work};
use super::fault::unavailable;
use super::key::{KeyColumns, KeyRow, is_unknown, new_key_columns, new_key_names, place_of};
use super::key_end;
use super::key_settle::{KeyWord, Word};
use super::moment::{LeaseClock, no_row, now};
use super::pool::{Pool, Statement};
use super::road::{Ride, Road};
use super::wire::Uuid;
use super::{Entropy, SHARDS};
use crate::error::StoreError;
use crate::guarded::Guarded;
use crate::nouns::{KeyClaim, KeyClaimed};

/// A key may be forgotten between two steps, and then taken by somebody else before it is tried again. Not so often.
const ROUNDS_MAX: usize = 4;

/// So many asks set out behind a group that is on its way: enough that they are worth what a group costs beside them, few enough that they do
/// not wait for a database that is far away.
const BEHIND: usize = 24;

/// What the guard asks.
pub(super) enum KeyAsk {
    /// May this request run?
    Claim(KeyClaim),
    /// A run says something.
    Word(KeyWord),
}

/// What it is told.
pub(super) enum KeyTold {
    Claimed(KeyClaimed),
    /// When an answer expires.
    Heard(Result<Time, GuardRejected>),
}

/// One kind of ask, and whoever waits for its answer.
pub(super) struct Asked<A> {
    pub(super) ask: A,
    reply: Reply<KeyWork>,
}

impl<A> Asked<A> {
    /// Tells all of them of one failure.
    pub(super) fn refuse(all: Vec<Asked<A>>, error: &StoreError) {
        if !all.is_empty() {
            tracing::error!(%error, asks = all.len(), "a group of asks about keys failed");
        }
        for asked in all {
            asked.reply.say(Err(error.for_another()));
        }
    }
}

impl Asked<KeyClaim> {
    pub(super) fn answer(self, said: KeyClaimed) {
        self.reply.say(Ok(KeyTold::Claimed(said)));
    }
}

impl Asked<KeyWord> {
    pub(super) fn answer(self, said: Result<Time, GuardRejected>) {
        self.reply.say(Ok(KeyTold::Heard(said)));
    }
}

/// Carries out what the guard asks.
pub(super) struct KeyWork {
    /// For what is decided about one key or another.
    pub(super) pool: Pool,
    /// For new keys and runs that ended, which is nearly all.
    pub(super) road: Road,
    pub(super) entropy: Entropy,
    pub(super) clock: LeaseClock,
    /// The store's epoch as it was last seen.
    pub(super) epoch: AtomicU32,
}

impl Work for KeyWork {
    type Ask = KeyAsk;
    type Answer = KeyTold;
    const ASKS: &'static str = "asks about keys";
    type Way = Ride;
    const BEHIND: Option<usize> = Some(BEHIND);

    async fn way(&self, _: &Pool) -> Result<Ride, StoreError> {
        self.road.ride().await
    }

    fn too_much(ask: &KeyAsk) -> TooMuch {
        match ask {
            KeyAsk::Claim(_) => TooMuch::IsRefused,
            // Without it nobody knows what became of a run.
            KeyAsk::Word(_) => TooMuch::Waits,
        }
    }

    fn bytes(ask: &KeyAsk) -> usize {
        let brought = match ask {
            KeyAsk::Claim(claim) => claim.path.len() + claim.key.len(),
            KeyAsk::Word(word) => match &word.word {
                Word::Settle(ending) => ending.answer.as_ref().map_or(0, bytes::Bytes::len),
                Word::Extend(_) => 0,
            },
        };
        size_of::<KeyAsk>() + brought
    }

    /// One group: new keys, and runs that ended and still held theirs, in one commit. The other words behind it. Keys that somebody
    /// holds are looked at, and most are answered by that; what may run again is decided in another commit.
    async fn step(&self, ride: Ride, jobs: Vec<Job<KeyWork>>) {
        let (claims, words) = apart(jobs);
        let (ends, mut rest) = key_end::apart(words);
        if claims.is_empty() && ends.is_empty() {
            ride.give_back();
            return self.settle(rest).await;
        }
        let mut left = self.store(Some(ride), claims, ends).await;
        rest.append(&mut left.open);
        let (gone, ()) = tokio::join!(self.look_at(left.held), self.settle(rest));
        let mut new = left.again;
        new.extend(gone);
        for _ in 1..ROUNDS_MAX {
            if new.is_empty() {
                return;
            }
            let left = self.store(None, new, Vec::new()).await;
            new = left.again;
            new.extend(self.look_at(left.held).await);
        }
        let error = unavailable("the key was taken and forgotten again and again");
        Asked::refuse(new, &error);
    }
}

fn apart(jobs: Vec<Job<KeyWork>>) -> (Vec<Asked<KeyClaim>>, Vec<Asked<KeyWord>>) {
    let (mut claims, mut words) = (Vec::with_capacity(jobs.len()), Vec::new());
    for Job { ask, reply } in jobs {
        match ask {
            KeyAsk::Claim(ask) => claims.push(Asked { ask, reply }),
            KeyAsk::Word(ask) => words.push(Asked { ask, reply }),
        }
    }
    (claims, words)
}

/// Those who have no answer yet.
#[derive(Default)]
struct Left {
    /// Somebody holds their keys, perhaps an earlier claim of the same group.
    held: Vec<Asked<KeyClaim>>,
    /// It is another epoch than was thought; their keys are as they were.
    again: Vec<Asked<KeyClaim>>,
    /// Not the holders of their keys, as far as the statement could see.
    open: Vec<Asked<KeyWord>>,
}

/// What the statement did.
struct Stored {
    epoch: u32,
    kept: HashSet<Uuid>,
    ended: HashMap<KeyId, Time>,
}

impl KeyWork {
    /// Answers those whose keys nobody held, and the runs that ended and still held theirs. A key is claimed for the epoch that was last
    /// seen: if it is another by now no key was taken, and that one is known.
    async fn store(
        &self,
        free: Option<Ride>,
        claims: Vec<Asked<KeyClaim>>,
        ends: Vec<Asked<KeyWord>>,
    ) -> Left {
        let epoch = self.epoch.load(Ordering::Relaxed);
        // One lot for all: rows are told apart by what is added to it.
        let lot = (self.entropy)();
        let rows: Vec<KeyRow> = (claims.iter().zip(0..))
            .map(|(asked, nth)| new_row(&asked.ask, epoch, lot.wrapping_add(nth)))
            .collect();
        let words: Vec<&KeyWord> = ends.iter().map(|asked| &asked.ask).collect();
        let stored = match self.store_all(free, &rows, words, epoch).await {
            Ok(stored) => stored,
            Err(error) => {
                Asked::refuse(claims, &error);
                Asked::refuse(ends, &error);
                return Left::default();
            }
        };
        let mut left = Left::default();
        for asked in ends {
            match stored.ended.get(&asked.ask.id) {
                Some(expires_at) => asked.answer(Ok(*expires_at)),
                None => left.open.push(asked),
            }
        }
        if stored.epoch != epoch {
            self.epoch.store(stored.epoch, Ordering::Relaxed);
            left.again = claims;
            return left;
        }
        for (asked, row) in claims.into_iter().zip(rows) {
            match stored.kept.contains(&Uuid(row.key.shown.id.bytes())) {
                true => asked.answer(row.key.begun(false)),
                false => left.held.push(asked),
            }
        }
        left
    }

    async fn store_all(
        &self,
        free: Option<Ride>,
        rows: &[KeyRow],
        ends: Vec<&KeyWord>,
        epoch: u32,
    ) -> Result<Stored, StoreError> {
        let ride = match free {
            Some(ride) => ride,
            None => self.road.ride().await?,
        };
        let mut order: Vec<&KeyRow> = rows.iter().collect();
        // Stable: of two with the same key the first to come is the first to be inserted.
        order.sort_by_key(|row| place_of(row.hash));
        let columns = KeyColumns::of(order);
        let ends = key_end::Columns::of(ends);
        let (given, wanted) = (self.clock.given(), epoch as i32);
        let now = (&given as _, Type::INT8);
        let claiming = || {
            let wanted = [now.clone(), (&wanted as _, Type::INT4)];
            columns.new_params().into_iter().chain(wanted)
        };
        let statement: Statement<'_> = match (rows.is_empty(), ends.is_empty()) {
            (true, _) => (ENDS, ends.params().into_iter().chain([now]).collect()),
            (false, true) => (CLAIMS, claiming().collect()),
            (false, false) => (BOTH, claiming().chain(ends.params()).collect()),
        };
        let (sql, params) = statement;
        let found = self.road.run(ride, sql, params).await?;
        let seen = found.iter().find_map(|row| row.get::<_, Option<i32>>(0));
        let mut stored = Stored {
            epoch: match (seen, rows.is_empty()) {
                (Some(seen), _) => seen as u32,
                (None, true) => epoch,
                (None, false) => return Err(no_row()),
            },
            kept: HashSet::new(),
            ended: HashMap::new(),
        };
        for row in &found {
            match (row.get::<_, Option<Uuid>>(1), row.get::<_, Option<i64>>(2)) {
                (Some(id), Some(expires_at)) => {
                    let id = KeyId::from_bytes(id.0);
                    stored.ended.insert(id, Time::from_micros(expires_at));
                }
                (Some(id), None) => {
                    stored.kept.insert(id);
                }
                (None, _) => {}
            }
        }
        Ok(stored)
    }
}

fn new_row(claim: &KeyClaim, epoch: u32, lot: u64) -> KeyRow {
    let shard = claim.key_hash.shard(SHARDS);
    let id = KeyId(RawId::new(claim.at, shard, lot));
    KeyRow {
        // The statement adds the time at which it runs.
        key: Guarded::first(id, claim, Time::from_micros(0), epoch),
        hash: claim.key_hash,
    }
}

/// Keeps keys that nobody holds, in the order given, for the epoch that they were claimed for and in no other. Their times are lengths from now
/// on, and it is the time before the keys are taken, so that leases are if anything too short.
macro_rules! kept {
    () => {
        concat!(
            "WITH t AS MATERIALIZED (SELECT ",
            now!("$16"),
            " AS now, epoch FROM hapax.store WHERE one = 1),
             kept AS (
                 INSERT INTO hapax.guard_key (shard, key_hash, id, guard, principal, method, path, key, node, runs, first_at,
                     started_at, state, fingerprint, fence, lease_until, expires_at, grace)
                 SELECT x.shard, x.key_hash, x.id, x.guard, x.principal, x.method, x.path, x.key, x.node, 1, x.first_at, x.first_at, 0,
                     x.fingerprint, x.fence, t.now + x.lease_until, t.now + x.expires_at, x.grace
                 FROM (SELECT ",
            new_key_columns!(),
            ") AS x (",
            new_key_names!(),
            "), t
                 WHERE t.epoch = $17
                 ON CONFLICT (shard, key_hash) DO NOTHING RETURNING id
             )"
        )
    };
}

/// Settles runs that still have their keys, which is part of the statement: nothing has to be read first. What an earlier run was answered with
/// went when this one began.
macro_rules! ended {
    ($id:literal, $fence:literal, $state:literal, $at:literal, $status:literal, $error:literal, $ttl:literal, $answer:literal, $moment:expr) => {
        concat!(
            "UPDATE hapax.guard_key k SET state = x.state, ",
            is_unknown!(),
            ", ended_at = x.ended_at, status = x.status, error = x.error,
                 expires_at = t.now + x.ttl, answer = x.answer
             FROM (SELECT unnest(",
            $id,
            "::uuid[]), unnest(",
            $fence,
            "::int8[]), unnest(",
            $state,
            "::int2[]), unnest(",
            $at,
            "::int8[]), unnest(",
            $status,
            "::int4[]), unnest(",
            $error,
            "::text[]), unnest(",
            $ttl,
            "::int8[]), unnest(",
            $answer,
            "::bytea[]))
                 AS x (id, fence, state, ended_at, status, error, ttl, answer), ",
            $moment,
            "
             WHERE k.id = x.id AND k.fence = x.fence AND k.state IN (0, 3)"
        )
    };
}

/// Says the store's epoch, and which keys are new. It finds no stored key, so that no plan of it can go out of date.
const CLAIMS: &str = concat!(
    kept!(),
    " SELECT t.epoch, k.id, NULL::int8 FROM t LEFT JOIN kept k ON true"
);
/// Says which runs have ended, and when their answers expire.
const ENDS: &str = concat!(
    ended!(
        "$1",
        "$2",
        "$3",
        "$4",
        "$5",
        "$6",
        "$7",
        "$8",
        concat!(now!("$9"), " AS t (now)")
    ),
    " RETURNING NULL::int4, k.id, k.expires_at"
);
/// Both.
pub(super) const BOTH: &str = concat!(
    kept!(),
    ", ended AS (",
    ended!("$18", "$19", "$20", "$21", "$22", "$23", "$24", "$25", "t"),
    " RETURNING k.id, k.expires_at)
     SELECT t.epoch, k.id, NULL::int8 FROM t LEFT JOIN kept k ON true
     UNION ALL
     SELECT NULL, e.id, e.expires_at FROM ended e"
);
