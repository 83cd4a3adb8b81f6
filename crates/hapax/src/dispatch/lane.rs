//! One lane: what waits in it, what is under way, and how much more it may take. No clock and no I/O of its own.
//!
//! Everything that counts is counted here: requests under way, claims that wait in memory, attempts that are being settled, slots
//! promised to arrivals that are being committed, and claims that are being asked for. Their sum never exceeds what the lane may
//! hold, and requests under way never exceed its cap (G6).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::Outcome;

use super::breaker::{Allowed, Breaker};
use super::job::Job;
use super::pace::Pace;
use super::rate::Rate;

/// Claims in memory for each request that may be under way, however slowly they come back. A few, so that a slot that becomes free is
/// filled at once; not many, since a claim in memory is nobody else's, and memory is shared with other lanes.
const CLAIMS_PER_SLOT: u32 = 4;
/// The same where they come back so fast that all of them are sent within a second or two. Most of these are not waiting: they are being
/// accepted or settled, and commits take longer than such a target does.
const FAST_CLAIMS_PER_SLOT: u32 = 16;
/// The pause after the store had nothing to claim although something seemed due: its clock is not ours.
const EMPTY_PAUSE: Duration = Duration::from_millis(20);
/// The pause after the store could not be asked.
const FAILED_PAUSE: Duration = Duration::from_millis(500);

/// How much a lane may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Requests under way at a time.
    pub concurrency: u32,
    /// Requests a second.
    pub rate: Option<u32>,
}

/// What operators see of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownLane {
    /// What may be sent.
    pub breaker: Allowed,
    /// Failures in a row.
    pub failures: u32,
    /// Requests under way.
    pub in_flight: u32,
    /// How long the earliest that the store has for it has been due; `None` if nothing is.
    pub late: Option<Duration>,
}

/// One lane.
pub struct Lane {
    caps: Caps,
    rate: Option<Rate>,
    breaker: Breaker,
    in_flight: u32,
    settling: u32,
    promised: u32,
    asked: u32,
    /// Claims that were born here and wait in memory.
    waiting: VecDeque<Job>,
    /// Claims that waited in the store before. They and those that were born here take turns.
    older: VecDeque<Job>,
    older_next: bool,
    pace: Pace,
    /// When the earliest effect that the store has for this lane is due, as far as we know.
    due: Option<Instant>,
    /// What was heard while the store was being asked.
    heard: Option<Instant>,
    not_before: Option<Instant>,
}

impl Lane {
    /// A lane with nothing to do.
    pub fn new(caps: Caps, now: Instant) -> Lane {
        Lane {
            caps,
            rate: caps.rate.map(|rate| Rate::new(rate, now)),
            breaker: Breaker::default(),
            in_flight: 0,
            settling: 0,
            promised: 0,
            asked: 0,
            waiting: VecDeque::new(),
            older: VecDeque::new(),
            older_next: false,
            pace: Pace::default(),
            due: None,
            heard: None,
            not_before: None,
        }
    }

    /// The config's caps may have changed; what is under way stays so.
    pub fn set_caps(&mut self, caps: Caps, now: Instant) {
        if self.caps.rate != caps.rate {
            self.rate = caps.rate.map(|rate| Rate::new(rate, now));
        }
        self.caps = caps;
    }

    /// What is known of it now.
    pub fn shown(&self, now: Instant) -> ShownLane {
        ShownLane {
            breaker: self.breaker.allowed(now),
            failures: self.breaker.failures(),
            in_flight: self.in_flight,
            late: self.due.and_then(|due| now.checked_duration_since(due)),
        }
    }

    /// Is there nothing in memory that the lane could still need?
    pub fn is_idle(&self) -> bool {
        self.in_memory() == 0
    }

    /// Requests under way.
    #[cfg(test)]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Attempts that are being settled.
    pub fn settling(&self) -> u32 {
        self.settling
    }

    /// Has it failed so often that it is tried with one request at most?
    pub fn is_on_trial(&self) -> bool {
        !self.breaker.is_closed()
    }

