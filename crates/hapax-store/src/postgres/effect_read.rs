//! Lists and counts of effects, and what their requests are made of.
//!
//! What has not ended well is found by its state, however many have; all else by walking through the effects from the newest on.

use bytes::Bytes;
use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{EffectId, EventId, ROW_MAX, RawId, SHARD_MAX};
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::effect::{effect_columns, to_effect};
use super::message::to_about;
use super::pool::{Param, Pool};
use super::read::ROWS_LOOKED_AT_MAX;
use super::wire::{Uuid, received, sendable};
use crate::error::StoreError;
use crate::nouns::{Effect, EffectCounts, EffectFilter, Listed, PAGE_MAX, Page, PageFrom, Parcel};

/// One page of the effects `e` that `$walk` goes through, in this order, as far as they fit the filter. What is NULL does not
/// narrow, and is dropped by the planner.
macro_rules! page {
    ($walk:literal, $order:literal) => {
        effect_columns!(
            "",
            concat!(
                "FROM ",
                $walk,
                " JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id
                 LEFT JOIN hapax.event v ON v.shard = e.event_shard AND v.id = e.event
                 WHERE ($5::int2 IS NULL OR q.state = $5) AND ($6::text IS NULL OR e.name = $6)
                   AND ($7::text IS NULL OR e.lane = $7) AND ($8::text IS NULL OR v.source = $8)
                   AND ($9::int8 IS NULL OR v.at IS NULL OR v.at >= $9)
                   AND ($10::int8 IS NULL OR v.at IS NULL OR v.at < $10)
                 ORDER BY e.id ",
                $order,
                " LIMIT $2"
            )
        )
    };
}

const OLDER: &str = page!(
    "(
         SELECT * FROM hapax.effect WHERE id < $1 AND id BETWEEN $3 AND $4 ORDER BY id DESC LIMIT 50000
     ) e",
    "DESC"
);
const NEWER: &str = page!(
    "(
         SELECT * FROM hapax.effect WHERE id > $1 AND id BETWEEN $3 AND $4 ORDER BY id LIMIT 50000
     ) e",
    ""
);
const OLDER_BY_STATE: &str = page!(
    "(
         SELECT effect FROM hapax.queue
         WHERE state = $5 AND state IN (0, 3, 4) AND effect < $1 AND effect BETWEEN $3 AND $4
         ORDER BY effect DESC LIMIT 50000
     ) w JOIN hapax.effect e ON e.id = w.effect",
    "DESC"
);
const NEWER_BY_STATE: &str = page!(
    "(
         SELECT effect FROM hapax.queue
         WHERE state = $5 AND state IN (0, 3, 4) AND effect > $1 AND effect BETWEEN $3 AND $4
         ORDER BY effect LIMIT 50000
     ) w JOIN hapax.effect e ON e.id = w.effect",
    ""
);
/// The last effect that a page has looked at, if it looked at as many as it may.
const END_OF_LOOK: &str = "SELECT id FROM hapax.effect WHERE id < $1 AND id BETWEEN $3 AND $4
     ORDER BY id DESC OFFSET $2 - 1 LIMIT 1";
const END_OF_LOOK_BY_STATE: &str = "SELECT effect FROM hapax.queue
     WHERE state = $5 AND state IN (0, 3, 4) AND effect < $1 AND effect BETWEEN $3 AND $4
     ORDER BY effect DESC OFFSET $2 - 1 LIMIT 1";
/// The same towards newer ones.
const END_OF_LOOK_NEWER: &str = "SELECT id FROM hapax.effect WHERE id > $1 AND id BETWEEN $3 AND $4
     ORDER BY id OFFSET $2 - 1 LIMIT 1";
const END_OF_LOOK_NEWER_BY_STATE: &str = "SELECT effect FROM hapax.queue
     WHERE state = $5 AND state IN (0, 3, 4) AND effect > $1 AND effect BETWEEN $3 AND $4
     ORDER BY effect OFFSET $2 - 1 LIMIT 1";

