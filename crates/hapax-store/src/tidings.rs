//! What operators are to hear: which change is worth telling, how it is kept, and what may be asked about it.

use async_trait::async_trait;
use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{AttemptId, EventId};
use hapax_ledger::outcome::{NotSent, Outcome};
use hapax_ledger::time::Time;
use serde_json::{Value, json};

use crate::error::StoreError;
use crate::nouns::{
    Attempted, Effect, Endpoint, Entry, FAILING_AFTER_ATTEMPTS, News, Standing, Tiding, Untold,
    is_endpoint_lane,
};
use crate::outcome_code::OutcomeCode;
use crate::posting::Stands;

/// Tidings are written by whatever they tell of, in its own transaction: [`crate::Outbox::put`], [`crate::Outbox::mark_endpoints`], and
/// every step that ends an attempt. They are read, told and forgotten here; whoever dies in between tells them again.
#[async_trait]
pub trait Tidings: Send + Sync + 'static {
    /// What is to be told, behind this number, in the order of numbers, a page of it. Numbers may become visible in another order, so
    /// whoever looks for all begins at 0.
    async fn untold(&self, after: i64) -> Result<Vec<Untold>, StoreError>;

    /// These were told: events say so by now.
    async fn told(&self, numbers: Vec<i64>) -> Result<(), StoreError>;
}

impl Tiding {
    /// What is told of an attempt that began then and ended at this time, given what the ledger made of the delivery.
    pub(crate) fn of_attempt(
        effect: &Effect,
        outcome: Outcome,
        began: Time,
        at: Time,
    ) -> Option<Tiding> {
        let news = Tiding::news_of(effect, outcome)?;
        let record = &effect.record;
        Some(Tiding {
            at,
            app: None,
            endpoint: effect.lane.parse().ok()?,
            news: news(Attempted {
                message: effect.event,
                attempt: AttemptId::of(effect.id, record.fence, began),
                outcome,
                generation: record.generation,
                attempts: record.attempts,
            }),
        })
    }

    /// Is an attempt told of that ended like this, given what the ledger made of the delivery?
    pub fn tells_of(effect: &Effect, outcome: Outcome) -> bool {
        Tiding::news_of(effect, outcome).is_some()
    }

    fn news_of(effect: &Effect, outcome: Outcome) -> Option<fn(Attempted) -> News> {
        if !is_endpoint_lane(&effect.lane) {
            return None;
        }
        let record = &effect.record;
        let tries = record.attempts_in_pass();
        match record.state {
            EffectState::Dead => Some(News::Exhausted),
            // A pass of its own: somebody had to send it again.
            EffectState::Done if record.pass_from > 0 => Some(News::Recovered),
            EffectState::Done if tries > FAILING_AFTER_ATTEMPTS => Some(News::GotThrough),
            EffectState::Pending if tries == FAILING_AFTER_ATTEMPTS && was_tried(outcome) => {
                Some(News::Failing)
            }
            EffectState::Pending
            | EffectState::Claimed
            | EffectState::Done
            | EffectState::Uncertain
            | EffectState::Skipped => None,
        }
    }

    /// What is told of a change that somebody made of what stood there before, if anything did.
    pub(crate) fn of_change(entry: &Entry, was: Option<Stands>, at: Time) -> Vec<Tiding> {
        let Entry::Endpoint(endpoint) = entry else {
            return Vec::new();
        };
        let disabled = News::Disabled {
            standing: endpoint.standing,
            failing_since: endpoint.failing_since,
        };
        let news = match (endpoint.deleted_at, was) {
            (Some(_), _) => vec![News::Deleted],
            (None, None) => vec![News::Created],
            (None, Some(was)) if was.enabled && endpoint.standing != Standing::Enabled => {
                vec![News::Updated, disabled]
            }
            (None, Some(_)) => vec![News::Updated],
        };
        let tidings = news.into_iter();
        tidings
            .map(|news| Tiding::about(endpoint, at, news))
            .collect()
    }

    /// What is told of what Hapax itself has written about an endpoint: a new standing, or that there will be one.
    pub(crate) fn of_mark(was: &Endpoint, marked: &Endpoint, at: Time) -> Option<Tiding> {
        let news = match (marked.failing_since, marked.disabled_from) {
            _ if marked.standing != was.standing => News::Disabled {
                standing: marked.standing,
                failing_since: marked.failing_since,
            },
            (Some(failing_since), Some(disabled_from)) if was.disabled_from.is_none() => {
                News::Disabling {
                    failing_since,
                    disabled_from,
                }
            }
            (Some(_) | None, Some(_) | None) => return None,
        };
        Some(Tiding::about(marked, at, news))
    }

