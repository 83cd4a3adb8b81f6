//! Deletes what has expired, a little at a time: payloads first, then ledgers, identities last (I1).
//!
//! Expiry holds at once whether or not the reaper has run: an expired identity no longer holds its key, and what is deleted here
//! is only what nobody can see any more. The reaper goes round by id, shard by shard, since an index by expiry would cost every
//! arrival more than this costs all of them.

use hapax_ledger::event::EventStatus;
use hapax_ledger::time::Time;
use tokio::sync::Mutex;
use tokio_postgres::types::Type;

use super::expired::{reap_events, reap_ledgers, reap_payloads};
use super::pool::{Pool, Taken};
use super::wire::Uuid;
use super::{Entropy, SHARDS, app, poll_consumer, tally};
use crate::error::StoreError;
use crate::nouns::Reaped;

/// Events looked at in one step: some milliseconds of the server's time.
const ROWS_PER_STEP: i64 = 500;
/// No event has this id.
const BEFORE_ALL: Uuid = Uuid([0; 16]);

/// The codes of what may be reaped.
fn settled_codes() -> Vec<i16> {
    EventStatus::ALL
        .iter()
        .filter(|status| status.is_settled())
        .map(|status| status.code().into())
        .collect()
}

/// Who goes round. One step at a time, whoever asks for it.
pub(super) struct Reaper {
    pool: Pool,
    place: Mutex<Place>,
}

/// How far the round is.
struct Place {
    /// Where rounds begin: anywhere, so that nodes do not crowd.
    first: u16,
    shards_done: u16,
    /// The last event that was looked at in this shard.
    after: Uuid,
}

impl Place {
    fn shard(&self) -> i16 {
        ((self.first + self.shards_done) % SHARDS) as i16
    }

    /// Goes on to the next shard; says whether the round goes on too.
    fn next_shard(&mut self) -> bool {
        self.after = BEFORE_ALL;
        self.shards_done = (self.shards_done + 1) % SHARDS;
        self.shards_done > 0
    }
}

impl Reaper {
    /// At the beginning of a round.
    pub(super) fn new(pool: Pool, entropy: &Entropy) -> Reaper {
        let place = Place {
            first: (entropy() % u64::from(SHARDS)) as u16,
            shards_done: 0,
            after: BEFORE_ALL,
        };
        Reaper {
            pool,
            place: Mutex::new(place),
        }
    }

    /// One step. It goes on where the last one stopped and says `more` until it has been once around. What others hold, and a
    /// shard in which something failed, has to wait for the next round: neither may keep the rest waiting.
    pub(super) async fn step(&self, now: Time) -> Result<Reaped, StoreError> {
        let mut place = self.place.lock().await;
        let stepped = step(&self.pool, &place, now.micros()).await;
        let more = match &stepped {
            Ok((_, Some(last))) => {
                place.after = *last;
                true
            }
            Ok((_, None)) | Err(_) => place.next_shard(),
        };
        let (reaped, _) = stepped?;
        let mut more = more;
        if !more {
            // What refers to the catalogue has gone as far as it goes.
            app::reap(&self.pool, now).await?;
            poll_consumer::reap(&self.pool, now).await?;
            more = tally::reap(&self.pool, now).await?;
        }
        Ok(Reaped { more, ..reaped })
    }
}

/// What a step found due.
struct Due {
    /// Events whose bytes are there and have expired.
    bytes: Vec<Uuid>,
    /// Events whose ledger is there and has expired.
    ledger: Vec<Uuid>,
    /// Events whose identity has expired.
    identity: Vec<Uuid>,
    /// The last one looked at, unless the shard ends there.
    last: Option<Uuid>,
}

