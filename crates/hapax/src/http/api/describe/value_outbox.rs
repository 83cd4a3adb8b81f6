//! Single values of the outgoing API and the limits that the code enforces, from the same constants and words.

use hapax_ledger::id::{AppId, AttemptId, EffectId, EndpointId, MessageId};
use hapax_store::nouns::Standing;
use utoipa::openapi::schema::{Array, ArrayBuilder, SchemaType, Type};
use utoipa::openapi::{Object, ObjectBuilder};

use super::value::{ID_LETTERS, ONE_LINE, matching, nullable, number, text_up_to, values, words};
use crate::http::api::outbox::attempt_query::CLASSES;
use crate::http::api::outbox::endpoint_secret::OVERLAP_SECONDS_MAX;
use crate::http::api::outbox::message_body::{KEY_CHARS_MAX, RETENTION_DAYS_MAX};
use crate::http::api::outbox::portal::{CAPABILITIES, EXPIRY_SECONDS_MAX, EXPIRY_SECONDS_MIN};
use crate::http::api::outbox::status::Status;
use crate::http::api::outbox::words::{
    CHANNEL_CHARS_MAX, CHANNELS_MAX, DESCRIPTION_CHARS_MAX, RATE_MAX, TYPES_MAX, WAIT_SECONDS_MAX,
    WAITS_MAX, WORD_CHARS_MAX,
};
use crate::operate::task::Kind;
use crate::outbox::extra::{NamesWord, SchemeWord};

/// One line on which something can be seen, not beginning with a tilde.
const NOT_OURS: &str =
    r"^(?!~)[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";

fn numbers<const N: usize>(numbers: [u16; N]) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .enum_values(Some(numbers))
        .build()
}

/// A list that may be missing.
fn list_of(items: Object, min: usize, max: usize) -> Array {
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .items(items)
        .min_items((min > 0).then_some(min))
        .max_items(Some(max))
        .build()
}

/// Types of events.
pub fn event_types() -> Array {
    list_of(event_type(), 0, TYPES_MAX)
}

/// Channels or tags.
pub fn channels() -> Array {
    list_of(channel(), 0, CHANNELS_MAX)
}

/// Waits before each attempt, in seconds.
pub fn waits() -> Array {
    list_of(number(0, u64::from(WAIT_SECONDS_MAX)), 1, WAITS_MAX)
}

/// What a token of the portal may do.
pub fn capabilities() -> Array {
    list_of(capability(), 0, CAPABILITIES.len())
}

