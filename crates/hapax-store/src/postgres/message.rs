//! What a publisher said about a message, as rows.

use std::borrow::Cow;

use hapax_ledger::id::{AppId, EndpointId, EventId};
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::pool::{Param, Statement};
use super::wire::{Uuid, received, sendable};
use crate::nouns::About;
use crate::posting_code::{from_texts, to_texts};

/// What was said about a message, from the eight columns of `message` that begin there; and what its event calls it.
pub(super) fn to_about(row: &Row, from: usize, event_id: Option<String>) -> About {
    let text = |column: usize| row.get::<_, Option<String>>(from + column).map(received);
    let list = |column: usize| text(column).as_deref().map(to_texts).unwrap_or_default();
    let number = |column: usize| row.get::<_, Option<i64>>(from + column);
    let only_to: Option<Uuid> = row.get(from + 7);
    About {
        event_id,
        channels: list(0),
        tags: list(1),
        deliver_at: number(2).map(Time::from_micros),
        api_version: text(3),
        ordering_key: text(4),
        sequence_key: text(5),
        sequence: number(6).map(|number| number as u64),
        only_to: only_to.map(|id| EndpointId::from_bytes(id.0)),
    }
}

/// The columns of messages that are about to be stored.
#[derive(Default)]
pub(super) struct MessageColumns<'a> {
    shard: Vec<i16>,
    event: Vec<Uuid>,
    app: Vec<Uuid>,
    channels: Vec<Option<String>>,
    tags: Vec<Option<String>>,
    deliver_at: Vec<Option<i64>>,
    api_version: Vec<Option<Cow<'a, str>>>,
    ordering_key: Vec<Option<Cow<'a, str>>>,
    sequence_key: Vec<Option<Cow<'a, str>>>,
    sequence: Vec<Option<i64>>,
    only_to: Vec<Option<Uuid>>,
}

impl<'a> MessageColumns<'a> {
    /// One more.
    pub(super) fn push(
        &mut self,
        event: EventId,
        app: AppId,
        about: &'a About,
        sequence: Option<i64>,
    ) {
        let list = |texts: &[String]| {
            (!texts.is_empty()).then(|| sendable(&from_texts(texts)).into_owned())
        };
        let text = |text: &'a Option<String>| text.as_deref().map(sendable);
        self.shard.push(event.0.shard() as i16);
        self.event.push(Uuid(event.bytes()));
        self.app.push(Uuid(app.bytes()));
        self.channels.push(list(&about.channels));
        self.tags.push(list(&about.tags));
        self.deliver_at.push(about.deliver_at.map(Time::micros));
        self.api_version.push(text(&about.api_version));
        self.ordering_key.push(text(&about.ordering_key));
        self.sequence_key.push(text(&about.sequence_key));
        self.sequence.push(sequence);
        let only_to = about.only_to.map(|id| Uuid(id.bytes()));
        self.only_to.push(only_to);
    }

    /// The parameters, in the order of the table's columns.
    pub(super) fn params(&self) -> [Param<'_>; 11] {
        [
            (&self.shard, Type::INT2_ARRAY),
            (&self.event, Type::UUID_ARRAY),
            (&self.app, Type::UUID_ARRAY),
            (&self.channels, Type::TEXT_ARRAY),
            (&self.tags, Type::TEXT_ARRAY),
            (&self.deliver_at, Type::INT8_ARRAY),
            (&self.api_version, Type::TEXT_ARRAY),
            (&self.ordering_key, Type::TEXT_ARRAY),
            (&self.sequence_key, Type::TEXT_ARRAY),
            (&self.sequence, Type::INT8_ARRAY),
            (&self.only_to, Type::UUID_ARRAY),
        ]
    }

    /// `None` if there are none.
    pub(super) fn statement(&self) -> Option<Statement<'_>> {
        let sql = "INSERT INTO hapax.message (shard, event, app, channels, tags, deliver_at, api_version, ordering_key,
                 sequence_key, sequence, only_to)
             SELECT unnest($1::int2[]), unnest($2::uuid[]), unnest($3::uuid[]), unnest($4::text[]), unnest($5::text[]),
                 unnest($6::int8[]), unnest($7::text[]), unnest($8::text[]), unnest($9::text[]), unnest($10::int8[]), unnest($11::uuid[])";
        (!self.event.is_empty()).then(|| (sql, self.params().into()))
    }
}
