//! Deliveries that follow their message: frozen with it, and made in small steps, each with its cursor in one transaction (G1). Any
//! number of nodes may take steps: a message is locked by whoever makes the next of its deliveries, and others pass it by.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use hapax_ledger::id::EventId;
use hapax_ledger::order::Gate;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::Entropy;
use super::called;
use super::decide::Decisions;
use super::moment::{LeaseClock, moment, now};
use super::plan::{self, Calling, Plan};
use super::pool::{Param, Pool, Statement, Taken};
use super::status::Around;
use super::stored::GroupRows;
use super::wire::{Uuid, received, sendable};
use crate::error::StoreError;
use crate::nouns::{FAN_OUT_STEP, FannedOut, LaterDelivery, NewEffect, NewEvent};
use crate::posting::{self, Template};
use crate::posting_code::{LATER_BYTES, from_later, from_template, to_later, to_template};

/// The columns of messages that get more deliveries.
#[derive(Default)]
pub(super) struct FanOutColumns<'a> {
    shard: Vec<i16>,
    event: Vec<Uuid>,
    source: Vec<Cow<'a, str>>,
    entity: Vec<Option<Cow<'a, str>>>,
    template: Vec<String>,
    total: Vec<i32>,
    later: Vec<Vec<u8>>,
}

impl<'a> FanOutColumns<'a> {
    /// One more. Its first delivery says what the others are like.
    pub(super) fn push(
        &mut self,
        event: EventId,
        source: &'a str,
        planned: &'a NewEvent,
        later: &[LaterDelivery],
        now: Time,
    ) {
        let Some(template) = Template::of(planned, now) else {
            return;
        };
        self.shard.push(event.0.shard() as i16);
        self.event.push(Uuid(event.bytes()));
        self.source.push(sendable(source));
        self.entity.push(posting::entity(planned).map(sendable));
        self.template
            .push(sendable(&from_template(&template)).into_owned());
        self.total.push(later.len() as i32);
        self.later.push(from_later(later));
    }

    pub(super) fn statements(&self) -> Vec<Statement<'_>> {
        if self.event.is_empty() {
            return Vec::new();
        }
        let rows: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.event, Type::UUID_ARRAY),
            (&self.source, Type::TEXT_ARRAY),
            (&self.entity, Type::TEXT_ARRAY),
            (&self.template, Type::TEXT_ARRAY),
            (&self.total, Type::INT4_ARRAY),
        ];
        let lists: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.event, Type::UUID_ARRAY),
            (&self.later, Type::BYTEA_ARRAY),
        ];
        vec![
            (
                "INSERT INTO hapax.fan_out (shard, event, source, entity, template, total, made)
                 SELECT k.shard, k.event, k.source, k.entity, k.template, k.total, 0
                 FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::text[]), unnest($4::text[]), unnest($5::text[]),
                     unnest($6::int4[]), generate_subscripts($1::int2[], 1)) AS k (shard, event, source, entity, template, total, number)
                 ORDER BY k.number",
                rows,
            ),
            (
                "INSERT INTO hapax.fan_out_list (shard, event, later)
                 SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::bytea[])",
                lists,
            ),
        ]
    }
}

/// Of these sources and entities, those whose deliveries are still being made.
pub(super) async fn under_way(
    taken: &Taken,
    orders: Vec<(&str, &str)>,
) -> Result<HashSet<(String, String)>, StoreError> {
    if orders.is_empty() {
        return Ok(HashSet::new());
    }
    let (sources, entities): (Vec<_>, Vec<_>) = orders
        .into_iter()
        .map(|(source, entity)| (sendable(source), sendable(entity)))
        .unzip();
    let rows = taken
        .query(
            "SELECT DISTINCT f.source, f.entity FROM (SELECT unnest($1::text[]), unnest($2::text[])) AS k (source, entity)
             JOIN hapax.fan_out f ON f.source = k.source COLLATE \"C\" AND f.entity = k.entity COLLATE \"C\"",
            &[(&sources, Type::TEXT_ARRAY), (&entities, Type::TEXT_ARRAY)],
        )
        .await?;
    let found = rows
        .iter()
        .map(|row| (received(row.get(0)), received(row.get(1))));
    Ok(found.collect())
}

async fn is_any(pool: &Pool) -> Result<bool, StoreError> {
    let any = pool.read("SELECT FROM hapax.fan_out LIMIT 1", &[]).await?;
    Ok(!any.is_empty())
}

/// One step of the earliest message that nobody else is at.
pub(super) async fn step(
    pool: &Pool,
    entropy: &Entropy,
    clock: &LeaseClock,
) -> Result<FannedOut, StoreError> {
    // Mostly there is nothing, and finding that out needs no transaction.
    if !is_any(pool).await? {
        return Ok(FannedOut::default());
    }
    let taken = pool.take().await?;
    let Some(next) = Next::lock(&taken, clock).await? else {
        // Somebody is at it, and goes on until there is no more. Asking again and again would only keep the server busy.
        taken.roll_back().await;
        return Ok(FannedOut::default());
    };
    let lanes = next.make(taken, entropy, clock).await?;
    let more = is_any(pool).await?;
    Ok(FannedOut { lanes, more })
}

/// The message whose turn it is, locked.
struct Next {
    event: EventId,
    received_at: Time,
    event_type: Option<String>,
    effects: Vec<NewEffect>,
    made: i32,
    total: i32,
    /// The next one in the event's plan.
    place: i32,
}