values! {
    /// The id of an application.
    app_id, app_id_or_null = matching(&format!("^{}_{ID_LETTERS}$", AppId::PREFIX));
    /// The id of an endpoint.
    endpoint_id, endpoint_id_or_null = matching(&format!("^{}_{ID_LETTERS}$", EndpointId::PREFIX));
    /// The id of a message.
    message_id, message_id_or_null = matching(&format!("^{}_{ID_LETTERS}$", MessageId::PREFIX));
    /// The id of an attempt.
    attempt_id, attempt_id_or_null = matching(&format!("^{}_{ID_LETTERS}$", AttemptId::PREFIX));
    /// What the owner of an application calls it.
    app_uid, app_uid_or_null = matching(&format!("^(?!{}_)[a-zA-Z0-9_.-]{{1,{WORD_CHARS_MAX}}}$", AppId::PREFIX));
    /// What the owner of an endpoint calls it.
    endpoint_uid, endpoint_uid_or_null =
        matching(&format!("^(?!{}_)[a-zA-Z0-9_.-]{{1,{WORD_CHARS_MAX}}}$", EndpointId::PREFIX));
    /// The name of a type of events.
    event_type, event_type_or_null = matching(&format!("^[a-zA-Z0-9_.-]{{1,{WORD_CHARS_MAX}}}$"));
    /// A channel or a tag.
    channel, channel_or_null = matching(&format!("^[a-zA-Z0-9_.:-]{{1,{CHANNEL_CHARS_MAX}}}$"));
    /// Messages a second.
    throttle, throttle_or_null = number(1, RATE_MAX);
    /// A description.
    description, description_or_null = ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(DESCRIPTION_CHARS_MAX))
        .build();
    /// A key of a publisher's, on one line.
    key, key_or_null = text_up_to(KEY_CHARS_MAX).pattern(Some(ONE_LINE)).build();
    /// A publisher's id for a message, on one line.
    event_key, event_key_or_null =
        text_up_to(KEY_CHARS_MAX).pattern(Some(NOT_OURS)).build();
    /// Days.
    retention_days, retention_days_or_null = number(1, RETENTION_DAYS_MAX);
    /// Hours.
    retention_hours, retention_hours_or_null = number(1, 24 * RETENTION_DAYS_MAX);
    /// How long old and new secret sign together, in seconds.
    grace, grace_or_null = number(0, OVERLAP_SECONDS_MAX);
    /// Deliveries in flight to an endpoint.
    concurrency, concurrency_or_null = number(1, 1_024);
    /// How long an attempt may take.
    timeout, timeout_or_null = number(5, 30);
    /// How deliveries are signed.
    signature_scheme, signature_scheme_or_null = words(SchemeWord::ALL.map(SchemeWord::word));
    /// Under which names id, time and signature go.
    signature_names, signature_names_or_null = words(NamesWord::ALL.map(NamesWord::word));
    /// Is anything sent to an endpoint?
    standing, standing_or_null = words(Standing::ALL.map(Standing::word));
    /// What a breaker lets through.
    breaker, breaker_or_null = words(["closed", "open", "trying", "elsewhere"]);
    /// Where a delivery stands, or how an attempt ended.
    message_status, message_status_or_null = numbers(Status::ALL.map(|one| u16::from(one.code())));
    /// The same in words.
    message_status_text, message_status_text_or_null = words(Status::ALL.map(Status::word));
    /// 0: by the schedule; 1: by somebody's wish.
    trigger_type, trigger_type_or_null = numbers([0, 1]);
    /// 0: nothing came back.
    status_code_class, status_code_class_or_null = numbers(CLASSES);
    /// In which order.
    ordering, ordering_or_null = words(["ascending", "descending"]);
    /// Where a page of messages goes on.
    message_iterator, message_iterator_or_null =
        matching(&format!("^-?{}_{ID_LETTERS}$", MessageId::PREFIX));
    /// Where a page of attempts goes on.
    attempt_iterator, attempt_iterator_or_null =
        matching(&format!("^-?{}_{ID_LETTERS}\\.[0-9]{{1,18}}$", EffectId::PREFIX));
    /// Where a page of applications goes on.
    app_iterator, app_iterator_or_null = matching(&format!("^-?{}_{ID_LETTERS}$", AppId::PREFIX));
    /// Where a page of endpoints goes on.
    endpoint_iterator, endpoint_iterator_or_null =
        matching(&format!("^-?{}_{ID_LETTERS}$", EndpointId::PREFIX));
    /// Where a page of types of events goes on.
    event_type_iterator, event_type_iterator_or_null =
        matching(&format!("^[a-zA-Z0-9_.][a-zA-Z0-9_.-]{{0,{}}}$", WORD_CHARS_MAX - 1));
    /// Where a job stands.
    task_status, task_status_or_null = words(["running", "finished", "failed"]);
    /// What a job does.
    task_kind, task_kind_or_null = words(Kind::ALL.map(Kind::word));
    /// Which example.
    example_index, example_index_or_null = number(0, 1_000);
    /// For how many seconds a token of the portal counts.
    portal_expiry, portal_expiry_or_null = number(EXPIRY_SECONDS_MIN, EXPIRY_SECONDS_MAX);
    /// Seconds.
    expiry, expiry_or_null = number(0, 0);
    /// What a token of the portal may do.
    capability, capability_or_null = words(CAPABILITIES);
}
