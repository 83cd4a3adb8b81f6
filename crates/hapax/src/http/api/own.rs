//! The ledger for the user's own code: claim an effect, carry it out, say how it went.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::id::EffectId;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::{Outcome, Report};
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_ledger::transition::{Did, Rejected};
use hapax_store::nouns::{
    self, Effect, Keep, Move, Moved, OWN_LANE, OwnClaim, OwnClaimed, Settlement, is_endpoint_name,
};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Api;
use super::body::Refused;
use super::describe::asked::{ClaimRequest, ExtendRequest, SettleRequest};
use super::describe::{told, value};
use super::event::unavailable;
use super::once::{Said, kept, once};
use super::posted::Posted;
use crate::clock::text as time_text;
use crate::http::answer::{self, Answer, explained, problem};

/// The longest lease, in seconds: a day. Longer work extends it.
pub(super) const LEASE_SECONDS_MAX: u64 = 24 * 60 * 60;
/// The largest result.
const RESULT_BYTES_MAX: usize = 8 * 1024;
/// The longest name.
pub(super) const NAME_CHARS_MAX: usize = 200;
/// Fences fit into a JSON number.
pub(super) const FENCE_MAX: u64 = (1 << 53) - 1;
/// How long an event is kept that exists only because of a claim: as long as those of a source that says nothing.
const KEEP: Keep = Keep {
    payload: Span::from_days(30),
    ledger: Span::from_days(90),
    identity: Span::from_days(90),
    retry_window: Span::from_days(7),
};

/// What became of a claim.
#[derive(Serialize, ToSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[schema(as = Claimed)]
enum ClaimedBody {
    /// Carry it out, and settle it with this fence.
    Claimed {
        #[serde(rename = "effectId")]
        #[schema(schema_with = value::effect_id)]
        effect: String,
        #[schema(schema_with = value::fence)]
        fence: u64,
    },
    /// It has been carried out.
    Done {
        #[serde(rename = "effectId")]
        #[schema(schema_with = value::effect_id)]
        effect: String,
        /// What was reported then.
        result: Value,
    },
    /// Somebody else carries it out.
    InFlight {
        #[serde(rename = "effectId")]
        #[schema(schema_with = value::effect_id)]
        effect: String,
        /// When that claim runs out.
        #[schema(schema_with = value::time)]
        until: String,
    },
    /// Nobody knows whether it has been carried out; a person has to say.
    Uncertain {
        #[serde(rename = "effectId")]
        #[schema(schema_with = value::effect_id)]
        effect: String,
    },
}

/// What became of a claim that was extended or settled.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = Advanced)]
struct AdvancedBody {
    /// Where the effect stands now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = value::state)]
    state: Option<&'static str>,
    /// When the claim runs out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = value::time)]
    until: Option<String>,
    /// True if this very claim had said so before; nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    repeated: Option<bool>,
}

/// Claims an effect for the user's own code.
#[utoipa::path(post, path = "/effect/claim", operation_id = "claimEffect", tag = "your own code",
    request_body = ClaimRequest,
    responses(
        (status = OK, description = "what became of it", body = ClaimedBody),
        (status = NOT_FOUND, description = "there is no such event", body = told::Problem)))]
pub async fn claim(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    let claim = match read_claim(&posted) {
        Ok(claim) => claim,
        Err(refused) => return refused.answer(),
    };
    // One name is either the config's or the code's: a key of both would be an effect that two may carry out.
    if api.operator.classes().contains_key(&claim.name) {
        return problem(answer::NOT_YOURS);
    }
    let store = api.store.clone();
    let work = async move {
        match store.claim_own(claim).await {
            // Only a claim that was given must not be given twice. Everything else is in the ledger, and may change.
            Ok(claimed @ OwnClaimed::Claimed { .. }) => kept(said(claimed)).await,
            Ok(claimed) => Said::Pass(said(claimed)),
            Err(error) => Said::Pass(unavailable(&error)),
        }
    };
    once(api, posted, work).await
}

