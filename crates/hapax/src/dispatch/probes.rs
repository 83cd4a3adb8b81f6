//! Effects that wait for their probe: which is asked about when, and how many at a time. No clock and no I/O of its own.
//!
//! Each lane has places of its own, in memory and under way, so that a probe that hangs keeps no other from being asked. What finds no
//! place is not lost: its lane is noted, and read from the ledger when there is room again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Instant;

use hapax_ledger::id::{EffectId, EventId};

use super::log::Subject;

/// Effects of one lane that wait for their probe in memory. Enough to ask for an hour where each takes as long as it may.
const WAITING_PER_LANE_MAX: usize = 1_000;
/// The same over all lanes: a few megabytes. Beyond this a lane has places for as many as it asks about at a time, so that none is left out.
const WAITING_MAX: usize = 10_000;
/// Probes of one lane under way at a time: they are few, and their targets are the operator's own.
const PER_LANE_AT_A_TIME: usize = 4;
/// Probes under way over all lanes, beyond which a lane may have one but no second.
const AT_A_TIME: usize = 64;

/// Effects that wait for a probe. One that is being asked about stays known, so that nobody asks twice at a time.
#[derive(Default)]
pub(super) struct Probes {
    lanes: BTreeMap<Arc<str>, Waiting>,
    known: HashSet<EffectId>,
    asking: usize,
    /// Lanes of which more may be uncertain than is known here.
    unread: BTreeSet<Arc<str>>,
}

/// Those of one lane.
#[derive(Default)]
struct Waiting {
    due: BTreeMap<(Instant, EffectId), Question>,
    asking: usize,
}

impl Waiting {
    fn known(&self) -> usize {
        self.due.len() + self.asking
    }
}

/// What is asked about.
#[derive(Clone)]
pub(super) struct Question {
    pub(super) event: EventId,
    pub(super) name: Arc<str>,
    pub(super) key: String,
    pub(super) lane: Arc<str>,
    /// How often it was asked so far.
    pub(super) asked: u32,
}

impl Question {
    pub(super) fn subject(&self, effect: EffectId) -> Subject<'_> {
        Subject {
            effect,
            event: self.event,
            name: &self.name,
            key: &self.key,
        }
    }
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It waits for its time.
    Kept,
    /// It was known already.
    Known,
    /// There is no place for it; it is the first of its lane for which there is none.
    Overflows,
    /// There is no place for it, as for others before.
    Full,
}

impl Probes {
    /// Asks about an effect from a moment on.
    pub(super) fn put(&mut self, at: Instant, effect: EffectId, question: Question) -> Put {
        if self.known.contains(&effect) {
            return Put::Known;
        }
        if self.room(&question.lane) == 0 {
            return match self.unread.insert(question.lane) {
                true => Put::Overflows,
                false => Put::Full,
            };
        }
        self.known.insert(effect);
        let lane = self.lanes.entry(question.lane.clone()).or_default();
        lane.due.insert((at, effect), question);
        Put::Kept
    }

    /// Places that are left for a lane.
    fn room(&self, lane: &str) -> usize {
        let known = self.lanes.get(lane).map_or(0, Waiting::known);
        let shared = WAITING_MAX.saturating_sub(self.known.len());
        let own = PER_LANE_AT_A_TIME.saturating_sub(known);
        let most = WAITING_PER_LANE_MAX.saturating_sub(known);
        most.min(shared.max(own))
    }

    /// What to ask about now. It counts as under way until it is [`Probes::asked`].
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(EffectId, Question)> {
        let mut taken = Vec::new();
        for lane in self.lanes.values_mut() {
            while may_ask(lane, self.asking)
                && let Some(first) = lane.due.first_entry()
                && first.key().0 <= now
            {
                let ((_, effect), question) = first.remove_entry();
                lane.asking += 1;
                self.asking += 1;
                taken.push((effect, question));
            }
        }
        taken
    }

    /// One that was under way has been asked about.
    pub(super) fn asked(&mut self, effect: EffectId, lane: &str) {
        self.known.remove(&effect);
        self.asking = self.asking.saturating_sub(1);
        if let Some(waiting) = self.lanes.get_mut(lane) {
            waiting.asking = waiting.asking.saturating_sub(1);
            if waiting.known() == 0 {
                self.lanes.remove(lane);
            }
        }
    }

    /// When the next may be asked about, if nothing happens before.
    pub(super) fn next(&self) -> Option<Instant> {
        let lanes = self.lanes.values();
        let free = lanes.filter(|lane| may_ask(lane, self.asking));
        free.filter_map(|lane| lane.due.first_key_value())
            .map(|((at, _), _)| *at)
            .min()
    }

    /// More of these lanes may be uncertain than is known here.
    pub(super) fn read_later(&mut self, lanes: impl IntoIterator<Item = Arc<str>>) {
        self.unread.extend(lanes);
    }

    /// Lanes to read now: those that have room for much, so that what is read again and known already is not most of it.
    pub(super) fn take_unread(&mut self) -> Vec<Arc<str>> {
        let unread = std::mem::take(&mut self.unread);
        let (now, later) = unread.into_iter().partition(|lane| {
            !self.lanes.contains_key(lane) || self.room(lane) >= WAITING_PER_LANE_MAX / 2
        });
        self.unread = later;
        now.into_iter().collect()
    }
}

