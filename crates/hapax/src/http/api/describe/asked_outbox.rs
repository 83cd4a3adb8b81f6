//! What requests of the outgoing API bring: see [`super::asked`].

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::asked::bodies;
use super::{value, value_outbox as own};

bodies! {
    /// An application.
    AppRequest {
        /// What people call it.
        #[schema(schema_with = value::text)]
        name: String,
        /// What its owner calls it.
        #[schema(schema_with = own::app_uid_or_null)]
        uid: Option<String>,
        /// Messages a second to each of its endpoints, at most.
        #[schema(schema_with = own::throttle_or_null)]
        throttle_rate: Option<u32>,
        /// The same, as older clients call it.
        #[schema(schema_with = own::throttle_or_null)]
        rate_limit: Option<u32>,
        /// Whatever its owner wants to know about it.
        metadata: Option<BTreeMap<String, String>>,
        /// Are payloads sent in an envelope?
        envelope: Option<bool>,
        /// Waits before each attempt, in seconds.
        #[schema(schema_with = own::waits)]
        retry_schedule: Option<Vec<u32>>,
    }

    /// What changes about an application; `null` clears a field.
    AppPatchRequest {
        /// What people call it.
        #[schema(schema_with = value::text)]
        name: Option<String>,
        /// What its owner calls it.
        #[schema(schema_with = own::app_uid_or_null)]
        uid: Option<String>,
        /// Messages a second to each of its endpoints, at most.
        #[schema(schema_with = own::throttle_or_null)]
        throttle_rate: Option<u32>,
        /// The same, as older clients call it.
        #[schema(schema_with = own::throttle_or_null)]
        rate_limit: Option<u32>,
        /// Whatever its owner wants to know about it.
        metadata: Option<BTreeMap<String, String>>,
        /// Are payloads sent in an envelope?
        envelope: Option<bool>,
        /// Waits before each attempt, in seconds.
        #[schema(schema_with = own::waits)]
        retry_schedule: Option<Vec<u32>>,
    }

    /// An endpoint.
    EndpointRequest {
        /// Where to. It has to pass the gate.
        #[schema(schema_with = value::text)]
        url: String,
        /// What it is for.
        #[schema(schema_with = own::description_or_null)]
        description: Option<String>,
        /// What its owner calls it.
        #[schema(schema_with = own::endpoint_uid_or_null)]
        uid: Option<String>,
        /// Is nothing sent to it?
        disabled: Option<bool>,
        /// Types that it wants; none: all.
        #[schema(schema_with = own::event_types)]
        event_types: Option<Vec<String>>,
        /// The same, as older clients call it.
        #[schema(schema_with = own::event_types)]
        filter_types: Option<Vec<String>>,
        /// Channels that it listens to; none: all.
        #[schema(schema_with = own::channels)]
        channels: Option<Vec<String>>,
        /// Messages a second, at most.
        #[schema(schema_with = own::throttle_or_null)]
        throttle_rate: Option<u32>,
        /// The same, as older clients call it.
        #[schema(schema_with = own::throttle_or_null)]
        rate_limit: Option<u32>,
        /// Whatever its owner wants to know about it.
        metadata: Option<BTreeMap<String, String>>,
        /// Means nothing; older clients send it.
        version: Option<u32>,
        /// Deliveries in flight at a time.
        #[schema(schema_with = own::concurrency_or_null)]
        concurrency: Option<u32>,
        /// How long an attempt may take.
        #[schema(schema_with = own::timeout_or_null)]
        timeout_seconds: Option<u32>,
        /// Waits before each attempt, in seconds.
        #[schema(schema_with = own::waits)]
        retry_schedule: Option<Vec<u32>>,
        /// How deliveries are signed.
        #[schema(schema_with = own::signature_scheme_or_null)]
        signature_scheme: Option<String>,
        /// Under which names id, time and signature go.
        #[schema(schema_with = own::signature_names_or_null)]
        signature_names: Option<String>,
        /// Where a signature of Stripe's form goes; a name that ends in `-signature`.
        #[schema(schema_with = value::text_or_null)]
        signature_header: Option<String>,
        /// The key that signs; a new one unless given.
        #[schema(schema_with = value::text_or_null)]
        secret: Option<String>,
        /// Headers that go along.
        headers: Option<BTreeMap<String, String>>,
    }

    /// An endpoint; of one that is there, secret and headers stay.
    EndpointUpsertRequest {
        /// Where to. It has to pass the gate.
        #[schema(schema_with = value::text)]
        url: String,
        /// What it is for.
        #[schema(schema_with = own::description_or_null)]
        description: Option<String>,
        /// What its owner calls it.
        #[schema(schema_with = own::endpoint_uid_or_null)]
        uid: Option<String>,
        /// Is nothing sent to it?
        disabled: Option<bool>,
        /// Types that it wants; none: all.
        #[schema(schema_with = own::event_types)]
        event_types: Option<Vec<String>>,
        /// The same, as older clients call it.
        #[schema(schema_with = own::event_types)]
        filter_types: Option<Vec<String>>,
        /// Channels that it listens to; none: all.
        #[schema(schema_with = own::channels)]
        channels: Option<Vec<String>>,
        /// Messages a second, at most.
        #[schema(schema_with = own::throttle_or_null)]
        throttle_rate: Option<u32>,
        /// The same, as older clients call it.
        #[schema(schema_with = own::throttle_or_null)]
        rate_limit: Option<u32>,
        /// Whatever its owner wants to know about it.
        metadata: Option<BTreeMap<String, String>>,
        /// Means nothing; older clients send it.
        version: Option<u32>,
        /// Deliveries in flight at a time.
        #[schema(schema_with = own::concurrency_or_null)]
        concurrency: Option<u32>,
        /// How long an attempt may take.
        #[schema(schema_with = own::timeout_or_null)]
        timeout_seconds: Option<u32>,
        /// Waits before each attempt, in seconds.
        #[schema(schema_with = own::waits)]
        retry_schedule: Option<Vec<u32>>,
        /// How deliveries are signed.
        #[schema(schema_with = own::signature_scheme_or_null)]
        signature_scheme: Option<String>,
        /// Under which names id, time and signature go.
        #[schema(schema_with = own::signature_names_or_null)]
        signature_names: Option<String>,
        /// Where a signature of Stripe's form goes; a name that ends in `-signature`.
        #[schema(schema_with = value::text_or_null)]
        signature_header: Option<String>,
        /// The key that signs; a new one unless given.
        #[schema(schema_with = value::text_or_null)]
        secret: Option<String>,
        /// Headers that go along.
        headers: Option<BTreeMap<String, String>>,
    }

    /// What changes about an endpoint; `null` clears a field.
    EndpointPatchRequest {
        /// Where to. It has to pass the gate.
        #[schema(schema_with = value::text)]
        url: Option<String>,
        /// What it is for.
        #[schema(schema_with = own::description_or_null)]
        description: Option<String>,
        /// What its owner calls it.
        #[schema(schema_with = own::endpoint_uid_or_null)]
        uid: Option<String>,
        /// Is nothing sent to it?
        disabled: Option<bool>,
        /// Types that it wants; none: all.
        #[schema(schema_with = own::event_types)]
        event_types: Option<Vec<String>>,
        /// The same, as older clients call it.
        #[schema(schema_with = own::event_types)]
        filter_types: Option<Vec<String>>,
        /// Channels that it listens to; none: all.
        #[schema(schema_with = own::channels)]
        channels: Option<Vec<String>>,
        /// Messages a second, at most.
        #[schema(schema_with = own::throttle_or_null)]
        throttle_rate: Option<u32>,
        /// The same, as older clients call it.
        #[schema(schema_with = own::throttle_or_null)]
        rate_limit: Option<u32>,
        /// Whatever its owner wants to know about it.
        metadata: Option<BTreeMap<String, String>>,
        /// Means nothing; older clients send it.
        version: Option<u32>,
        /// Deliveries in flight at a time.
        #[schema(schema_with = own::concurrency_or_null)]
        concurrency: Option<u32>,
        /// How long an attempt may take.
        #[schema(schema_with = own::timeout_or_null)]
        timeout_seconds: Option<u32>,
        /// Waits before each attempt, in seconds.
        #[schema(schema_with = own::waits)]
        retry_schedule: Option<Vec<u32>>,
        /// How deliveries are signed.
        #[schema(schema_with = own::signature_scheme_or_null)]
        signature_scheme: Option<String>,
        /// Under which names id, time and signature go.
        #[schema(schema_with = own::signature_names_or_null)]
        signature_names: Option<String>,
        /// Where a signature of Stripe's form goes; a name that ends in `-signature`.
        #[schema(schema_with = value::text_or_null)]
        signature_header: Option<String>,
    }

    /// Another key.
    RotateRequest {
        /// The key; a new one unless given.
        #[schema(schema_with = value::text_or_null)]
        key: Option<String>,
        /// How long the one before signs as well; a day unless given.
        #[schema(schema_with = own::grace_or_null)]
        grace_period_seconds: Option<u64>,
    }

    /// Headers that go along.
    HeadersRequest {
        /// All of them.
        headers: BTreeMap<String, String>,
    }

    /// What changes about headers that go along.
    HeadersPatchRequest {
        /// Those that are added or changed; `null` removes one.
        headers: Option<BTreeMap<String, Option<String>>>,
        /// Those that are removed.
        delete_headers: Option<Vec<String>>,
    }

    /// A type of events.
    EventTypeRequest {
        /// Its name.
        #[schema(schema_with = own::event_type)]
        name: String,
        /// What it means.
        #[schema(schema_with = own::description_or_null)]
        description: Option<String>,
        /// Is it not offered any more?
        archived: Option<bool>,
        /// Should it not be used any more?
        deprecated: Option<bool>,
        /// A JSON Schema per version.
        schemas: Option<BTreeMap<String, Value>>,
        /// Which group it is shown in.
        #[schema(schema_with = own::event_type_or_null)]
        group_name: Option<String>,
        /// Shown only to those that have one of these.
        #[schema(schema_with = own::event_types)]
        feature_flags: Option<Vec<String>>,
        /// Means nothing; older clients send it.
        feature_flag: Option<String>,
        /// Waits before each attempt, in seconds.
        #[schema(schema_with = own::waits)]
        retry_schedule: Option<Vec<u32>>,
    }

    /// A type of events.
    EventTypeUpsertRequest {
        /// What it means.
        #[schema(schema_with = own::description_or_null)]
        description: Option<String>,
        /// Is it not offered any more?
        archived: Option<bool>,
        /// Should it not be used any more?
        deprecated: Option<bool>,
        /// A JSON Schema per version.
        schemas: Option<BTreeMap<String, Value>>,
        /// Which group it is shown in.
        #[schema(schema_with = own::event_type_or_null)]
        group_name: Option<String>,
        /// Shown only to those that have one of these.
        #[schema(schema_with = own::event_types)]
        feature_flags: Option<Vec<String>>,
        /// Means nothing; older clients send it.
        feature_flag: Option<String>,
        /// Waits before each attempt, in seconds.
        #[schema(schema_with = own::waits)]
        retry_schedule: Option<Vec<u32>>,
    }

    /// What changes about a type of events; `null` clears a field.
    EventTypePatchRequest {
        /// What it means.
        #[schema(schema_with = own::description_or_null)]
        description: Option<String>,
        /// Is it not offered any more?
        archived: Option<bool>,
        /// Should it not be used any more?
        deprecated: Option<bool>,
        /// A JSON Schema per version.
        schemas: Option<BTreeMap<String, Value>>,
        /// Which group it is shown in.
        #[schema(schema_with = own::event_type_or_null)]
        group_name: Option<String>,
        /// Shown only to those that have one of these.
        #[schema(schema_with = own::event_types)]
        feature_flags: Option<Vec<String>>,
        /// Means nothing; older clients send it.
        feature_flag: Option<String>,
        /// Waits before each attempt, in seconds.
        #[schema(schema_with = own::waits)]
        retry_schedule: Option<Vec<u32>>,
    }

    /// A message.
    MessageRequest {
        /// What happened.
        #[schema(schema_with = own::event_type)]
        event_type: String,
        /// What is sent, as it is written here; at most 1 MiB.
        payload: BTreeMap<String, Value>,
        /// The publisher's id for it: the same is sent once.
        #[schema(schema_with = own::event_key_or_null)]
        event_id: Option<String>,
        /// Which channels it belongs to.
        #[schema(schema_with = own::channels)]
        channels: Option<Vec<String>>,
        /// What it can be found by.
        #[schema(schema_with = own::channels)]
        tags: Option<Vec<String>>,
        /// Makes the application if it is not there.
        application: Option<AppRequest>,
        /// Not to be sent before; within seven days.
        #[schema(schema_with = value::time_or_null)]
        deliver_at: Option<String>,
        /// For how many days the payload is kept.
        #[schema(schema_with = own::retention_days_or_null)]
        payload_retention_period: Option<u32>,
        /// For how many hours the payload is kept.
        #[schema(schema_with = own::retention_hours_or_null)]
        payload_retention_hours: Option<u32>,
        /// The version of its payload's schema.
        #[schema(schema_with = own::key_or_null)]
        api_version: Option<String>,
        /// Messages of one key are delivered one after the other, and numbered.
        #[schema(schema_with = own::key_or_null)]
        ordering_key: Option<String>,
        /// Messages of one key are numbered.
        #[schema(schema_with = own::key_or_null)]
        sequence_key: Option<String>,
        /// A payload that is no JSON object, as the SDKs' raw messages say it.
        transformations_params: Option<RawPayloadRequest>,
    }

    /// A payload that is sent as it is.
    RawPayloadRequest {
        /// The payload.
        raw_payload: Option<String>,
        /// Its content type.
        headers: Option<RawHeadersRequest>,
    }

    /// What a raw payload is.
    RawHeadersRequest {
        /// Its content type.
        #[serde(rename = "content-type")]
        content_type: Option<String>,
    }

    /// A message that somebody thinks of.
    PrecheckRequest {
        /// What happened.
        #[schema(schema_with = own::event_type)]
        event_type: String,
        /// Which channels it belongs to.
        #[schema(schema_with = own::channels)]
        channels: Option<Vec<String>>,
    }
}