/// A filter as parameters `$3` to `$10`, after the id to begin at and the number of rows.
struct Wanted {
    low: Uuid,
    high: Uuid,
    state: Option<EffectState>,
    state_code: Option<i16>,
    texts: [Option<String>; 3],
    since: Option<i64>,
    until: Option<i64>,
}

impl Wanted {
    fn new(filter: &EffectFilter) -> Wanted {
        // Ids sort by time: a range of time is a range of ids, to the millisecond.
        let low = filter
            .since
            .map_or([0; 16], |since| RawId::new(since, 0, 0).bytes());
        let high = filter.until.map_or([0xff; 16], |until| {
            RawId::new(until, SHARD_MAX, ROW_MAX).bytes()
        });
        let safe = |text: &Option<String>| text.as_deref().map(|text| sendable(text).into_owned());
        Wanted {
            low: Uuid(low),
            high: Uuid(high),
            state: filter.state,
            state_code: filter.state.map(|state| state.code().into()),
            texts: [safe(&filter.name), safe(&filter.lane), safe(&filter.source)],
            since: filter.since.map(Time::micros),
            until: filter.until.map(Time::micros),
        }
    }

    /// Is there an index that leads to nothing else?
    fn by_state(&self) -> bool {
        match self.state {
            Some(EffectState::Pending | EffectState::Uncertain | EffectState::Dead) => true,
            Some(EffectState::Claimed | EffectState::Done | EffectState::Skipped) | None => false,
        }
    }

    fn params<'p>(&'p self, from: &'p Uuid, limit: &'p i64) -> [Param<'p>; 10] {
        let [name, lane, source] = &self.texts;
        [
            (from, Type::UUID),
            (limit, Type::INT8),
            (&self.low, Type::UUID),
            (&self.high, Type::UUID),
            (&self.state_code, Type::INT2),
            (name, Type::TEXT),
            (lane, Type::TEXT),
            (source, Type::TEXT),
            (&self.since, Type::INT8),
            (&self.until, Type::INT8),
        ]
    }
}

/// A page of effects, newest first.
pub(super) async fn effects(
    pool: &Pool,
    filter: &EffectFilter,
    page: Page<EffectId>,
) -> Result<Listed<Effect, EffectId>, StoreError> {
    let limit = i64::from(page.limit.clamp(1, PAGE_MAX));
    let wanted = Wanted::new(filter);
    match page.from {
        PageFrom::Newest => older(pool, &wanted, Uuid([0xff; 16]), limit).await,
        PageFrom::OlderThan(id) => older(pool, &wanted, Uuid(id.bytes()), limit).await,
        PageFrom::NewerThan(id) => newer(pool, &wanted, Uuid(id.bytes()), limit).await,
    }
}

async fn older(
    pool: &Pool,
    wanted: &Wanted,
    from: Uuid,
    limit: i64,
) -> Result<Listed<Effect, EffectId>, StoreError> {
    let (page, end) = match wanted.by_state() {
        true => (OLDER_BY_STATE, END_OF_LOOK_BY_STATE),
        false => (OLDER, END_OF_LOOK),
    };
    let found = pool.walk(page, &wanted.params(&from, &limit)).await?;
    let rows: Vec<Effect> = found.iter().map(to_effect).collect();
    let next = match rows.last() {
        Some(last) if rows.len() as i64 == limit => {
            let older = "SELECT 1 FROM hapax.effect WHERE id < $1 LIMIT 1";
            let named = [(&Uuid(last.id.bytes()) as _, Type::UUID)];
            let more = pool.read(older, &named).await?;
            (!more.is_empty()).then_some(last.id)
        }
        _ => end_of_look(pool, wanted, from, end).await?,
    };
    Ok(Listed {
        rows,
        next,
        newer: None,
    })
}

/// Where a page stopped looking, if it did before the end.
async fn end_of_look(
    pool: &Pool,
    wanted: &Wanted,
    from: Uuid,
    end: &'static str,
) -> Result<Option<EffectId>, StoreError> {
    let params = wanted.params(&from, &ROWS_LOOKED_AT_MAX);
    let named = if wanted.by_state() { 5 } else { 4 };
    let last = pool.read(end, &params[..named]).await?;
    Ok(last
        .first()
        .map(|row| EffectId::from_bytes(row.get::<_, Uuid>(0).0)))
}

