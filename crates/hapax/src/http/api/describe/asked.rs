//! What requests bring. The queries and bodies themselves are read elsewhere, parameter by parameter and field by field, so that an
//! answer can name all that is wrong; these are their descriptions. `null` counts as missing, as the reader has it.

use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::value;

macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field:meta])* $part:ident: $type:ty,)+ })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Deserialize, ToSchema)]
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            pub struct $name { $($(#[$field])* pub $part: $type,)+ }
        )+
    };
}

macro_rules! queries {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field:meta])* $part:ident: $type:ty,)+ })+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, IntoParams)]
            #[into_params(parameter_in = Query)]
            pub struct $name { $($(#[$field])* pub $part: $type,)+ }
        )+
    };
}

pub(super) use {bodies, queries};

bodies! {
    /// What an action takes.
    ActionRequest {
        /// Why; it stands in the audit log.
        #[schema(schema_with = value::text)]
        reason: String,
        /// Act only if the ledger of the event is still at this revision.
        #[schema(schema_with = value::revision_or_null)]
        if_revision: Option<u64>,
        /// Only say what would happen.
        dry_run: Option<bool>,
    }

    /// What a replay of one event takes.
    ReplayEventRequest {
        /// Why; it stands in the audit log.
        #[schema(schema_with = value::text)]
        reason: String,
        /// Act only if the ledger of the event is still at this revision.
        #[schema(schema_with = value::revision_or_null)]
        if_revision: Option<u64>,
        /// Only say what would happen.
        dry_run: Option<bool>,
        /// Names of effects to carry out again although they are done.
        force: Option<Vec<String>>,
    }

    /// How to delete what has expired.
    PruneRequest {
        /// Only count it.
        dry_run: Option<bool>,
    }

    /// Whose bytes are erased.
    EraseRequest {
        /// The source of the events.
        #[schema(schema_with = value::text)]
        source: String,
        /// The object that they are about.
        #[schema(schema_with = value::text)]
        entity: String,
        /// Why; it stands in the audit log.
        #[schema(schema_with = value::text)]
        reason: String,
        /// Only count them.
        dry_run: Option<bool>,
        /// Go on where an earlier answer stopped.
        #[schema(schema_with = value::event_id_or_null)]
        iterator: Option<String>,
    }

    /// For how long a secret is expected.
    ExpectRequest {
        /// Why; it stands in the audit log.
        #[schema(schema_with = value::text)]
        reason: String,
        /// For how long; 600 unless told.
        #[schema(schema_with = value::expect_seconds_or_null)]
        seconds: Option<u64>,
    }

    /// What becomes of an event that waits for a person.
    ReviewRequest {
        /// `release` plans it again with the current config.
        #[schema(schema_with = value::review_outcome)]
        outcome: String,
        /// Why; it stands in the audit log.
        #[schema(schema_with = value::text)]
        reason: String,
        /// Act only if the ledger of the event is still at this revision.
        #[schema(schema_with = value::revision_or_null)]
        if_revision: Option<u64>,
        /// Only say what would happen.
        dry_run: Option<bool>,
    }

    /// What becomes of another body under an event's key.
    ConflictRequest {
        /// `promote` makes an event of it.
        #[schema(schema_with = value::conflict_outcome)]
        outcome: String,
        /// Why; it stands in the audit log.
        #[schema(schema_with = value::text)]
        reason: String,
        /// Act only if the ledger of the event is still at this revision.
        #[schema(schema_with = value::revision_or_null)]
        if_revision: Option<u64>,
        /// Only say what would happen.
        dry_run: Option<bool>,
    }

    /// What a person knows about an effect.
    ResolveRequest {
        /// Was it applied, was it not, or shall it not be?
        #[schema(schema_with = value::resolve_outcome)]
        outcome: String,
        /// Why; it stands in the audit log.
        #[schema(schema_with = value::text)]
        reason: String,
        /// Act only if the ledger of the event is still at this revision.
        #[schema(schema_with = value::revision_or_null)]
        if_revision: Option<u64>,
        /// Only say what would happen.
        dry_run: Option<bool>,
    }

    /// What a person knows about a guarded request whose outcome is unknown.
    ResolveKeyRequest {
        /// `executed`: it never runs again. `not_executed`: the key is free.
        #[schema(schema_with = value::key_outcome)]
        outcome: String,
        /// Why; it stands in the audit log.
        #[schema(schema_with = value::text)]
        reason: String,
        /// Act only if the latest run of the key is still the one with this `fence`.
        #[schema(schema_with = value::fence_or_null)]
        if_fence: Option<u64>,
    }

    /// A replay of many events.
    ReplayRequest {
        /// Which events; all, if it is missing. Events that come later are not part of it.
        filter: Option<ReplayFilter>,
        /// Why; it stands in the audit log.
        #[schema(schema_with = value::text)]
        reason: String,
        /// Only count what would happen.
        dry_run: Option<bool>,
        /// Events a second at most.
        #[schema(schema_with = value::rate_or_null)]
        rate: Option<u32>,
    }

    /// Which events: the filters of `GET /event`.
    ReplayFilter {
        /// The source.
        #[schema(schema_with = value::text_or_null)]
        source: Option<String>,
        /// The type.
        #[schema(schema_with = value::text_or_null)]
        r#type: Option<String>,
        /// Where they stand.
        #[schema(schema_with = value::status_or_null)]
        status: Option<String>,
        /// The key.
        #[schema(schema_with = value::text_or_null)]
        key: Option<String>,
        /// The entity.
        #[schema(schema_with = value::text_or_null)]
        entity: Option<String>,
        /// Received at or after this time.
        #[schema(schema_with = value::time_or_null)]
        since: Option<String>,
        /// Received before this time.
        #[schema(schema_with = value::time_or_null)]
        until: Option<String>,
    }

    /// Why, if somebody wants to say so.
    ReasonRequest {
        /// It stands in the audit log.
        #[schema(schema_with = value::text_or_null)]
        reason: Option<String>,
    }

    /// Why.
    ReasonedRequest {
        /// It stands in the audit log.
        #[schema(schema_with = value::text)]
        reason: String,
    }

    /// A token to be made.
    TokenRequest {
        /// What people call it, on one line; the actor in all that is decided with it.
        #[schema(schema_with = value::token_name)]
        name: String,
        /// What it may do.
        #[schema(schema_with = value::role)]
        role: String,
        /// The one app that it is for.
        #[schema(schema_with = value::text_or_null)]
        app: Option<String>,
        /// From then on it does not count; a time to come.
        #[schema(schema_with = value::time_or_null)]
        expires_at: Option<String>,
        /// Why; it stands in the audit log.
        #[schema(schema_with = value::text_or_null)]
        reason: Option<String>,
    }

    /// An effect that the user's own code wants to carry out.
    ClaimRequest {
        /// The event that calls for it, if there is one.
        #[schema(schema_with = value::event_id_or_null)]
        event_id: Option<String>,
        /// Its name. Not one of the config's.
        #[schema(schema_with = value::own_name)]
        name: String,
        /// Its key: one effect per name and key.
        #[schema(schema_with = value::text)]
        key: String,
        /// What happens if it is carried out twice.
        #[schema(schema_with = value::repeat)]
        repeat: String,
        /// How long the claim holds.
        #[schema(schema_with = value::lease_seconds)]
        lease_seconds: u64,
    }

    /// More time for a claim.
    ExtendRequest {
        /// The fence that came with the claim.
        #[schema(schema_with = value::fence)]
        fence: u64,
        /// How long it holds, from now.
        #[schema(schema_with = value::lease_seconds)]
        lease_seconds: u64,
    }

    /// How it went.
    SettleRequest {
        /// The fence that came with the claim.
        #[schema(schema_with = value::fence)]
        fence: u64,
        /// How it went.
        #[schema(schema_with = value::report)]
        outcome: String,
        /// Given to whoever claims it again: any JSON, at most 8192 bytes of it.
        #[schema(required = false)]
        result: Value,
        /// What went wrong.
        #[schema(schema_with = value::text_or_null)]
        error: Option<String>,
    }
}

