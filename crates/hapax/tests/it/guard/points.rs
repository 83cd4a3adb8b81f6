//! `kill -9` between every two steps of a guarded request.
//!
//! A shim stops SQLite at a sync, a wire stops PostgreSQL at a commit, another one stops a request on its way to the upstream: the server
//! stands at a point with a name when it is killed. Its caller then asks until it hears something final, and the upstream's own log
//! says what was carried out.

use std::sync::atomic::AtomicUsize;
use std::thread;

use hapax_store::conformance::database::with_database;

use super::scene::{Scene, answered, carried_out, charge, leased, problem, refused};
use crate::effects::scene::SQLITE;
use crate::faults::shim::{Fault, LOG, Shim};
use crate::support::client::Answer;
use crate::support::clock::{TOO_LONG, until};
use crate::support::proxy::{Proxy, Wire};
use crate::support::world::{Act, Seen, World};

/// Where the server stands when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// The claim is asked for, and not durable.
    ClaimAsked,
    /// The claim is durable, and nobody has heard of it.
    ClaimKept,
    /// The request has left, and not arrived.
    RequestLeft,
    /// The upstream has carried it out, and not answered.
    RequestArrived,
    /// The answer is there, and not durable.
    AnswerHeard,
    /// The answer is durable, and not given to the caller.
    AnswerKept,
}

/// What is left of the store's files after the crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// SQLite, killed: the kernel has every byte that was written.
    Nothing,
    /// SQLite, with the power cut as well: what was synced.
    Unsynced,
    /// PostgreSQL: what was committed.
    Uncommitted,
}

/// What a guard does about an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Hold,
    Keyed,
}

/// What the caller hears in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The answer of a run after the crash.
    Fresh,
    /// The answer of the run before the crash.
    Replay,
    /// That nobody knows.
    Unknown,
}

#[test]
fn a_crash_before_the_claim_is_durable() {
    survives(Point::ClaimAsked);
}

#[test]
fn a_crash_between_the_claim_and_the_request() {
    survives(Point::ClaimKept);
}

#[test]
fn a_crash_while_the_request_is_on_its_way() {
    survives(Point::RequestLeft);
}

#[test]
fn a_crash_between_the_work_and_its_answer() {
    survives(Point::RequestArrived);
}

#[test]
fn a_crash_between_the_answer_and_its_settlement() {
    survives(Point::AnswerHeard);
}

#[test]
fn a_crash_between_the_settlement_and_the_caller() {
    survives(Point::AnswerKept);
}

/// H1, H3, at one point: with each loss and each policy, all at once, since they mostly wait for leases.
fn survives(point: Point) {
    thread::scope(|scope| {
        for policy in [Policy::Hold, Policy::Keyed] {
            for loss in [Loss::Nothing, Loss::Unsynced] {
                scope.spawn(move || crash(point, policy, loss, SQLITE));
            }
            scope.spawn(move || {
                with_database(move |database| async move {
                    let url = database.url();
                    let work = move || crash(point, policy, Loss::Uncommitted, &url);
                    let work = tokio::task::spawn_blocking(work);
                    work.await.expect("the checks hold");
                });
            });
        }
    });
}

fn crash(point: Point, policy: Policy, loss: Loss, store: &str) {
    let executions = AtomicUsize::new(0);
    let world = World::new(move |seen: &Seen| act(point, seen, &executions));
    let way = Proxy::to(world.address());
    let (scene, brake) = start(policy, loss, store, &way);
    let mut first = scene.connect();
    let arrived = || world.wait_for("the request", |seen| !seen.is_empty());
    match point {
        Point::ClaimAsked => brake.stop_before(CLAIM),
        Point::ClaimKept => brake.stop_after(CLAIM),
        Point::RequestLeft => way.set(Wire::HeldAtAskOf("idempotency-key".to_owned())),
        Point::RequestArrived | Point::AnswerHeard | Point::AnswerKept => {}
    }
    first.send(&charge("k1")).expect("sent");
    match point {
        Point::ClaimAsked | Point::ClaimKept => brake.wait_until_stopped(),
        Point::RequestLeft => way.wait_until_held(),
        Point::RequestArrived => drop(arrived()),
        Point::AnswerHeard | Point::AnswerKept => {
            arrived();
            match point {
                Point::AnswerKept => brake.stop_after(SETTLEMENT),
                _ => brake.stop_before(SETTLEMENT),
            }
            world.release(1);
            brake.wait_until_stopped();
        }
    }
    let Scene { server, site, .. } = scene;
    server.kill();
    assert!(first.answer().is_err(), "nothing was said before its time");
    way.set(Wire::Whole);
    brake.let_go(loss);
    judge(&Scene::of(site), &world, point, policy, loss);
}

/// What the upstream does.
fn act(point: Point, seen: &Seen, executions: &AtomicUsize) -> Act {
    match (seen.before, point, carried_out(executions)) {
        (0, Point::RequestArrived, _) => Act::Hang,
        (0, Point::AnswerHeard | Point::AnswerKept, Act::AnswerWith(status, head, body)) => {
            Act::HeldThenWith(status, head, body)
        }
        (_, _, answer) => answer,
    }
}

