//! What lanes promise: caps are never exceeded, nobody waits for another's target, nothing that is due is forgotten.

mod memory;

use std::time::Duration;

use bytes::Bytes;
use hapax_ledger::effect::{EffectRecord, Repeat};
use hapax_ledger::id::{EffectId, EventId, RawId};
use hapax_ledger::order::Gate;
use hapax_ledger::outcome::Lost;
use hapax_ledger::time::Time;
use hapax_store::nouns::{Effect, Parcel};

use super::*;
use crate::dispatch::lines::{CLAIMS_PER_SHARD_MAX, TRIALS_EVERY, TRIALS_MAX};

const OK: Outcome = Outcome::Answered {
    status: 200,
    retry_after: None,
};
const SILENT: Outcome = Outcome::Lost { why: Lost::Timeout };

fn caps(concurrency: u32) -> Caps {
    Caps {
        concurrency,
        rate: None,
    }
}

fn job(lane: &Arc<str>, now: Instant) -> Job {
    let at = Time::from_secs(0);
    let id = RawId::new(at, 0, 1);
    Job {
        effect: Effect {
            id: EffectId(id),
            event: EventId(id),
            name: lane.clone(),
            key: "k".into(),
            lane: lane.clone(),
            record: EffectRecord::planned(Repeat::Keyed, at),
            gate: Gate::Open,
            order: None,
            released: false,
            last: None,
        },
        parcel: Arc::new(Parcel {
            source: "s".into(),
            event_type: None,
            key: "k".into(),
            object_id: None,
            received_at: at,
            content_type: None,
            body: Bytes::new(),
            about: None,
        }),
        snapshot: None,
        held_until: now,
        due: now,
    }
}

/// What is asked for.
fn rooms(todo: &Todo) -> impl Iterator<Item = &LaneRoom> {
    todo.ask.iter().flat_map(|(_, rooms)| rooms)
}

/// Claims whatever is asked for, as a store that always has more.
fn claim_all(lanes: &mut Lanes, todo: &Todo, now: Instant) {
    for (shard, rooms) in &todo.ask {
        for room in rooms {
            let jobs = (0..room.room).map(|_| job(&room.lane, now)).collect();
            lanes.answered(&room.lane, jobs, Some(now), now);
        }
        lanes.claim_ended(*shard);
    }
}

/// G6: whatever is promised, claimed and finished, no more than the cap is under way, and the slots are used.
#[test]
fn a_cap_is_reached_and_never_exceeded() {
    let now = crate::clock::tick();
    let lane: Arc<str> = "lane".into();
    let mut lanes = Lanes::new(1);
    let ours = |_: &str| Standing::Ours(caps(3));
    for round in 0..50 {
        if lanes.promise(&lane, caps(3), now) {
            lanes.fill(&lane, job(&lane, now), now);
        }
        lanes.hear(&lane, caps(3), now, now);
        let todo = lanes.todo(now, ours);
        claim_all(&mut lanes, &todo, now);
        lanes.todo(now, ours);
        assert!(lanes.in_flight_of("lane") <= 3);
        if round > 2 {
            assert_eq!(lanes.in_flight_of("lane"), 3, "round {round}");
            lanes.came_back(&lane, OK, now, 0.0);
            lanes.finished(&lane, Finished::Settled, now);
        }
    }
}

/// Neither what waits in the store nor what is new waits for ever behind the other.
#[test]
fn a_queue_in_the_store_shares_the_slots_with_what_is_new() {
    let now = crate::clock::tick();
    let lane: Arc<str> = "lane".into();
    let mut lanes = Lanes::new(1);
    let ours = |_: &str| Standing::Ours(caps(8));
    let (mut old, mut new) = (0, 0);
    for _ in 0..100 {
        lanes.hear(&lane, caps(8), now, now);
        for _ in 0..100 {
            if lanes.promise(&lane, caps(8), now) {
                lanes.fill(&lane, job(&lane, now), now);
                new += 1;
            }
        }
        let mut todo = lanes.todo(now, ours);
        old += rooms(&todo).map(|room| room.room).sum::<u32>();
        claim_all(&mut lanes, &todo, now);
        todo.start.extend(lanes.todo(now, ours).start);
        for _ in todo.start {
            lanes.came_back(&lane, OK, now, 0.0);
            lanes.finished(&lane, Finished::Settled, now);
        }
    }
    assert!(old >= 300 && new >= 300, "{old} old, {new} new");
}

