//! Single values and the limits that the code enforces, from the same constants and words.

use hapax_ledger::effect::{EffectState, Repeat, SkipReason};
use hapax_ledger::event::{DeliveryOutcome, EventStatus, KeyOrigin};
use hapax_ledger::guard::GuardState;
use hapax_ledger::id::{EffectId, EventId, KeyId, ReplayId, RunId, TokenId};
use hapax_ledger::order::Gate;
use hapax_ledger::outcome::Report;
use hapax_ledger::run::RunKind;
use hapax_ledger::verdict::{VerdictKind, Would};
use hapax_store::nouns::{PAGE_MAX, ReplayState, Role};
use serde_json::Value;
use utoipa::openapi::schema::{SchemaFormat, SchemaType, Type};
use utoipa::openapi::{KnownFormat, Object, ObjectBuilder};

use crate::http::api::act::REVISION_MAX;
use crate::http::api::body::TEXT_CHARS_MAX;
use crate::http::api::own::{FENCE_MAX, LEASE_SECONDS_MAX, NAME_CHARS_MAX};
use crate::http::api::replay::RATE_MAX;
use crate::http::api::{secret, token};

/// Something that can be seen, so that a text is not empty.
const NOT_BLANK: &str = r"\S";
/// The same, and none of an endpoint's.
const OWN_NAME: &str = r"^(?!ep_)\s*\S";
/// One line on which something can be seen.
pub(super) const ONE_LINE: &str =
    r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";
/// The letters of an id behind its prefix; the first one holds three bits.
pub(super) const ID_LETTERS: &str = "[0-7][0-9a-hjkmnp-tv-z]{25}";

pub(super) fn text_up_to(chars_max: usize) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(chars_max))
        .pattern(Some(NOT_BLANK))
}

pub(super) fn matching(pattern: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
        .build()
}

pub(super) fn number(from: u64, to: u64) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(from))
        .maximum(Some(to))
        .build()
}

pub(super) fn words(words: impl IntoIterator<Item = &'static str>) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words))
        .build()
}

/// `null` is as good as nothing.
pub(super) fn nullable(mut object: Object) -> Object {
    if let SchemaType::Type(own) = object.schema_type {
        object.schema_type = SchemaType::from_iter([own, Type::Null]);
    }
    if let Some(words) = &mut object.enum_values {
        words.push(Value::Null);
    }
    object
}

