//! How much of a lane may be in memory.

use super::*;

/// While attempts are being settled the next requests go, and no more of them than memory is meant for.
#[test]
fn a_slow_ledger_keeps_no_slot_and_fills_no_memory() {
    let now = crate::clock::tick();
    let lane: Arc<str> = "lane".into();
    let mut lanes = Lanes::new(1);
    let ours = |_: &str| Standing::Ours(caps(2));
    let mut sent = 0;
    for _ in 0..50 {
        lanes.hear(&lane, caps(2), now, now);
        let todo = lanes.todo(now, ours);
        claim_all(&mut lanes, &todo, now);
        for _ in todo.start {
            lanes.came_back(&lane, OK, now, 0.0);
            sent += 1;
        }
    }
    assert!(
        (8..=10).contains(&sent),
        "{sent}: four for each slot, and what was asked for"
    );
    assert_eq!(lanes.next_look(now), None, "not before some are settled");
    for _ in 8..=sent {
        lanes.finished(&lane, Finished::Settled, now);
    }
    assert_eq!(lanes.next_look(now), Some(now));
}

/// A target that answers at once may have more in memory than one that does not, since commits take longer than it does.
#[test]
fn memory_is_for_those_who_come_back() {
    let start = crate::clock::tick();
    let lane: Arc<str> = "lane".into();
    let mut lanes = Lanes::new(1);
    let promised = |lanes: &mut Lanes, now| {
        let all = (0..100).take_while(|_| lanes.promise(&lane, caps(2), now));
        let all = all.count();
        (0..all).for_each(|_| lanes.unpromise(&lane, now));
        all
    };
    assert_eq!(promised(&mut lanes, start), 8, "nothing came back so far");
    // Of a lane without anything nothing is remembered.
    assert!(lanes.promise(&lane, caps(2), start));
    let ours = |_: &str| Standing::Ours(caps(2));
    for back in 0..100 {
        let room = promised(&mut lanes, start);
        assert_eq!(room, back.clamp(8, 32) - 1, "{back} came back");
        assert!(lanes.promise(&lane, caps(2), start));
        lanes.fill(&lane, job(&lane, start), start);
        assert_eq!(lanes.todo(start, ours).start.len(), 1);
        lanes.came_back(&lane, OK, start, 0.0);
        lanes.finished(&lane, Finished::Settled, start);
    }
    let later = start + Duration::from_secs(2);
    assert_eq!(promised(&mut lanes, later), 7, "nothing came back since");
}