fn read_claim(posted: &Posted) -> Result<OwnClaim, Refused> {
    let mut fields = posted.fields();
    let event = fields.optional_text("eventId");
    let id = event.as_deref().map(str::parse);
    if let Some(Err(_)) = id {
        fields.refuse("eventId", "the id of an event is expected");
    }
    let name = fields.text("name");
    if name.chars().count() > NAME_CHARS_MAX {
        fields.refuse("name", "at most 200 characters are expected");
    }
    if is_endpoint_name(&name) {
        fields.refuse(
            "name",
            "only deliveries to endpoints have names that begin with ep_",
        );
    }
    let key = fields.text("key");
    let repeat = fields.word("repeat", "converges, keyed, once", Repeat::from_word);
    let seconds = fields.number("leaseSeconds", 1..=LEASE_SECONDS_MAX);
    fields.finish()?;
    Ok(OwnClaim {
        event: id.and_then(Result::ok),
        key_hash: KeyHash::of(KeyKind::Effect, &name, &key),
        name: name.into(),
        key,
        // Only if the body was refused is there no class.
        repeat: repeat.unwrap_or(Repeat::Once),
        actor: posted.actor.name.clone(),
        lease: seconds_of(seconds),
        at: posted.at,
        keep: KEEP,
    })
}

fn seconds_of(seconds: u64) -> Span {
    Span::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX))
}

fn said(claimed: OwnClaimed) -> Answer {
    let body = match claimed {
        OwnClaimed::Claimed { effect, fence } => ClaimedBody::Claimed {
            effect: effect.to_string(),
            fence: fence.as_u64(),
        },
        OwnClaimed::Done { effect, result } => ClaimedBody::Done {
            effect: effect.to_string(),
            result: result.map_or(Value::Null, |bytes| result_of(&bytes)),
        },
        OwnClaimed::InFlight { effect, until } => ClaimedBody::InFlight {
            effect: effect.to_string(),
            until: time_text(until),
        },
        OwnClaimed::Uncertain { effect } => ClaimedBody::Uncertain {
            effect: effect.to_string(),
        },
        OwnClaimed::Closed { effect } => {
            let detail = format!("{effect} was given up or skipped; a person has to decide first");
            return explained(answer::NOT_YOURS, &detail, None);
        }
        OwnClaimed::NotYours { effect } => {
            let detail = format!("Hapax itself sends {effect}, which has this name and key");
            return explained(answer::NOT_YOURS, &detail, None);
        }
        OwnClaimed::NoEvent => return problem(answer::NOT_FOUND),
    };
    answer::json(StatusCode::OK, &body)
}

/// What was reported then, as JSON.
fn result_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

/// Gives a claim more time.
#[utoipa::path(post, path = "/effect/{id}/extend", operation_id = "extendEffect", tag = "your own code",
    params(("id" = String, Path, description = "the effect")), request_body = ExtendRequest,
    responses((status = OK, description = "the claim holds until then", body = AdvancedBody)))]
pub async fn extend(State(api): State<Api>, id: Path<String>, posted: Posted) -> impl IntoResponse {
    let mut fields = posted.fields();
    let fence = fields.number("fence", 0..=FENCE_MAX);
    let seconds = fields.number("leaseSeconds", 1..=LEASE_SECONDS_MAX);
    match fields.finish() {
        Ok(()) => {
            let wanted = Move::Extend(seconds_of(seconds));
            let ledger = api.clone();
            let work = async move { kept(advance(&ledger, id, fence, wanted).await).await };
            once(api, posted, work).await
        }
        Err(refused) => refused.answer(),
    }
}

/// Says how it went.
#[utoipa::path(post, path = "/effect/{id}/settle", operation_id = "settleEffect", tag = "your own code",
    params(("id" = String, Path, description = "the effect")), request_body = SettleRequest,
    responses((status = OK, description = "it is in the ledger", body = AdvancedBody)))]
