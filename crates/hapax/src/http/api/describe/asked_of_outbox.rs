//! What queries of the outgoing API ask: see [`super::asked`].

use utoipa::IntoParams;

use super::asked::queries;
use super::{value, value_outbox as own};

queries! {
    /// Which applications.
    AppsQuery {
        /// Only those with endpoints.
        exclude_apps_with_no_endpoints: Option<bool>,
        /// Not those whose endpoints are all disabled.
        exclude_apps_with_disabled_endpoints: Option<bool>,
        /// Means nothing here.
        exclude_apps_with_svix_play_endpoints: Option<bool>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = own::app_iterator)]
        iterator: Option<String>,
        /// In which order.
        #[param(schema_with = own::ordering)]
        order: Option<String>,
    }

    /// How an application is made.
    AppQuery {
        /// Give the one that has this uid, if there is one.
        get_if_exists: Option<bool>,
    }

    /// Which endpoints.
    OrderedQuery {
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = own::endpoint_iterator)]
        iterator: Option<String>,
        /// In which order.
        #[param(schema_with = own::ordering)]
        order: Option<String>,
    }

    /// Which types of events.
    EventTypesQuery {
        /// Archived ones, too.
        include_archived: Option<bool>,
        /// Are payloads shown?
        with_content: Option<bool>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = own::event_type_iterator)]
        iterator: Option<String>,
        /// In which order.
        #[param(schema_with = own::ordering)]
        order: Option<String>,
    }

    /// How a type of events goes.
    EventTypeQuery {
        /// It is forgotten.
        expunge: Option<bool>,
    }

    /// What is shown.
    ContentQuery {
        /// Are payloads shown?
        with_content: Option<bool>,
    }

    /// Which messages.
    MessageQuery {
        /// In this channel.
        channel: Option<String>,
        /// With this tag.
        tag: Option<String>,
        /// Accepted before this time.
        #[param(schema_with = value::time)]
        before: Option<String>,
        /// Accepted at or after this time.
        #[param(schema_with = value::time)]
        after: Option<String>,
        /// Of these types, with commas between them.
        event_types: Option<String>,
        /// Are payloads shown?
        with_content: Option<bool>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = own::message_iterator)]
        iterator: Option<String>,
    }

    /// Which attempts.
    AttemptsOfEndpointQuery {
        /// In this channel.
        channel: Option<String>,
        /// With this tag.
        tag: Option<String>,
        /// Accepted before this time.
        #[param(schema_with = value::time)]
        before: Option<String>,
        /// Accepted at or after this time.
        #[param(schema_with = value::time)]
        after: Option<String>,
        /// Of these types, with commas between them.
        event_types: Option<String>,
        /// Where they stand.
        #[param(schema_with = own::message_status)]
        status: Option<u8>,
        /// What the receiver answered.
        #[param(schema_with = own::status_code_class)]
        status_code_class: Option<u16>,
        /// Are payloads shown?
        with_content: Option<bool>,
        /// Are messages shown?
        with_msg: Option<bool>,
        /// Are `sending` and `canceled` told apart from `pending` and `fail`?
        expanded_statuses: Option<bool>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = own::attempt_iterator)]
        iterator: Option<String>,
    }

    /// Which attempts.
    AttemptsOfMessageQuery {
        /// In this channel.
        channel: Option<String>,
        /// With this tag.
        tag: Option<String>,
        /// Accepted before this time.
        #[param(schema_with = value::time)]
        before: Option<String>,
        /// Accepted at or after this time.
        #[param(schema_with = value::time)]
        after: Option<String>,
        /// Of these types, with commas between them.
        event_types: Option<String>,
        /// Where they stand.
        #[param(schema_with = own::message_status)]
        status: Option<u8>,
        /// What the receiver answered.
        #[param(schema_with = own::status_code_class)]
        status_code_class: Option<u16>,
        /// Are payloads shown?
        with_content: Option<bool>,
        /// Are messages shown?
        with_msg: Option<bool>,
        /// At this endpoint.
        endpoint_id: Option<String>,
        /// Are `sending` and `canceled` told apart from `pending` and `fail`?
        expanded_statuses: Option<bool>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = own::attempt_iterator)]
        iterator: Option<String>,
    }

    /// How it is told.
    ExpandedQuery {
        /// Are `sending` and `canceled` told apart from `pending` and `fail`?
        expanded_statuses: Option<bool>,
    }

    /// Which messages.
    AttemptedMessagesQuery {
        /// In this channel.
        channel: Option<String>,
        /// With this tag.
        tag: Option<String>,
        /// Accepted before this time.
        #[param(schema_with = value::time)]
        before: Option<String>,
        /// Accepted at or after this time.
        #[param(schema_with = value::time)]
        after: Option<String>,
        /// Of these types, with commas between them.
        event_types: Option<String>,
        /// Where they stand.
        #[param(schema_with = own::message_status)]
        status: Option<u8>,
        /// Are payloads shown?
        with_content: Option<bool>,
        /// Are `sending` and `canceled` told apart from `pending` and `fail`?
        expanded_statuses: Option<bool>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = value::effect_iterator)]
        iterator: Option<String>,
    }

    /// Which dead letters.
    DeadLetterQuery {
        /// In this channel.
        channel: Option<String>,
        /// With this tag.
        tag: Option<String>,
        /// Accepted before this time.
        #[param(schema_with = value::time)]
        before: Option<String>,
        /// Accepted at or after this time.
        #[param(schema_with = value::time)]
        after: Option<String>,
        /// Of these types, with commas between them.
        event_types: Option<String>,
        /// Are payloads shown?
        with_content: Option<bool>,
        /// To this endpoint.
        endpoint_id: Option<String>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = value::effect_iterator)]
        iterator: Option<String>,
    }

    /// Which page.
    PageQuery {
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = value::effect_iterator)]
        iterator: Option<String>,
    }

    /// From when to when.
    SpanQuery {
        /// At or after this time; by the hour.
        #[param(schema_with = value::time)]
        since: Option<String>,
        /// Before this time.
        #[param(schema_with = value::time)]
        until: Option<String>,
    }

    /// Which messages.
    PollQuery {
        /// Rows of a page; at most 50 are given.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// The `iterator` of the answer before.
        iterator: Option<String>,
        /// Of this type.
        event_type: Option<String>,
        /// In this channel.
        channel: Option<String>,
        /// Accepted, or to be sent, at or after this time.
        #[param(schema_with = value::time)]
        after: Option<String>,
    }

    /// How many messages, and what was read.
    ConsumerPollQuery {
        /// Rows of a page; at most 50 are given.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// The `iterator` of an answer: all before it is read, and does not come again.
        iterator: Option<String>,
    }

    /// Which jobs.
    TaskQuery {
        /// Where they stand.
        #[param(schema_with = own::task_status)]
        status: Option<String>,
        /// What they do.
        task: Option<String>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// The `iterator` of the page before.
        #[param(schema_with = value::replay_id)]
        iterator: Option<String>,
        /// In which order.
        #[param(schema_with = own::ordering)]
        order: Option<String>,
    }
}