/// F3, promise 7: a lane whose target hangs asks for nothing, and another goes on.
#[test]
fn a_full_lane_is_not_looked_at_and_takes_nothing_from_another() {
    let now = crate::clock::tick();
    let (full, free): (Arc<str>, Arc<str>) = ("full".into(), "free".into());
    let mut lanes = Lanes::new(1);
    let ours = |_: &str| Standing::Ours(caps(1));
    lanes.hear(&full, caps(1), now, now);
    let todo = lanes.todo(now, ours);
    claim_all(&mut lanes, &todo, now);
    assert_eq!(lanes.todo(now, ours).start.len(), 1);
    assert_eq!(
        lanes.next_look(now),
        None,
        "nothing to do until it finishes"
    );
    lanes.hear(&free, caps(1), now, now);
    let asked: Vec<LaneRoom> = rooms(&lanes.todo(now, ours)).cloned().collect();
    let expected = LaneRoom {
        lane: free,
        room: 1,
    };
    assert_eq!(asked, [expected]);
}

/// What fails again and again is left alone, and tried with one request when its pause is over.
#[test]
fn a_lane_that_only_fails_is_left_alone_and_what_waits_in_memory_goes_back() {
    let now = crate::clock::tick();
    let lane: Arc<str> = "lane".into();
    let mut lanes = Lanes::new(1);
    let ours = |_: &str| Standing::Ours(caps(16));
    for _ in 0..20 {
        assert!(lanes.promise(&lane, caps(16), now));
        lanes.fill(&lane, job(&lane, now), now);
    }
    assert_eq!(lanes.todo(now, ours).start.len(), 16);
    for _ in 0..16 {
        lanes.came_back(&lane, SILENT, now, 0.0);
        lanes.finished(&lane, Finished::Settled, now);
    }
    let todo = lanes.todo(now, ours);
    assert_eq!((todo.start.len(), todo.stranded.len()), (0, 4));
    assert!(
        !lanes.promise(&lane, caps(16), now),
        "not from memory for now"
    );
    lanes.hear(&lane, caps(16), now, now);
    let later = lanes.next_look(now).expect("a trial");
    assert!(later > now && later < now + Duration::from_secs(120));
    let todo = lanes.todo(later, ours);
    let asked: Vec<u32> = rooms(&todo).map(|room| room.room).collect();
    assert_eq!(asked, [1], "one request to see whether it is back");
    claim_all(&mut lanes, &todo, later);
    let todo = lanes.todo(later, ours);
    assert_eq!((todo.start.len(), todo.stranded.len()), (1, 0));
    lanes.came_back(&lane, OK, later, 0.0);
    lanes.finished(&lane, Finished::Settled, later);
    assert!(rooms(&lanes.todo(later, ours)).count() == 1);
}

/// Liveness: what is heard while the store is being asked is not forgotten when its answer says that there is nothing.
#[test]
fn what_is_heard_during_a_claim_is_asked_for_next() {
    let now = crate::clock::tick();
    let lane: Arc<str> = "lane".into();
    let mut lanes = Lanes::new(1);
    let ours = |_: &str| Standing::Ours(caps(4));
    lanes.hear(&lane, caps(4), now, now);
    assert_eq!(lanes.todo(now, ours).ask.len(), 1);
    lanes.hear(&lane, caps(4), now, now);
    lanes.answered(&lane, Vec::new(), None, now);
    let next = lanes.next_look(now).expect("there is something");
    let todo = lanes.todo(next, ours);
    assert_eq!(rooms(&todo).count(), 1);
}

/// A rate holds over pauses in which there is nothing to do, and a lane is forgotten once that makes no difference.
#[test]
fn a_rate_is_not_forgotten_with_its_lane() {
    let now = crate::clock::tick();
    let lane: Arc<str> = "lane".into();
    let mut lanes = Lanes::new(1);
    let rated = Caps {
        concurrency: 8,
        rate: Some(4),
    };
    let ours = |_: &str| Standing::Ours(rated);
    let mut sent = 0;
    for step in 0..100 {
        let at = now + Duration::from_millis(10 * step);
        if lanes.promise(&lane, rated, at) {
            lanes.fill(&lane, job(&lane, at), at);
        }
        for _ in lanes.todo(at, ours).start {
            lanes.came_back(&lane, OK, at, 0.0);
            lanes.finished(&lane, Finished::Settled, at);
            sent += 1;
        }
    }
    assert!(
        (7..=8).contains(&sent),
        "{sent}: four, and four within the second"
    );
    // What is left goes, and then the lane is forgotten.
    for seconds in 1..60 {
        let at = now + Duration::from_secs(seconds);
        for _ in lanes.todo(at, ours).start {
            lanes.came_back(&lane, OK, at, 0.0);
            lanes.finished(&lane, Finished::Settled, at);
        }
    }
    assert!(lanes.lanes.is_empty());
}

