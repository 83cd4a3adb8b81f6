//! All lanes of this node, and which of them have something to do.
//!
//! A lane is looked at when something happened to it or when its time has come, never because time passes: ten thousand lanes
//! that wait cost nothing here. Each attempt of theirs still costs the store a claim, a start and a settlement. So those that want to claim
//! stand in line, and no more is claimed than the store keeps up with settling; and those that only fail are tried some at a time, however
//! many they are. What is born claimed waits for neither.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::Outcome;
use hapax_store::nouns::{LaneRoom, lane_shard};

use super::breaker::Allowed;
use super::job::Job;
use super::lane::{Caps, Lane, ShownLane};
use super::lines::Lines;

/// Claims in memory over all lanes, beyond which a lane may have one but no second. A lane that hangs does not take the last slot from
/// another, since each may have one while there is room at all.
const SHARED_MAX: u32 = 8_192;
/// Claims in memory over all lanes, however many those are: what the process can keep, payloads of the usual size included. Lanes that
/// would be beyond it wait until others have ended something, which they do within their timeout.
const CLAIMS_MAX: u32 = 16_384;
/// Lanes that one claim asks for at most: a millisecond of a store's time, since others wait behind it.
const LANES_PER_CLAIM_MAX: usize = 32;

/// Attempts that came back and are being settled, over all lanes, beyond which nothing more is claimed.
const SETTLING_MAX: u32 = 512;

/// What to do next.
#[derive(Default)]
pub struct Todo {
    /// Claims to carry out now; each counts as under way.
    pub start: Vec<(Arc<str>, Job)>,
    /// Claims to ask the store for, each from one shard.
    pub ask: Vec<(u16, Vec<LaneRoom>)>,
    /// Claims that cannot be sent for now.
    pub stranded: Vec<Job>,
}

/// How a claim stopped being under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Its request came back, and what came of it is in the ledger.
    Settled,
    /// There was no request.
    NotSent,
}

/// What this node may do in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Send what it has, and claim more.
    Ours(Caps),
    /// Send what it has.
    Closing(Caps),
    /// Nothing: another node looks after it, or nobody knows where to send.
    NotOurs,
}

/// All lanes.
pub struct Lanes {
    shards: u16,
    lanes: HashMap<Arc<str>, Lane>,
    /// Claims in memory: the sum over all lanes.
    held: u32,
    /// Of those, attempts that are being settled.
    settling: u32,
    listed: HashSet<Arc<str>>,
    ready: VecDeque<Arc<str>>,
    /// Lanes that have nothing in memory and found no room, those that wait longest first.
    starved: VecDeque<Arc<str>>,
    starving: HashSet<Arc<str>>,
    /// Lanes that would claim.
    lines: Lines,
    timers: BTreeSet<(Instant, Arc<str>)>,
    timer_of: HashMap<Arc<str>, Instant>,
}

impl Lanes {
    /// No lanes yet.
    pub fn new(shards: u16) -> Lanes {
        Lanes {
            shards,
            lanes: HashMap::new(),
            held: 0,
            settling: 0,
            listed: HashSet::new(),
            ready: VecDeque::new(),
            starved: VecDeque::new(),
            starving: HashSet::new(),
            lines: Lines::new(shards),
            timers: BTreeSet::new(),
            timer_of: HashMap::new(),
        }
    }

    fn lane(&mut self, name: &Arc<str>, caps: Caps, now: Instant) -> &mut Lane {
        let lane = self
            .lanes
            .entry(name.clone())
            .or_insert_with(|| Lane::new(caps, now));
        lane.set_caps(caps, now);
        lane
    }

    /// Does something to a lane that is there, and counts what it holds then.
    fn change<T>(&mut self, name: &Arc<str>, how: impl FnOnce(&mut Lane) -> T) -> Option<T> {
        let lane = self.lanes.get_mut(name)?;
        let (held, settling) = (lane.in_memory(), lane.settling());
        let done = how(lane);
        self.held = self.held + lane.in_memory() - held;
        self.settling = self.settling + lane.settling() - settling;
        Some(done)
    }

    /// How many claims more a lane that holds so many may have.
    fn room(&self, in_memory: u32) -> u32 {
        match SHARED_MAX.checked_sub(self.held) {
            Some(room) if room > 0 => room,
            _ => u32::from(in_memory == 0 && self.held < CLAIMS_MAX),
        }
    }

    /// Promises a slot to an arrival that is being committed.
    pub fn promise(&mut self, name: &Arc<str>, caps: Caps, now: Instant) -> bool {
        let in_memory = self.lane(name, caps, now).in_memory();
        let is_room = self.room(in_memory) > 0;
        is_room && self.change(name, |lane| lane.promise(now)) == Some(true)
    }

    /// A promised slot is not needed.
    pub fn unpromise(&mut self, name: &Arc<str>, now: Instant) {
        self.change(name, Lane::unpromise);
        self.look_again(name, now);
    }

