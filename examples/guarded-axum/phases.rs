//! Work in several transactions: each commits a part of the booking and the recovery point that says so. A run that dies goes on
//! behind the last point that was committed.

use axum::extract::{Extension, Json, State};
use axum::response::{IntoResponse, Response};
use hapax_tower::BoxError;
use hapax_tower::atomic::{Atomic, AtomicRun, Begun};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::json;
use tokio_postgres::Client;

use super::halt::step;
use super::{Failure, Pool};

/// The parts, in order. A real one would call a provider between two of them, with the key of the request.
const PARTS: [&str; 3] = ["reserved", "paid", "confirmed"];

#[derive(Deserialize)]
pub(crate) struct Booking {
    booking: String,
}

pub(crate) async fn book(
    State(pool): State<Pool>,
    Extension(atomic): Extension<Atomic>,
    Json(booking): Json<Booking>,
) -> Result<Response, Failure> {
    let mut client = pool.take().await?;
    let answer = book_once(&mut client, &atomic, &booking.booking).await?;
    pool.give_back(client);
    Ok(answer)
}

async fn book_once(
    client: &mut Client,
    atomic: &Atomic,
    booking: &str,
) -> Result<Response, BoxError> {
    let mut tx = client.transaction().await?;
    let (mut run, behind) = match atomic.begin(&mut tx).await? {
        Begun::Fresh(run) => (run, None),
        Begun::Resume(run, phase) => (run, Some(phase.name)),
        Begun::Answered(answer) => return Ok(answer.into_response()),
    };
    // From here on the run is ours: others hear `in-progress` until its lease ends.
    tx.commit().await?;
    let done = PARTS
        .iter()
        .position(|part| behind.as_deref() == Some(part));
    for part in &PARTS[done.map_or(0, |last| last + 1)..] {
        do_part(client, &mut run, booking, part).await?;
    }
    let mut tx = client.transaction().await?;
    let booked = json!({ "booking": booking, "resumedBehind": behind });
    let answer = http::Response::builder()
        .status(StatusCode::CREATED)
        .header(CONTENT_TYPE, "application/json")
        .body(booked.to_string())?;
    let answer = run.finish(&mut tx, answer).await?;
    tx.commit().await?;
    step("booked").await;
    Ok(answer.into_response())
}

/// One part and its recovery point, or neither.
async fn do_part(
    client: &mut Client,
    run: &mut AtomicRun,
    booking: &str,
    part: &str,
) -> Result<(), BoxError> {
    let mut tx = client.transaction().await?;
    tx.execute(
        "INSERT INTO booking_part (booking, part) VALUES ($1, $2)",
        &[&booking, &part],
    )
    .await?;
    run.phase(&mut tx, part, b"").await?;
    step(&format!("{part}-uncommitted")).await;
    tx.commit().await?;
    step(part).await;
    Ok(())
}

/// All parts of all bookings, for whoever wants to count them.
pub(crate) async fn parts(State(pool): State<Pool>) -> Result<Response, Failure> {
    let client = pool.take().await?;
    let rows = client
        .query("SELECT booking, part FROM booking_part ORDER BY id", &[])
        .await?;
    pool.give_back(client);
    let parts = rows
        .iter()
        .map(|row| json!({ "booking": row.get::<_, String>(0), "part": row.get::<_, String>(1) }));
    Ok(Json(parts.collect::<Vec<_>>()).into_response())
}
