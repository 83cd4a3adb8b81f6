//! Where a delivery stands and how an attempt ended, in the words and numbers of the SDKs.

use hapax_ledger::effect::EffectState;
use hapax_ledger::outcome::{Evidence, Outcome, classify};
use hapax_store::nouns::{Attempt, Effect};

/// Where something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http::api) enum Status {
    /// It got through.
    Success,
    /// It waits for its time.
    Pending,
    /// It was given up, or an attempt that did not get through.
    Fail,
    /// It is under way.
    Sending,
    /// It is not sent: the endpoint is disabled or gone.
    Canceled,
}

impl Status {
    pub(in crate::http::api) const ALL: [Status; 5] = [
        Status::Success,
        Status::Pending,
        Status::Fail,
        Status::Sending,
        Status::Canceled,
    ];

    pub(in crate::http::api) const fn code(self) -> u8 {
        match self {
            Status::Success => 0,
            Status::Pending => 1,
            Status::Fail => 2,
            Status::Sending => 3,
            Status::Canceled => 4,
        }
    }

    pub(in crate::http::api) const fn word(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::Pending => "pending",
            Status::Fail => "fail",
            Status::Sending => "sending",
            Status::Canceled => "canceled",
        }
    }

    pub(super) fn from_text(text: &str) -> Option<Status> {
        let code = text.parse().ok();
        let mut all = Status::ALL.into_iter();
        all.find(|one| Some(one.code()) == code)
    }

    /// As clients see it that know the first three only.
    pub(super) const fn plain(self) -> Status {
        match self {
            Status::Success => Status::Success,
            Status::Pending | Status::Sending => Status::Pending,
            Status::Fail | Status::Canceled => Status::Fail,
        }
    }

    /// Where a delivery stands.
    pub(super) const fn of(effect: &Effect) -> Status {
        match effect.record.state {
            EffectState::Pending => Status::Pending,
            EffectState::Claimed => Status::Sending,
            EffectState::Done => Status::Success,
            EffectState::Dead | EffectState::Uncertain => Status::Fail,
            EffectState::Skipped => Status::Canceled,
        }
    }

    /// How an attempt ended.
    pub(super) fn of_attempt(attempt: &Attempt) -> Status {
        match classify(attempt.outcome) {
            Evidence::Applied => Status::Success,
            Evidence::Refused { .. } | Evidence::NotApplied | Evidence::Ambiguous => Status::Fail,
        }
    }

    /// States of deliveries that stand so; for clients that know the first three only, more of them.
    pub(super) fn states(self, expanded: bool) -> Vec<EffectState> {
        match (self, expanded) {
            (Status::Success, _) => vec![EffectState::Done],
            (Status::Pending, true) => vec![EffectState::Pending],
            (Status::Pending, false) => vec![EffectState::Pending, EffectState::Claimed],
            (Status::Fail, true) => vec![EffectState::Dead, EffectState::Uncertain],
            (Status::Fail, false) => vec![
                EffectState::Dead,
                EffectState::Uncertain,
                EffectState::Skipped,
            ],
            (Status::Sending, _) => vec![EffectState::Claimed],
            (Status::Canceled, _) => vec![EffectState::Skipped],
        }
    }
}

/// What the receiver answered; 0 if nothing.
pub(super) const fn status_code(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Answered { status, .. } => status,
        Outcome::NotSent { .. } | Outcome::Lost { .. } | Outcome::Reported(_) => 0,
    }
}

/// Was it somebody's wish, rather than the schedule's?
pub(super) const fn is_manual(effect: &Effect, attempt: &Attempt) -> bool {
    let revived = effect.record.generation == attempt.generation
        && effect.record.pass_from > 0
        && attempt.number > effect.record.pass_from;
    attempt.generation > 1 || revived
}
