//! What each answer, and each kind of silence, does to an effect of each class: the table of the design's section 4.

use serde_json::{Value, json};

use super::scene::{Scene, effect, ended, on_each_store};
use crate::support::world::{Act, World};

/// The second attempt is an hour away, give or take: nothing is sent twice while we look.
const RETRY: &str = "retry = [\"0s\", \"1h\"]\ntimeout = \"1s\"";
/// That hour with the most jitter, in seconds.
const AN_HOUR: std::ops::RangeInclusive<i64> = 2_880..=4_320;
/// What `Retry-After` asks for below: longer than the schedule does.
const LATER: i64 = 7_200;
/// Nobody listens there.
const NOBODY: &str = "http://127.0.0.1:1/";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proves {
    Applied,
    /// Refused, or never sent: not applied.
    NotApplied,
    /// As above, and the receiver says when to come back.
    NotAppliedUntil,
    /// Nobody can tell.
    Nothing,
}

/// Name, what the world does, the outcome as users see it, what it proves.
type Case = (&'static str, Act, &'static str, Proves);

fn cases() -> Vec<Case> {
    let later = "retry-after: 7200\r\n";
    let to = "location: /elsewhere\r\n";
    let with = |status, headers| Act::AnswerWith(status, headers, "no".to_owned());
    vec![
        ("ok", Act::Answer(200), "answered 200", Proves::Applied),
        ("empty", Act::Answer(204), "answered 204", Proves::Applied),
        ("moved", with(301, to), "answered 301", Proves::NotApplied),
        ("bad", Act::Answer(400), "answered 400", Proves::NotApplied),
        ("none", Act::Answer(404), "answered 404", Proves::NotApplied),
        ("gone", Act::Answer(410), "answered 410", Proves::NotApplied),
        (
            "many",
            with(429, later),
            "answered 429",
            Proves::NotAppliedUntil,
        ),
        (
            "later",
            with(503, later),
            "answered 503",
            Proves::NotAppliedUntil,
        ),
        ("down", Act::Answer(503), "answered 503", Proves::Nothing),
        ("broken", Act::Answer(500), "answered 500", Proves::Nothing),
        ("cut", Act::HangUp, "lost: reset", Proves::Nothing),
        ("silent", Act::Hang, "lost: timeout", Proves::Nothing),
        // Its effects go elsewhere; the world is never asked.
        (
            "away",
            Act::Answer(200),
            "not sent: refused",
            Proves::NotApplied,
        ),
    ]
}

/// D3, D4, D7: after the first attempt an effect is done, pending again, or uncertain: by what the answer proves, and by its class.
#[test]
fn each_outcome_does_to_each_class_what_the_design_says() {
    on_each_store(|store| {
        let world = World::new(|seen| {
            let case = cases()
                .into_iter()
                .find(|case| seen.target == format!("/{}", case.0));
            case.map_or(Act::Answer(200), |case| case.1)
        });
        let mut effects = Vec::new();
        let mut all = Vec::new();
        for repeat in ["converges", "keyed", "once"] {
            for case in cases() {
                let name = format!("{}-{repeat}", case.0);
                let url = match case.0 {
                    "away" => NOBODY.to_owned(),
                    path => world.url(&format!("/{path}")),
                };
                let more = format!("types = \"{name}\"\nrepeat = \"{repeat}\"\n{RETRY}");
                effects.push(effect(&name, &url, &more));
                all.push((name, repeat, case));
            }
        }
        let scene = Scene::new(store, &effects);
        let events: Vec<String> = all
            .iter()
            .map(|(name, ..)| scene.send(name, name, &json!({})))
            .collect();
        for ((name, repeat, (case, _, last, proves)), event) in all.iter().zip(&events) {
            let effect = scene.wait_for_attempts(event, name, 1);
            let (state, status) = match (proves, *repeat) {
                (Proves::Applied, _) => ("done", "completed"),
                (Proves::Nothing, "once") => ("uncertain", "needs_review"),
                _ => ("pending", "pending"),
            };
            assert_eq!(effect["state"], state, "{effect:#}");
            assert_eq!(effect["lastOutcome"], *last, "{effect:#}");
            assert_eq!(scene.event(event)["status"], status, "{name}");
            assert_next_attempt(&effect, *proves);
            let sent = world.by_key().get(&format!("{name}:{name}")).copied();
            assert_eq!(
                sent.unwrap_or(0),
                usize::from(*case != "away"),
                "requests for {name}"
            );
        }
        let strayed = world.seen();
        let strayed = strayed.iter().find(|seen| seen.target == "/elsewhere");
        assert!(strayed.is_none(), "a redirect was followed: {strayed:?}");
    });
}

