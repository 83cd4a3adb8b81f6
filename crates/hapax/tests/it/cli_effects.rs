//! `hapax effects` and the effects of `hapax events show`, as somebody sees them after real requests to a real target.

use serde_json::Value;

use crate::program::{Ran, hapax};
use crate::support::clock::{TOO_LONG, until};
use crate::support::sender::Sender;
use crate::support::server::{Server, TOKEN};
use crate::support::site::Site;
use crate::support::world::{Act, World};

/// A site with these effects, each as its fields and the path it goes to; the server; and one accepted event.
fn site(world: &World, effects: &[(&str, &str, &str)]) -> (Site, Server, String) {
    let effect = |(name, path, more): &(&str, &str, &str)| {
        let url = world.url(path);
        format!("[[effect]]\nname = \"{name}\"\nsource = \"billing\"\nurl = \"{url}\"\n{more}\n")
    };
    let effects: String = effects.iter().map(effect).collect();
    let site = Site::with("sqlite:data/hapax.db", &effects);
    let server = site.start();
    let accepted = server.ask(&Sender::to("billing").request("one")).json();
    let id = accepted["eventId"].as_str().expect("an id").to_owned();
    (site, server, id)
}

/// The event once its effects are in these states.
fn event_when(server: &Server, id: &str, states: &[&str]) -> Value {
    let what = format!("effects {states:?}");
    until(TOO_LONG, &what, || {
        let event = server.get(&format!("/api/v1/event/{id}")).json();
        let effects = event["effects"].as_array().expect("effects");
        let stand = effects.iter().filter_map(|one| one["state"].as_str());
        // What is pending before its first attempt has not settled yet, unless it waits.
        let settled = |one: &Value| one["gate"] != "open" || one["lastOutcome"].is_string();
        (stand.eq(states.iter().copied()) && effects.iter().all(settled)).then_some(event)
    })
}

fn ask(site: &Site, server: &Server, args: &[&str]) -> Ran {
    let mut command = hapax(site.path());
    command
        .args(args)
        .env("HAPAX_URL", format!("http://{}", server.address()))
        .env("HAPAX_TOKEN", TOKEN);
    Ran::of(&mut command)
}

/// A table without what differs from run to run: cells between bars, ids, times and lengths as words.
fn stable(shown: &str) -> String {
    let cell = |cell: &str| match cell.trim() {
        id if id.len() == 30 && id.starts_with("eff_") => "EFF".to_owned(),
        id if id.len() == 30 && id.starts_with("evt_") => "EVT".to_owned(),
        time if time.len() == 19 && time.starts_with("20") => "TIME".to_owned(),
        length if length.ends_with(" ms") || length.ends_with(" s") => "LENGTH".to_owned(),
        other => other.to_owned(),
    };
    let line = |line: &str| {
        let cells = line.split("  ").filter(|cell| !cell.trim().is_empty());
        cells.map(cell).collect::<Vec<_>>().join(" | ")
    };
    shown.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What stands after the line `name`, up to an empty line.
fn part<'a>(shown: &'a str, name: &str) -> &'a str {
    let from = shown
        .find(&format!("\n{name}\n"))
        .expect("the part is there");
    let part = &shown[from + 1..];
    part.split("\n\n").next().expect("a part")
}