fn start(policy: Policy, loss: Loss, store: &str, way: &Proxy) -> (Scene, Brake) {
    let upstream = format!("http://{}", way.address());
    let policy = match policy {
        Policy::Hold => "hold",
        Policy::Keyed => "keyed",
    };
    let lines = format!("principal = \"header.x-user\"\non_unknown = \"{policy}\"");
    match loss {
        Loss::Uncommitted => {
            let (wire, url) = Proxy::to_database(store);
            let site = leased("3s", &url, &upstream, &lines);
            (Scene::of(site), Brake::Wire(wire))
        }
        Loss::Nothing | Loss::Unsynced => {
            // A restart ends every lease, so it need not be short; and no heartbeat is among the syncs.
            let mut site = leased("60s", store, &upstream, &lines);
            let shim = Shim::before(&mut site);
            (Scene::of(site), Brake::Shim(shim))
        }
    }
}

/// Stops a server at a commit.
enum Brake {
    /// SQLite, at a sync of its log.
    Shim(Shim),
    /// PostgreSQL, by a text in the statement.
    Wire(Proxy),
}

/// In the commit that makes a claim durable, and in no other: the columns that are written.
pub(super) const CLAIM: &str = "hapax.guard_key (";
/// The same for an answer.
const SETTLEMENT: &str = "hapax.guard_key k SET state";

const BEFORE: Fault = Fault::SyncHeld(LOG);
const AFTER: Fault = Fault::SyncHeldWhenDone(LOG);

impl Brake {
    /// The next commit, which has this text in it, is stopped before it is durable.
    fn stop_before(&self, text: &str) {
        match self {
            Brake::Shim(shim) => shim.begin(BEFORE),
            Brake::Wire(wire) => wire.set(Wire::HeldAtAskOf(text.to_owned())),
        }
    }

    /// The same when it is durable.
    fn stop_after(&self, text: &str) {
        match self {
            Brake::Shim(shim) => shim.begin(AFTER),
            Brake::Wire(wire) => wire.set(Wire::HeldAtAnswerTo(text.to_owned())),
        }
    }

    fn wait_until_stopped(&self) {
        match self {
            Brake::Shim(shim) => shim.wait_for_held_sync(),
            Brake::Wire(wire) => wire.wait_until_held(),
        }
    }

    /// After the crash: what was not durable is lost as far as it can be, and nothing is stopped any more.
    fn let_go(&self, loss: Loss) {
        match self {
            Brake::Shim(shim) => {
                [BEFORE, AFTER]
                    .into_iter()
                    .for_each(|fault| shim.end_if_begun(fault));
                if loss == Loss::Unsynced {
                    shim.cut_power();
                }
            }
            Brake::Wire(wire) => wire.set(Wire::Whole),
        }
    }
}

/// What the caller hears in the end, and how often the upstream has carried the request out by then.
fn expected(point: Point, policy: Policy, loss: Loss) -> (Ending, usize) {
    let lost = loss != Loss::Nothing;
    match (point, policy) {
        // Nothing is known of the first request: this one is the first.
        (Point::ClaimAsked, _) if lost => (Ending::Fresh, 1),
        (Point::ClaimAsked | Point::ClaimKept | Point::RequestLeft, Policy::Hold) => {
            (Ending::Unknown, 0)
        }
        (Point::ClaimAsked | Point::ClaimKept | Point::RequestLeft, Policy::Keyed) => {
            (Ending::Fresh, 1)
        }
        // Written is as good as kept, if the machine goes on.
        (Point::AnswerHeard, _) if !lost => (Ending::Replay, 1),
        (Point::RequestArrived | Point::AnswerHeard, Policy::Hold) => (Ending::Unknown, 1),
        (Point::RequestArrived | Point::AnswerHeard, Policy::Keyed) => (Ending::Fresh, 2),
        (Point::AnswerKept, _) => (Ending::Replay, 1),
    }
}

/// The caller asks until it hears something final, and once more.
fn judge(scene: &Scene, world: &World, point: Point, policy: Policy, loss: Loss) {
    let at = format!("{point:?}, {policy:?}, lost: {loss:?}");
    let last = until(TOO_LONG, &format!("something final: {at}"), || {
        Some(scene.charge("k1")).filter(is_final)
    });
    let (ending, executions) = expected(point, policy, loss);
    let found = match last.header("idempotent-replayed") {
        _ if last.status == 409 => Ending::Unknown,
        Some(_) => Ending::Replay,
        None => Ending::Fresh,
    };
    assert_eq!((found, world.seen().len()), (ending, executions), "{at}");
    match ending {
        Ending::Unknown => {
            refused(&last, 409, "outcome-unknown");
            refused(&scene.charge("k1"), 409, "outcome-unknown");
            assert_eq!(scene.keys("?state=unknown&key=k1").len(), 1, "{at}");
        }
        Ending::Fresh | Ending::Replay => {
            answered(&last, executions, ending == Ending::Replay);
            let again = scene.charge("k1");
            answered(&again, executions, true);
            let kind = Some("application/json");
            assert_eq!(again.header("content-type"), kind, "{at}: {again:?}");
        }
    }
    let seen = world.seen();
    assert_eq!(seen.len(), executions, "{at}: more than once");
    let same = |seen: &Seen| seen.key() == "k1" && seen.body == b"{\"amount\":1}";
    assert!(seen.iter().all(same), "{at}: {seen:?}");
}

/// A caller stops asking when it has an answer, or hears that nobody knows.
fn is_final(answer: &Answer) -> bool {
    match answer.status {
        409 => problem(answer) != "in-progress",
        status => status != 503,
    }
}