/// A lane that another node looks after gives everything back and costs nothing.
#[test]
fn what_is_not_ours_is_given_back() {
    let now = crate::clock::tick();
    let lane: Arc<str> = "lane".into();
    let mut lanes = Lanes::new(1);
    assert!(lanes.promise(&lane, caps(1), now));
    lanes.fill(&lane, job(&lane, now), now);
    assert_eq!(lanes.busy_shards(), [0].into());
    let todo = lanes.todo(now, |_| Standing::NotOurs);
    assert_eq!((todo.start.len(), todo.stranded.len()), (0, 1));
    assert!(lanes.busy_shards().is_empty());
    assert_eq!(lanes.next_look(now), None);
}

/// However many lanes have something to do, what is in memory stays within its bound; and every lane has its turn.
#[test]
fn what_is_held_is_bounded_whatever_the_number_of_lanes() {
    let now = crate::clock::tick();
    for (many, concurrency) in [(1_300, 64), (20_000, 4)] {
        let ours = |_: &str| Standing::Ours(caps(concurrency));
        let mut lanes = Lanes::new(64);
        let names = (0..many).map(|number| format!("lane {number}").into());
        let names: Vec<Arc<str>> = names.collect();
        for name in &names {
            lanes.hear(name, caps(concurrency), now, now);
            if lanes.promise(name, caps(concurrency), now) {
                lanes.fill(name, job(name, now), now);
            }
        }
        let mut served: HashSet<Arc<str>> = HashSet::new();
        let mut under_way: VecDeque<Arc<str>> = VecDeque::new();
        for _ in 0..4_000 {
            let todo = lanes.todo(now, ours);
            assert!(lanes.held() <= CLAIMS_MAX, "{} with {many}", lanes.held());
            claim_all(&mut lanes, &todo, now);
            under_way.extend(todo.start.into_iter().map(|(name, _)| name));
            for name in under_way.drain(..under_way.len().min(64)) {
                lanes.came_back(&name, OK, now, 0.0);
                lanes.finished(&name, Finished::Settled, now);
                served.insert(name);
            }
            if served.len() == names.len() {
                break;
            }
        }
        assert_eq!(served.len(), names.len(), "every lane has its turn");
        let counted: u32 = lanes.lanes.values().map(Lane::in_memory).sum();
        assert_eq!(lanes.held(), counted);
    }
}

/// One that is given up or forgotten leaves nothing in the count.
#[test]
fn what_is_let_go_is_not_counted() {
    let now = crate::clock::tick();
    let lane: Arc<str> = "lane".into();
    let mut lanes = Lanes::new(1);
    assert!(lanes.promise(&lane, caps(1), now));
    assert!(lanes.promise(&lane, caps(1), now));
    lanes.unpromise(&lane, now);
    lanes.fill(&lane, job(&lane, now), now);
    assert_eq!(lanes.held(), 1);
    let todo = lanes.todo(now, |_| Standing::NotOurs);
    assert_eq!((todo.stranded.len(), lanes.held()), (1, 0));
}

fn names(many: usize) -> Vec<Arc<str>> {
    (0..many)
        .map(|number| format!("lane {number}").into())
        .collect()
}

/// F3, promise 7: however many lanes would claim, they do it some at a time, and what is born claimed goes at once.
#[test]
fn many_lanes_that_would_claim_keep_nobody_waiting_who_has_something_to_send() {
    let now = crate::clock::tick();
    let well: Arc<str> = "well".into();
    let ours = |_: &str| Standing::Ours(caps(16));
    let mut lanes = Lanes::new(1);
    for name in &names(10_000) {
        lanes.hear(name, caps(16), now, now);
    }
    let asked = |todo: &Todo| {
        todo.ask
            .iter()
            .map(|(_, rooms)| rooms.len())
            .collect::<Vec<_>>()
    };
    let most = [LANES_PER_CLAIM_MAX; CLAIMS_PER_SHARD_MAX as usize];
    assert_eq!(asked(&lanes.todo(now, ours)), most);
    assert!(asked(&lanes.todo(now, ours)).is_empty());
    assert_eq!(lanes.next_look(now), None, "not before a claim has ended");
    assert!(lanes.promise(&well, caps(16), now));
    lanes.fill(&well, job(&well, now), now);
    let todo = lanes.todo(now, ours);
    assert_eq!((todo.start.len(), todo.ask.len()), (1, 0));
    lanes.claim_ended(0);
    assert_eq!(asked(&lanes.todo(now, ours)), [LANES_PER_CLAIM_MAX]);
}