/// A pending effect waits as long as its schedule says, or as its receiver asks.
#[track_caller]
fn assert_next_attempt(effect: &Value, proves: Proves) {
    let time = |value: &Value| -> Option<jiff::Timestamp> { value.as_str()?.parse().ok() };
    let next = time(&effect["nextAttemptAt"]);
    let pending = effect["state"] == "pending";
    assert_eq!(next.is_some(), pending, "{effect:#}");
    if let Some(next) = next {
        let ended = time(&ended(effect)[0]["endedAt"]).expect("a time");
        let wait = next.duration_since(ended).as_secs();
        match proves {
            Proves::NotAppliedUntil => assert_eq!(wait, LATER, "{effect:#}"),
            _ => assert!(AN_HOUR.contains(&wait), "{wait} s: {effect:#}"),
        }
    }
}

/// D4, D5: a schedule of three is three requests under one key, then a dead letter; refusals allow that for `once`, too.
#[test]
fn an_effect_is_dead_after_its_whole_schedule() {
    on_each_store(|store| {
        let table = [
            ("keyed", Act::Answer(500)),
            ("converges", Act::HangUp),
            ("once", Act::Answer(400)),
        ];
        let acts = table.clone();
        let world = World::new(move |seen| {
            let act = acts.iter().find(|(name, _)| seen.target[1..] == **name);
            act.expect("a path of ours").1.clone()
        });
        let more = "retry = [\"0s\", \"0s\", \"0s\"]";
        let effects = table.clone().map(|(repeat, _)| {
            let url = world.url(&format!("/{repeat}"));
            effect(repeat, &url, &format!("repeat = \"{repeat}\"\n{more}"))
        });
        let scene = Scene::new(store, &effects);
        let event = scene.send("evt_1", "invoice.paid", &json!({}));
        for (name, _) in table {
            let effect = scene.wait_for_state(&event, name, "dead");
            assert_eq!(ended(&effect).len(), 3, "{effect:#}");
        }
        assert_eq!(scene.event(&event)["status"], "dead");
        for name in ["keyed", "converges", "once"] {
            let mut seen = world.seen();
            seen.retain(|seen| seen.target[1..] == *name);
            let sent: Vec<(&str, &str)> = seen
                .iter()
                .map(|seen| (seen.key(), seen.headers["hapax-attempt"].as_str()))
                .collect();
            let key = format!("{name}:evt_1");
            assert_eq!(sent, [(&*key, "1"), (&*key, "2"), (&*key, "3")]);
        }
    });
}

/// D4: a refusal proves that nothing was applied, so `once` goes on; the first silence ends it, whatever is left of the schedule.
#[test]
fn once_goes_on_after_a_refusal_and_stops_at_the_first_silence() {
    on_each_store(|store| {
        let world = World::new(|seen| match (seen.target.as_str(), seen.before) {
            (_, 0) => Act::Answer(429),
            ("/applied", _) => Act::Answer(200),
            (_, _) => Act::Answer(500),
        });
        let more = "repeat = \"once\"\nretry = [\"0s\", \"0s\", \"0s\", \"0s\"]";
        let scene = Scene::new(
            store,
            &[
                effect("applied", &world.url("/applied"), more),
                effect("silent", &world.url("/silent"), more),
            ],
        );
        let event = scene.send("evt_1", "invoice.paid", &json!({}));
        scene.wait_for_state(&event, "applied", "done");
        scene.wait_for_state(&event, "silent", "uncertain");
        // Another event goes the same way: whatever else the lane had to do, it has done before.
        let marker = scene.send("evt_2", "invoice.paid", &json!({}));
        scene.wait_for_state(&marker, "applied", "done");
        scene.wait_for_state(&marker, "silent", "uncertain");
        for (key, requests) in world.by_key() {
            assert_eq!(requests, 2, "{key}");
        }
        assert_eq!(scene.event(&event)["status"], "needs_review");
    });
}
