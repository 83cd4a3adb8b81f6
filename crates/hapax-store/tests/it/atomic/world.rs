//! A database with a table of the caller's own, for each driver.

use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::fingerprint::{Fingerprint, RequestParts};
use hapax_store::atomic::{
    AtomicError, AtomicTx, Claim, Claimed, Param, Row, Run, TxError, Value, blocking, claim,
    finish, install,
};
use hapax_store::conformance::atomic::lose_all;
use tokio_postgres::Client;

use crate::database::{Database, with_database};

/// A connection of one driver.
pub(crate) trait Session {
    type Tx<'a>: AtomicTx + End
    where
        Self: 'a;

    async fn begin(&mut self) -> Self::Tx<'_>;
}

/// The end of a transaction.
pub(crate) trait End {
    async fn commit(self);
    async fn roll_back(self);
}

/// Two connections to a database that has the tables.
pub(crate) struct World<S> {
    pub(crate) one: S,
    pub(crate) other: S,
}

impl<S: Session> World<S> {
    async fn new(mut one: S, other: S) -> World<S> {
        let mut tx = one.begin().await;
        install(&mut tx).await.expect("the table is made");
        run(&mut tx, "CREATE TABLE charge (key TEXT NOT NULL)", &[]).await;
        End::commit(tx).await;
        World { one, other }
    }

    /// How many charges there are, for anybody to see.
    pub(crate) async fn charges(&mut self) -> i64 {
        let mut tx = self.other.begin().await;
        let rows = run(&mut tx, "SELECT count(*) FROM charge", &[]).await;
        End::roll_back(tx).await;
        match rows[0].0[..] {
            [Value::Int(count)] => count,
            ref other => panic!("a count: {other:?}"),
        }
    }

    /// What becomes of this claim, which leaves nothing behind.
    pub(crate) async fn look(&mut self, asked: &Claim) -> Claimed {
        let mut tx = self.other.begin().await;
        let claimed = claim(&mut tx, asked).await.expect("the database answers");
        End::roll_back(tx).await;
        claimed
    }

    /// Charges once, and answers.
    pub(crate) async fn charge(&mut self, asked: &Claim, answer: &[u8]) {
        let mut tx = self.one.begin().await;
        let run = fresh(&mut tx, asked).await;
        insert_charge(&mut tx, "one").await;
        finish(&mut tx, run, Some(answer)).await.expect("finished");
        End::commit(tx).await;
    }

    /// Every lease has run out.
    pub(crate) async fn lose(&mut self) {
        let mut tx = self.one.begin().await;
        lose_all(&mut tx).await.expect("lost");
        End::commit(tx).await;
    }
}

/// Runs a statement of the caller's own.
pub(crate) async fn run<T: AtomicTx>(
    tx: &mut T,
    statement: &'static str,
    params: &[Param<'_>],
) -> Vec<Row> {
    tx.query(statement, params)
        .await
        .expect("the statement runs")
}

/// The work.
pub(crate) async fn insert_charge<T: AtomicTx>(tx: &mut T, key: &str) {
    let statement = "INSERT INTO charge (key) VALUES ($1)";
    run(tx, statement, &[Param::Text(Some(key))]).await;
}

/// The right to run.
pub(crate) async fn fresh<T: AtomicTx>(tx: &mut T, asked: &Claim) -> Run {
    match claim(tx, asked).await {
        Ok(Claimed::Fresh(run)) => run,
        other => panic!("fresh: {other:?}"),
    }
}

/// Is this run told that its key is gone?
pub(crate) fn lost(result: Result<(), AtomicError>) -> bool {
    matches!(result, Err(AtomicError::Lost(_)))
}

/// A claim of this key with this body.
pub(crate) fn wants(key: &str, body: &str) -> Claim {
    let fingerprint = Fingerprint::of(&RequestParts {
        method: "POST",
        path: "/charges",
        query: None,
        content_type: None,
        body: body.as_bytes(),
    });
    Claim::new("charges", key, fingerprint)
}

impl Session for rusqlite::Connection {
    type Tx<'a> = rusqlite::Transaction<'a>;

    /// Deferred, the worst case: nothing is locked before the claim.
    async fn begin(&mut self) -> rusqlite::Transaction<'_> {
        self.transaction().expect("a transaction")
    }
}

