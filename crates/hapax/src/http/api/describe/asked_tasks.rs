//! What requests for background tasks bring, and where a consumer goes on: see [`super::asked`].

use serde::Deserialize;
use utoipa::ToSchema;

use super::asked::bodies;
use super::{value, value_outbox as own};

bodies! {
    /// Where a consumer goes on.
    SeekRequest {
        /// With messages that were accepted, or to be sent, at or after this time.
        #[schema(schema_with = value::time)]
        after: String,
    }

    /// What is counted.
    UsageRequest {
        /// Attempts at or after this time; counts are by the hour.
        #[schema(schema_with = value::time)]
        since: String,
        /// Attempts before this time.
        #[schema(schema_with = value::time)]
        until: String,
        /// For these applications, by id or uid; none: for all.
        app_ids: Option<Vec<String>>,
    }

    /// From when to when.
    SinceRequest {
        /// Messages that were accepted at or after this time.
        #[schema(schema_with = value::time)]
        since: String,
        /// Messages that were accepted before this time.
        #[schema(schema_with = value::time_or_null)]
        until: Option<String>,
    }

    /// What is sent again.
    BulkReplayRequest {
        /// Messages that were accepted at or after this time.
        #[schema(schema_with = value::time)]
        since: String,
        /// Messages that were accepted before this time.
        #[schema(schema_with = value::time_or_null)]
        until: Option<String>,
        /// Of these types.
        #[schema(schema_with = own::event_types)]
        event_types: Option<Vec<String>>,
        /// In this channel.
        #[schema(schema_with = value::text_or_null)]
        channel: Option<String>,
        /// With this tag.
        #[schema(schema_with = value::text_or_null)]
        tag: Option<String>,
        /// Deliveries that stand so.
        #[schema(schema_with = own::message_status_or_null)]
        status: Option<u8>,
        /// Whose latest answer was of this class.
        #[schema(schema_with = own::status_code_class_or_null)]
        status_code_class: Option<u16>,
    }
}
