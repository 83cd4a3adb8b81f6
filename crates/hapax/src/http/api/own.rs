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
    Effect, Keep, Move, Moved, OWN_LANE, OwnClaim, OwnClaimed, Said, Settlement,
};
use http::StatusCode;
use serde_json::{Value, json};

use super::Api;
use super::body::Refused;
use super::event::unavailable;
use super::posted::Posted;
use crate::clock::text as time_text;
use crate::http::answer::{self, Answer, explained, problem};

/// The longest lease, in seconds: a day. Longer work extends it.
const LEASE_SECONDS_MAX: u64 = 24 * 60 * 60;
/// The largest result.
const RESULT_BYTES_MAX: usize = 8 * 1024;
/// The longest name and the longest key.
const NAME_BYTES_MAX: usize = 200;
/// Fences fit into a JSON number.
const FENCE_MAX: u64 = (1 << 53) - 1;
/// How long an event is kept that exists only because of a claim: as long as those of a source that says nothing.
const KEEP: Keep = Keep {
    payload: Span::from_days(30),
    identity: Span::from_days(90),
    retry_window: Span::from_days(7),
};

/// `POST /effect/claim`
pub async fn claim(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    let claim = match read_claim(&posted) {
        Ok(claim) => claim,
        Err(refused) => return refused.answer(),
    };
    // One name is either the config's or the code's: a key of both would be an effect that two may carry out.
    if api.operator.classes().contains_key(&claim.name) {
        return problem(answer::NOT_YOURS);
    }
    match api.store.claim_own(claim).await {
        Ok(claimed) => said(claimed),
        Err(error) => unavailable(&error),
    }
}

fn read_claim(posted: &Posted) -> Result<OwnClaim, Refused> {
    let mut fields = posted.fields();
    let event = fields.optional_text("eventId");
    let id = event.as_deref().map(str::parse);
    if let Some(Err(_)) = id {
        fields.refuse("eventId", "the id of an event is expected");
    }
    let name = fields.text("name");
    if name.len() > NAME_BYTES_MAX {
        fields.refuse("name", "at most 200 bytes are expected");
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
        OwnClaimed::Claimed { effect, fence } => json!({
            "verdict": "claimed",
            "effectId": effect.to_string(),
            "fence": fence.as_u64(),
        }),
        OwnClaimed::Done { effect, result } => json!({
            "verdict": "done",
            "effectId": effect.to_string(),
            "result": result.map(|bytes| result_of(&bytes)),
        }),
        OwnClaimed::InFlight { effect, until } => json!({
            "verdict": "in_flight",
            "effectId": effect.to_string(),
            "until": time_text(until),
        }),
        OwnClaimed::Uncertain { effect } => json!({
            "verdict": "uncertain",
            "effectId": effect.to_string(),
        }),
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

/// `POST /effect/{id}/extend`
pub async fn extend(api: State<Api>, id: Path<String>, posted: Posted) -> impl IntoResponse {
    let mut fields = posted.fields();
    let fence = fields.number("fence", 0..=FENCE_MAX);
    let seconds = fields.number("leaseSeconds", 1..=LEASE_SECONDS_MAX);
    match fields.finish() {
        Ok(()) => advance(api, id, fence, Move::Extend(seconds_of(seconds))).await,
        Err(refused) => refused.answer(),
    }
}

/// `POST /effect/{id}/settle`
pub async fn settle(api: State<Api>, id: Path<String>, posted: Posted) -> impl IntoResponse {
    match read_settlement(&posted) {
        Ok((fence, settlement)) => advance(api, id, fence, Move::Settle(settlement)).await,
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
    let said = Said {
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

async fn advance(State(api): State<Api>, Path(id): Path<String>, fence: u64, what: Move) -> Answer {
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
        Err(error) => unavailable(&error),
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
            let mut body = json!({ "state": change.next.state.word() });
            if let Did::Extended { until } = change.did {
                body["until"] = time_text(until).into();
            }
            answer::json(StatusCode::OK, &body)
        }
        Moved::Refused(_) if repeats => answer::json(StatusCode::OK, &json!({ "repeated": true })),
        Moved::Refused(rejected) => stale(*rejected),
        Moved::NoEffect => problem(answer::NOT_FOUND),
        Moved::Waits(_) | Moved::Stale(_) | Moved::Review(_) => problem(answer::NOT_NOW),
    }
}

fn stale(rejected: Rejected) -> Answer {
    let detail = format!("{rejected}; nothing was changed (hapax explain H0319)");
    explained(answer::STALE_FENCE, &detail, None)
}
