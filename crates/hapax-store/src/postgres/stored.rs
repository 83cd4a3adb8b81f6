//! Writing what was decided of a group of arrivals, and committing it. Most groups need one round trip for both.

use std::collections::BTreeMap;

use hapax_ledger::event::DeliveryOutcome;
use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::accept::insert_events;
use super::called::CalledRows;
use super::carry::HandRows;
use super::columns::{DeliveryColumns, EventColumns};
use super::decide::{Decisions, Key, Rolled};
use super::known::{Slots, key_columns};
use super::plan::Plan;
use super::pool::{Param, Statement, Taken};
use super::status::Around;
use super::wire::Uuid;
use crate::error::StoreError;

/// Writes all of it and commits.
pub(super) async fn store(
    taken: Taken,
    decisions: Decisions<'_>,
    plan: Option<&Plan>,
    slots: &Slots<'_>,
) -> Result<(), StoreError> {
    store_with(taken, decisions, plan, slots, Vec::new()).await
}

/// The same, with whatever else belongs to it.
pub(super) async fn store_with(
    taken: Taken,
    decisions: Decisions<'_>,
    plan: Option<&Plan>,
    slots: &Slots<'_>,
    more: Vec<Statement<'_>>,
) -> Result<(), StoreError> {
    let around = plan.map(|plan| {
        let mut around = Around::of(&plan.hand);
        if !around.is_empty() {
            decisions
                .extended
                .keys()
                .for_each(|id| around.lock_too(*id));
        }
        around
    });
    let rows = GroupRows::of(decisions, plan, slots);
    let mut first = rows.first();
    first.extend(more);
    match (around, plan) {
        (Some(around), Some(plan)) if !around.is_empty() => {
            let (_, stand) = tokio::try_join!(biased; taken.run_all(&first), around.look(&taken))?;
            stand.commit(taken, &plan.hand.reviews, rows.rest()).await?;
        }
        _ => {
            first.extend(rows.rest());
            taken.commit_behind(&first).await?;
        }
    }
    Ok(())
}

/// All rows of what was decided of a group.
pub(super) struct GroupRows<'a> {
    events: EventColumns<'a>,
    called: Option<CalledRows<'a>>,
    moved: Option<HandRows<'a>>,
    deliveries: DeliveryRows<'a>,
    extended: ExtendColumns,
    rolled: RollColumns,
    handed_over: HandOverColumns,
}

impl<'a> GroupRows<'a> {
    pub(super) fn of(
        decisions: Decisions<'a>,
        plan: Option<&'a Plan>,
        slots: &Slots<'_>,
    ) -> GroupRows<'a> {
        GroupRows {
            called: plan.map(CalledRows::of),
            moved: plan.map(|plan| HandRows::of(&plan.hand)),
            deliveries: DeliveryRows::of(DeliveryColumns::of(&decisions.deliveries)),
            extended: ExtendColumns::of(&decisions.extended),
            rolled: RollColumns::of(&decisions.rolled),
            handed_over: HandOverColumns::of(slots),
            events: EventColumns::of(decisions.events),
        }
    }

    /// What is new, and what has become of effects.
    pub(super) fn first(&self) -> Vec<Statement<'_>> {
        let mut first: Vec<Statement<'_>> = Vec::new();
        first.extend((!self.events.is_empty()).then(|| new_events(&self.events)));
        first.extend(self.called.iter().flat_map(CalledRows::statements));
        first.extend(self.moved.iter().flat_map(HandRows::statements));
        first.extend(self.deliveries.statement());
        first
    }

    /// What has become of events and deliveries that were there. Events before deliveries, as the reaper locks them: nobody holds the
    /// second while waiting for the first.
    pub(super) fn rest(&self) -> Vec<Statement<'_>> {
        let rest = [
            self.extended.statement(),
            self.rolled.statement(),
            self.handed_over.statement(),
        ];
        rest.into_iter().flatten().collect()
    }
}

fn new_events<'a>(columns: &'a EventColumns<'_>) -> Statement<'a> {
    (insert_events!("", "", "SELECT"), columns.params().into())
}

struct DeliveryRows<'a> {
    columns: DeliveryColumns<'a>,
    outcome: i16,
}

impl<'a> DeliveryRows<'a> {
    fn of(columns: DeliveryColumns<'a>) -> DeliveryRows<'a> {
        DeliveryRows {
            columns,
            outcome: DeliveryOutcome::Duplicate.code().into(),
        }
    }

    fn statement(&self) -> Option<Statement<'_>> {
        let mut params: Vec<Param<'_>> = self.columns.params().into();
        params.push((&self.outcome, Type::INT2));
        let sql = "INSERT INTO hapax.delivery (shard, event, n, at, conflict, conflicts, body_hash, scheme, secret_index,
                 signed_at, remote, body, outcome)
             SELECT d.*, $13::int2
             FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int4[]), unnest($4::int8[]), unnest($5::bool[]),
                 unnest($6::int4[]), unnest($7::bytea[]), unnest($8::text[]), unnest($9::int2[]), unnest($10::int8[]),
                 unnest($11::text[]), unnest($12::bytea[])) AS d";
        (!self.columns.is_empty()).then_some((sql, params))
    }
}

