//! Guarded keys, as every store keeps them: what the ledger's rules make of a row. How rows are found and written is each store's own.

use bytes::Bytes;
use hapax_ledger::fingerprint::Fingerprint;
use hapax_ledger::guard::{
    self, Body, GuardClaim, GuardDecision, GuardRecord, GuardRejected, GuardState, GuardStep,
    Settlement, decide, step,
};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};

use crate::nouns::{Asking, KeyClaim, KeyClaimed, KeyEnding, KeyRecord, KeyResolution};

/// A key with all that is kept of it but its answer. What stands in both is read from `record`.
#[derive(Clone, Debug)]
pub(crate) struct Guarded {
    pub(crate) shown: KeyRecord,
    pub(crate) record: GuardRecord,
}

/// What a store has to do about a request that arrives with a key.
#[derive(Debug)]
pub(crate) enum Ruling {
    /// Write down that it runs.
    Run {
        record: GuardRecord,
        /// Does an earlier run have an unknown outcome?
        again: bool,
    },
    /// Write down that the run before was lost.
    Lost(GuardRecord),
    /// Look up what was kept of the answer.
    Answered(Body),
    /// Nothing: this is the answer.
    Said(KeyClaimed),
}

/// The claim as the ledger reads it.
fn asked(claim: &KeyClaim, now: Time, epoch: u32) -> GuardClaim {
    GuardClaim {
        fingerprint: claim.fingerprint,
        now,
        epoch,
        lease: claim.lease,
        on_unknown: claim.on_unknown,
        ttl: claim.ttl,
        grace: claim.grace,
    }
}

/// What the ledger says to a request whose key is known.
pub(crate) fn rule(known: &Guarded, claim: &KeyClaim, now: Time, epoch: u32) -> Ruling {
    let id = known.shown.id;
    let state = known.record.state;
    if claim.asking == Asking::Again && known.is_run_of(claim, now) {
        // What the key was before is written over: where there was a run, it may be unknown.
        return Ruling::Said(known.begun(known.shown.runs > 1));
    }
    match decide(Some(&known.record), &asked(claim, now, epoch)) {
        GuardDecision::Run(record) => Ruling::Run {
            record,
            again: matches!(state, GuardState::Running | GuardState::Unknown),
        },
        GuardDecision::OutcomeUnknown(record) if state == GuardState::Running => {
            Ruling::Lost(record)
        }
        GuardDecision::OutcomeUnknown(_) => Ruling::Said(KeyClaimed::OutcomeUnknown { id }),
        GuardDecision::Replay => Ruling::Answered(Body::Kept),
        GuardDecision::NotKept => Ruling::Answered(Body::NotKept),
        GuardDecision::InProgress { until } => Ruling::Said(KeyClaimed::InProgress {
            id,
            until,
            remaining: until.since(now),
        }),
        GuardDecision::Expired => Ruling::Said(KeyClaimed::Expired { id }),
        GuardDecision::Mismatch => Ruling::Said(KeyClaimed::Mismatch { id }),
    }
}

/// What the ledger makes of a run that ends so and still has its key: its state after that, and how long its answer is good for. It takes
/// nothing from the row, so a store may settle such a run without reading it first.
pub(crate) fn ended(ending: &KeyEnding) -> Result<(GuardState, Span), GuardRejected> {
    let finish = GuardStep::Finish {
        fence: RUNNING.fence,
        now: Time::from_micros(0),
        settlement: ending.settlement,
        ttl: ending.ttl,
    };
    let after = step(&RUNNING, &finish)?;
    Ok((after.state, after.expires_at.since(Time::from_micros(0))))
}

/// A run at the beginning of time that shows its fence.
const RUNNING: GuardRecord = GuardRecord {
    state: GuardState::Running,
    fingerprint: Fingerprint::from_bytes([0; 32]),
    fence: Fence::NONE,
    lease_until: Time::from_micros(0),
    expires_at: Time::from_micros(0),
    grace: Span::ZERO,
};

/// What is to be kept of a run's answer.
pub(crate) fn kept_answer(ending: &KeyEnding) -> Option<&[u8]> {
    match ending.settlement {
        Settlement::Store(Body::Kept) => Some(ending.answer.as_deref().unwrap_or_default()),
        Settlement::Store(Body::NotKept) => ending.answer.as_deref(),
        Settlement::Release | Settlement::Unknown => None,
    }
}

impl Guarded {
    /// A key that was never seen before, or is forgotten: it runs.
    pub(crate) fn first(id: KeyId, claim: &KeyClaim, now: Time, epoch: u32) -> Guarded {
        Guarded::running(id, claim, guard::first(&asked(claim, now, epoch)))
    }

