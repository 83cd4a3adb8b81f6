//! A message as far as one endpoint is concerned: found by the endpoint's lane, however many others the message went to.

use hapax_ledger::id::{EndpointId, EventId, RawId};
use hapax_ledger::time::Time;
use hapax_ledger::verdict::Kept;
use tokio_postgres::types::Type;

use super::effect::{effect_columns, to_effect};
use super::pool::{Param, Pool};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::Addressed;

/// The message's payload and its delivery to the endpoint.
pub(super) async fn addressed(
    pool: &Pool,
    id: EventId,
    endpoint: EndpointId,
) -> Result<Option<Addressed>, StoreError> {
    let (shard, event, lane) = (id.0.shard() as i16, Uuid(id.bytes()), endpoint.to_string());
    let [first, last] = made_with(id);
    let message: [Param<'_>; 2] = [(&shard, Type::INT2), (&event, Type::UUID)];
    let delivery: [Param<'_>; 5] = [
        (&shard, Type::INT2),
        (&event, Type::UUID),
        (&lane, Type::TEXT),
        (&first, Type::UUID),
        (&last, Type::UUID),
    ];
    let found = pool
        .read_all(&[(MESSAGE, message.to_vec()), (DELIVERY, delivery.to_vec())])
        .await?;
    let [message, delivery] = &found[..] else {
        return Ok(None);
    };
    Ok(message.first().map(|message| Addressed {
        payload: match message.get(0) {
            true => Kept::Whole,
            false => Kept::Reaped,
        },
        delivery: delivery.first().map(to_effect),
    }))
}

/// Ids of effects carry the time of the event that called for them first: the lowest and the highest of this event's.
fn made_with(event: EventId) -> [Uuid; 2] {
    let at = Time::from_micros(event.0.millis() as i64 * 1_000);
    [(0, 0), (u16::MAX, u64::MAX)].map(|(shard, row)| Uuid(RawId::new(at, shard, row).bytes()))
}

const MESSAGE: &str =
    "SELECT EXISTS (SELECT FROM hapax.payload p WHERE p.shard = v.shard AND p.event = v.id)
     FROM hapax.event v WHERE v.shard = $1 AND v.id = $2";

/// Among the message's own, or one that an earlier message of the same key has called for.
const DELIVERY: &str = effect_columns!(
    "",
    "FROM (
         SELECT shard, id FROM hapax.effect
         WHERE lane >= 'ep_' AND lane < 'ep`' AND lane = $3 AND id >= $4 AND id <= $5 AND event = $2
         UNION ALL
         SELECT o.shard, o.id FROM hapax.effect_link l
         JOIN hapax.effect o ON o.shard = l.effect_shard AND o.id = l.effect
         WHERE l.shard = $1 AND l.event = $2 AND o.lane = $3
         LIMIT 1
     ) c JOIN hapax.effect e ON e.shard = c.shard AND e.id = c.id
     JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id"
);