bodies! {
    /// An example.
    ExampleRequest {
        /// What happened.
        #[schema(schema_with = own::event_type)]
        event_type: String,
        /// Which of the schema's examples.
        #[schema(schema_with = own::example_index_or_null)]
        example_index: Option<u32>,
        /// What is sent instead of an example of the schema.
        payload: Option<BTreeMap<String, Value>>,
    }

    /// A description of an API: one of `spec` and `specRaw`.
    ImportRequest {
        /// Only say what would happen.
        dry_run: Option<bool>,
        /// Archive all types that it does not name.
        replace_all: Option<bool>,
        /// The document.
        spec: Option<BTreeMap<String, Value>>,
        /// The document as text, in JSON.
        spec_raw: Option<String>,
    }

    /// Access for a consumer.
    PortalRequest {
        /// Makes the application if it is not there.
        application: Option<AppRequest>,
        /// May it only look?
        read_only: Option<bool>,
        /// What it may do; all, unless given.
        #[schema(schema_with = own::capabilities)]
        capabilities: Option<Vec<String>>,
        /// Not offered: an empty list, or nothing.
        feature_flags: Option<Vec<String>>,
        /// For how many seconds the token counts; a week unless given.
        #[schema(schema_with = own::portal_expiry_or_null)]
        expiry: Option<u64>,
        /// Tokens of one session can be ended together.
        #[schema(schema_with = value::text_or_null)]
        session_id: Option<String>,
    }

    /// Which tokens end.
    ExpireRequest {
        /// They end at once: 0, or nothing.
        #[schema(schema_with = own::expiry_or_null)]
        expiry: Option<u64>,
        /// Of these sessions; none: all.
        session_ids: Option<Vec<String>>,
    }
}

/// Nothing has to be said.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResendRequest {}
