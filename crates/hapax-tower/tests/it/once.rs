//! One execution per key, and the same answer for everyone who has a right to it.

use std::sync::{Arc, OnceLock};

use hapax_ledger::guard::Preset;
use hapax_tower::principal::ByHeader;
use hapax_tower::{Guard, Verdict};
use http::HeaderName;

use crate::client::post;
use crate::server::{Door, Server, guard, heard, status, text};
use crate::world::{World, on_every_store};

on_every_store!(
    a_retry_gets_the_first_answer_byte_for_byte,
    two_hundred_racing_calls_run_once,
    another_request_under_the_same_key_is_refused_also_while_the_first_runs,
    a_key_belongs_to_its_caller,
    a_key_belongs_to_its_route,
    presets_differ_in_what_callers_see,
);

/// H3.
async fn a_retry_gets_the_first_answer_byte_for_byte(world: World) {
    let server = Server::start(&world, guard(), async |_| {
        let mut answer = status(201, b"\0\xff charged\r\n".to_vec());
        for (name, value) in [
            ("content-type", "application/x-charge"),
            ("location", "/charges/1"),
            ("link", "</a>; rel=a"),
            ("link", "</b>; rel=b"),
            ("set-cookie", "session=secret"),
            ("authorization", "Bearer secret"),
            ("x-internal", "7"),
        ] {
            let name = HeaderName::from_static(name);
            answer
                .headers_mut()
                .append(name, value.parse().expect("a value"));
        }
        answer
    })
    .await;
    let first = server.charge("k1", "{}").await;
    assert_eq!(first.status, 201);
    assert_eq!(first.header("set-cookie"), "session=secret");
    assert_eq!(first.header("authorization"), "Bearer secret");
    assert!(!first.is_replay());
    assert_eq!(first.header("idempotency-expires"), "");

    // The quoted form is the same key.
    for key in ["k1", "\"k1\""] {
        let again = server.charge(key, "{}").await;
        assert_eq!((again.status, &again.body), (first.status, &first.body));
        assert!(again.is_replay());
        for kept in ["content-type", "location", "content-length"] {
            assert_eq!(again.header(kept), first.header(kept), "{kept}");
        }
        assert_eq!(again.headers.get_all("link").iter().count(), 2);
        for private in ["set-cookie", "authorization", "x-internal"] {
            assert!(!again.headers.contains_key(private), "{private}");
        }
        // 72 h after the store's time, as other dates in HTTP.
        assert_eq!(
            again.header("idempotency-expires"),
            "Mon, 18 Jan 2027 08:00:00 GMT"
        );
    }
    assert_eq!(server.runs(), 1);
    assert_eq!(
        server.verdicts(),
        [Verdict::Run, Verdict::Replay, Verdict::Replay]
    );
    let stored = world.keys.answers();
    assert_eq!(stored.len(), 1);
    assert!(!stored[0].windows(6).any(|part| part == b"secret"));
}

/// H1.
async fn two_hundred_racing_calls_run_once(world: World) {
    const IMPATIENT: usize = 100;
    let ear = Arc::new(OnceLock::new());
    let hears = ear.clone();
    let server = Server::start(&world, guard(), move |_| {
        let ear: Arc<OnceLock<Arc<_>>> = hears.clone();
        async move {
            // All who do not wait have been sent away before there is an answer.
            let others = IMPATIENT - 1;
            heard(ear.get().expect("set before"), Verdict::InProgress, others).await;
            "charged"
        }
    })
    .await;
    assert!(ear.set(server.ear()).is_ok());
    let mut calls = tokio::task::JoinSet::new();
    for call in 0..2 * IMPATIENT {
        let address = server.address;
        let prefer = if call < IMPATIENT {
            "wait=0"
        } else {
            "wait=30"
        };
        let headers = [("idempotency-key", "k"), ("prefer", prefer)];
        calls.spawn(async move {
            (
                call < IMPATIENT,
                post(address, "/charges", &headers, "{}").await,
            )
        });
    }
    let (mut answered, mut turned) = (0, 0);
    while let Some(call) = calls.join_next().await {
        match call.expect("a call") {
            (_, answer) if answer.status == 200 => {
                assert_eq!(answer.body, "charged");
                answered += 1;
            }
            (impatient, answer) => {
                assert!(impatient, "{answer:?}");
                assert_eq!(answer.refusal(), (409, "in-progress".to_owned()));
                assert!(
                    answer
                        .header("retry-after")
                        .parse::<u32>()
                        .is_ok_and(|s| s >= 1)
                );
                turned += 1;
            }
        }
    }
    assert_eq!(answered + turned, 2 * IMPATIENT);
    assert!(answered >= IMPATIENT, "{answered}");
    assert_eq!(server.runs(), 1);
}

