//! Messages, deliveries and attempts as they are listed. Each page reads some rows at a time along an index, and goes on until it is
//! full or has looked at as many as it may.

use std::collections::{BTreeMap, BTreeSet};

use hapax_ledger::id::{EffectId, EndpointId, EventId, RawId};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::SHARDS;
use super::attempt::to_attempt;
use super::effect::{effect_columns, to_effect};
use super::effect_id::key_shard;
use super::message::to_about;
use super::pool::{Param, Pool};
use super::read::{ROWS_LOOKED_AT_MAX, event_columns, to_event};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::{
    Attempt, Deliveries, Effect, Listed, Message, MessageFilter, PAGE_MAX, Page, PageFrom, Posted,
    PostedFilter, Tried, TriedPlace, WAITING_COUNTED_MAX, lane_shard,
};
use crate::walk::{Walk, Way};

/// Rows that are read at once.
const ROWS_AT_ONCE: i64 = 256;

/// An event with what was said about it: what [`to_message`] reads.
macro_rules! message_columns {
    ($rest:literal) => {
        event_columns!(
            ", m.channels, m.tags, m.deliver_at, m.api_version, m.ordering_key, m.sequence_key, m.sequence,
               m.only_to ",
            $rest
        )
    };
}
pub(super) use message_columns;

/// Where the columns of `message` begin.
const ABOUT: usize = 22;

pub(super) fn to_message(row: &Row) -> Message {
    let event = to_event(row);
    let about = to_about(row, ABOUT, event.provider_event_id.clone());
    Message { event, about }
}

/// These messages, as far as they are there.
async fn messages_of(
    pool: &Pool,
    events: &BTreeSet<EventId>,
) -> Result<BTreeMap<EventId, Message>, StoreError> {
    let shards: Vec<i16> = events.iter().map(|id| id.0.shard() as i16).collect();
    let ids: Vec<Uuid> = events.iter().map(|id| Uuid(id.bytes())).collect();
    let rows = pool
        .read(
            message_columns!(
                "FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS k (shard, id)
                 JOIN hapax.event e ON e.shard = k.shard AND e.id = k.id
                 JOIN hapax.message m ON m.shard = k.shard AND m.event = k.id"
            ),
            &[(&shards, Type::INT2_ARRAY), (&ids, Type::UUID_ARRAY)],
        )
        .await?;
    let messages = rows.iter().map(to_message);
    Ok(messages
        .map(|message| (message.event.id, message))
        .collect())
}

/// One message.
pub(super) async fn message(pool: &Pool, id: EventId) -> Result<Option<Message>, StoreError> {
    let mut found = messages_of(pool, &BTreeSet::from([id])).await?;
    Ok(found.remove(&id))
}

/// Which way to go, and from where.
fn way<I>(from: PageFrom<I>, bytes: impl Fn(I) -> [u8; 16]) -> (Way, Uuid) {
    match from {
        PageFrom::Newest => (Way::Older, Uuid([0xff; 16])),
        PageFrom::OlderThan(id) => (Way::Older, Uuid(bytes(id))),
        PageFrom::NewerThan(id) => (Way::Newer, Uuid(bytes(id))),
    }
}

/// A page of messages, newest first.
pub(super) async fn messages(
    pool: &Pool,
    filter: &MessageFilter,
    page: Page,
) -> Result<Listed<Message>, StoreError> {
    let (way, mut from) = way(page.from, EventId::bytes);
    if let (Way::Newer, Some(since)) = (way, filter.since) {
        // Ids begin with the time, in whole milliseconds.
        from = from.max(Uuid(RawId::new(since, 0, 0).bytes()));
    }
    let mut walk = Walk::new(way, page.limit.clamp(1, PAGE_MAX) as usize);
    let mut looked_at = 0;
    while looked_at < ROWS_LOOKED_AT_MAX {
        let rows = some_messages(pool, filter, from, way).await?;
        for row in &rows {
            let message = to_message(row);
            let id = message.event.id;
            from = Uuid(id.bytes());
            if walk.is_over(id, Some(message).filter(|message| filter.fits(message))) {
                return Ok(walk.listed(false));
            }
        }
        looked_at += rows.len() as i64;
        if (rows.len() as i64) < ROWS_AT_ONCE {
            return Ok(walk.listed(false));
        }
    }
    Ok(walk.listed(true))
}

