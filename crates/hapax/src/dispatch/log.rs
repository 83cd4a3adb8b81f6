//! Log lines about an effect: whatever they say, they name the event and the effect in the same words.
//!
//! Never a payload, a header or a secret: only what is in the ledger's own columns.

use std::sync::Arc;

use hapax_ledger::id::{EffectId, EventId};
use hapax_store::Store;
use hapax_store::nouns::{Effect, Event, Parcel};

/// Writes a line about a [`Job`](super::job::Job): `about!(warn, job, "what happened")`, with more fields before the words if need be.
macro_rules! about {
    ($level:ident, $job:expr, $($rest:tt)*) => {{
        let (effect, parcel) = (&$job.effect, &$job.parcel);
        tracing::$level!(
            source = &*parcel.source,
            "type" = parcel.event_type.as_deref(),
            event_key = parcel.key.as_str(),
            object = parcel.object_id.as_deref(),
            event = %effect.event,
            effect = %effect.id,
            name = %effect.name,
            key = %effect.key,
            $($rest)*
        );
    }};
}

pub(super) use about;

/// Writes a line about an effect whose job is not at hand, as [`about!`] would: `of_effect!(warn, subject, origin, "what happened")`.
macro_rules! of_effect {
    ($level:ident, $subject:expr, $origin:expr, $($rest:tt)*) => {{
        let subject: $crate::dispatch::log::Subject<'_> = $subject;
        let origin: Option<&$crate::dispatch::log::Origin> = $origin;
        tracing::$level!(
            source = origin.map(|origin| &*origin.source),
            "type" = origin.and_then(|origin| origin.event_type.as_deref()),
            event_key = origin.map(|origin| origin.key.as_str()),
            object = origin.and_then(|origin| origin.object.as_deref()),
            event = %subject.event,
            effect = %subject.effect,
            name = subject.name,
            key = subject.key,
            $($rest)*
        );
    }};
}

pub(super) use of_effect;

/// The effect that a line is about.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) effect: EffectId,
    pub(super) event: EventId,
    pub(super) name: &'a str,
    pub(super) key: &'a str,
}

impl<'a> From<&'a Effect> for Subject<'a> {
    fn from(effect: &'a Effect) -> Subject<'a> {
        Subject {
            effect: effect.id,
            event: effect.event,
            name: &effect.name,
            key: &effect.key,
        }
    }
}

/// What a line says of the event that calls for the effect.
pub(super) struct Origin {
    pub(super) source: Arc<str>,
    pub(super) event_type: Option<String>,
    pub(super) key: String,
    pub(super) object: Option<String>,
}

impl From<Parcel> for Origin {
    fn from(parcel: Parcel) -> Origin {
        Origin {
            source: parcel.source,
            event_type: parcel.event_type,
            key: parcel.key,
            object: parcel.object_id,
        }
    }
}

impl From<Event> for Origin {
    fn from(event: Event) -> Origin {
        Origin {
            source: event.source,
            event_type: event.event_type,
            key: event.key,
            object: event.object_id,
        }
    }
}

impl Origin {
    /// Asks the store, for a line that is rare. If it cannot say, the line says less.
    pub(super) async fn ask(store: &dyn Store, event: EventId) -> Option<Origin> {
        let detail = store.event(event).await.ok().flatten()?;
        Some(detail.event.into())
    }
}