    /// A claim fills a promised slot.
    pub fn fill(&mut self, name: &Arc<str>, job: Job, now: Instant) {
        self.change(name, |lane| {
            lane.unpromise();
            lane.put(job);
        });
        self.look_again(name, now);
    }

    /// The store has something for a lane, due then.
    pub fn hear(&mut self, name: &Arc<str>, caps: Caps, at: Instant, now: Instant) {
        self.lane(name, caps, now).hear(at);
        self.look_again(name, now);
    }

    /// The store answered for a lane.
    pub fn answered(
        &mut self,
        name: &Arc<str>,
        jobs: Vec<Job>,
        next: Option<Instant>,
        now: Instant,
    ) {
        self.change(name, |lane| lane.answered(jobs, next, now));
        self.look_again(name, now);
    }

    /// The store could not be asked for a lane.
    pub fn unanswered(&mut self, name: &Arc<str>, now: Instant) {
        self.change(name, |lane| lane.unanswered(now));
        self.look_again(name, now);
    }

    /// A claim from this shard has been answered for all its lanes.
    pub fn claim_ended(&mut self, shard: u16) {
        self.lines.claim_ended(shard);
    }

    /// A request of this lane came back; it is being settled.
    pub fn came_back(&mut self, name: &Arc<str>, outcome: Outcome, now: Instant, spread: f64) {
        self.change(name, |lane| lane.came_back(outcome, now, spread));
        self.look_again(name, now);
    }

    /// A claim of this lane is not under way any more: it came back and is settled, or was never sent.
    pub fn finished(&mut self, name: &Arc<str>, how: Finished, now: Instant) {
        self.change(name, |lane| match how {
            Finished::Settled => lane.settled(),
            Finished::NotSent => lane.not_sent(),
        });
        self.look_again(name, now);
    }

    /// Claims that wait in memory and were born started, and whose time ends before this.
    pub fn ageing(&self, before: Instant) -> Vec<(Arc<str>, EffectId, Fence)> {
        let lanes = self.lanes.iter();
        let ageing = lanes.flat_map(|(name, lane)| {
            let ageing = lane.ageing(before);
            ageing.map(move |(effect, fence)| (name.clone(), effect, fence))
        });
        ageing.collect()
    }

    /// A claim that waits in memory is held longer, or not ours any more.
    pub fn extended(&mut self, name: &Arc<str>, effect: EffectId, until: Option<Instant>) {
        self.change(name, |lane| match until {
            Some(until) => lane.extended(effect, until),
            None => lane.lost(effect),
        });
    }

    /// Shards of which something is in memory.
    pub fn busy_shards(&self) -> BTreeSet<u16> {
        let busy = self.lanes.iter().filter(|(_, lane)| !lane.is_idle());
        busy.map(|(name, _)| lane_shard(name, self.shards))
            .collect()
    }

    /// What is known of a lane; `None` if there is nothing to remember: all is well, and nothing waits.
    pub fn shown(&self, name: &str, now: Instant) -> Option<ShownLane> {
        self.lanes.get(name).map(|lane| lane.shown(now))
    }

    /// Lanes whose breaker is not closed, those with the most failures first; at most so many.
    pub fn broken(&self, now: Instant, most: usize) -> Vec<(Arc<str>, ShownLane)> {
        let mut broken: Vec<(Arc<str>, ShownLane)> = self
            .lanes
            .iter()
            .map(|(name, lane)| (name.clone(), lane.shown(now)))
            .filter(|(_, shown)| shown.breaker != Allowed::All)
            .collect();
        broken.sort_by(|(name, one), (other_name, other)| {
            let failures = other.failures.cmp(&one.failures);
            failures.then_with(|| name.cmp(other_name))
        });
        broken.truncate(most);
        broken
    }

    /// Is anything at all in memory?
    pub fn is_idle(&self) -> bool {
        self.lanes.values().all(Lane::is_idle)
    }

    /// Requests under way in a lane.
    #[cfg(test)]
    pub fn in_flight_of(&self, name: &str) -> u32 {
        self.lanes.get(name).map_or(0, Lane::in_flight)
    }

    /// Claims in memory over all lanes.
    #[cfg(test)]
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Puts a lane where it will be looked at at the right time, or forgets it.
    fn look_again(&mut self, name: &Arc<str>, now: Instant) {
        if let Some(at) = self.timer_of.remove(name) {
            self.timers.remove(&(at, name.clone()));
        }
        let Some(lane) = self.lanes.get(name) else {
            return;
        };
        match (lane.next_look(now), lane.forgettable_at(now)) {
            // Its turn comes. Until then there is something to do only if it has something to send.
            (Some(at), _) if at <= now && !lane.has_waiting() && self.lines.has(name) => {}
            (Some(at), _) if at <= now => self.list(name),
            (Some(at), _) => self.set_timer(name, at),
            (None, Some(at)) if at > now => self.set_timer(name, at),
            (None, Some(_)) if !self.listed.contains(name) => {
                self.lanes.remove(name);
            }
            (None, _) => {}
        }
    }