/// Nothing more is claimed than the store keeps up with settling.
#[test]
fn a_store_that_falls_behind_is_not_asked_for_more() {
    let now = crate::clock::tick();
    let ours = |_: &str| Standing::Ours(caps(1));
    let mut lanes = Lanes::new(1);
    let names = names(2 * SETTLING_MAX as usize);
    for name in &names {
        lanes.hear(name, caps(1), now, now);
    }
    let mut settling = Vec::new();
    for _ in 0..1_000 {
        let todo = lanes.todo(now, ours);
        claim_all(&mut lanes, &todo, now);
        for (name, _) in todo.start {
            lanes.came_back(&name, OK, now, 0.0);
            settling.push(name);
        }
    }
    let most = SETTLING_MAX as usize + 2 * LANES_PER_CLAIM_MAX;
    assert!(settling.len() <= most, "{}", settling.len());
    assert_eq!(lanes.next_look(now), None, "not before some are settled");
    for name in settling.drain(..) {
        lanes.finished(&name, Finished::Settled, now);
    }
    assert_eq!(lanes.next_look(now), Some(now));
    assert!(!lanes.todo(now, ours).ask.is_empty());
}

/// Lanes that only fail are tried some at a time, and every one of them has its turn.
#[test]
fn many_lanes_that_only_fail_are_tried_in_turn() {
    let mut now = crate::clock::tick();
    let ours = |_: &str| Standing::Ours(caps(16));
    let mut lanes = Lanes::new(1);
    let names = names(10 * TRIALS_MAX);
    for name in &names {
        lanes.hear(name, caps(16), now, now);
        for _ in 0..10 {
            lanes.came_back(name, SILENT, now, 0.5);
            lanes.finished(name, Finished::Settled, now);
        }
    }
    now += Duration::from_secs(2);
    let mut tried: HashSet<Arc<str>> = HashSet::new();
    for round in 1..=10 {
        let todo = lanes.todo(now, ours);
        assert!(rooms(&todo).all(|room| room.room == 1));
        tried.extend(rooms(&todo).map(|room| room.lane.clone()));
        assert_eq!(tried.len(), round * TRIALS_MAX);
        assert!(lanes.todo(now, ours).ask.is_empty(), "not before its time");
        claim_all(&mut lanes, &todo, now);
        for (name, _) in lanes.todo(now, ours).start {
            lanes.came_back(&name, SILENT, now, 0.5);
            lanes.finished(&name, Finished::Settled, now);
        }
        if round < 10 {
            // Sooner only to let those wait again whose pause is over.
            let next = lanes.next_look(now);
            assert!(next.is_some_and(|at| now < at && at <= now + TRIALS_EVERY));
        }
        now += TRIALS_EVERY;
    }
    assert_eq!(tried.len(), names.len());
}

/// A few lanes that only fail do not wait for each other's trials.
#[test]
fn a_few_lanes_that_only_fail_are_tried_when_their_pauses_end() {
    let mut now = crate::clock::tick();
    let ours = |_: &str| Standing::Ours(caps(16));
    let mut lanes = Lanes::new(1);
    for name in &names(TRIALS_MAX) {
        lanes.hear(name, caps(16), now, now);
        for _ in 0..10 {
            lanes.came_back(name, SILENT, now, 0.5);
            lanes.finished(name, Finished::Settled, now);
        }
        now += TRIALS_EVERY / 100;
    }
    // The pause of the last is over, and still it is not so long since the first was tried.
    let mut tried = 0;
    for _ in 0..150 {
        let todo = lanes.todo(now, ours);
        tried += rooms(&todo).count();
        claim_all(&mut lanes, &todo, now);
        if tried == TRIALS_MAX {
            break;
        }
        assert!(lanes.next_look(now).is_some());
        now += TRIALS_EVERY / 100;
    }
    assert_eq!(tried, TRIALS_MAX);
}

/// A lane that another node looks after is not kept: with nodes that come and go, the map would hold every lane there ever was.
#[test]
fn a_lane_that_is_not_ours_is_forgotten() {
    let now = crate::clock::tick();
    let name: Arc<str> = "lane".into();
    let mut lanes = Lanes::new(1);
    lanes.hear(&name, caps(2), now, now);
    let todo = lanes.todo(now, |_| Standing::NotOurs);
    assert!(todo.ask.is_empty() && todo.start.is_empty());
    assert_eq!(lanes.shown("lane", now), None);
    assert_eq!(lanes.next_look(now), None);

    // One that still has something under way is, until that has ended.
    let ours = |_: &str| Standing::Ours(caps(2));
    lanes.hear(&name, caps(2), now, now);
    let todo = lanes.todo(now, ours);
    claim_all(&mut lanes, &todo, now);
    assert!(!lanes.todo(now, ours).start.is_empty());
    let under_way = lanes.in_flight_of("lane");
    assert!(under_way > 0);
    for _ in 0..under_way {
        assert!(lanes.shown("lane", now).is_some());
        lanes.came_back(&name, OK, now, 0.0);
        lanes.finished(&name, Finished::Settled, now);
        lanes.todo(now, |_| Standing::NotOurs);
    }
    assert_eq!(lanes.shown("lane", now), None);
}