    fn running(id: KeyId, claim: &KeyClaim, record: GuardRecord) -> Guarded {
        let shown = KeyRecord {
            id,
            guard: claim.guard.clone(),
            principal: claim.principal.clone(),
            method: claim.method.clone(),
            path: claim.path.clone(),
            key: claim.key.clone(),
            state: record.state,
            runs: 1,
            fence: record.fence,
            node: claim.node.clone(),
            first_at: claim.at,
            started_at: claim.at,
            ended_at: None,
            status: None,
            error: None,
            expires_at: record.expires_at,
        };
        Guarded { shown, record }
    }

    /// The key runs once more. What was kept of the answer before has to go.
    pub(crate) fn runs(&mut self, claim: &KeyClaim, record: GuardRecord) {
        let before = &self.shown;
        self.shown = KeyRecord {
            runs: before.runs.saturating_add(1),
            first_at: before.first_at,
            ..Guarded::running(before.id, claim, record).shown
        };
        self.record = record;
    }

    /// Is it running, by this very claim?
    fn is_run_of(&self, claim: &KeyClaim, now: Time) -> bool {
        let running = self.record.as_of(now).state == GuardState::Running;
        let same = (&self.shown.node, self.shown.started_at) == (&claim.node, claim.at);
        running && same && self.record.fingerprint == claim.fingerprint
    }

    /// The run needs longer.
    pub(crate) fn extend(
        &mut self,
        fence: Fence,
        lease: Span,
        now: Time,
    ) -> Result<(), GuardRejected> {
        let until = now + lease;
        self.record = step(&self.record, &GuardStep::Extend { fence, now, until })?;
        Ok(())
    }

    /// The run ended. Gives what is to be kept of its answer, unless it is there; the rest is written in any case.
    pub(crate) fn settle(
        &mut self,
        fence: Fence,
        ending: &KeyEnding,
        now: Time,
    ) -> Result<Option<Bytes>, GuardRejected> {
        let settlement = ending.settlement;
        let finish = GuardStep::Finish {
            fence,
            now,
            settlement,
            ttl: ending.ttl,
        };
        match (step(&self.record, &finish), ending.asking) {
            (Ok(ended), _) => self.record = ended,
            (Err(_), Asking::Again) => {
                // An earlier time may have been heard, and an answer never changes (H3).
                self.record = step(&self.record, &GuardStep::Confirm { fence, settlement })?;
                return Ok(None);
            }
            (Err(rejected), Asking::First) => return Err(rejected),
        }
        self.shown.ended_at = Some(ending.at);
        self.shown.status = ending.status;
        self.shown.error.clone_from(&ending.error);
        Ok(kept_answer(ending).map(Bytes::copy_from_slice))
    }

    /// Somebody found out what became of it.
    pub(crate) fn resolve(
        &mut self,
        fence: Fence,
        resolution: KeyResolution,
        at: Time,
        now: Time,
    ) -> Result<(), GuardRejected> {
        let resolved = match resolution {
            KeyResolution::Executed { ttl } => GuardStep::ResolveExecuted { fence, now, ttl },
            KeyResolution::NotExecuted => GuardStep::ResolveNotExecuted { fence, now },
        };
        self.record = step(&self.record, &resolved)?;
        self.shown.ended_at = Some(at);
        Ok(())
    }

    /// The sweep met it.
    pub(crate) fn lose(&mut self, now: Time) -> Result<(), GuardRejected> {
        self.record = step(&self.record, &GuardStep::Lose { now })?;
        Ok(())
    }

    /// The key as operators see it now; `None` if it is free, whether or not the reaper has come by (I2).
    pub(crate) fn seen(self, now: Time) -> Option<KeyRecord> {
        if self.record.is_over(now) {
            return None;
        }
        let record = self.record.as_of(now);
        Some(KeyRecord {
            state: record.state,
            fence: record.fence,
            expires_at: record.expires_at,
            ..self.shown
        })
    }

    /// What is said to a request whose key was answered before.
    pub(crate) fn told(&self, body: Body, answer: Option<Bytes>) -> KeyClaimed {
        let (id, expires_at) = (self.shown.id, self.record.expires_at);
        match body {
            Body::Kept => KeyClaimed::Replay {
                id,
                answer: answer.unwrap_or_default(),
                expires_at,
            },
            Body::NotKept => KeyClaimed::NotKept {
                id,
                answer,
                expires_at,
            },
        }
    }

    /// What is said to a request that runs.
    pub(crate) fn begun(&self, again: bool) -> KeyClaimed {
        KeyClaimed::Run {
            id: self.shown.id,
            fence: self.record.fence,
            again,
        }
    }
}
