//! `GET /event/stream`: events as they are accepted, for as long as somebody listens (server-sent events).

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hapax_ledger::id::EventId;
use hapax_store::StoreError;
use hapax_store::nouns::{Event, EventFilter};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::Api;
use super::describe::asked::StreamQuery;
use super::event;
use super::list::{self, Invalid};
use crate::clock;
use crate::http::answer::{self, problem};
use crate::http::auth;
use crate::operate::follow::Follower;

/// Listeners at a time: people at a prompt and open pages, not a way to consume events.
const LISTENERS_MAX: usize = 32;
/// Pieces that wait for a listener who reads slowly; then the ledger waits to be read.
const PIECES_MAX: usize = 64;
/// How often the ledger is looked at for what other nodes accepted.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between hearing of an accept and looking: what is accepted together is read together.
const TOGETHER: Duration = Duration::from_millis(20);
/// How long a stream may be silent. Below the minute after which proxies cut a connection.
const SILENT_MAX: Duration = Duration::from_secs(15);

/// Those who listen.
pub struct Live {
    places: Arc<Semaphore>,
    ended: watch::Sender<bool>,
}

impl Default for Live {
    fn default() -> Live {
        Live {
            places: Arc::new(Semaphore::new(LISTENERS_MAX)),
            ended: watch::Sender::new(false),
        }
    }
}

impl Live {
    /// The server stops: all streams end.
    pub fn end(&self) {
        self.ended.send_replace(true);
    }
}

/// Events as they are accepted from now on, or after `Last-Event-ID`, for as long as somebody listens.
#[utoipa::path(get, path = "/event/stream", operation_id = "streamEvents", tag = "events", params(StreamQuery),
    responses((status = OK, description = "server-sent events: each `data` is an event as lists show it",
        body = String, content_type = "text/event-stream")))]
pub async fn stream(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    Extension(auth::Shown(token)): Extension<auth::Shown>,
    headers: HeaderMap,
) -> Response {
    let wanted = read_filter(query.as_deref().unwrap_or(""))
        .and_then(|filter| Ok((filter, last_event_id(&headers)?)));
    let (filter, after) = match wanted {
        Ok(wanted) => wanted,
        Err(invalid) => return list::refuse(invalid).into_response(),
    };
    let Ok(place) = api.live.places.clone().try_acquire_owned() else {
        return problem(answer::TOO_MANY_LISTENERS).into_response();
    };
    // Before the ledger is read: nothing falls between the two.
    let accepts = api.inbox.accepts.listen();
    let follower = match after {
        Some(event) => Follower::after(api.store.clone(), event),
        None => match Follower::from_now(api.store.clone()).await {
            Ok(follower) => follower,
            Err(error) => return event::unavailable(&error).into_response(),
        },
    };
    let (out, pieces) = mpsc::channel(PIECES_MAX);
    let listener = Listener {
        token,
        api,
        filter,
        follower,
        accepts,
        out,
        _place: place,
    };
    // The connection is its owner: it ends when either does.
    tokio::spawn(listener.run());
    answer_with(pieces)
}

fn answer_with(pieces: mpsc::Receiver<Bytes>) -> Response {
    let mut answer = Response::new(Body::new(Pieces(pieces)));
    let headers = answer.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would keep events back until its buffer is full.
    let buffering = HeaderName::from_static("x-accel-buffering");
    headers.insert(buffering, HeaderValue::from_static("no"));
    answer
}

/// The list's own filters: whoever looks at a narrowed list follows the same.
fn read_filter(query: &str) -> Result<EventFilter, Invalid> {
    let mut filter = EventFilter::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        event::narrow(&mut filter, &name, &value).map_err(|told| {
            told.unwrap_or_else(|| Invalid::query(&name, "the stream has no such parameter"))
        })?;
    }
    Ok(filter)
}

/// The event after which a listener who was cut off wants to go on.
fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, Invalid> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let id = value.to_str().ok().and_then(|text| text.parse().ok());
    let invalid = || Invalid::header("last-event-id", "the id of an event is expected");
    id.map(Some).ok_or_else(invalid)
}

/// The pieces of an answer, as they come.
struct Pieces(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Somebody who listens.
struct Listener {
    api: Api,
    token: [u8; 32],
    filter: EventFilter,
    follower: Follower,
    accepts: watch::Receiver<u64>,
    out: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
}

/// Why a stream ends before the server does.
enum Over {
    /// The listener has gone.
    Gone,
    /// Their token does not count any more.
    NoToken,
    /// The ledger cannot be read; they come again and go on where they were.
    Store(StoreError),
}

impl Listener {
    async fn run(mut self) {
        let (out, live) = (self.out.clone(), self.api.live.clone());
        let mut ended = live.ended.subscribe();
        tokio::select! {
            over = self.tell() => match over {
                Err(Over::Store(error)) => tracing::warn!(%error, "a live stream ends: the store could not answer"),
                Err(Over::Gone | Over::NoToken) | Ok(()) => {}
            },
            () = out.closed() => {}
            _ = ended.wait_for(|ended| *ended) => {}
        }
    }

    /// Tells of every event until something is over.
    async fn tell(&mut self) -> Result<(), Over> {
        self.say(": listening\n\n".to_owned()).await?;
        let (mut said, mut looked_back) = (clock::tick(), clock::tick());
        loop {
            let found = match clock::since(looked_back) < LOOK_EVERY {
                true => self.follower.look().await,
                false => {
                    self.still_may()?;
                    looked_back = clock::tick();
                    self.follower.look_back().await
                }
            };
            for event in found.map_err(Over::Store)? {
                if self.filter.fits(&event) {
                    self.say(piece(event)).await?;
                    said = clock::tick();
                }
            }
            if clock::since(said) > SILENT_MAX {
                self.say(": still here\n\n".to_owned()).await?;
                said = clock::tick();
            }
            if let Ok(heard) = tokio::time::timeout(LOOK_EVERY, self.accepts.changed()).await {
                // Whoever accepts is gone only with the server.
                heard.map_err(|_| Over::Gone)?;
                tokio::time::sleep(TOGETHER).await;
            }
        }
    }

    /// A token that was revoked or has expired ends its streams, too.
    fn still_may(&self) -> Result<(), Over> {
        let actor = self.api.tokens.find(self.token, clock::now());
        actor.map(drop).ok_or(Over::NoToken)
    }

    async fn say(&self, text: String) -> Result<(), Over> {
        self.out.send(text.into()).await.map_err(|_| Over::Gone)
    }
}

fn piece(event: Event) -> String {
    let id = event.id;
    format!("id: {id}\ndata: {}\n\n", event::row(event))
}
