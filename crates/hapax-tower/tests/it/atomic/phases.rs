//! Work in several transactions under `kill -9`: what was committed is not done again, and what was not is.

use std::net::SocketAddr;

use hapax_store::conformance::database::with_database;
use serde_json::{Value, json};

use super::service::{book, parts, start};
use crate::client::Answer;

/// The points at which it is killed, in order: what of it is committed then, and what the next run goes on behind.
const POINTS: [(&str, &[&str]); 7] = [
    ("reserved-uncommitted", &[]),
    ("reserved", &["reserved"]),
    ("paid-uncommitted", &["reserved"]),
    ("paid", &["reserved", "paid"]),
    ("confirmed-uncommitted", &["reserved", "paid"]),
    ("confirmed", &["reserved", "paid", "confirmed"]),
    ("booked", &["reserved", "paid", "confirmed"]),
];
const ALL: [&str; 3] = ["reserved", "paid", "confirmed"];

/// H1: killed at any point of any part, the retry goes on behind the last part that was committed, and each part is there once.
#[test]
fn killed_between_any_two_parts_it_goes_on_behind_the_last() {
    with_database(|database| async move {
        let url = database.url();
        for (point, committed) in POINTS {
            let before = parts_of(&url).await;
            die_at(&url, point, point).await;
            let service = start(&url, None).await;
            let since = parts(service.address).await.split_off(before.len());
            assert_eq!(since, committed, "{point}");
            let answer = booked(service.address, point).await;
            assert_eq!(answer.is_replay(), point == "booked", "{point}");
            let behind = match point {
                "booked" => None,
                _ => committed.last(),
            };
            assert_eq!(behind_of(&answer), json!(behind), "{point}");
            let again = booked(service.address, point).await;
            assert!(again.is_replay() && again.body == answer.body, "{point}");
            let since = parts(service.address).await.split_off(before.len());
            assert_eq!(since, ALL, "{point}");
            service.kill().await;
        }
    });
}

/// H1: one booking whose every run is killed at the next point.
#[test]
fn killed_at_every_point_one_after_the_other_it_does_each_part_once() {
    with_database(|database| async move {
        let url = database.url();
        for (point, committed) in POINTS {
            die_at(&url, "7", point).await;
            assert_eq!(parts_of(&url).await, committed, "{point}");
        }
        let service = start(&url, None).await;
        let answer = booked(service.address, "7").await;
        assert!(answer.is_replay());
        assert_eq!(behind_of(&answer), "confirmed");
        assert_eq!(parts(service.address).await, ALL);
        service.kill().await;
    });
}

/// A service that is asked for this booking and killed at this point.
async fn die_at(url: &str, booking: &str, point: &str) {
    let mut service = start(url, Some((point, 1))).await;
    let (address, key) = (service.address, booking.to_owned());
    let caller = tokio::spawn(async move { until_dead(address, &key).await });
    service.halted().await;
    service.kill().await;
    caller.await.expect("it ends");
}

/// Asks until the service is dead: the run before may hold the key for the rest of its lease.
async fn until_dead(address: SocketAddr, booking: &str) {
    while let Some(answer) = book(address, booking).await {
        assert_eq!(answer.refusal(), (409, "in-progress".to_owned()));
    }
}

async fn booked(address: SocketAddr, booking: &str) -> Answer {
    loop {
        let answer = book(address, booking).await.expect("the service lives");
        if answer.status == 201 {
            return answer;
        }
        assert_eq!(answer.refusal(), (409, "in-progress".to_owned()));
    }
}

async fn parts_of(url: &str) -> Vec<String> {
    let service = start(url, None).await;
    let parts = parts(service.address).await;
    service.kill().await;
    parts
}

fn behind_of(answer: &Answer) -> Value {
    let told: Value = serde_json::from_slice(&answer.body).expect("JSON");
    told["resumedBehind"].clone()
}