async fn some_messages(
    pool: &Pool,
    filter: &MessageFilter,
    from: Uuid,
    way: Way,
) -> Result<Vec<Row>, StoreError> {
    let app = filter.app.map(|app| Uuid(app.bytes()));
    let statement = match (app, way) {
        (Some(_), Way::Older) => message_columns!(
            "FROM (
                 SELECT * FROM hapax.message WHERE app = $3 AND event < $1 ORDER BY event DESC LIMIT $2
             ) m JOIN hapax.event e ON e.shard = m.shard AND e.id = m.event ORDER BY e.id DESC"
        ),
        (Some(_), Way::Newer) => message_columns!(
            "FROM (
                 SELECT * FROM hapax.message WHERE app = $3 AND event > $1 ORDER BY event LIMIT $2
             ) m JOIN hapax.event e ON e.shard = m.shard AND e.id = m.event ORDER BY e.id"
        ),
        (None, Way::Older) => message_columns!(
            "FROM (
                 SELECT * FROM hapax.message WHERE $3::uuid IS NULL AND event < $1 ORDER BY event DESC LIMIT $2
             ) m JOIN hapax.event e ON e.shard = m.shard AND e.id = m.event ORDER BY e.id DESC"
        ),
        (None, Way::Newer) => message_columns!(
            "FROM (
                 SELECT * FROM hapax.message WHERE $3::uuid IS NULL AND event > $1 ORDER BY event LIMIT $2
             ) m JOIN hapax.event e ON e.shard = m.shard AND e.id = m.event ORDER BY e.id"
        ),
    };
    let params: [Param<'_>; 3] = [
        (&from, Type::UUID),
        (&ROWS_AT_ONCE, Type::INT8),
        (&app, Type::UUID),
    ];
    pool.walk(statement, &params).await
}

/// Some of the deliveries that are meant, from here on; each with its message.
async fn some_deliveries(
    pool: &Pool,
    which: &Deliveries,
    from: Uuid,
    way: Way,
) -> Result<Vec<Posted>, StoreError> {
    let effects = match which {
        Deliveries::To(endpoint) => to_endpoint(pool, *endpoint, from, way).await?,
        Deliveries::Of(event) => of_message(pool, *event, from, way).await?,
    };
    let events: BTreeSet<EventId> = effects.iter().map(|effect| effect.event).collect();
    let messages = messages_of(pool, &events).await?;
    let posted = effects.into_iter().map(|effect| Posted {
        message: messages.get(&effect.event).cloned(),
        effect,
    });
    Ok(posted.collect())
}

async fn to_endpoint(
    pool: &Pool,
    endpoint: EndpointId,
    from: Uuid,
    way: Way,
) -> Result<Vec<Effect>, StoreError> {
    let statement = match way {
        Way::Older => effect_columns!(
            "",
            "FROM (
                 SELECT * FROM hapax.effect
                 WHERE lane >= 'ep_' AND lane < 'ep`' AND lane = $3 AND id < $1 ORDER BY id DESC LIMIT $2
             ) e JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id ORDER BY e.id DESC"
        ),
        Way::Newer => effect_columns!(
            "",
            "FROM (
                 SELECT * FROM hapax.effect
                 WHERE lane >= 'ep_' AND lane < 'ep`' AND lane = $3 AND id > $1 ORDER BY id LIMIT $2
             ) e JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id ORDER BY e.id"
        ),
    };
    let lane = endpoint.to_string();
    let params: [Param<'_>; 3] = [
        (&from, Type::UUID),
        (&ROWS_AT_ONCE, Type::INT8),
        (&lane, Type::TEXT),
    ];
    let rows = pool.walk(statement, &params).await?;
    Ok(rows.iter().map(to_effect).collect())
}