queries! {
    /// Which events.
    EventQuery {
        /// The source.
        source: Option<String>,
        /// The type.
        r#type: Option<String>,
        /// Where they stand.
        #[param(schema_with = value::status)]
        status: Option<String>,
        /// The key.
        key: Option<String>,
        /// A text in the key, letter by letter. A page looks at so many events at a time: it may have few rows or none and not be
        /// `done`, and goes on at its `iterator`.
        #[param(rename = "keyContains")]
        key_contains: Option<String>,
        /// The entity.
        entity: Option<String>,
        /// Received at or after this time.
        #[param(schema_with = value::time)]
        since: Option<String>,
        /// Received before this time.
        #[param(schema_with = value::time)]
        until: Option<String>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = value::event_iterator)]
        iterator: Option<String>,
    }

    /// Which effects.
    EffectQuery {
        /// Where they stand.
        #[param(schema_with = value::state)]
        state: Option<String>,
        /// The name.
        name: Option<String>,
        /// The source of the event.
        source: Option<String>,
        /// The lane.
        lane: Option<String>,
        /// Planned at or after this time.
        #[param(schema_with = value::time)]
        since: Option<String>,
        /// Planned before this time.
        #[param(schema_with = value::time)]
        until: Option<String>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = value::effect_iterator)]
        iterator: Option<String>,
    }

    /// Which guarded keys.
    GuardQuery {
        /// The guard.
        guard: Option<String>,
        /// Where they stand.
        #[param(schema_with = value::key_state)]
        state: Option<String>,
        /// The key, exactly.
        key: Option<String>,
        /// The caller.
        principal: Option<String>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = value::key_iterator)]
        iterator: Option<String>,
    }

    /// Which records of the audit log.
    AuditQuery {
        /// Who decided.
        actor: Option<String>,
        /// The event that it was about.
        #[param(schema_with = value::event_id)]
        event: Option<String>,
        /// Rows of a page.
        #[param(schema_with = value::limit)]
        limit: Option<u32>,
        /// An `iterator` or `prevIterator` of the page before.
        #[param(schema_with = value::audit_iterator)]
        iterator: Option<String>,
    }

    /// Which live events: narrowed as lists are.
    StreamQuery {
        /// Of this source.
        source: Option<String>,
        /// Of this type.
        r#type: Option<String>,
        /// Standing there when they are told of, a moment after they were accepted.
        #[param(schema_with = value::status)]
        status: Option<String>,
        /// With this key.
        key: Option<String>,
        /// With this text in the key, letter by letter.
        #[param(rename = "keyContains")]
        key_contains: Option<String>,
        /// About this entity.
        entity: Option<String>,
        /// Received at or after this time.
        #[param(schema_with = value::time)]
        since: Option<String>,
        /// Received before this time.
        #[param(schema_with = value::time)]
        until: Option<String>,
    }

    /// Which events of a source.
    KeysQuery {
        /// Received at or after this time.
        #[param(schema_with = value::time)]
        since: Option<String>,
    }

    /// Which action the verdict is about.
    VerdictQuery {
        /// The action; a retry, unless it is said.
        #[param(schema_with = value::action)]
        action: Option<String>,
        /// Effects that a replay carries out again; only with `action=replay`.
        force: Option<Vec<String>>,
    }
}