    /// Has it any attempt under way, or one that is being settled?
    pub fn is_busy(&self) -> bool {
        self.in_flight + self.settling > 0
    }

    /// From when on nothing is lost with it: there is nothing in memory, nothing known to be due, no trouble to remember, and what was
    /// sent lately does not count any more. A lane that was forgotten before would begin with a full second's worth.
    pub fn forgettable_at(&self, now: Instant) -> Option<Instant> {
        let empty = self.is_idle() && self.due.is_none() && self.breaker.is_closed();
        empty.then(|| self.rate.as_ref().map_or(now, Rate::full_at))
    }

    /// Claims that it holds, or may hold soon.
    pub fn in_memory(&self) -> u32 {
        self.in_flight + self.settling + self.asked + self.to_send()
    }

    /// Claims that wait in memory, or may soon.
    fn to_send(&self) -> u32 {
        self.promised + (self.waiting.len() + self.older.len()) as u32
    }

    fn memory_max(&self, now: Instant) -> u32 {
        let [least, most] =
            [CLAIMS_PER_SLOT, FAST_CLAIMS_PER_SLOT].map(|claims| self.caps.concurrency * claims);
        self.pace.lately(now).clamp(least, most)
    }

    /// Promises a slot to an arrival that is being committed.
    pub fn promise(&mut self, now: Instant) -> bool {
        let room = self.in_memory() < self.memory_max(now) && self.breaker.is_closed();
        self.promised += u32::from(room);
        room
    }

    /// The promised slot is not needed any more, or [`Lane::put`] fills it.
    pub fn unpromise(&mut self) {
        self.promised = self.promised.saturating_sub(1);
    }

    /// A claim that was born here.
    pub fn put(&mut self, job: Job) {
        self.waiting.push_back(job);
    }

    /// The next claim to carry out, if the cap, the rate and the breaker allow one. It counts as under way from here on.
    pub fn next_job(&mut self, now: Instant) -> Option<Job> {
        if !self.has_waiting() || self.slots(now) == 0 {
            return None;
        }
        // Neither what waited in the store nor what is new waits for ever behind the other.
        self.older_next = !self.older_next;
        let job = match self.older_next {
            true => self.older.pop_front().or_else(|| self.waiting.pop_front()),
            false => self.waiting.pop_front().or_else(|| self.older.pop_front()),
        }?;
        self.in_flight += 1;
        if let Some(rate) = &mut self.rate {
            rate.take();
        }
        Some(job)
    }