macro_rules! values {
    ($(#[doc = $doc:literal] $name:ident, $or_null:ident = $schema:expr;)+) => {
        $(
            #[doc = $doc]
            pub fn $name() -> Object {
                let mut object: Object = $schema;
                object.description = Some($doc.trim().to_owned());
                object
            }

            #[doc = $doc]
            /// Or null.
            pub fn $or_null() -> Object {
                nullable($name())
            }
        )+
    };
}

pub(super) use values;

values! {
    /// A text of a request.
    text, text_or_null = text_up_to(TEXT_CHARS_MAX).build();
    /// The name of an effect of the user's own code.
    own_name, own_name_or_null = text_up_to(NAME_CHARS_MAX).pattern(Some(OWN_NAME)).build();
    /// The name of a token.
    token_name, token_name_or_null =
        text_up_to(token::NAME_CHARS_MAX).pattern(Some(ONE_LINE)).build();
    /// A time.
    time, time_or_null = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .build();
    /// A revision of the ledger.
    revision, revision_or_null = number(0, REVISION_MAX);
    /// A fence.
    fence, fence_or_null = number(0, FENCE_MAX);
    /// The length of a lease.
    lease_seconds, lease_seconds_or_null = number(1, LEASE_SECONDS_MAX);
    /// For how long a secret is expected.
    expect_seconds, expect_seconds_or_null = number(1, secret::SECONDS_MAX);
    /// Events a second.
    rate, rate_or_null = number(1, RATE_MAX);
    /// Rows of a page.
    limit, limit_or_null = number(1, u64::from(PAGE_MAX));

    /// The id of an event.
    event_id, event_id_or_null = matching(&format!("^{}_{ID_LETTERS}$", EventId::PREFIX));
    /// The id of an effect.
    effect_id, effect_id_or_null = matching(&format!("^{}_{ID_LETTERS}$", EffectId::PREFIX));
    /// The id of a run.
    run_id, run_id_or_null = matching(&format!("^{}_{ID_LETTERS}$", RunId::PREFIX));
    /// The id of a replay.
    replay_id, replay_id_or_null = matching(&format!("^{}_{ID_LETTERS}$", ReplayId::PREFIX));
    /// The id of a token.
    token_id, token_id_or_null = matching(&format!("^{}_{ID_LETTERS}$", TokenId::PREFIX));
    /// The id of a guarded key.
    key_id, key_id_or_null = matching(&format!("^{}_{ID_LETTERS}$", KeyId::PREFIX));
    /// Where a page of events goes on: an id, with a minus towards the newer ones.
    event_iterator, event_iterator_or_null =
        matching(&format!("^-?{}_{ID_LETTERS}$", EventId::PREFIX));
    /// Where a page of effects goes on.
    effect_iterator, effect_iterator_or_null =
        matching(&format!("^-?{}_{ID_LETTERS}$", EffectId::PREFIX));
    /// Where a page of guarded keys goes on.
    key_iterator, key_iterator_or_null =
        matching(&format!("^-?{}_{ID_LETTERS}$", KeyId::PREFIX));
    /// Where a page of audit records goes on: a number, with a minus towards the newer ones.
    audit_iterator, audit_iterator_or_null = matching("^-?[0-9]{1,18}$");

    /// Where an event stands.
    status, status_or_null = words(EventStatus::ALL.iter().map(|one| one.word()));
    /// The rung on which an event's key was found.
    key_origin, key_origin_or_null = words(KeyOrigin::ALL.iter().map(|one| one.word()));
    /// How a delivery ended.
    delivery_outcome, delivery_outcome_or_null =
        words(DeliveryOutcome::ALL.iter().map(|one| one.word()));
    /// Where an effect stands.
    state, state_or_null = words(EffectState::ALL.iter().map(|one| one.word()));
    /// What happens if an effect is carried out twice.
    repeat, repeat_or_null = words(Repeat::ALL.iter().map(|one| one.word()));
    /// Why an effect was not carried out.
    skip_reason, skip_reason_or_null = words(SkipReason::ALL.iter().map(|one| one.word()));
    /// What an effect waits for.
    gate, gate_or_null = words(Gate::ALL.iter().map(|one| one.word()));
    /// Why there was a pass over an event.
    run_kind, run_kind_or_null = words(RunKind::ALL.iter().map(|one| one.word()));
    /// A verdict.
    verdict, verdict_or_null = words(VerdictKind::ALL.iter().map(|one| one.word()));
    /// What would happen to an effect.
    would, would_or_null = words(Would::ALL.iter().map(|one| one.word()));
    /// What the user's own code reports.
    report, report_or_null = words(Report::ALL.iter().map(|one| one.word()));
    /// What becomes of an event that waits for a person: it is planned again and goes ahead, or nothing is done about it.
    review_outcome, review_outcome_or_null = words(["release", "dismiss"]);
    /// What becomes of another body: it changes nothing, or becomes an event of its own.
    conflict_outcome, conflict_outcome_or_null = words(["acknowledge", "promote"]);
    /// What a person knows about an effect, or wants.
    resolve_outcome, resolve_outcome_or_null = words(["applied", "not_applied", "skip"]);
    /// The action that a verdict is about; a retry, unless it is said.
    action, action_or_null = words(["retry", "replay", "reconcile"]);
    /// Where a guarded key stands.
    key_state, key_state_or_null = words(GuardState::ALL.iter().map(|one| one.word()));
    /// What a person knows about a guarded request.
    key_outcome, key_outcome_or_null = words(["executed", "not_executed"]);
    /// What a token may do.
    role, role_or_null = words(Role::ALL.map(Role::word));
    /// Where a replay stands.
    replay_state, replay_state_or_null = words(ReplayState::ALL.map(ReplayState::word));
}