async fn newer(
    pool: &Pool,
    wanted: &Wanted,
    from: Uuid,
    limit: i64,
) -> Result<Listed<Effect, EffectId>, StoreError> {
    let (page, end) = match wanted.by_state() {
        true => (NEWER_BY_STATE, END_OF_LOOK_NEWER_BY_STATE),
        false => (NEWER, END_OF_LOOK_NEWER),
    };
    let found = pool.walk(page, &wanted.params(&from, &limit)).await?;
    let rows: Vec<Effect> = found.iter().rev().map(to_effect).collect();
    let newer = match (rows.len() as i64) < limit {
        true => end_of_look(pool, wanted, from, end).await?,
        false => None,
    };
    // There is always something older: the effect this page began after.
    let next = rows.last().map(|effect| effect.id).or(newer);
    Ok(Listed { rows, next, newer })
}

/// How many effects have not ended well. Each number is the size of an index, or of a part of one.
pub(super) async fn counts(pool: &Pool) -> Result<EffectCounts, StoreError> {
    let rows = pool
        .read(
            "SELECT (SELECT count(*) FROM hapax.queue WHERE state = 0 AND state IN (0, 3, 4)),
                 (SELECT count(*) FROM hapax.queue WHERE state = 1),
                 (SELECT count(*) FROM hapax.queue WHERE state = 3 AND state IN (0, 3, 4)),
                 (SELECT count(*) FROM hapax.queue WHERE state = 4 AND state IN (0, 3, 4))",
            &[],
        )
        .await?;
    let number = |column| {
        let row = rows.first();
        row.map_or(0, |row| row.get::<_, i64>(column) as u64)
    };
    Ok(EffectCounts {
        pending: number(0),
        claimed: number(1),
        uncertain: number(2),
        dead: number(3),
    })
}

/// What the requests of these events' effects are made of, in their order.
pub(super) async fn parcels(
    pool: &Pool,
    events: &[EventId],
) -> Result<Vec<Option<Parcel>>, StoreError> {
    let shards: Vec<i16> = events.iter().map(|id| id.0.shard() as i16).collect();
    let ids: Vec<Uuid> = events.iter().map(|id| Uuid(id.bytes())).collect();
    let rows = pool
        .read(
            "SELECT k.number, v.source, v.type, v.key, v.at, p.content_type, p.body, m.event IS NOT NULL, v.provider_event_id,
                 m.channels, m.tags, m.deliver_at, m.api_version, m.ordering_key, m.sequence_key, m.sequence, m.only_to,
                 v.object_id
             FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), generate_subscripts($1::int2[], 1)) AS k (shard, id, number)
             JOIN hapax.event v ON v.shard = k.shard AND v.id = k.id
             JOIN hapax.payload p ON p.shard = k.shard AND p.event = k.id
             LEFT JOIN hapax.message m ON v.source >= '~app_' AND v.source < '~app`' AND m.shard = k.shard AND m.event = k.id",
            &[(&shards, Type::INT2_ARRAY), (&ids, Type::UUID_ARRAY)],
        )
        .await?;
    let mut parcels: Vec<Option<Parcel>> = events.iter().map(|_| None).collect();
    for row in rows {
        let number = row.get::<_, i32>(0) as usize - 1;
        if let Some(parcel) = parcels.get_mut(number) {
            *parcel = Some(to_parcel(&row));
        }
    }
    Ok(parcels)
}

fn to_parcel(row: &Row) -> Parcel {
    let text = |column| row.get::<_, Option<String>>(column).map(received);
    Parcel {
        source: received(row.get(1)).into(),
        event_type: text(2),
        key: received(row.get(3)),
        object_id: text(17),
        received_at: Time::from_micros(row.get(4)),
        content_type: text(5),
        body: Bytes::from(row.get::<_, Vec<u8>>(6)),
        about: row.get::<_, bool>(7).then(|| to_about(row, 9, text(8))),
    }
}