async fn of_message(
    pool: &Pool,
    event: EventId,
    from: Uuid,
    way: Way,
) -> Result<Vec<Effect>, StoreError> {
    let statement = match way {
        Way::Older => effect_columns!(
            "",
            "FROM (
                 SELECT id FROM hapax.effect WHERE event = $4 AND id < $1
                 UNION ALL
                 SELECT effect FROM hapax.effect_link WHERE shard = $3 AND event = $4 AND effect < $1
                 ORDER BY id DESC LIMIT $2
             ) c JOIN hapax.effect e ON e.id = c.id
             JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id ORDER BY e.id DESC"
        ),
        Way::Newer => effect_columns!(
            "",
            "FROM (
                 SELECT id FROM hapax.effect WHERE event = $4 AND id > $1
                 UNION ALL
                 SELECT effect FROM hapax.effect_link WHERE shard = $3 AND event = $4 AND effect > $1
                 ORDER BY id LIMIT $2
             ) c JOIN hapax.effect e ON e.id = c.id
             JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id ORDER BY e.id"
        ),
    };
    let (shard, event) = (event.0.shard() as i16, Uuid(event.bytes()));
    let params: [Param<'_>; 4] = [
        (&from, Type::UUID),
        (&ROWS_AT_ONCE, Type::INT8),
        (&shard, Type::INT2),
        (&event, Type::UUID),
    ];
    let rows = pool.walk(statement, &params).await?;
    Ok(rows.iter().map(to_effect).collect())
}

/// A page of deliveries, newest first.
pub(super) async fn deliveries(
    pool: &Pool,
    which: &Deliveries,
    filter: &PostedFilter,
    page: Page<EffectId>,
) -> Result<Listed<Posted, EffectId>, StoreError> {
    let (way, mut from) = way(page.from, EffectId::bytes);
    let mut walk = Walk::new(way, page.limit.clamp(1, PAGE_MAX) as usize);
    let mut looked_at = 0;
    while looked_at < ROWS_LOOKED_AT_MAX {
        let some = some_deliveries(pool, which, from, way).await?;
        let many = some.len() as i64;
        for posted in some {
            let id = posted.effect.id;
            from = Uuid(id.bytes());
            if walk.is_over(id, Some(posted).filter(|posted| filter.fits(posted))) {
                return Ok(walk.listed(false));
            }
        }
        looked_at += many;
        if many < ROWS_AT_ONCE {
            return Ok(walk.listed(false));
        }
    }
    Ok(walk.listed(true))
}

/// A page of ended attempts, newest message first and of each the latest attempt first.
pub(super) async fn attempts(
    pool: &Pool,
    which: &Deliveries,
    filter: &PostedFilter,
    page: Page<TriedPlace>,
) -> Result<Listed<Tried, TriedPlace>, StoreError> {
    let after = match page.from {
        PageFrom::Newest => None,
        PageFrom::OlderThan(place) | PageFrom::NewerThan(place) => Some(place),
    };
    // The delivery that the last page ended with may have more: it is looked at again.
    let (way, mut from) = match page.from {
        PageFrom::Newest => (Way::Older, Uuid([0xff; 16])),
        PageFrom::OlderThan(place) => (Way::Older, beside(place.effect, 1)),
        PageFrom::NewerThan(place) => (Way::Newer, beside(place.effect, -1)),
    };
    let mut walk = Walk::new(way, page.limit.clamp(1, PAGE_MAX) as usize);
    let mut looked_at = 0;
    while looked_at < ROWS_LOOKED_AT_MAX {
        let some = some_deliveries(pool, which, from, way).await?;
        let many = some.len() as i64;
        let last = some.last().map(|posted| posted.effect.id);
        from = last.map_or(from, |last| Uuid(last.bytes()));
        let fitting: Vec<Posted> = some
            .into_iter()
            .filter(|posted| filter.fits(posted))
            .collect();
        for tried in tried(pool, fitting, way).await? {
            let place = TriedPlace {
                effect: tried.posted.effect.id,
                fence: tried.attempt.fence.as_u64(),
            };
            let is_further = after.is_none_or(|after| match way {
                Way::Older => place < after,
                Way::Newer => place > after,
            });
            if is_further && walk.is_over(place, Some(tried)) {
                return Ok(walk.listed(false));
            }
        }
        if let Some(last) = last {
            walk.passed(TriedPlace::behind(last, way));
        }
        looked_at += many;
        if many < ROWS_AT_ONCE {
            return Ok(walk.listed(false));
        }
    }
    Ok(walk.listed(true))
}