impl End for rusqlite::Transaction<'_> {
    async fn commit(self) {
        self.commit().expect("committed");
    }

    async fn roll_back(self) {
        self.rollback().expect("rolled back");
    }
}

impl Session for Client {
    type Tx<'a> = tokio_postgres::Transaction<'a>;

    async fn begin(&mut self) -> tokio_postgres::Transaction<'_> {
        self.transaction().await.expect("a transaction")
    }
}

impl End for tokio_postgres::Transaction<'_> {
    async fn commit(self) {
        self.commit().await.expect("committed");
    }

    async fn roll_back(self) {
        self.rollback().await.expect("rolled back");
    }
}

#[cfg(feature = "sqlx-postgres")]
impl Session for sqlx::PgConnection {
    type Tx<'a> = sqlx::Transaction<'a, sqlx::Postgres>;

    async fn begin(&mut self) -> sqlx::Transaction<'_, sqlx::Postgres> {
        let tx = sqlx::Connection::begin(self).await;
        tx.expect("a transaction")
    }
}

#[cfg(feature = "sqlx-postgres")]
impl End for sqlx::Transaction<'_, sqlx::Postgres> {
    async fn commit(self) {
        self.commit().await.expect("committed");
    }

    async fn roll_back(self) {
        self.rollback().await.expect("rolled back");
    }
}

/// A connection to this file that does not wait for others.
pub(crate) fn sqlite_session(path: &std::path::Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).expect("the file opens");
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .expect("readers do not wait");
    connection
        .busy_timeout(Duration::ZERO)
        .expect("nobody waits");
    connection
}

/// Runs a check on SQLite.
pub(crate) fn sqlite(check: impl AsyncFnOnce(World<rusqlite::Connection>)) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let session = || sqlite_session(&folder.path().join("own.db"));
    blocking(async {
        let world = World::new(session(), session()).await;
        check(world).await;
    });
}

/// Runs a check on PostgreSQL.
pub(crate) fn postgres<Fut>(check: impl FnOnce(World<Client>) -> Fut + Send + 'static)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    with_database(|database: Arc<Database>| async move {
        let world = World::new(database.client().await, database.client().await).await;
        check(world).await;
    });
}

/// Runs a check on PostgreSQL, through sqlx.
#[cfg(feature = "sqlx-postgres")]
pub(crate) fn sqlx_postgres<Fut>(
    check: impl FnOnce(World<sqlx::PgConnection>) -> Fut + Send + 'static,
) where
    Fut: Future<Output = ()> + Send + 'static,
{
    use sqlx::Connection;
    with_database(|database: Arc<Database>| async move {
        let url = database.url();
        let one = sqlx::PgConnection::connect(&url).await.expect("connected");
        let other = sqlx::PgConnection::connect(&url).await.expect("connected");
        check(World::new(one, other).await).await;
    });
}

/// A statement that fails says so.
pub(crate) async fn refused<T: AtomicTx>(tx: &mut T, statement: &'static str) -> TxError {
    let said = tx.query(statement, &[]).await;
    said.expect_err("the statement is wrong")
}

/// Makes a test of each check for each driver.
macro_rules! on_every_driver {
    ($($check:ident),+ $(,)?) => {
        $(mod $check {
            #[test]
            fn rusqlite() {
                crate::atomic::world::sqlite(super::$check);
            }
            #[test]
            fn tokio_postgres() {
                crate::atomic::world::postgres(super::$check);
            }
            #[cfg(feature = "sqlx-postgres")]
            #[test]
            fn sqlx_postgres() {
                crate::atomic::world::sqlx_postgres(super::$check);
            }
        })+
    };
}
pub(crate) use on_every_driver;
