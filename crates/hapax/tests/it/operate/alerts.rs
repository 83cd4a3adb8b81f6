//! Alerts: raised, listed, delivered like any other event, and cleared.

use hapax_verify::{HeaderValue, Headers, Request, Secret, Verifier, provider};
use serde_json::{Value, json};

use crate::effects::scene::{SQLITE, Scene, effect, fact, on_each_store};
use crate::support::clock::{TOO_LONG, now_micros, until};
use crate::support::sender::Sender;
use crate::support::server::Server;
use crate::support::world::{Act, Seen, World};

/// One attempt, no more.
const ONE_TRY: &str = "retry = [\"0s\"]\ntimeout = \"2s\"";
/// Signs alerts.
const SECRET: &str = "whsec_YWxlcnRzIG9mIHRoZSBzdWl0ZSwgMzIgYnl0ZXM=";

/// A world that refuses `/dead` and takes alerts.
fn world() -> World {
    World::new(|seen| match seen.target.as_str() {
        "/dead" => Act::Answer(422),
        _ => Act::Answer(200),
    })
}

pub(crate) fn alerts(url: &str, every: &str) -> String {
    format!("[alerts]\nurl = \"{url}\"\nsecret = \"{SECRET}\"\nevery = \"{every}\"\n")
}

/// Waits for an alert of a kind that fits.
#[track_caller]
pub(crate) fn wait_for_alert(server: &Server, kind: &str, fits: impl Fn(&Value) -> bool) -> Value {
    until(TOO_LONG, &format!("the alert {kind}"), || {
        let mut listed = listed(server).into_iter();
        listed.find(|alert| alert["kind"] == kind && fits(alert))
    })
}

/// All alerts that a server shows.
#[track_caller]
pub(crate) fn listed(server: &Server) -> Vec<Value> {
    let listed = server.get("/api/v1/alert").json();
    listed["data"].as_array().expect("a list").clone()
}

/// Does it stand?
pub(crate) fn stands(alert: &Value) -> bool {
    alert["clearedAt"].is_null()
}

/// Is it over?
pub(crate) fn is_over(alert: &Value) -> bool {
    !stands(alert)
}

struct Received<'a>(&'a Seen);

impl Headers for Received<'_> {
    fn get(&self, name: &str) -> HeaderValue<'_> {
        match self.0.headers.get(name) {
            Some(value) => HeaderValue::One(value.as_bytes()),
            None => HeaderValue::Missing,
        }
    }
}

/// What an alert that was delivered says, if it is signed as it should be.
#[track_caller]
pub(crate) fn told(seen: &Seen) -> Value {
    let scheme = provider::find("standard-webhooks")
        .expect("a preset")
        .scheme();
    let verifier = Verifier::new(scheme, vec![Secret::from(SECRET)]).expect("a good secret");
    let request = Request {
        method: "POST",
        url: None,
        headers: &Received(seen),
        body: &seen.body,
        now: now_micros(),
    };
    assert!(verifier.verify(&request).is_ok(), "{seen:?}");
    serde_json::from_slice(&seen.body).expect("JSON")
}

pub(crate) fn of_type<'a>(seen: &'a [Seen], event_type: &str) -> Vec<&'a Seen> {
    let typed =
        |seen: &&Seen| seen.headers.get("hapax-event-type").map(String::as_str) == Some(event_type);
    seen.iter().filter(typed).collect()
}

#[test]
fn a_dead_letter_is_told_and_so_is_its_end() {
    on_each_store(|store| {
        let world = world();
        let parts = [
            alerts(&world.url("/ops"), "100ms"),
            effect("crm", &world.url("/dead"), ONE_TRY),
        ];
        let scene = Scene::new(store, &parts);
        let id = scene.send("evt_1", "invoice.paid", &json!({}));
        scene.wait_for_status(&id, "dead");

        let listed = wait_for_alert(&scene.server, "dead_letters", stands);
        assert_eq!(listed["subject"], "effects");
        assert_eq!(
            (&listed["severity"], &listed["code"]),
            (&json!("warning"), &json!("H0504"))
        );
        let text = listed["text"].as_str().expect("text");
        assert!(text.ends_with("the newest in lane crm (1)"), "{text}");
        let metrics = scene.server.get("/metrics");
        let metrics = String::from_utf8_lossy(metrics.body()).into_owned();
        assert!(
            metrics.contains("hapax_alerts{kind=\"dead_letters\"} 1"),
            "{metrics}"
        );

        let seen = world.wait_for("an alert", |seen| !of_type(seen, "alert.raised").is_empty());
        let raised = told(of_type(&seen, "alert.raised")[0]);
        assert_eq!(raised["type"], "alert.raised");
        assert_eq!(raised["timestamp"], listed["since"]);
        assert_eq!(raised["data"], listed);

        let dead = scene.effect(&id, "crm")["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let skip = json!({"outcome": "skip", "reason": "not wanted any more"});
        let path = format!("/api/v1/effect/{dead}/resolve");
        assert_eq!(scene.server.post(&path, &skip).status, 200);
        let cleared = wait_for_alert(&scene.server, "dead_letters", is_over);
        assert_eq!(cleared["since"], listed["since"]);
        let seen = world.wait_for("its end", |seen| !of_type(seen, "alert.cleared").is_empty());
        let ended = of_type(&seen, "alert.cleared");
        assert_eq!(told(ended[0])["timestamp"], cleared["clearedAt"]);
        assert_eq!((of_type(&seen, "alert.raised").len(), ended.len()), (1, 1));

        // It is an event like any other.
        let event = ended[0].headers["hapax-event-id"].clone();
        let event = scene.wait_for_status(&event, "completed");
        assert_eq!(
            (&event["source"], &event["type"]),
            (&json!("~hapax"), &json!("alert.cleared"))
        );
        let verdict = scene.server.get(&format!(
            "/api/v1/event/{}/verdict",
            event["id"].as_str().expect("an id")
        ));
        assert_eq!(verdict.json()["verdict"], "nothing_to_do");
    });
}

#[test]
fn what_the_inbox_sees_is_told() {
    let world = world();
    let parts = [
        "[alerts]\nevery = \"1s\"\n".to_owned(),
        effect("crm", &world.url("/dead"), ONE_TRY),
    ];
    let scene = Scene::new(SQLITE, &parts);
    let id = scene.send("evt_1", "invoice.paid", &json!({}));
    scene.wait_for_status(&id, "dead");
    let sender = Sender::to("billing");
    let forged = sender.head(b"something else", &[("content-length", "2")]);
    let forged = [forged, b"{}".to_vec()].concat();
    for _ in 0..40 {
        assert_eq!(
            scene.send_bytes(&fact("evt_1", "invoice.paid", &json!({}))),
            id
        );
        assert_eq!(scene.server.ask(&forged).status, 401);
    }
    let of_billing = |alert: &Value| alert["subject"] == "billing" && stands(alert);
    let text = |kind| {
        wait_for_alert(&scene.server, kind, of_billing)["text"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    let spike = text("duplicate_spike");
    assert!(spike.contains("most of type invoice.paid ("), "{spike}");
    assert!(spike.contains("most of key evt_1 ("), "{spike}");
    let bouncing = text("bouncing");
    assert!(
        bouncing.contains(&format!("{id} (")) && bouncing.contains("dead)"),
        "{bouncing}"
    );
    let refused = text("signature_failures");
    assert!(
        refused.contains("requests to source `billing`"),
        "{refused}"
    );
}
