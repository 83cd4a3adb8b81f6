//! The place of one more effect in the plan of an event that is there.

use hapax_ledger::id::{EffectId, EventId};
use tokio_postgres::types::Type;

use super::effect_id::key_shard;
use super::plan::{Plan, too_many};
use super::pool::{Statement, Taken};
use super::wire::Uuid;
use crate::error::StoreError;

/// Where an effect stands among those of an event.
pub(super) struct Seated {
    shard: i16,
    effect: Uuid,
    place: i32,
    /// The same, as links keep it.
    link_place: u16,
    /// The event calls for it already.
    known: bool,
}

impl Seated {
    /// The next free place in the plan of an event that is locked. `None` if there is no such event, or no effect.
    pub(super) async fn find(
        taken: &Taken,
        event: EventId,
        effect: Option<EffectId>,
    ) -> Result<Option<Seated>, StoreError> {
        let Some(effect) = effect else {
            return Ok(None);
        };
        let (shard, id) = (key_shard(effect), Uuid(effect.bytes()));
        // An effect whose key was only just taken has no row in the queue yet, and so no place.
        let rows = taken
            .query(
                "SELECT coalesce(max(c.place) + 1, 0), coalesce(bool_or(c.effect = $3), false)
                 FROM hapax.event v LEFT JOIN LATERAL (
                     SELECT e.id, e.place FROM hapax.effect e
                     JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id WHERE e.event = v.id
                     UNION ALL
                     SELECT effect, place FROM hapax.effect_link WHERE shard = v.shard AND event = v.id
                 ) AS c (effect, place) ON true
                 WHERE v.shard = $1 AND v.id = $2 GROUP BY v.id",
                &[
                    (&(event.0.shard() as i16), Type::INT2),
                    (&Uuid(event.bytes()), Type::UUID),
                    (&id, Type::UUID),
                ],
            )
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let place: i32 = row.get(0);
        let link_place = u16::try_from(place).map_err(|_| too_many())?;
        Ok(Some(Seated {
            shard,
            effect: id,
            place,
            link_place,
            known: row.get(1),
        }))
    }

    /// The one link of this plan, if it has one, gets the place; one that is there already stays as it is.
    pub(super) fn link(&self, plan: &mut Plan) {
        if self.known {
            plan.links.clear();
        }
        for place in plan.links.values_mut() {
            *place = self.link_place;
        }
    }

    /// Gives the place to an effect that the event called for first.
    pub(super) fn statement(&self) -> Statement<'_> {
        let sql = "UPDATE hapax.effect SET place = $3 WHERE shard = $1 AND id = $2";
        let params = vec![
            (&self.shard as _, Type::INT2),
            (&self.effect as _, Type::UUID),
            (&self.place as _, Type::INT4),
        ];
        (sql, params)
    }
}