#[test]
fn effects_are_shown_where_they_stand() {
    let world = World::new(|seen| match seen.target.as_str() {
        "/busy" => Act::AnswerWith(500, "", "the database is down\nstack trace".into()),
        "/wrong" => Act::AnswerWith(422, "", "amount is missing".into()),
        "/silent" => Act::HangUp,
        _ => Act::Answer(200),
    });
    let (site, server, event) = site(
        &world,
        &[
            ("record", "/ok", ""),
            ("activate", "/busy", "repeat = \"converges\""),
            ("enable", "/ok", "after = [\"activate\"]"),
            ("mail", "/silent", "repeat = \"once\""),
            ("post", "/wrong", "retry = [\"0s\"]"),
        ],
    );
    let states = ["done", "pending", "pending", "uncertain", "dead"];
    event_when(&server, &event, &states);

    let shown = ask(&site, &server, &["events", "show", &event]).expect_exit(0);
    assert_eq!(
        stable(part(&shown.stdout, "effects")),
        "\
effects
ID | NAME | KEY | CLASS | STATE | ATTEMPTS | NEXT OR LAST
EFF | record | one | keyed | done | 1 | answered 200
EFF | activate | one | converges | pending | 1 | TIME
EFF | enable | one | keyed | pending | 0 | waits for others
EFF | mail | one | once | uncertain | 1 | lost: reset
EFF | post | one | keyed | dead | 1 | answered 422"
    );
    let listed = ask(&site, &server, &["effects", "list", "--state", "dead"]).expect_exit(0);
    assert_eq!(
        stable(&listed.stdout),
        "\
ID | NAME | KEY | CLASS | STATE | ATTEMPTS | NEXT OR LAST | EVENT
EFF | post | one | keyed | dead | 1 | answered 422 | EVT"
    );
    let of = |name: &str| {
        let args = ["effects", "list", "--name", name, "--since", "1h", "--json"];
        let listed = ask(&site, &server, &args).expect_exit(0).json();
        let id = listed["data"][0]["id"].as_str().expect("one").to_owned();
        ask(&site, &server, &["effects", "show", &id]).expect_exit(0)
    };
    let dead = of("post");
    assert_eq!(
        stable(&dead.stdout),
        "\
id | EFF
name | post
key | one
idempotency key | post:one
class | keyed
state | dead
event | EVT
attempts | 1
last outcome | answered 422
last error | amount is missing

attempts
ATTEMPT | STARTED | TOOK | OUTCOME | SAID | NODE
1 | TIME | LENGTH | answered 422 | amount is missing | "
            .to_owned()
            + dead.stdout.split_whitespace().last().expect("a node")
    );
    assert!(dead.stderr.contains("dead: its whole schedule"), "{dead:?}");
    let uncertain = of("mail");
    let want = "uncertain: a request left, or may have";
    assert!(uncertain.stderr.contains(want), "{uncertain:?}");
    let waiting = of("enable");
    assert!(waiting.stdout.contains("pending (waiting)"), "{waiting:?}");
    assert!(of("record").stderr.is_empty());
}

#[test]
fn an_event_says_when_it_was_worked_on_and_what_went_wrong_last() {
    let world = World::new(|seen| match (seen.target.as_str(), seen.before) {
        ("/busy", 0) => Act::AnswerWith(500, "", "\nthe database is down\nstack trace".into()),
        _ => Act::Answer(200),
    });
    let effects = [
        ("record", "/ok", ""),
        ("activate", "/busy", "retry = [\"0s\", \"1s\"]"),
    ];
    let (_site, server, id) = site(&world, &effects);
    let event = event_when(&server, &id, &["done", "pending"]);
    assert_eq!(event["lastErrorCode"], "answered 500");
    assert_eq!(event["lastErrorMessage"], "the database is down");
    assert_eq!(event["completedAt"], Value::Null);
    let started = event["firstProcessedAt"].as_str().expect("it began");
    assert!(started >= event["receivedAt"].as_str().expect("a time"));

    let event = event_when(&server, &id, &["done", "done"]);
    assert_eq!(event["lastErrorCode"], Value::Null);
    assert_eq!(event["firstProcessedAt"], started);
    assert!(event["completedAt"].as_str().expect("it is over") > started);
    let listed = server.get("/api/v1/event").json();
    assert_eq!(listed["data"][0]["completedAt"], Value::Null);
}

#[test]
fn an_effect_that_asks_for_a_person_says_where_to_look() {
    let world = World::well();
    let order = "order = { serial = true, review = 'data.object.object == \"invoice\"' }";
    let (site, server, id) = site(&world, &[("activate", "/ok", order)]);
    let event = until(TOO_LONG, "a review", || {
        let event = server.get(&format!("/api/v1/event/{id}")).json();
        (event["status"] == "needs_review").then_some(event)
    });
    assert_eq!(event["lastErrorCode"], "H0222");
    let effect = event["effects"][0]["id"].as_str().expect("an id");
    let shown = ask(&site, &server, &["effects", "show", effect]).expect_exit(0);
    assert!(shown.stdout.contains("pending (review)"), "{shown:?}");
    let want = format!("`hapax events show {id}` says why");
    assert!(shown.stderr.contains(&want), "{shown:?}");
    assert!(world.seen().is_empty(), "nothing was sent");
}

#[test]
fn an_effect_that_is_not_there() {
    let world = World::well();
    let (site, server, _) = site(&world, &[("record", "/ok", "")]);
    let missing = ["effects", "show", "eff_01m7gsnv4be008000000000001"];
    let ran = ask(&site, &server, &missing).expect_exit(4);
    let want = "`hapax effects list` shows what is there";
    assert!(ran.stderr.contains(want), "{ran:?}");
    let ran = ask(&site, &server, &["effects", "list", "--state", "gone"]).expect_exit(2);
    assert!(ran.stderr.contains("uncertain, dead, skipped"), "{ran:?}");
    let none = ["effects", "list", "--name", "other"];
    assert_eq!(
        ask(&site, &server, &none).expect_exit(0).stderr,
        "no effects\n"
    );
}