impl Next {
    /// Locks one. A message that is ordered waits until all before it of its order are done with: their deliveries come first (F1).
    async fn lock(taken: &Taken, clock: &LeaseClock) -> Result<Option<Next>, StoreError> {
        let locked = taken
            .begin(
                "SELECT f.shard, f.event, f.made, f.total, f.template FROM hapax.fan_out f
                 WHERE f.entity IS NULL OR NOT EXISTS (
                     SELECT FROM hapax.fan_out o
                     WHERE o.entity IS NOT NULL AND o.source = f.source AND o.entity = f.entity AND o.n < f.n
                 )
                 ORDER BY f.n LIMIT 1 FOR UPDATE OF f SKIP LOCKED",
                &[],
            )
            .await?;
        let Some(row) = locked.first() else {
            return Ok(None);
        };
        let (shard, event) = (row.get::<_, i16>(0), row.get::<_, Uuid>(1));
        let made: i32 = row.get(2);
        let template = to_template(&received(row.get(4)))?;
        let from = made * LATER_BYTES as i32 + 1;
        let bytes = (FAN_OUT_STEP * LATER_BYTES) as i32;
        let found = taken
            .query(
                concat!(
                    "SELECT substring(l.later FROM $3 FOR $4), v.at, v.type, (
                         SELECT coalesce(max(c.place) + 1, 0) FROM (
                             SELECT place FROM hapax.effect WHERE event = $2
                             UNION ALL
                             SELECT place FROM hapax.effect_link WHERE shard = $1 AND event = $2
                         ) AS c (place)
                     ), ",
                    now!("$5"),
                    " FROM hapax.fan_out_list l
                     JOIN hapax.event v ON v.shard = l.shard AND v.id = l.event
                     WHERE l.shard = $1 AND l.event = $2"
                ),
                &[
                    (&shard, Type::INT2),
                    (&event, Type::UUID),
                    (&from, Type::INT4),
                    (&bytes, Type::INT4),
                    (&clock.given(), Type::INT8),
                ],
            )
            .await?;
        Ok(found.first().map(|found| {
            let later = to_later(found.get(0)).into_iter();
            let now = Time::from_micros(found.get(4));
            Next {
                event: EventId::from_bytes(event.0),
                received_at: Time::from_micros(found.get(1)),
                event_type: found.get::<_, Option<String>>(2).map(received),
                effects: later.map(|one| template.delivery(one, now)).collect(),
                made,
                total: row.get(3),
                place: found.get(3),
            }
        }))
    }

    /// Makes the next deliveries, moves the cursor, and commits. Gives the lanes in which something can be claimed.
    async fn make(
        self,
        taken: Taken,
        entropy: &Entropy,
        clock: &LeaseClock,
    ) -> Result<Vec<Arc<str>>, StoreError> {
        let calling = Calling {
            event: self.event,
            at: self.received_at,
            event_type: self.event_type.as_deref(),
            effects: &self.effects,
            from: self.place as usize,
        };
        let wanted = plan::wanted([calling], entropy);
        let take = called::take_keys(&taken, &wanted);
        let (fresh, moment) = tokio::try_join!(biased; take, moment(&taken, clock))?;
        let mut plan = Plan::new(&wanted, &fresh, moment);
        // What was made before is not alone, so that none of it has to be locked.
        called::lock_rest(&taken, &wanted, &BTreeSet::new(), None, &mut plan).await?;
        plan.joined.insert(self.event);
        plan.call(&calling)?;
        plan.open_gates();
        let rows = GroupRows::of(Decisions::default(), Some(&plan), &BTreeMap::new());
        let cursor = self.cursor();
        let mut first = rows.first();
        first.extend(cursor.statements());
        let mut around = Around::of(&plan.hand);
        around.lock_too(self.event);
        let (_, stand) = tokio::try_join!(biased; taken.run_all(&first), around.look(&taken))?;
        stand.commit(taken, &plan.hand.reviews, rows.rest()).await?;
        let new = plan.new.values().map(|held| &held.effect);
        let open = new.filter(|effect| effect.gate == Gate::Open);
        Ok(open.map(|effect| effect.lane.clone()).collect())
    }

    fn cursor(&self) -> Cursor {
        let made = self.made + self.effects.len() as i32;
        Cursor {
            shard: self.event.0.shard() as i16,
            event: Uuid(self.event.bytes()),
            made,
            ended: made >= self.total || self.effects.is_empty(),
        }
    }
}

/// How far a fan-out has come.
struct Cursor {
    shard: i16,
    event: Uuid,
    made: i32,
    ended: bool,
}

impl Cursor {
    fn statements(&self) -> Vec<Statement<'_>> {
        let named =
            || -> Vec<Param<'_>> { vec![(&self.shard, Type::INT2), (&self.event, Type::UUID)] };
        match self.ended {
            true => vec![
                (
                    "DELETE FROM hapax.fan_out_list WHERE shard = $1 AND event = $2",
                    named(),
                ),
                (
                    "DELETE FROM hapax.fan_out WHERE shard = $1 AND event = $2",
                    named(),
                ),
            ],
            false => {
                let mut moved = named();
                moved.push((&self.made, Type::INT4));
                let sql = "UPDATE hapax.fan_out SET made = $3 WHERE shard = $1 AND event = $2";
                vec![(sql, moved)]
            }
        }
    }
}