    /// Has it something to send?
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.older.is_empty()
    }

    /// Requests that the breaker lets be under way.
    fn allowed(&self, now: Instant) -> u32 {
        match self.breaker.allowed(now) {
            Allowed::All => self.caps.concurrency,
            Allowed::One => 1,
            Allowed::NothingUntil(_) => 0,
        }
    }

    /// Requests that may start now.
    fn slots(&mut self, now: Instant) -> u32 {
        let free = self.allowed(now).saturating_sub(self.in_flight);
        match &mut self.rate {
            Some(rate) if free > 0 => free.min(rate.room(now)),
            Some(_) | None => free,
        }
    }

    /// How many claims it would ask the store for now.
    ///
    /// As many as there are slots that nobody else wants. If others want them, half of the slots all the same: what waits in the
    /// store is older than they are.
    pub fn wanted(&mut self, now: Instant) -> u32 {
        let due = self.due.is_some_and(|due| due <= now);
        let early = self.not_before.is_some_and(|at| now < at);
        if !due || early || self.asked > 0 || !self.older.is_empty() || self.is_behind(now) {
            return 0;
        }
        let allowed = self.allowed(now);
        // Where one came back lately, the next slot will be free soon.
        let moving = self.pace.lately(now) > 0;
        let share = match self.in_flight < allowed || (moving && self.breaker.is_closed()) {
            true => (allowed / 2).max(1),
            false => 0,
        };
        let room = match &mut self.rate {
            Some(rate) => share.min(rate.room(now)),
            None => share,
        };
        room.max(self.slots(now).saturating_sub(self.to_send()))
    }

    /// Asks the store for what it wants, and never for more than `most`. While the answer is on its way that counts as taken.
    pub fn ask(&mut self, now: Instant, most: u32) -> Option<u32> {
        let room = self.wanted(now).min(most);
        (room > 0).then(|| {
            self.asked = room;
            self.heard = None;
            room
        })
    }

    /// Are there so many attempts to settle that no more should be begun?
    fn is_behind(&self, now: Instant) -> bool {
        self.settling >= self.memory_max(now)
    }

    /// The store answered: these claims, and when the next is due.
    pub fn answered(&mut self, claimed: Vec<Job>, next: Option<Instant>, now: Instant) {
        self.asked = 0;
        self.due = earliest(next, self.heard.take());
        self.not_before = claimed.is_empty().then(|| now + EMPTY_PAUSE);
        self.older.extend(claimed);
    }

    /// The store could not be asked.
    pub fn unanswered(&mut self, now: Instant) {
        self.asked = 0;
        self.due = earliest(self.due, self.heard.take());
        self.not_before = Some(now + FAILED_PAUSE);
    }

    /// The store has something for this lane, due then.
    pub fn hear(&mut self, at: Instant) {
        self.due = earliest(self.due, Some(at));
        self.heard = earliest(self.heard, Some(at));
    }

    /// A request came back with this: the next may go while it is being settled.
    pub fn came_back(&mut self, outcome: Outcome, now: Instant, spread: f64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.settling += 1;
        self.pace.note(now);
        self.breaker.note(outcome, now, spread);
    }

    /// One that came back is settled.
    pub fn settled(&mut self) {
        self.settling = self.settling.saturating_sub(1);
    }

    /// One ended without having been sent.
    pub fn not_sent(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Claims that wait in memory and were born started, and whose time ends before this.
    pub fn ageing(&self, before: Instant) -> impl Iterator<Item = (EffectId, Fence)> {
        let old = move |job: &&Job| job.effect.record.started && job.held_until < before;
        let jobs = self.waiting.iter().chain(&self.older).filter(old);
        jobs.map(|job| (job.effect.id, job.effect.record.fence))
    }

    /// A claim that waits in memory is held longer.
    pub fn extended(&mut self, effect: EffectId, until: Instant) {
        let mut jobs = self.waiting.iter_mut().chain(&mut self.older);
        if let Some(job) = jobs.find(|job| job.effect.id == effect) {
            job.held_until = until;
        }
    }

    /// A claim that waits in memory is not ours any more.
    pub fn lost(&mut self, effect: EffectId) {
        self.waiting.retain(|job| job.effect.id != effect);
        self.older.retain(|job| job.effect.id != effect);
    }

    /// Takes what waits in memory although it cannot be sent for now: the breaker has opened.
    pub fn stranded(&mut self, now: Instant) -> Vec<Job> {
        match self.breaker.allowed(now) {
            Allowed::All | Allowed::One => Vec::new(),
            Allowed::NothingUntil(_) => self.take_waiting(),
        }
    }

    /// Takes what waits in memory, and forgets what the store has: the lane is not ours.
    pub fn give_up(&mut self) -> Vec<Job> {
        (self.due, self.heard) = (None, None);
        self.take_waiting()
    }

    fn take_waiting(&mut self) -> Vec<Job> {
        self.older.drain(..).chain(self.waiting.drain(..)).collect()
    }

    /// When there is something to do again; `None` if not before something happens.
    pub fn next_look(&self, now: Instant) -> Option<Instant> {
        let wanted = match (self.has_waiting(), self.due) {
            (true, _) => now,
            (false, Some(due)) if self.asked == 0 && !self.is_behind(now) => {
                self.not_before.map_or(due, |at| at.max(due))
            }
            (false, _) => return None,
        };
        if let Allowed::NothingUntil(until) = self.breaker.allowed(now) {
            return Some(until.max(wanted));
        }
        if self.in_flight >= self.allowed(now) {
            // Whoever comes back looks again.
            return None;
        }
        let rated = self.rate.as_ref().map_or(wanted, Rate::next);
        Some(rated.max(wanted))
    }
}

fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
