//! Log lines about an effect: whatever they say, they name the event and the effect in the same words.
//!
//! Never a payload, a header or a secret: only what is in the ledger's own columns.

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
