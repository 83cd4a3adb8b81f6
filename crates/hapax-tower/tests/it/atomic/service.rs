//! The example `guarded-axum`, and what it is asked.

use std::net::SocketAddr;

use serde_json::Value;

use crate::client::{Answer, request};
use crate::example::{Example, ask};

/// The points between its steps, in order.
pub(crate) const STEPS: [&str; 6] = [
    "received",
    "begun",
    "claimed",
    "charged",
    "finished",
    "committed",
];

/// Starts it on this database; it halts where it is told to.
pub(crate) async fn start(url: &str, halt_at: Option<(&str, usize)>) -> Example {
    Example::start("guarded-axum", url, halt_at).await
}

/// A charge of this order, under a key of the same name; `None` if there was no whole answer.
pub(crate) async fn charge(address: SocketAddr, order: &str) -> Option<Answer> {
    let body = format!(r#"{{"order":"{order}","amount":990}}"#);
    post(address, "/charges", order, body).await
}

/// The orders of all charges.
pub(crate) async fn charged_orders(address: SocketAddr) -> Vec<String> {
    let charges = listed(address, "/charges").await;
    let orders = charges.iter().map(|charge| charge["order"].as_str());
    orders
        .map(|order| order.expect("text").to_owned())
        .collect()
}

/// This booking, under a key of the same name; `None` if there was no whole answer.
pub(crate) async fn book(address: SocketAddr, booking: &str) -> Option<Answer> {
    let body = format!(r#"{{"booking":"{booking}"}}"#);
    post(address, "/bookings", booking, body).await
}

/// The parts of all bookings, in the order of their commits.
pub(crate) async fn parts(address: SocketAddr) -> Vec<String> {
    let parts = listed(address, "/bookings").await;
    let parts = parts.iter().map(|part| part["part"].as_str());
    parts.map(|part| part.expect("text").to_owned()).collect()
}

async fn post(address: SocketAddr, path: &str, key: &str, body: String) -> Option<Answer> {
    let headers = [
        ("idempotency-key", key),
        ("x-account", "anna"),
        ("content-type", "application/json"),
    ];
    ask(address, request("POST", path, &headers, body)).await
}

async fn listed(address: SocketAddr, path: &str) -> Vec<Value> {
    let answer = ask(address, request("GET", path, &[], "")).await;
    let answer = answer.expect("the service lives");
    serde_json::from_slice(&answer.body).expect("JSON")
}
