//! Connections to the server: a few, kept open, each driven by a task of ours.
//!
//! Our own rules for giving back: a connection on which anything failed is closed, never reused. Nothing is remembered in a session: no session lock, and statements and
//! settings only where nobody is in between (see [`super::kept`]), so that a transaction pooler may stand there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Config, Error, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::begin::{BEGIN, BEGIN_PICTURE, BEGIN_PLANNED, PLAN_ANEW, SESSION_PLANNED};
use super::fault::{nothing_written, of_commit, unavailable, unknown};
use super::kept::{self, Statements};
use super::pipeline::in_order;
use super::session::Session;
use crate::error::StoreError;

/// How long a caller waits for a connection that others are using.
const TAKE_WAIT: Duration = Duration::from_secs(5);
/// How long a statement may take that does not commit. Longer than the server's own limits in [`super::begin`], so that it
/// is the server who gives up first and lets its locks go.
const STATEMENT_WAIT: Duration = Duration::from_secs(15);
/// A commit whose answer did not come in time keeps its place in the pool for so long, unless its answer does come. The server
/// does not notice that we left while it waits for a standby; without this, each retry would leave one more session behind.
const STUCK_WAIT: Duration = Duration::from_secs(600);
/// Unacknowledged bytes for so long mean that the server's machine is gone.
const TCP_WAIT: Duration = Duration::from_secs(15);

/// A statement with its values.
pub(super) type Statement<'a> = (&'static str, Vec<Param<'a>>);

/// A value and its type: with the types, a statement that is sent anew takes one round trip.
pub(super) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A few connections.
#[derive(Clone)]
pub(super) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    tls: MakeRustlsConnect,
    commit_wait: Duration,
    free: Mutex<Vec<Session>>,
    permits: Arc<Semaphore>,
    stuck: Mutex<JoinSet<()>>,
    statements: Statements,
    /// Statements got lost or mixed up: sessions are shared by others, whatever they look like.
    shared_with_others: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The way to the server, with our name and our patience.
pub(super) fn with_limits(config: &Config) -> Config {
    let mut config = config.clone();
    config
        .tcp_user_timeout(TCP_WAIT)
        .keepalives_idle(TCP_WAIT)
        .application_name("hapax");
    config
}

impl Pool {
    /// A pool of at most `size` connections, none of them open yet.
    pub(super) fn new(
        config: &Config,
        tls: MakeRustlsConnect,
        commit_wait: Duration,
        size: usize,
        statements: Statements,
    ) -> Pool {
        let shared = Shared {
            config: with_limits(config),
            tls,
            commit_wait,
            free: Mutex::new(Vec::with_capacity(size)),
            permits: Arc::new(Semaphore::new(size)),
            stuck: Mutex::new(JoinSet::new()),
            statements,
            shared_with_others: AtomicBool::new(false),
        };
        Pool {
            shared: Arc::new(shared),
        }
    }

    /// A connection for this caller alone, opened if none is free.
    pub(super) async fn take(&self) -> Result<Taken, StoreError> {
        let permit = timeout(TAKE_WAIT, self.shared.permits.clone().acquire_owned())
            .await
            .map_err(|_| unavailable("every connection to the database is in use"))?
            .map_err(|_| unavailable("the store is closed"))?;
        let kept = lock(&self.shared.free).pop();
        let usable = match kept {
            Some(session) => self.shared.made_ready(session).await,
            None => None,
        };
        let session = match usable {
            Some(session) => session,
            None => self.shared.connect().await?,
        };
        Ok(Taken {
            session,
            permit,
            shared: self.shared.clone(),
        })
    }

    /// Reads with one statement.
    pub(super) async fn read(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let taken = self.take().await?;
        let rows = taken.query(sql, params).await?;
        taken.give_back();
        Ok(rows)
    }

    /// Reads with several statements in one picture of the database and one round trip; says what each of them found.
    pub(super) async fn read_all(
        &self,
        all: &[Statement<'_>],
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let taken = self.take().await?;
        let found = taken.in_one_picture(all).await?;
        taken.give_back();
        Ok(found)
    }

    /// Reads with one statement that goes along an index and may stop early. Outside a transaction of ours the planner would rather
    /// read and sort all that it might come to.
    pub(super) async fn walk(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let taken = self.take().await?;
        let rows = taken.begin(sql, params).await?;
        taken.commit().await?;
        Ok(rows)
    }

    /// Closes what is free; what is in use is closed when it comes back.
    pub(super) fn close(&self) {
        self.shared.permits.close();
        lock(&self.shared.free).clear();
        lock(&self.shared.stuck).abort_all();
    }
}

impl Shared {
    async fn connect(&self) -> Result<Session, StoreError> {
        let mut session = Session::open(&self.config, &self.tls).await?;
        if self.keeps_statements() {
            session.keep_statements().await;
        }
        if self.statements == Statements::Planned && session.kept.is_some() {
            let told = session.client.batch_execute(SESSION_PLANNED);
            let told = timeout(STATEMENT_WAIT, told).await;
            told.map_err(|_| unavailable("the database did not answer in time"))?
                .map_err(|error| nothing_written(&error))?;
            session.planned = true;
        }
        Ok(session)
    }