/// Looks at the next events after this place and deletes what is due. Says what it did, and where it stopped in the shard.
async fn step(pool: &Pool, place: &Place, now: i64) -> Result<(Reaped, Option<Uuid>), StoreError> {
    let (shard, settled) = (place.shard(), settled_codes());
    let taken = pool.take().await?;
    let due = look(&taken, place, now, &settled).await?;
    let mut reaped = Reaped::default();
    if !due.bytes.is_empty() {
        reaped.payloads = reap_payloads(&taken, &due.bytes, &settled, shard).await?;
    }
    if !due.ledger.is_empty() {
        reaped.ledgers = reap_ledgers(&taken, &due.ledger, &settled, shard).await?;
    }
    if !due.identity.is_empty() {
        let (identities, payloads) =
            reap_events(&taken, &due.identity, &settled, now, shard).await?;
        reaped.identities = identities;
        reaped.payloads += payloads;
    }
    taken.commit().await?;
    Ok((reaped, due.last))
}

/// Begins the transaction and looks without locking. `LATERAL` with a limit of its own keeps the planner to one look-up for each
/// event that is due: it would rather read all the bytes of a shard.
async fn look(
    taken: &Taken,
    place: &Place,
    now: i64,
    settled: &Vec<i16>,
) -> Result<Due, StoreError> {
    let rows = taken
        .begin(
            "SELECT e.id, p.there IS NOT NULL, e.status = ANY ($3) AND e.expires_at <= $2,
                 e.status = ANY ($3) AND e.ledger_until <= $2 AND e.ledger_until <> $6 AND e.expires_at > $2
             FROM (
                 SELECT id, status, expires_at, payload_until, ledger_until FROM hapax.event
                 WHERE shard = $1 AND id > $4 ORDER BY id LIMIT $5
             ) e
             LEFT JOIN LATERAL (
                 SELECT true AS there FROM hapax.payload
                 WHERE least(e.payload_until, e.ledger_until) <= $2 AND e.status = ANY ($3) AND shard = $1 AND event = e.id LIMIT 1
             ) p ON true
             ORDER BY e.id",
            &[
                (&place.shard(), Type::INT2),
                (&now, Type::INT8),
                (settled, Type::INT2_ARRAY),
                (&place.after, Type::UUID),
                (&ROWS_PER_STEP, Type::INT8),
                (&Time::MIN.micros(), Type::INT8),
            ],
        )
        .await?;
    let those = |column: usize| {
        let due = rows.iter().filter(|row| row.get(column));
        due.map(|row| row.get(0)).collect()
    };
    let full = rows.len() as i64 == ROWS_PER_STEP;
    Ok(Due {
        bytes: those(1),
        identity: those(2),
        ledger: those(3),
        last: rows.last().filter(|_| full).map(|row| row.get(0)),
    })
}

/// Counts what all steps of a round would delete.
pub(super) async fn due(pool: &Pool, now: Time) -> Result<Reaped, StoreError> {
    let rows = pool
        .walk(
            "SELECT count(*) FILTER (WHERE EXISTS (
                     SELECT FROM hapax.payload p WHERE p.shard = e.shard AND p.event = e.id
                 )),
                 count(*) FILTER (WHERE e.ledger_until <= $1 AND e.ledger_until <> $2 AND e.expires_at > $1),
                 count(*) FILTER (WHERE e.expires_at <= $1)
             FROM hapax.event e
             WHERE least(e.payload_until, e.ledger_until, e.expires_at) <= $1 AND e.status = ANY ($3)
               AND NOT EXISTS (
                   SELECT FROM (
                       SELECT id, queue_shard FROM hapax.effect WHERE event = e.id
                       UNION ALL
                       SELECT effect, queue_shard FROM hapax.effect_link WHERE shard = e.shard AND event = e.id
                   ) AS c (effect, queue_shard)
                   JOIN hapax.queue q ON q.shard = c.queue_shard AND q.effect = c.effect
                   WHERE q.state IN (0, 1, 3)
               )
               AND NOT EXISTS (SELECT FROM hapax.fan_out f WHERE f.shard = e.shard AND f.event = e.id)",
            &[
                (&now.micros(), Type::INT8),
                (&Time::MIN.micros(), Type::INT8),
                (&settled_codes(), Type::INT2_ARRAY),
            ],
        )
        .await?;
    let count = |column: usize| {
        rows.first()
            .map_or(0, |row| row.get::<_, i64>(column) as u32)
    };
    Ok(Reaped {
        payloads: count(0),
        ledgers: count(1),
        identities: count(2),
        keys: 0,
        more: false,
    })
}
