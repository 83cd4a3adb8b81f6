//! What an event's effects say about it: when work on it began and ended, and what went wrong last.

use hapax_ledger::effect::EffectState;
use hapax_ledger::event::EventStatus;
use hapax_ledger::outcome::{Evidence, classify};
use hapax_ledger::time::Time;
use hapax_store::nouns::{Attempt, EffectDetail, EventDetail};
use hapax_store::{Store, StoreError};

/// Effects whose attempts are read for one answer. An event with more shows what the first ones say.
const EFFECTS_READ_MAX: usize = 64;
/// Characters of what a receiver said that are enough to know it again; the attempt has more.
const MESSAGE_CHARS_MAX: usize = 300;

/// What is known about the work on an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// When its first attempt started.
    pub(super) first_processed_at: Option<Time>,
    /// When there was nothing left to do.
    pub(super) completed_at: Option<Time>,
    /// What went wrong last and is not over: a code and words.
    pub(super) last_error: Option<(String, Option<String>)>,
}

/// Reads the attempts of an event's effects, those of the first [`EFFECTS_READ_MAX`].
pub(super) async fn of(store: &dyn Store, detail: &EventDetail) -> Result<Progress, StoreError> {
    let mut effects = Vec::new();
    for effect in detail.effects.iter().take(EFFECTS_READ_MAX) {
        effects.extend(store.effect(effect.id).await?);
    }
    Ok(sum(detail, &effects))
}

fn sum(detail: &EventDetail, effects: &[EffectDetail]) -> Progress {
    let event = &detail.event;
    let attempts = || effects.iter().flat_map(|effect| &effect.attempts);
    // An effect that another event had called for may be older than this event: it was never waited for.
    let since_received = |time: Time| time.max(event.received_at);
    let ended = match detail.effects.is_empty() {
        // An event that calls for nothing is complete when it is stored.
        true => Some(event.received_at),
        false => attempts().map(|attempt| attempt.ended_at).max(),
    };
    let started = attempts().map(|attempt| attempt.started_at).min();
    Progress {
        first_processed_at: started.map(since_received),
        completed_at: ended
            .filter(|_| event.status == EventStatus::Completed)
            .map(since_received),
        last_error: last_error(effects),
    }
}

/// The latest attempt that failed, of an effect that has not ended well.
fn last_error(effects: &[EffectDetail]) -> Option<(String, Option<String>)> {
    let open = effects.iter().filter(|effect| {
        let state = effect.effect.record.state;
        !matches!(state, EffectState::Done | EffectState::Skipped)
    });
    let failed = open
        .flat_map(|effect| &effect.attempts)
        .filter(|attempt| classify(attempt.outcome) != Evidence::Applied);
    let last = failed.max_by_key(|attempt| attempt.ended_at)?;
    Some((last.outcome.to_string(), message(last)))
}

/// What went wrong in words, or the first line of what the receiver said.
fn message(attempt: &Attempt) -> Option<String> {
    let said = &attempt.said;
    let text = match (&said.error, &said.excerpt) {
        (Some(error), _) => error.clone(),
        (None, Some(excerpt)) => String::from_utf8_lossy(excerpt).into_owned(),
        (None, None) => return None,
    };
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty())?;
    Some(line.chars().take(MESSAGE_CHARS_MAX).collect())
}