    fn keeps_statements(&self) -> bool {
        self.statements != Statements::Anew && !self.shared_with_others.load(Ordering::Relaxed)
    }

    /// A session that was given back, if it can be used again.
    async fn made_ready(&self, mut session: Session) -> Option<Session> {
        let unfit = session.kept.is_some() && !self.keeps_statements();
        if unfit || session.client.is_closed() {
            return None;
        }
        match session.prepare_noted().await {
            Ok(()) => Some(session),
            Err(error) => {
                error.iter().for_each(|error| self.heed(error));
                None
            }
        }
    }

    /// Gives up keeping statements if an error says that sessions are not ours alone. The session itself goes with its error.
    fn heed(&self, error: &Error) {
        if kept::is_not_ours(error.code()) && !self.shared_with_others.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                %error,
                "somebody shares the sessions with the database; from now on every statement is planned anew"
            );
        }
    }
}

/// A connection in use. Dropped, it is closed, and with it whatever transaction was open; see [`Taken::give_back`].
pub(super) struct Taken {
    session: Session,
    permit: OwnedSemaphorePermit,
    shared: Arc<Shared>,
}

impl Taken {
    /// Begins a transaction and runs its first statement in the same round trip.
    pub(super) async fn begin(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let begun = self.session.client.batch_execute(BEGIN);
        let both = async { tokio::try_join!(biased; begun, self.run(sql, params)) };
        let ((), rows) = self.answered(timeout(STATEMENT_WAIT, both).await)?;
        Ok(rows)
    }

    /// Begins a transaction; its statements may be sent behind it without waiting.
    pub(super) async fn open(&self) -> Result<(), StoreError> {
        self.answered(timeout(STATEMENT_WAIT, self.session.client.batch_execute(BEGIN)).await)
    }

    /// Begins a transaction whose statements are planned once; see [`BEGIN_PLANNED`].
    pub(super) async fn open_planned(&self) -> Result<(), StoreError> {
        let begun = self.session.client.batch_execute(BEGIN_PLANNED);
        self.answered(timeout(STATEMENT_WAIT, begun).await)
    }

    /// What comes now in the open transaction is planned for every use.
    pub(super) async fn plan_anew(&self) -> Result<(), StoreError> {
        self.answered(timeout(STATEMENT_WAIT, self.session.client.batch_execute(PLAN_ANEW)).await)
    }

