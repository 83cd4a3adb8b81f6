//! Nodes telling each other that there is something to do in a shard. Hints: they may get lost, and whoever looks after a shard
//! looks there now and then anyway.
//!
//! `NOTIFY` takes a lock on the whole server while it commits, so it is never part of a transaction that others wait for: a task
//! of its own says what has gathered, and then pauses. `LISTEN` needs a session that is ours alone. Behind a transaction pooler
//! there is none; there nothing is ever heard.

use std::collections::BTreeSet;
use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::pool::Pool;
use super::{SHARDS, direct};
use crate::error::StoreError;

/// The least time between two notifications of one process: what gathers meanwhile goes into one.
const TELL_PAUSE: Duration = Duration::from_millis(10);
/// How long a new session may take until it listens.
const LISTEN_WAIT: Duration = Duration::from_secs(15);
/// The first pause after the session was lost.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause. Meanwhile nodes find out for themselves what there is to do.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Shards that gather until somebody takes them.
#[derive(Default)]
struct Heap {
    shards: Mutex<BTreeSet<u16>>,
    more: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heap {
    fn add(&self, shards: impl IntoIterator<Item = u16>) {
        lock(&self.shards).extend(shards);
        self.more.notify_one();
    }

    /// All that has gathered, as soon as there is something.
    async fn take(&self) -> Vec<u16> {
        loop {
            let shards = std::mem::take(&mut *lock(&self.shards));
            if !shards.is_empty() {
                return shards.into_iter().collect();
            }
            self.more.notified().await;
        }
    }
}

/// The way to the server, for listening.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
}

/// What is told to other nodes, and what was heard from them.
pub(super) struct Bell {
    pool: Pool,
    line: Line,
    /// Stands before what this process tells, so that it does not wake itself.
    token: String,
    to_tell: Arc<Heap>,
    heard: Arc<Heap>,
    tasks: Mutex<Tasks>,
}

#[derive(Default)]
struct Tasks {
    all: JoinSet<()>,
    tells: bool,
    listens: bool,
    closed: bool,
}

impl Bell {
    /// A bell that nobody has used yet: its tasks begin when they are needed.
    pub(super) fn new(pool: Pool, line: Line, token: u64) -> Bell {
        Bell {
            pool,
            line,
            token: format!("{token:016x}"),
            to_tell: Arc::default(),
            heard: Arc::default(),
            tasks: Mutex::default(),
        }
    }

    /// Tells other nodes, soon.
    pub(super) fn tell(&self, shards: impl IntoIterator<Item = u16>) {
        self.to_tell.add(shards);
        let mut tasks = lock(&self.tasks);
        if !tasks.tells && !tasks.closed {
            tasks.tells = true;
            let (pool, token) = (self.pool.clone(), self.token.clone());
            tasks
                .all
                .spawn(keep_telling(pool, token, self.to_tell.clone()));
        }
    }

    /// The shards that other nodes have named since, as soon as one has.
    pub(super) async fn woken(&self) -> Vec<u16> {
        {
            let mut tasks = lock(&self.tasks);
            if !tasks.listens && !tasks.closed {
                tasks.listens = true;
                let (line, token) = (self.line.clone(), self.token.clone());
                tasks
                    .all
                    .spawn(keep_listening(line, token, self.heard.clone()));
            }
        }
        self.heard.take().await
    }

    /// Ends both tasks and waits for them.
    pub(super) async fn close(&self) {
        let mut all = {
            let mut tasks = lock(&self.tasks);
            tasks.closed = true;
            std::mem::take(&mut tasks.all)
        };
        all.shutdown().await;
    }
}

async fn keep_telling(pool: Pool, token: String, to_tell: Arc<Heap>) {
    loop {
        let shards = to_tell.take().await;
        if let Err(error) = tell(&pool, &words(&token, &shards)).await {
            tracing::debug!(%error, "other nodes could not be told");
        }
        sleep(TELL_PAUSE).await;
    }
}

async fn tell(pool: &Pool, words: &str) -> Result<(), StoreError> {
    let taken = pool.take().await?;
    taken
        .query_and_commit(
            "SELECT pg_notify('hapax_wake', $1)",
            &[(&words, Type::TEXT)],
        )
        .await?;
    Ok(())
}

/// Who speaks, and the shards.
fn words(token: &str, shards: &[u16]) -> String {
    let shards: Vec<String> = shards.iter().map(u16::to_string).collect();
    format!("{token} {}", shards.join(" "))
}

/// The shards that somebody else named. Whatever else it says is none of ours.
fn understood(words: &str, token: &str) -> Vec<u16> {
    let mut words = words.split(' ');
    if words.next() == Some(token) {
        return Vec::new();
    }
    let shards = words.filter_map(|word| word.parse().ok());
    shards.filter(|shard| *shard < SHARDS).collect()
}

async fn keep_listening(line: Line, token: String, heard: Arc<Heap>) {
    let mut pause = PAUSE_MIN;
    loop {
        match listen(&line, &token, &heard, &mut pause).await {
            Ok(Ended::Lost) => {}
            Ok(Ended::NotDirect) => {
                tracing::info!(
                    "somebody is between us and the database, so nodes cannot wake each other"
                );
                return;
            }
            Err(error) => tracing::debug!(%error, "cannot listen to other nodes"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
        // Whatever was said meanwhile is lost: better to look everywhere once.
        heard.add(0..SHARDS);
    }
}

/// Why listening ended.
enum Ended {
    Lost,
    NotDirect,
}

/// Listens on a session of its own until that ends.
async fn listen(
    line: &Line,
    token: &str,
    heard: &Heap,
    pause: &mut Duration,
) -> Result<Ended, tokio_postgres::Error> {
    let Ok(connected) = timeout(LISTEN_WAIT, line.config.connect(line.tls.clone())).await else {
        return Ok(Ended::Lost);
    };
    let (client, mut connection) = connected?;
    let hearing = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(said) = message? {
                let shards = understood(said.payload(), token);
                if !shards.is_empty() {
                    heard.add(shards);
                }
            }
        }
        Ok(Ended::Lost)
    };
    let asking = async {
        match timeout(LISTEN_WAIT, ask(&client)).await {
            Ok(Ok(true)) => {
                *pause = PAUSE_MIN;
                pending().await
            }
            Ok(Ok(false)) => Ok(Ended::NotDirect),
            Ok(Err(error)) => Err(error),
            Err(_) => Ok(Ended::Lost),
        }
    };
    tokio::select! {
        ended = hearing => ended,
        ended = asking => ended,
    }
}

/// Asks to be told, if the session is ours alone.
async fn ask(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let row = client
        .query_typed_one("SELECT pg_backend_pid()", &[])
        .await?;
    if !direct::is_direct(client, row.get(0)).await {
        return Ok(false);
    }
    client.batch_execute("LISTEN hapax_wake").await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood_by_others_only() {
        let said = words("a1", &[0, 63]);
        assert_eq!(said, "a1 0 63");
        assert_eq!(understood(&said, "b2"), [0, 63]);
        assert!(understood(&said, "a1").is_empty());
        assert_eq!(understood("c3 64 x 7", "a1"), [7]);
        assert!(understood("", "a1").is_empty());
    }

    #[tokio::test]
    async fn what_gathers_is_taken_at_once() {
        let heap = Heap::default();
        heap.add([3, 1]);
        heap.add([1, 2]);
        assert_eq!(heap.take().await, [1, 2, 3]);
        let waiting = timeout(Duration::ZERO, heap.take()).await;
        assert!(waiting.is_err(), "nothing is left");
        heap.add([9]);
        assert_eq!(heap.take().await, [9]);
    }
}