pub async fn settle(State(api): State<Api>, id: Path<String>, posted: Posted) -> impl IntoResponse {
    match read_settlement(&posted) {
        Ok((fence, settlement)) => {
            let wanted = Move::Settle(settlement);
            let ledger = api.clone();
            let work = async move { kept(advance(&ledger, id, fence, wanted).await).await };
            once(api, posted, work).await
        }
        Err(refused) => refused.answer(),
    }
}

fn read_settlement(posted: &Posted) -> Result<(u64, Settlement), Refused> {
    let mut fields = posted.fields();
    let fence = fields.number("fence", 0..=FENCE_MAX);
    let report = fields.word("outcome", "done, failed, uncertain", Report::from_word);
    let result = fields.json("result").map(|result| result.to_string());
    if result
        .as_ref()
        .is_some_and(|text| text.len() > RESULT_BYTES_MAX)
    {
        fields.refuse("result", "at most 8192 bytes of JSON are expected");
    }
    let error = fields.optional_text("error");
    fields.finish()?;
    let said = nouns::Said {
        body_bytes: result.as_ref().map(|text| text.len() as u64),
        excerpt: result.map(Bytes::from),
        error,
    };
    // Only if the body was refused is there no report. When to try again is the code's own business: at once, if it likes.
    let outcome = Outcome::Reported(report.unwrap_or(Report::Uncertain));
    let next = Next::At(Span::ZERO);
    Ok((
        fence,
        Settlement {
            outcome,
            next,
            said,
        },
    ))
}

async fn advance(api: &Api, Path(id): Path<String>, fence: u64, what: Move) -> Answer {
    let Ok(id) = id.parse::<EffectId>() else {
        return problem(answer::NOT_FOUND);
    };
    let effect = match api.store.effect(id).await {
        Ok(Some(detail)) => detail.effect,
        Ok(None) => return problem(answer::NOT_FOUND),
        Err(error) => return unavailable(&error),
    };
    if !effect.lane.starts_with(OWN_LANE) {
        return problem(answer::NOT_YOURS);
    }
    let fence = Fence::from_u64(fence);
    let repeats = is_said_again(&effect, fence, &what);
    match api.store.advance(id, fence, what).await {
        Ok(advanced) => {
            api.operator.opened(&advanced.opened);
            moved(&advanced.moved, repeats)
        }
        Err(error) => {
            api.dispatcher.doubt(&error);
            unavailable(&error)
        }
    }
}

/// Is it a report of what this very claim has reported before? Whoever did not hear the answer asks again.
fn is_said_again(effect: &Effect, fence: Fence, what: &Move) -> bool {
    let settles =
        matches!(what, Move::Settle(settlement) if effect.last == Some(settlement.outcome));
    settles && effect.record.fence == fence && !effect.record.started
}

fn moved(moved: &Moved, repeats: bool) -> Answer {
    match moved {
        Moved::Done(change) => {
            let until = match change.did {
                Did::Extended { until } => Some(time_text(until)),
                _ => None,
            };
            let body = AdvancedBody {
                state: Some(change.next.state.word()),
                until,
                repeated: None,
            };
            answer::json(StatusCode::OK, &body)
        }
        Moved::Refused(_) if repeats => {
            let body = AdvancedBody {
                repeated: Some(true),
                ..AdvancedBody::default()
            };
            answer::json(StatusCode::OK, &body)
        }
        Moved::Refused(rejected) => stale(*rejected),
        Moved::NoEffect => problem(answer::NOT_FOUND),
        Moved::Waits(_) | Moved::Stale(_) | Moved::Review(_) => problem(answer::NOT_NOW),
    }
}

fn stale(rejected: Rejected) -> Answer {
    let detail = format!("{rejected}; nothing was changed (hapax explain H0319)");
    explained(answer::STALE_FENCE, &detail, None)
}