    fn set_timer(&mut self, name: &Arc<str>, at: Instant) {
        self.timer_of.insert(name.clone(), at);
        self.timers.insert((at, name.clone()));
    }

    /// Looks at a lane with the next step.
    fn list(&mut self, name: &Arc<str>) {
        if self.listed.insert(name.clone()) {
            self.ready.push_back(name.clone());
        }
    }

    /// What there is to do now, lane by lane in turn.
    pub fn todo(&mut self, now: Instant, standing: impl Fn(&str) -> Standing) -> Todo {
        while let Some((at, name)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.look_again(&name, now);
        }
        self.feed();
        let mut todo = Todo::default();
        for _ in 0..self.ready.len() {
            let Some(name) = self.ready.pop_front() else {
                break;
            };
            self.listed.remove(&name);
            match standing(&name) {
                Standing::Ours(caps) => {
                    self.start(&name, caps, now, &mut todo);
                    self.queue_up(&name, now);
                }
                Standing::Closing(caps) => self.start(&name, caps, now, &mut todo),
                // Whoever looks after it finds what it has to do in the store.
                Standing::NotOurs => {
                    let left = self.change(&name, Lane::give_up);
                    todo.stranded.extend(left.into_iter().flatten());
                    self.look_again(&name, now);
                }
            }
        }
        self.serve_lines(now, &standing, &mut todo);
        todo
    }

    /// Puts a lane that would claim in line.
    fn queue_up(&mut self, name: &Arc<str>, now: Instant) {
        let Some(lane) = self.lanes.get_mut(name) else {
            return;
        };
        if lane.wanted(now) == 0 {
            return self.look_again(name, now);
        }
        match lane.is_on_trial() {
            true => self.lines.wait_for_trial(name),
            false => self.lines.join(name),
        }
    }

    /// Claims for those that stand first in line, as far as the store keeps up.
    fn serve_lines(&mut self, now: Instant, standing: impl Fn(&str) -> Standing, todo: &mut Todo) {
        self.lines.let_trials_in(now);
        while self.settling < SETTLING_MAX
            && let Some(shard) = self.lines.next_shard()
        {
            let mut asks = Vec::new();
            while asks.len() < LANES_PER_CLAIM_MAX
                && let Some(name) = self.lines.take(shard)
            {
                match standing(&name) {
                    Standing::Ours(_) => asks.extend(self.ask(&name, now)),
                    // Whoever looks at it next sees that nothing is to be claimed.
                    Standing::Closing(_) | Standing::NotOurs => self.list(&name),
                }
            }
            if !asks.is_empty() {
                self.lines.claim_begins(shard);
                todo.ask.push((shard, asks));
            }
        }
    }

    /// Lanes that found no room are looked at again, as many as there is room for; before those that have just had some.
    fn feed(&mut self) {
        let room = CLAIMS_MAX.saturating_sub(self.held) as usize;
        let next = self.starved.drain(..room.min(self.starved.len()));
        for name in next.collect::<Vec<_>>().into_iter().rev() {
            self.starving.remove(&name);
            self.listed.insert(name.clone());
            self.ready.push_front(name);
        }
    }

    fn start(&mut self, name: &Arc<str>, caps: Caps, now: Instant, todo: &mut Todo) {
        let started = self.change(name, |lane| {
            lane.set_caps(caps, now);
            todo.stranded.extend(lane.stranded(now));
            std::iter::from_fn(|| lane.next_job(now)).collect::<Vec<_>>()
        });
        let started = started.into_iter().flatten();
        todo.start.extend(started.map(|job| (name.clone(), job)));
    }

    /// What a lane whose turn it is asks for.
    fn ask(&mut self, name: &Arc<str>, now: Instant) -> Option<LaneRoom> {
        let in_memory = self.lanes.get(name).map(Lane::in_memory)?;
        let most = self.room(in_memory);
        if most == 0 {
            // Whoever finishes in this lane looks again; one with nothing to finish waits for others.
            if in_memory == 0 && self.starving.insert(name.clone()) {
                self.starved.push_back(name.clone());
            }
            return None;
        }
        let room = self.change(name, |lane| lane.ask(now, most)).flatten();
        self.look_again(name, now);
        room.map(|room| LaneRoom {
            lane: name.clone(),
            room,
        })
    }

    /// Looks at every lane again: what may be done in them has changed.
    pub fn look_at_all(&mut self, now: Instant) {
        let names: Vec<Arc<str>> = self.lanes.keys().cloned().collect();
        for name in names {
            self.look_again(&name, now);
        }
    }

    /// When to look again if nothing happens before.
    pub fn next_look(&self, now: Instant) -> Option<Instant> {
        let served = self.settling < SETTLING_MAX && self.lines.can_be_served();
        if served || !self.ready.is_empty() {
            return Some(now);
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        let trial = self.lines.next_trial(now);
        timer.into_iter().chain(trial).min()
    }
}

#[cfg(test)]
mod tests;
