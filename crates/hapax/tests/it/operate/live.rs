//! Live events: everything that is accepted from the connection on, on whatever node, for as long as somebody listens.

use serde_json::{Value, json};

use super::tokens::token;
use crate::effects::scene::{SQLITE, Scene, on_each_store, on_postgres, site};
use crate::support::client::Connection;
use crate::support::clock::{TOO_LONG, until};
use crate::support::sender::Sender;
use crate::support::server::{Server, TOKEN};

/// Streams that a server serves at a time.
const LISTENERS_MAX: usize = 32;

fn request(token: &str, query: &str, more: &str) -> String {
    format!(
        "GET /api/v1/event/stream{query} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n{more}\r\n"
    )
}

/// Somebody who listens, and is known to.
#[track_caller]
fn listen_as(server: &Server, token: &str, query: &str, more: &str) -> Connection {
    let mut connection = server.connect();
    let head = connection.ask(request(token, query, more).as_bytes());
    let head = head.expect("an answer");
    assert_eq!(head.status, 200, "{head:?}");
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    connection.read_until("listening\n\n").expect("a word");
    connection
}

#[track_caller]
fn listen(server: &Server, query: &str) -> Connection {
    listen_as(server, TOKEN, query, "")
}

/// The next event. Its id is the stream's, too.
#[track_caller]
fn next(connection: &mut Connection) -> Value {
    let before = connection.read_until("data: ").expect("an event");
    let text = connection.read_until("\n\n").expect("its end");
    let event: Value = serde_json::from_str(&text).expect("JSON");
    let id = event["id"].as_str().expect("an id");
    assert!(before.contains(&format!("id: {id}\n")), "{before}");
    event
}

#[test]
fn events_are_told_as_they_are_accepted() {
    on_each_store(|store| {
        let scene = Scene::new(store, &[]);
        let before = scene.send("evt_0", "invoice.paid", &json!({}));
        let mut all = listen(&scene.server, "");
        let mut some = listen(&scene.server, "?source=billing&type=invoice.paid");
        let mut none = listen(&scene.server, "?source=other");
        let ids = [("evt_1", "invoice.void"), ("evt_2", "invoice.paid")]
            .map(|(name, kind)| scene.send(name, kind, &json!({})));
        let told = [next(&mut all), next(&mut all)];
        assert_eq!(told.each_ref().map(|event| event["id"].clone()), ids);
        let listed = scene.server.get("/api/v1/event?limit=2").json();
        let [second, first] = &listed["data"].as_array().expect("rows")[..] else {
            panic!("{listed:#}");
        };
        assert_eq!([first, second], told.each_ref(), "the list's rows");
        assert_eq!(next(&mut some), told[1]);

        // A duplicate is no event.
        scene.send("evt_2", "invoice.paid", &json!({}));
        let third = scene.send("evt_3", "invoice.paid", &json!({}));
        assert_eq!(next(&mut all)["id"], third.as_str());

        let mut again = listen_as(
            &scene.server,
            TOKEN,
            "?type=invoice.paid",
            &format!("last-event-id: {before}\r\n"),
        );
        assert_eq!(next(&mut again)["id"], ids[1].as_str());
        assert_eq!(next(&mut again)["id"], third.as_str());

        scene.server.signal("TERM");
        assert!(!String::from_utf8_lossy(&none.rest()).contains("data:"));
        for mut stream in [all, some, again] {
            stream.rest();
        }
        assert!(scene.server.wait().success());
    });
}

#[test]
fn a_stream_is_narrowed_as_the_list_is() {
    on_each_store(|store| {
        let scene = Scene::with(store, &[], "entity = \"data.object.id\"\n");
        let stream = |query: &str| (query.to_owned(), listen(&scene.server, query));
        let mut streams = [
            "?keyContains=needle",
            "?entity=in_7",
            "?status=completed&keyContains=needle",
            "?since=2020-01-01T00:00:00Z&keyContains=needle",
        ]
        .map(stream);
        let mut nothing = ["?status=dead", "?key=other", "?until=2020-01-01T00:00:00Z"].map(stream);
        scene.send("evt_hay", "invoice.paid", &json!({"id": "in_6"}));
        let wanted = scene.send("evt_needle", "invoice.paid", &json!({"id": "in_7"}));
        let key = scene.event(&wanted)["key"]
            .as_str()
            .expect("a key")
            .to_owned();
        for (query, stream) in &mut streams {
            let told = next(stream);
            assert_eq!(told["id"], wanted.as_str(), "{query}");
            assert_eq!(told["key"], key.as_str(), "{query}");
        }
        scene.server.signal("TERM");
        for (query, stream) in &mut nothing {
            let told = stream.rest();
            assert!(!String::from_utf8_lossy(&told).contains("data:"), "{query}");
        }
        for (_, mut stream) in streams {
            stream.rest();
        }
        assert!(scene.server.wait().success());
    });
}

#[test]
fn what_another_node_accepts_is_told_too() {
    on_postgres(|url| {
        let sites = [(); 2].map(|()| site(url, &[], ""));
        let [here, there] = sites.each_ref().map(|site| site.start());
        let mut stream = listen(&here, "");
        let sender = Sender::to("billing");
        let mut ids = Vec::new();
        for (node, name) in [(&there, "a"), (&here, "b"), (&there, "c")] {
            let answer = node.ask(&sender.request(name)).json();
            ids.push(answer["eventId"].as_str().expect("an id").to_owned());
        }
        let mut told: Vec<String> = Vec::new();
        for _ in &ids {
            let id = next(&mut stream)["id"].as_str().map(str::to_owned);
            told.push(id.expect("an id"));
        }
        told.sort();
        ids.sort();
        assert_eq!(told, ids);
    });
}

#[test]
fn a_stream_has_a_token_a_place_and_a_filter_that_it_knows() {
    let scene = Scene::new(SQLITE, &[]);
    let ask = |token: &str, query: &str, more: &str| {
        let answer = scene.server.ask(request(token, query, more).as_bytes());
        (answer.status, answer.code())
    };
    assert_eq!(ask("nobody", "", ""), (401, "H0301".to_owned()));
    assert_eq!(ask(TOKEN, "?limit=5", "").0, 422);
    assert_eq!(ask(TOKEN, "?status=gone", "").0, 422);
    assert_eq!(ask(TOKEN, "", "last-event-id: 17\r\n").0, 422);

    let viewer = json!({"name": "ada", "role": "viewer"});
    let (id, secret) = token(&scene.server, &viewer);
    let mut revoked = listen_as(&scene.server, &secret, "", "");
    let path = format!("/api/v1/token/{id}/revoke");
    let answer = scene.server.post(&path, &json!({"reason": "left"}));
    assert_eq!(answer.status, 200);
    revoked.rest();

    let mut streams: Vec<Connection> = (0..LISTENERS_MAX)
        .map(|_| {
            // The place of the revoked one is free as soon as its end is known.
            until(TOO_LONG, "a place", || {
                let mut connection = scene.server.connect();
                let answer = connection.ask(request(TOKEN, "", "").as_bytes());
                (answer.expect("an answer").status == 200).then_some(connection)
            })
        })
        .collect();
    let full = scene.server.ask(request(TOKEN, "", "").as_bytes());
    full.expect_try_again("H0322");
    streams.pop();
    until(TOO_LONG, "a place is free", || {
        (ask(TOKEN, "", "").0 == 200).then_some(())
    });
}