/// H2.
async fn another_request_under_the_same_key_is_refused_also_while_the_first_runs(world: World) {
    let door = Door::new();
    let handler = door.clone();
    let server = Server::start(&world, guard(), move |request| {
        let door = handler.clone();
        async move {
            door.pass().await;
            text(request).await
        }
    })
    .await;
    let first = server.charge("k", "one");
    let others = async {
        door.reached().await;
        let other = server.charge("k", "two").await;
        assert_eq!(other.refusal(), (409, "key-reused".to_owned()));
        let json = [("content-type", "application/json")];
        let other = server.charge_with("k", &json, "one").await;
        assert_eq!(other.refusal(), (409, "key-reused".to_owned()));
        door.open();
    };
    let (first, ()) = tokio::join!(first, others);
    assert_eq!(first.body, "one");
    let headers = [("idempotency-key", "k")];
    let other = post(server.address, "/charges?n=2", &headers, "one").await;
    assert_eq!(other.refusal(), (409, "key-reused".to_owned()));
    assert!(server.charge("k", "one").await.is_replay());
    assert_eq!(server.runs(), 1);
}

/// H3.
async fn a_key_belongs_to_its_caller(world: World) {
    let by = ByHeader::new(HeaderName::from_static("authorization"));
    let server = Server::start(
        &world,
        Guard::new("charges", by),
        async |request: axum::extract::Request| {
            let caller = &request.headers()["authorization"];
            format!("for {}", caller.to_str().expect("text"))
        },
    )
    .await;
    for caller in ["Bearer anna", "Bearer otto"] {
        for replay in [false, true] {
            let answer = server
                .charge_with("k", &[("authorization", caller)], "")
                .await;
            assert_eq!(answer.body, format!("for {caller}"));
            assert_eq!(answer.is_replay(), replay);
        }
    }
    let nobody = server.charge("k", "").await;
    assert_eq!(nobody.refusal(), (401, "caller-unknown".to_owned()));
    let two = [
        ("authorization", "Bearer anna"),
        ("authorization", "Bearer otto"),
    ];
    let both = server.charge_with("k", &two, "").await;
    assert_eq!(both.refusal(), (401, "caller-unknown".to_owned()));
    assert_eq!(server.runs(), 2);
    // Who calls is stored, and what they call with is not.
    let listed = crate::time::listed(&world).await;
    assert_eq!(listed.len(), 2);
    for key in listed {
        assert!(key.principal.starts_with("sha256:"), "{}", key.principal);
    }
}

async fn a_key_belongs_to_its_route(world: World) {
    let headers = [("idempotency-key", "k")];
    let server = Server::start(&world, guard(), async |_| "done").await;
    for path in ["/charges", "/refunds"] {
        let answer = post(server.address, path, &headers, "").await;
        assert!(answer.status == 200 && !answer.is_replay(), "{path}");
    }
    assert_eq!(server.runs(), 2);

    // Whoever names the route by its template has one key for all its paths.
    let guard = Guard::new("orders", hapax_tower::SharedScope).route(|_| "/orders/{id}".into());
    let server = Server::start(&world, guard, async |_| "done").await;
    assert_eq!(
        post(server.address, "/orders/1", &headers, "").await.status,
        200
    );
    let other = post(server.address, "/orders/2", &headers, "").await;
    assert_eq!(other.refusal(), (409, "key-reused".to_owned()));
}

async fn presets_differ_in_what_callers_see(world: World) {
    let table = [
        (Preset::Ietf, 422, false, true),
        (Preset::Stripe, 400, true, false),
    ];
    for (preset, mismatch, stores_500, publishes) in table {
        let guard = Guard::new(preset.to_string(), hapax_tower::SharedScope).preset(preset);
        let server = Server::start(&world, guard, async |request| match &*text(request).await {
            "fail" => status(500, "failed"),
            _ => status(200, "done"),
        })
        .await;
        let first = server.charge("k", "").await;
        assert_eq!(first.headers.contains_key("idempotency-expires"), publishes);
        let other = server.charge("k", "other").await;
        assert_eq!(other.refusal(), (mismatch, "key-reused".to_owned()));
        let failed = server.charge("f", "fail").await;
        assert_eq!(
            (failed.status.as_u16(), &*failed.body),
            (500, &b"failed"[..])
        );
        let again = server.charge("f", "fail").await;
        if stores_500 {
            assert_eq!((again.status, again.is_replay()), (failed.status, true));
        } else {
            assert_eq!(again.refusal(), (409, "outcome-unknown".to_owned()));
        }
        assert_eq!(server.runs(), 2, "{preset}");
    }
}
