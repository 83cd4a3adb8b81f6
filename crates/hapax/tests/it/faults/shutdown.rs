//! SIGTERM finishes what was taken; SIGHUP takes a new config or keeps the old one.

use std::thread;

use crate::support::acks::{Acks, Told};
use crate::support::client::Connection;
use crate::support::sender::Sender;
use crate::support::site::{Site, config, source};

/// Connections at the moment of SIGTERM.
const CONNECTIONS: usize = 8;
/// Answers that each of them hears before it.
const ANSWERS_BEFORE: usize = 10;
/// No sender gets so far before a server that was told to stop has stopped.
const REQUESTS_MAX: usize = 100_000;

/// A request of which the server has said that it wants the body: it is taken. Its other half is sent later.
struct Taken {
    connection: Connection,
    name: String,
    body: Vec<u8>,
}

fn take(connection: Connection, name: String) -> Taken {
    let mut connection = connection;
    let body = Sender::body(&name);
    let length = body.len().to_string();
    let head = Sender::to("billing").head(
        &body,
        &[("content-length", &length), ("expect", "100-continue")],
    );
    assert_eq!(connection.ask(&head).expect("an answer").status, 100);
    let half = body.len() / 2;
    connection.send(&body[..half]).expect("sent");
    Taken {
        connection,
        name,
        body: body[half..].to_vec(),
    }
}

/// Every request that was taken is answered, and what was acknowledged is there after the next start.
#[test]
fn sigterm_answers_what_was_taken() {
    let site = Site::sqlite();
    let server = site.start();
    let mut acks = Acks::default();
    let taken: Vec<Taken> = (0..CONNECTIONS)
        .map(|n| take(server.connect(), format!("evt_{n}")))
        .collect();
    let mut idle = server.connect();
    assert!(
        acks.hear(
            "evt_idle",
            &idle
                .ask(&Sender::to("billing").request("evt_idle"))
                .expect("an answer")
        )
    );
    server.signal("TERM");
    // Closed at once, since nothing is under way on it. From here on the server is known to be stopping.
    assert!(idle.rest().is_empty());
    for Taken {
        mut connection,
        name,
        body,
    } in taken
    {
        connection.send(&body).expect("sent");
        let answer = connection.answer().expect("an answer");
        assert!(acks.hear(&name, &answer), "{answer:?}");
        assert_eq!(answer.header("connection"), Some("close"));
    }
    assert_eq!(server.wait().code(), Some(0));
    let server = site.start();
    acks.check(&server);
    acks.resend(&server, &Sender::to("billing"));
}

/// Under load: each sender hears an answer to all it sent but perhaps its last request, which the server had not taken.
#[test]
fn sigterm_under_load_loses_no_ack() {
    let site = Site::sqlite();
    let server = site.start();
    let (ready, all_ready) = std::sync::mpsc::channel();
    let heard: Vec<Vec<(String, Told)>> = thread::scope(|scope| {
        let senders: Vec<_> = (0..CONNECTIONS)
            .map(|sender| {
                let (ready, mut connection) = (ready.clone(), server.connect());
                scope.spawn(move || {
                    let mut heard = Vec::new();
                    for n in 0..REQUESTS_MAX {
                        let name = format!("evt_{sender}_{n}");
                        let Ok(answer) = connection.ask(&Sender::to("billing").request(&name))
                        else {
                            break;
                        };
                        heard.push((name, Told::read(&answer)));
                        if n == ANSWERS_BEFORE {
                            let _ = ready.send(());
                        }
                    }
                    heard
                })
            })
            .collect();
        (0..CONNECTIONS).for_each(|_| all_ready.recv().expect("a sender gets that far"));
        server.signal("TERM");
        senders
            .into_iter()
            .map(|sender| sender.join().expect("a sender never fails"))
            .collect()
    });
    assert_eq!(server.wait().code(), Some(0));
    let mut acks = Acks::default();
    for (name, told) in heard.into_iter().flatten() {
        let Told::Acknowledged { id, .. } = told else {
            panic!("{name} was refused")
        };
        acks.add(&name, id);
    }
    assert!(acks.len() > CONNECTIONS * ANSWERS_BEFORE);
    let server = site.start();
    acks.check(&server);
    acks.resend(&server, &Sender::to("billing"));
}

/// A new source is taken, a bad file is refused as a whole, and requests under way notice neither.
#[test]
fn sighup_takes_a_good_config_and_refuses_a_bad_one() {
    let store = "sqlite:data/hapax.db";
    let site = Site::sqlite();
    let server = site.start();
    let mut acks = Acks::default();
    let status =
        |source: &'static str, name: &str| server.ask(&Sender::to(source).request(name)).status;
    assert_eq!(status("shop", "evt_1"), 401, "nobody is called that yet");
    let under_way = take(server.connect(), "evt_under_way".to_owned());

    site.configure(&format!("{}{}", config(store, ""), source("shop")));
    server.signal("HUP");
    server.wait_for_log("the new config is in force");
    assert_eq!(status("shop", "evt_2"), 200);
    assert_eq!(status("billing", "evt_3"), 200);

    for bad in [
        "this is not TOML",
        &format!("{}bogus = 1\n", config(store, "")),
        &config("sqlite:", ""),
    ] {
        site.configure(bad);
        server.signal("HUP");
        server.wait_for_log("the new config is refused; the running one stays");
        assert_eq!(status("shop", "evt_4"), 200);
    }

    // Taken before all of these reloads, and answered as if there had been none.
    let Taken {
        mut connection,
        name,
        body,
    } = under_way;
    connection.send(&body).expect("sent");
    assert!(acks.hear(&name, &connection.answer().expect("an answer")));
    acks.check(&server);

    site.configure(&config(store, "").replace("billing", "other"));
    server.signal("HUP");
    server.wait_for_log("the new config is in force");
    assert_eq!(status("billing", "evt_5"), 401);
    assert_eq!(status("other", "evt_5"), 200);
}