    /// Runs statements that commit nothing, one behind the other without waiting.
    pub(super) async fn run_all(&self, all: &[Statement<'_>]) -> Result<Vec<Vec<Row>>, StoreError> {
        self.answered(timeout(STATEMENT_WAIT, self.in_order(all)).await)
    }

    /// Runs a statement that commits nothing: a read, or one inside a transaction.
    pub(super) async fn query(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.answered(timeout(STATEMENT_WAIT, self.run(sql, params)).await)
    }

    /// Runs whole files of statements; only for migrations.
    pub(super) async fn run_file(&self, sql: &str) -> Result<(), StoreError> {
        self.answered(timeout(STATEMENT_WAIT, self.session.client.batch_execute(sql)).await)
    }

    /// Runs one statement that is its own transaction.
    pub(super) async fn query_and_commit(
        self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let wait = self.shared.commit_wait;
        let answer = timeout(wait, self.run(sql, params)).await;
        self.committed(answer)
    }

    /// The same, for one that may break this constraint: `None`, and nothing is written, if it does.
    pub(super) async fn query_and_commit_unless(
        self,
        sql: &'static str,
        params: &[Param<'_>],
        constraint: &str,
    ) -> Result<Option<Vec<Row>>, StoreError> {
        let wait = self.shared.commit_wait;
        let answer = timeout(wait, self.run(sql, params)).await;
        let broken = answer.as_ref().ok().and_then(|ran| ran.as_ref().err());
        let broken = broken.and_then(Error::as_db_error).is_some_and(|error| {
            *error.code() == SqlState::UNIQUE_VIOLATION && error.constraint() == Some(constraint)
        });
        if broken {
            return Ok(None);
        }
        self.committed(answer).map(Some)
    }

    /// Commits the open transaction.
    pub(super) async fn commit(self) -> Result<(), StoreError> {
        let wait = self.shared.commit_wait;
        let answer = timeout(wait, self.session.client.batch_execute("COMMIT")).await;
        self.committed(answer)
    }

    /// Ends the open transaction as if it had never begun.
    pub(super) async fn roll_back(self) {
        let ended = timeout(
            STATEMENT_WAIT,
            self.session.client.batch_execute("ROLLBACK"),
        );
        // Without an answer it is closed, which comes to the same.
        if matches!(ended.await, Ok(Ok(()))) {
            self.give_back();
        }
    }

    /// Runs the last statements of a transaction and commits it, in one round trip; says what each of them found. If one of them
    /// fails, the commit behind it only ends the transaction, and nothing was written.
    pub(super) async fn commit_behind(
        self,
        last: &[Statement<'_>],
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        let committed = self.session.client.batch_execute("COMMIT");
        let both = async { tokio::try_join!(biased; self.in_order(last), committed) };
        let answer = timeout(self.shared.commit_wait, both).await;
        let (found, ()) = self.committed(answer)?;
        Ok(found)
    }

    /// Runs a statement that is planned once and a transaction by itself.
    pub(super) async fn alone(
        self,
        sql: &'static str,
        params: Vec<Param<'_>>,
    ) -> Result<Vec<Row>, StoreError> {
        let answer = self.committing(sql, &params).await;
        self.committed(answer)
    }

    /// The same, and what came of it as it was heard; see [`Taken::heard`].
    pub(super) async fn committing(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Result<Vec<Row>, Error>, Elapsed> {
        let wait = self.shared.commit_wait;
        if self.session.planned {
            return timeout(wait, self.run(sql, params)).await;
        }
        let begun = self.session.client.batch_execute(BEGIN_PLANNED);
        let committed = self.session.client.batch_execute("COMMIT");
        let whole = async { tokio::try_join!(biased; begun, self.run(sql, params), committed) };
        let answer = timeout(wait, whole).await?;
        Ok(answer.map(|((), rows, ())| rows))
    }

    /// Is it ours alone, and does it keep this statement?
    pub(super) fn keeps(&self, sql: &'static str) -> bool {
        let kept = self.session.kept.as_ref();
        self.session.planned && kept.is_some_and(|kept| kept.has(sql))
    }

    /// Has the connection ended?
    pub(super) fn is_closed(&self) -> bool {
        self.session.client.is_closed()
    }

    /// Reads with one statement that is planned once, in one round trip.
    pub(super) async fn read_planned(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        if self.session.planned {
            return self.query(sql, params).await;
        }
        let begun = self.session.client.batch_execute(BEGIN_PLANNED);
        let ended = self.session.client.batch_execute("COMMIT");
        let whole = async { tokio::try_join!(biased; begun, self.run(sql, params), ended) };
        let ((), rows, ()) = self.answered(timeout(STATEMENT_WAIT, whole).await)?;
        Ok(rows)
    }

    async fn in_one_picture(&self, all: &[Statement<'_>]) -> Result<Vec<Vec<Row>>, StoreError> {
        let begun = self.session.client.batch_execute(BEGIN_PICTURE);
        let ended = self.session.client.batch_execute("COMMIT");
        let whole = async { tokio::try_join!(biased; begun, self.in_order(all), ended) };
        let ((), found, ()) = self.answered(timeout(STATEMENT_WAIT, whole).await)?;
        Ok(found)
    }

    async fn in_order(&self, all: &[Statement<'_>]) -> Result<Vec<Vec<Row>>, Error> {
        let all = all.iter().map(|(sql, params)| self.run(sql, params));
        in_order(all.collect()).await
    }

    /// The next caller may have it. Only after everything on it went well and no transaction is open.
    pub(super) fn give_back(self) {
        lock(&self.shared.free).push(self.session);
    }

    fn committed<T>(self, answer: Result<Result<T, Error>, Elapsed>) -> Result<T, StoreError> {
        let stuck = answer.is_err();
        let said = self.heard(answer);
        match (&said, stuck) {
            (Ok(_), _) => self.give_back(),
            (Err(_), true) => self.leave_stuck(),
            (Err(_), false) => {}
        }
        said
    }

    /// What the answer to a commit means.
    pub(super) fn heard<T>(
        &self,
        answer: Result<Result<T, Error>, Elapsed>,
    ) -> Result<T, StoreError> {
        match answer {
            Ok(Ok(_)) if self.session.notices.any_not_durable() => {
                Err(unknown("the commit was not waited for by the standby"))
            }
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                self.shared.heed(&error);
                Err(of_commit(&error))
            }
            Err(_) => Err(unknown("the database did not answer a commit in time")),
        }
    }

    async fn run(&self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        #[cfg(all(test, feature = "conformance"))]
        super::plans::note(&self.session.client, sql, params).await?;
        kept::run(
            &self.session.client,
            self.session.kept.as_ref(),
            sql,
            params,
        )
        .await
    }

    fn answered<T, E>(&self, answer: Result<Result<T, Error>, E>) -> Result<T, StoreError> {
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                self.shared.heed(&error);
                Err(nothing_written(&error))
            }
            Err(_) => Err(unavailable("the database did not answer in time")),
        }
    }

    /// Keeps the place of a commit that may still be going on; see [`STUCK_WAIT`].
    pub(super) fn leave_stuck(self) {
        let Taken {
            session,
            permit,
            shared,
        } = self;
        let mut stuck = lock(&shared.stuck);
        while stuck.try_join_next().is_some() {}
        stuck.spawn(async move {
            // Answered after whatever was sent before it.
            let _ = timeout(STUCK_WAIT, session.client.check_connection()).await;
            drop(permit);
        });
    }
}