#[derive(Default)]
struct RollColumns {
    shard: Vec<i16>,
    event: Vec<Uuid>,
    from: Vec<i32>,
    to: Vec<i32>,
    at: Vec<i64>,
    conflicts: Vec<i32>,
}

impl RollColumns {
    fn of(all: &BTreeMap<EventId, Rolled>) -> RollColumns {
        let mut columns = RollColumns::default();
        for (id, rolled) in all {
            columns.shard.push(id.0.shard() as i16);
            columns.event.push(Uuid(id.bytes()));
            columns.from.push(rolled.from as i32);
            columns.to.push(rolled.to as i32);
            columns.at.push(rolled.at.micros());
            columns.conflicts.push(rolled.conflicts as i32);
        }
        columns
    }

    fn statement(&self) -> Option<Statement<'_>> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.event, Type::UUID_ARRAY),
            (&self.from, Type::INT4_ARRAY),
            (&self.to, Type::INT4_ARRAY),
            (&self.at, Type::INT8_ARRAY),
            (&self.conflicts, Type::INT4_ARRAY),
        ];
        let sql = "UPDATE hapax.delivery d SET n = x.n, at = x.at, conflicts = x.conflicts
             FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int4[]), unnest($4::int4[]), unnest($5::int8[]),
                 unnest($6::int4[]))
                 AS x (shard, event, old_n, n, at, conflicts)
             WHERE d.shard = x.shard AND d.event = x.event AND d.n = x.old_n";
        (!self.event.is_empty()).then_some((sql, params))
    }
}

#[derive(Default)]
struct ExtendColumns {
    shard: Vec<i16>,
    event: Vec<Uuid>,
    expires_at: Vec<i64>,
}

impl ExtendColumns {
    fn of(all: &BTreeMap<EventId, Time>) -> ExtendColumns {
        let mut columns = ExtendColumns::default();
        for (id, expires_at) in all {
            columns.shard.push(id.0.shard() as i16);
            columns.event.push(Uuid(id.bytes()));
            columns.expires_at.push(expires_at.micros());
        }
        columns
    }

    /// In the order of their ids: moves of effects lock events too.
    fn statement(&self) -> Option<Statement<'_>> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.event, Type::UUID_ARRAY),
            (&self.expires_at, Type::INT8_ARRAY),
        ];
        let sql = "WITH x AS MATERIALIZED (
                 SELECT e.shard, e.id, k.expires_at
                 FROM (SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::int8[])) AS k (shard, id, expires_at)
                 JOIN hapax.event e ON e.shard = k.shard AND e.id = k.id
                 ORDER BY e.id FOR UPDATE OF e
             )
             UPDATE hapax.event e SET expires_at = x.expires_at FROM x WHERE e.shard = x.shard AND e.id = x.id";
        (!self.event.is_empty()).then_some((sql, params))
    }
}

/// Keys whose identity had expired, for the events that took them.
struct HandOverColumns {
    shard: Vec<i16>,
    source: Vec<String>,
    key_hash: Vec<Uuid>,
    event: Vec<Uuid>,
}

impl HandOverColumns {
    fn of(slots: &Slots<'_>) -> HandOverColumns {
        let changed = slots.iter().filter_map(|(key, slot)| {
            let holder = slot.holder.as_ref()?.event;
            (slot.stored != Some(holder)).then_some((key, Uuid(holder.bytes())))
        });
        let (keys, event): (Vec<&Key<'_>>, Vec<Uuid>) = changed.unzip();
        let (shard, source, key_hash) = key_columns(keys.into_iter());
        HandOverColumns {
            shard,
            source,
            key_hash,
            event,
        }
    }

    fn statement(&self) -> Option<Statement<'_>> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.source, Type::TEXT_ARRAY),
            (&self.key_hash, Type::UUID_ARRAY),
            (&self.event, Type::UUID_ARRAY),
        ];
        let sql = "UPDATE hapax.identity i SET event = x.event
             FROM (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::uuid[]), unnest($4::uuid[]))
                 AS x (shard, source, key_hash, event)
             WHERE i.shard = x.shard AND i.source = x.source COLLATE \"C\" AND i.key_hash = x.key_hash";
        (!self.event.is_empty()).then_some((sql, params))
    }
}