/// The id right before or behind one.
fn beside(id: EffectId, by: i8) -> Uuid {
    let number = u128::from_be_bytes(id.bytes());
    let beside = match by {
        1 => number.saturating_add(1),
        _ => number.saturating_sub(1),
    };
    Uuid(beside.to_be_bytes())
}

/// The attempts of these deliveries, in this order and of each in the same.
async fn tried(pool: &Pool, posted: Vec<Posted>, way: Way) -> Result<Vec<Tried>, StoreError> {
    let shards: Vec<i16> = posted.iter().map(|one| key_shard(one.effect.id)).collect();
    let ids: Vec<Uuid> = posted
        .iter()
        .map(|one| Uuid(one.effect.id.bytes()))
        .collect();
    let rows = pool
        .read(
            "SELECT a.generation, a.number, a.fence, a.node, a.started_at, a.ended_at, a.outcome, a.detail, a.retry_after,
                 a.late_at, a.late_outcome, a.late_detail, a.excerpt, a.body_bytes, a.error, a.effect
             FROM (SELECT unnest($1::int2[]), unnest($2::uuid[])) AS k (shard, effect)
             JOIN hapax.attempt a ON a.shard = k.shard AND a.effect = k.effect
             ORDER BY a.effect, a.fence",
            &[(&shards, Type::INT2_ARRAY), (&ids, Type::UUID_ARRAY)],
        )
        .await?;
    let mut attempts: BTreeMap<EffectId, Vec<Attempt>> = BTreeMap::new();
    for row in &rows {
        let effect = EffectId::from_bytes(row.get::<_, Uuid>(15).0);
        attempts.entry(effect).or_default().push(to_attempt(row));
    }
    let all = posted.into_iter().flat_map(|posted| {
        let mut its = attempts.remove(&posted.effect.id).unwrap_or_default();
        if way == Way::Older {
            its.reverse();
        }
        its.into_iter().map(move |attempt| Tried {
            posted: posted.clone(),
            attempt,
        })
    });
    Ok(all.collect())
}

/// Deliveries to an endpoint that wait, and that are under way, each counted up to a limit.
pub(super) async fn waiting(pool: &Pool, endpoint: EndpointId) -> Result<(u64, u64), StoreError> {
    let lane = endpoint.to_string();
    let rows = pool
        .read(
            "SELECT
                 (SELECT count(*) FROM (SELECT FROM hapax.queue
                      WHERE shard = $1 AND lane = $2 AND state = 0 AND gate = 0 LIMIT $3) due),
                 (SELECT count(*) FROM (SELECT FROM hapax.queue
                      WHERE shard = $1 AND lane = $2 AND state = 0 AND gate <> 0 LIMIT $3) behind),
                 (SELECT count(*) FROM (SELECT FROM hapax.queue
                      WHERE shard = $1 AND lane = $2 AND state = 1 LIMIT $3) held)",
            &[
                (&(lane_shard(&lane, SHARDS) as i16), Type::INT2),
                (&lane, Type::TEXT),
                (&(WAITING_COUNTED_MAX as i64), Type::INT8),
            ],
        )
        .await?;
    let number = |column| {
        rows.first()
            .map_or(0, |row| row.get::<_, i64>(column) as u64)
    };
    let waiting = (number(0) + number(1)).min(WAITING_COUNTED_MAX);
    Ok((waiting, number(2)))
}
