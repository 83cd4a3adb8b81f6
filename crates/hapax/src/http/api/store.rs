//! The store itself: how full it is, deleting what has expired, and a copy of it. For admins.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hapax_store::nouns::Reaped;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::Api;
use super::describe::asked::PruneRequest;
use super::describe::told;
use super::event::unavailable;
use super::posted::Posted;
use crate::entropy;
use crate::http::answer::{self, problem};

/// Bytes of a copy that are read at a time.
const PIECE_BYTES: usize = 256 * 1024;
/// Pieces that wait for somebody who reads slowly.
const PIECES_MAX: usize = 4;

/// How full and how well the store is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Store)]
struct StoreBody {
    /// Events, those without a payload included.
    events: u64,
    /// Events whose payload is kept.
    payloads: u64,
    /// Bytes on disk.
    bytes: u64,
    /// Bytes that are free on its disk; null where that is not its own to watch.
    free_bytes: Option<u64>,
    /// Keys held by more than one event. Anything but zero is a broken promise.
    keys_twice: u64,
    /// Effects that wait for their time or for others.
    effects_pending: u64,
    /// Effects of which nobody knows whether they were applied.
    effects_uncertain: u64,
    /// Effects that were given up.
    effects_dead: u64,
    /// Secrets that are kept, sealed.
    secrets: u64,
    /// Those of them that an older vault key has sealed.
    secrets_older_key: u64,
}

/// What was deleted, or would be.
#[derive(Serialize, ToSchema)]
#[schema(as = Pruned)]
struct PrunedBody {
    payloads: u32,
    ledgers: u32,
    identities: u32,
    /// Is there more? Then ask again.
    more: bool,
}

impl From<Reaped> for PrunedBody {
    fn from(reaped: Reaped) -> PrunedBody {
        PrunedBody {
            payloads: reaped.payloads,
            ledgers: reaped.ledgers,
            identities: reaped.identities,
            more: reaped.more,
        }
    }
}

/// How full and how well the store is. Reads every event.
#[utoipa::path(get, path = "/store", operation_id = "getStore", tag = "operations",
    responses((status = OK, description = "counts and the cross-check", body = StoreBody)))]
pub async fn stats(State(api): State<Api>) -> impl IntoResponse {
    let read = async {
        let (stats, effects) = (api.store.stats().await?, api.store.effect_counts().await?);
        let census = api.safe.census(&*api.store).await?;
        Ok(StoreBody {
            events: stats.events,
            payloads: stats.payloads,
            bytes: stats.bytes,
            free_bytes: api.store.disk().map(|disk| disk.free_bytes),
            keys_twice: stats.keys_twice,
            effects_pending: effects.pending,
            effects_uncertain: effects.uncertain,
            effects_dead: effects.dead,
            secrets: census.total,
            secrets_older_key: census.older,
        })
    };
    match read.await {
        Ok(body) => answer::json(StatusCode::OK, &body),
        Err(error) => unavailable(&error),
    }
}

/// Deletes some of what has expired, as the server does every quarter of an hour.
#[utoipa::path(post, path = "/store/prune", operation_id = "pruneStore", tag = "operations",
    request_body = Option<PruneRequest>,
    responses((status = OK, description = "what was deleted, or would be with `dryRun`", body = PrunedBody)))]
pub async fn prune(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    let mut fields = posted.fields();
    let dry_run = fields.flag("dryRun");
    if let Err(refused) = fields.finish() {
        return refused.answer();
    }
    let pruned = match dry_run {
        true => api.upkeep.due().await,
        false => api.upkeep.prune().await,
    };
    match pruned {
        Ok(reaped) => answer::json(StatusCode::OK, &PrunedBody::from(reaped)),
        Err(error) => unavailable(&error),
    }
}

/// A consistent copy of an SQLite store, made while it is in use.
#[utoipa::path(get, path = "/store/backup", operation_id = "backUpStore", tag = "operations",
    responses(
        (status = OK, description = "an SQLite file", body = Vec<u8>, content_type = "application/vnd.sqlite3"),
        (status = CONFLICT, description = "PostgreSQL has its own tools", body = told::Problem)))]
pub async fn backup(State(api): State<Api>) -> Response {
    let suffix = hex::encode(entropy::bytes::<8>());
    let path = match api.store.backup(&suffix).await {
        Ok(Some(path)) => path,
        Ok(None) => return problem(answer::NO_BACKUP).into_response(),
        Err(error) => return unavailable(&error).into_response(),
    };
    let opened = open(&path);
    // Its bytes are there as long as the file is open; nobody else finds it.
    let _ = std::fs::remove_file(&path);
    match opened {
        Ok((file, length)) => send(file, length),
        Err(error) => {
            tracing::warn!(%error, "a copy of the store could not be read");
            problem(answer::UNAVAILABLE).into_response()
        }
    }
}

fn open(path: &Path) -> std::io::Result<(File, u64)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn send(mut file: File, length: u64) -> Response {
    let (out, pieces) = mpsc::channel(PIECES_MAX);
    tokio::task::spawn_blocking(move || {
        let mut buffer = vec![0; PIECE_BYTES];
        while let Ok(read @ 1..) = file.read(&mut buffer) {
            // Whoever has gone away reads no more.
            if out
                .blocking_send(Bytes::copy_from_slice(&buffer[..read]))
                .is_err()
            {
                return;
            }
        }
    });
    let mut response = Response::new(Body::new(Pieces(pieces)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    let kind = HeaderValue::from_static("application/vnd.sqlite3");
    headers.insert(CONTENT_TYPE, kind);
    response
}

/// A body that is sent piece by piece. If it ends early its length tells.
struct Pieces(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