    fn about(endpoint: &Endpoint, at: Time, news: News) -> Tiding {
        Tiding {
            at,
            app: Some(endpoint.app),
            endpoint: endpoint.id,
            news,
        }
    }
}

/// Did the attempt count? One that the breaker kept back has no number of its own.
fn was_tried(outcome: Outcome) -> bool {
    let kept_back = NotSent::Breaker;
    outcome != Outcome::NotSent { why: kept_back }
}

/// News as they are kept.
pub(crate) fn to_text(news: &News) -> String {
    let attempted = |what: &str, of: &Attempted| {
        let code = OutcomeCode::of(of.outcome);
        json!({
            "what": what,
            "message": of.message.to_string(),
            "attempt": of.attempt.to_string(),
            "outcome": [code.kind, code.detail],
            "retryAfter": code.retry_after,
            "generation": of.generation,
            "attempts": of.attempts,
        })
    };
    let value = match news {
        News::Created => json!({ "what": "created" }),
        News::Updated => json!({ "what": "updated" }),
        News::Deleted => json!({ "what": "deleted" }),
        News::Disabled {
            standing,
            failing_since,
        } => json!({
            "what": "disabled",
            "standing": standing.code(),
            "failingSince": failing_since.map(Time::micros),
        }),
        News::Disabling {
            failing_since,
            disabled_from,
        } => json!({
            "what": "disabling",
            "failingSince": failing_since.micros(),
            "disabledFrom": disabled_from.micros(),
        }),
        News::Failing(of) => attempted("failing", of),
        News::Exhausted(of) => attempted("exhausted", of),
        News::Recovered(of) => attempted("recovered", of),
        News::GotThrough(of) => attempted("got through", of),
    };
    value.to_string()
}

/// News as they were kept; none if another version kept them.
pub(crate) fn from_text(text: &str) -> Option<News> {
    let value: Value = serde_json::from_str(text).ok()?;
    let time = |name: &str| value[name].as_i64().map(Time::from_micros);
    let count = |name: &str| u32::try_from(value[name].as_u64()?).ok();
    let attempted = || {
        let code = |at: usize| i16::try_from(value["outcome"][at].as_i64()?).ok();
        let message: EventId = value["message"].as_str()?.parse().ok()?;
        let outcome = OutcomeCode {
            kind: code(0)?,
            detail: code(1)?,
            retry_after: value["retryAfter"].as_i64(),
        };
        Some(Attempted {
            message,
            attempt: value["attempt"].as_str()?.parse().ok()?,
            outcome: outcome.outcome(),
            generation: count("generation")?,
            attempts: count("attempts")?,
        })
    };
    Some(match value["what"].as_str()? {
        "created" => News::Created,
        "updated" => News::Updated,
        "deleted" => News::Deleted,
        "disabled" => News::Disabled {
            standing: Standing::from_code(u8::try_from(value["standing"].as_u64()?).ok()?)?,
            failing_since: time("failingSince"),
        },
        "disabling" => News::Disabling {
            failing_since: time("failingSince")?,
            disabled_from: time("disabledFrom")?,
        },
        "failing" => News::Failing(attempted()?),
        "exhausted" => News::Exhausted(attempted()?),
        "recovered" => News::Recovered(attempted()?),
        "got through" => News::GotThrough(attempted()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use hapax_ledger::time::Span;

    use super::*;

    #[test]
    fn news_come_back_as_they_were_kept() {
        let attempted = Attempted {
            message: EventId::from_bytes([3; 16]),
            attempt: AttemptId::from_bytes([4; 16]),
            outcome: Outcome::Answered {
                status: 503,
                retry_after: Some(Span::from_secs(9)),
            },
            generation: 1,
            attempts: 7,
        };
        let time = Time::from_secs(5);
        for news in [
            News::Created,
            News::Updated,
            News::Deleted,
            News::Disabled {
                standing: Standing::Gone,
                failing_since: None,
            },
            News::Disabled {
                standing: Standing::Failed,
                failing_since: Some(time),
            },
            News::Disabling {
                failing_since: time,
                disabled_from: Time::from_secs(6),
            },
            News::Failing(attempted.clone()),
            News::Exhausted(attempted.clone()),
            News::Recovered(attempted.clone()),
            News::GotThrough(attempted),
        ] {
            assert_eq!(from_text(&to_text(&news)), Some(news));
        }
        for other in ["", "{}", r#"{"what":"promoted"}"#, r#"{"what":"failing"}"#] {
            assert_eq!(from_text(other), None, "{other}");
        }
    }
}