/// May a lane ask about one more, while so many are under way in all?
fn may_ask(lane: &Waiting, asking: usize) -> bool {
    lane.asking < PER_LANE_AT_A_TIME && (asking < AT_A_TIME || lane.asking == 0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hapax_ledger::id::RawId;
    use hapax_ledger::time::Time;

    use super::*;

    /// Questions about effects of a lane, each another one.
    #[derive(Default)]
    struct Asker {
        probes: Probes,
        asked: u64,
    }

    impl Asker {
        fn put(&mut self, lane: &str, at: Instant) -> Put {
            self.asked += 1;
            let id = RawId::new(Time::from_secs(0), 0, self.asked);
            let question = Question {
                event: EventId(id),
                name: lane.into(),
                key: self.asked.to_string(),
                lane: lane.into(),
                asked: 0,
            };
            self.probes.put(at, EffectId(id), question)
        }

        /// Takes what is due. How many of each lane?
        fn take(&mut self, now: Instant) -> BTreeMap<Arc<str>, usize> {
            let mut lanes = BTreeMap::new();
            for (_, question) in self.probes.take_due(now) {
                *lanes.entry(question.lane).or_default() += 1;
            }
            lanes
        }
    }

    /// Promise 7: a thousand questions that nobody answers keep none of another lane waiting.
    #[test]
    fn a_probe_that_hangs_keeps_no_other_from_being_asked() {
        let now = crate::clock::tick();
        let mut asker = Asker::default();
        for _ in 0..WAITING_PER_LANE_MAX {
            assert_eq!(asker.put("hangs", now), Put::Kept);
        }
        assert_eq!(
            asker.take(now),
            [("hangs".into(), PER_LANE_AT_A_TIME)].into()
        );
        assert_eq!(asker.probes.next(), None, "it has no place left");
        assert_eq!(asker.put("well", now), Put::Kept);
        assert_eq!(asker.probes.next(), Some(now));
        assert_eq!(asker.take(now), [("well".into(), 1)].into());
    }

    #[test]
    fn a_place_that_becomes_free_is_taken_by_the_next() {
        let now = crate::clock::tick();
        let mut asker = Asker::default();
        for _ in 0..=PER_LANE_AT_A_TIME {
            asker.put("a", now);
        }
        let taken = asker.probes.take_due(now);
        assert_eq!(taken.len(), PER_LANE_AT_A_TIME);
        let (effect, question) = taken[0].clone();
        let again = asker.probes.put(now, effect, question);
        assert_eq!(again, Put::Known, "it is being asked about");
        asker.probes.asked(effect, "a");
        assert_eq!(asker.take(now), [("a".into(), 1)].into());
    }

    #[test]
    fn what_is_not_due_waits() {
        let now = crate::clock::tick();
        let later = now + Duration::from_secs(1);
        let mut asker = Asker::default();
        asker.put("a", later);
        assert!(asker.take(now).is_empty());
        assert_eq!(asker.probes.next(), Some(later));
        assert_eq!(asker.take(later).len(), 1);
    }

    /// However many lanes there are, not many more are asked about at a time than lanes, and each has its turn.
    #[test]
    fn over_all_lanes_it_is_bounded() {
        let now = crate::clock::tick();
        let mut asker = Asker::default();
        let lanes = AT_A_TIME;
        for lane in 0..lanes {
            for _ in 0..PER_LANE_AT_A_TIME {
                asker.put(&format!("lane-{lane:03}"), now);
            }
        }
        let taken = asker.take(now);
        assert_eq!(taken.len(), lanes, "each has one");
        assert!(asker.probes.asking < AT_A_TIME + lanes);
        assert!(asker.take(now).is_empty());
    }

    /// What finds no place is found later, and until then nobody looks for it.
    #[test]
    fn a_lane_that_overflows_is_read_again_when_it_has_room() {
        let now = crate::clock::tick();
        let mut asker = Asker::default();
        for _ in 0..WAITING_PER_LANE_MAX {
            asker.put("many", now);
        }
        assert_eq!(asker.put("many", now), Put::Overflows);
        assert_eq!(asker.put("many", now), Put::Full);
        assert!(asker.probes.take_unread().is_empty(), "there is no room");
        for _ in 0..WAITING_PER_LANE_MAX / 2 {
            for (effect, _) in asker.probes.take_due(now) {
                asker.probes.asked(effect, "many");
            }
        }
        assert_eq!(asker.probes.take_unread(), ["many".into()]);
        assert!(asker.probes.take_unread().is_empty(), "once");
    }

    #[test]
    fn a_lane_has_places_though_others_have_taken_all() {
        let now = crate::clock::tick();
        let mut asker = Asker::default();
        for lane in 0..WAITING_MAX / WAITING_PER_LANE_MAX {
            for _ in 0..WAITING_PER_LANE_MAX {
                asker.put(&format!("lane-{lane}"), now);
            }
        }
        for _ in 0..PER_LANE_AT_A_TIME {
            assert_eq!(asker.put("late", now), Put::Kept);
        }
        assert_eq!(asker.put("late", now), Put::Overflows);
    }
}
